"""What the lowering of every KAITO kind shares: annotations, placeholders and metadata."""

from __future__ import annotations

import re
from collections.abc import Mapping
from enum import Enum
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from kaigen.core.json_types import FieldPath
from kaigen.diagnostics.suggest import did_you_mean
from kaigen.dialects.draft import Draft
from kaigen.dialects.metadata import ForeignMetadata, own_labels, report_cluster_fields
from kaigen.kinds.lowering import PREFIX, Lowering, LoweringContext
from kaigen.kinds.positioned import Positioned

if TYPE_CHECKING:
    from kaigen.yaml.document import Document


class Runtime(Enum):
    """A value of the annotation `kaito.sh/runtime`."""

    VLLM = "vllm"
    TRANSFORMERS = "transformers"

    @property
    def engine(self) -> str:
        """kaigen's engine that serves in its place, which has the same name."""
        return self.value


_RUNTIME_NAMES = tuple(runtime.value for runtime in Runtime)


MODEL = PREFIX + "model"
TOKEN = PREFIX + "token-secret"
TOKEN_KEY = "HF_TOKEN"
_SECRET = re.compile(r"[a-z0-9]([-.a-z0-9]{0,251}[a-z0-9])?(/[-._a-zA-Z0-9]{1,253})?")

DIRECTIVES = ("api-key-secret", "compat", "model", "provisioning", "token-secret", "version")
"""Annotations, without `kaigen.dev/`, of resources that serve."""

_METADATA: FieldPath = ("metadata",)
_ANNOTATIONS: FieldPath = ("metadata", "annotations")
_KAITO_KEY = re.compile(r"^([a-z]+\.)?kaito\.(sh|io)/|^[a-z]+\.kaito\.io/|^kubectl\.kubernetes\.io/last-applied")
_PLACEHOLDER = re.compile(r"<[^<>]*>|\bYOUR[_ -]|\bREPLACE[_ -]?ME\b|\$\{?[A-Z_]+\}?")

_STREAMING = "kaigen does not stream weights; make them a Model and set `kaigen.dev/model`"
_NO_EFFECT: Mapping[str, str] = {
    "kaito.sh/use-local-weights": "pods do not mount folders of nodes; make the weights a Model and set "
    "`kaigen.dev/model`",
    "kaito.sh/node-image-family": "kaigen creates no node class; set `kaito.sh/node-class-name`",
    "kaito.sh/model-streaming": _STREAMING,
    "kaito.sh/model-mirror-storage-class": _STREAMING,
    "kaito.sh/streaming-service-account": _STREAMING,
    "inference.kaito.sh/static-model-mirror": _STREAMING,
    "kaito.sh/upgrade-to-version": "kaigen pins the image of the engine; `images` in kaigen.yaml overrides it",
}
"""Annotations that KAITO reads and kaigen ignores, with the reason."""

_EXACT: Mapping[str, str] = {
    "kaito.sh/enablelb": "True",
    "kaito.sh/disable-benchmark": "true",
    "kaito.sh/use-local-weights": "true",
}
"""The only value that KAITO accepts as true."""


class Options(Struct, frozen=True):
    """Options of a resource, set by annotations.

    Attributes:
        load_balancer: make the Service a LoadBalancer.
        runtime: `vllm` or `transformers`; empty for none.
        unchecked: render even if the model does not fit.
        performance: vLLM's performance mode; empty for its default.
        node_class: name of the Karpenter node class; empty for the default.
        compat: keep KAITO's names, labels, ports and paths.
        model: name of a Model with the weights; empty for none.
        api_key_secret: Secret with the API key that requests must have; empty for none.
        provisioning: `karpenter` or `none`; empty for the default of the profile.
        token_secret: Secret with a Hub token, with its key after a `/`; empty for none.
    """

    load_balancer: bool = False
    runtime: str = ""
    unchecked: bool = False
    performance: str = ""
    node_class: str = ""
    compat: bool = False
    model: str = ""
    api_key_secret: str = ""
    provisioning: str = ""
    token_secret: str = ""


class ResourceLowering(Lowering):
    """Lowers one KAITO resource."""

    def __init__(self, metadata: ForeignMetadata, document: Positioned, context: LoweringContext, *known: str) -> None:
        """Start, and report fields of metadata and status that have no effect.

        Args:
            metadata: of the resource.
            document: the resource with positions.
            context: what else the lowering may read.
            known: annotations, without `kaigen.dev/`, that the resource accepts; `DIRECTIVES` when empty.
        """
        super().__init__(document, context)
        self.metadata = metadata
        report_cluster_fields(self)
        self._directives = known or DIRECTIVES
        self.annotations = dict(metadata.annotations)
        self.labels = dict(metadata.labels)
        self._template: FieldPath = ()

    def read_template_metadata(self, metadata: Mapping[str, Any], at: FieldPath) -> None:
        """Also read labels and annotations of a template.

        Args:
            metadata: of the template.
            at: its path.
        """
        self._template = at
        for field, own in (("labels", self.labels), ("annotations", self.annotations)):
            given = metadata.get(field, {})
            if not isinstance(given, dict) or not all(isinstance(value, str) for value in given.values()):
                self.error("KG0412", f"`{field}` must be a map of strings", (*at, field))
                continue
            own.update(given)
        for field in metadata:
            if field not in {"labels", "annotations", "creationTimestamp"}:
                self.unused((*at, field), "names and labels come from the resource")

    def annotation_at(self, key: str) -> FieldPath:
        """Return the path of an annotation."""
        own = key in self.metadata.annotations or not self._template
        return (*_ANNOTATIONS, key) if own else (*self._template, "annotations", key)

    def options(self) -> Options:
        """Return the options of the resource, and report those that have no effect."""
        annotations = self.annotations
        directives = self.directives(annotations, self._directives)
        for key, expected in _EXACT.items():
            value = annotations.get(key)
            if value is not None and value != expected and value.lower() == expected.lower():
                self.warning(
                    "KG0405",
                    f'`{key}: "{value}"` has no effect: KAITO accepts only "{expected}"',
                    self.annotation_at(key),
                    f'write "{expected}", or delete it',
                )
        for key, reason in _NO_EFFECT.items():
            if key in annotations and annotations[key] not in {"false", ""}:
                self.warning("KG0405", f"`{key}` has no effect: {reason}", self.annotation_at(key), key=True)
        for key in annotations:
            if key.startswith("inference.kaito.sh/stream-"):
                self.warning("KG0405", f"`{key}` has no effect: {_STREAMING}", self.annotation_at(key), key=True)
        if "kaito.sh/inference-role" in self.metadata.labels:
            self.unused(
                ("metadata", "labels", "kaito.sh/inference-role"),
                "every pod does both prefill and decode, since kaigen creates no endpoint picker",
            )
        provisioning = self._choice(directives, PREFIX + "provisioning", ("karpenter", "none"))
        return Options(
            load_balancer=annotations.get("kaito.sh/enablelb") == "True",
            runtime=self._choice(annotations, "kaito.sh/runtime", _RUNTIME_NAMES),
            unchecked="kaito.sh/bypass-resource-checks" in annotations,
            performance=self._choice(
                annotations, "kaito.sh/performance-mode", ("balanced", "interactivity", "throughput")
            ).replace("balanced", ""),
            node_class=annotations.get("kaito.sh/node-class-name", ""),
            compat=self.flag(directives, "compat", False),
            model=directives.get("model", ""),
            api_key_secret=directives.get("api-key-secret", ""),
            provisioning=provisioning,
            token_secret=self._token_secret(directives),
        )

    def _token_secret(self, directives: Mapping[str, str]) -> str:
        value = directives.get("token-secret", "")
        if value and not _SECRET.fullmatch(value):
            self.error(
                "KG0406",
                f"`{TOKEN}` must be the name of a Secret, or its name and key",
                self.annotation_at(TOKEN),
                f"write the name of a Secret with the key `{TOKEN_KEY}`, or SECRET/KEY",
            )
        return value

    def unused_weights(self, reason: str) -> None:
        """Warn about annotations that name weights or their token, where nothing is downloaded by kaigen."""
        for key in (MODEL, TOKEN):
            if key in self.annotations:
                self.unused(self.annotation_at(key), reason)

    def _choice(self, values: Mapping[str, str], key: str, known: tuple[str, ...]) -> str:
        value = values.get(key.removeprefix(PREFIX), "") if key.startswith(PREFIX) else values.get(key, "")
        if value and value not in known:
            listed = ", ".join(f'"{word}"' for word in known)
            self.error(
                "KG0412",
                f"`{value}` is not a value of `{key}`",
                self.annotation_at(key),
                did_you_mean(value, known) or f"one of {listed}",
            )
            return ""
        return value

    def find_claim(self, name: str) -> Document | None:
        """Return a PersistentVolumeClaim that the resource uses; one in the same file is rendered with it."""
        return self.find_object("v1", "PersistentVolumeClaim", name)

    def draft(self, kind: str, *, name: str = "", namespace: str | None = None) -> Draft:
        """Return an empty spec with the resource's name, labels and annotations.

        Args:
            kind: of the spec.
            name: of the spec, if it differs from that of the resource.
            namespace: of the spec, if it differs from that of the resource.
        """
        metadata = self.metadata
        data: dict[str, Any] = {"name": name or metadata.name}
        namespace = namespace or metadata.namespace
        if namespace:
            data["namespace"] = namespace
        labels = {key: value for key, value in own_labels(self.labels).items() if not _KAITO_KEY.match(key)}
        if labels:
            data["labels"] = labels
        kept = {
            key: value
            for key, value in self.annotations.items()
            if not _KAITO_KEY.match(key) and (not key.startswith(PREFIX) or key == f"{PREFIX}version")
        }
        if kept:
            data["annotations"] = kept
        draft = Draft(_METADATA)
        draft.put(("apiVersion",), "kaigen.dev/v1alpha1")
        draft.put(("kind",), kind)
        draft.put(("metadata",), data)
        draft.origins |= {("metadata", "labels"): ("metadata", "labels"), ("metadata", "annotations"): _ANNOTATIONS}
        return draft

    def is_placeholder(self, value: str, path: FieldPath, what: str) -> bool:
        """Whether a text is a placeholder of an example, which is an error."""
        if not _PLACEHOLDER.search(value):
            return False
        self.error("KG0410", f"`{value}` is a placeholder for {what}", path, f"write {what}")
        return True

    def unused(self, path: FieldPath, reason: str, hint: str = "delete it") -> None:
        """Warn about a field that is present and has no effect."""
        self.warning("KG0405", f"`{path[-1]}` has no effect: {reason}", path, hint, key=True)
