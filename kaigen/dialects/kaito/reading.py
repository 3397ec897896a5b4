"""What every kind of KAITO's is read with: annotations, placeholders, metadata."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from kaigen.dialects.draft import Draft
from kaigen.dialects.metadata import CLUSTER_FIELDS, ForeignMetadata
from kaigen.kinds.lowering import PREFIX, Lowering, LoweringContext
from kaigen.kinds.positioned import Positioned
from kaigen.kinds.spec import Path

DIRECTIVES = ("api-key-secret", "compat", "model", "provisioning", "version")
"""Annotations behind `kaigen.dev/` on what serves."""

_METADATA: Path = ("metadata",)
_ANNOTATIONS: Path = ("metadata", "annotations")
_FOREIGN = re.compile(
    r"^([a-z]+\.)?kaito\.(sh|io)/|^[a-z]+\.kaito\.io/|^kubectl\.kubernetes\.io/last-applied"
)
_PLACEHOLDER = re.compile(r"<[^<>]*>|\bYOUR[_ -]|\bREPLACE[_ -]?ME\b|\$\{?[A-Z_]+\}?")

_STREAMING = "kaigen streams no weights: make them a Model, and name it in `kaigen.dev/model`"
_NO_EFFECT: Mapping[str, str] = {
    "kaito.sh/use-local-weights": "pods mount no folder of a node; make the weights a Model, and name it in "
    "`kaigen.dev/model`",
    "kaito.sh/node-image-family": "kaigen makes no node class: name one in `kaito.sh/node-class-name`",
    "kaito.sh/model-streaming": _STREAMING,
    "kaito.sh/model-mirror-storage-class": _STREAMING,
    "kaito.sh/streaming-service-account": _STREAMING,
    "inference.kaito.sh/static-model-mirror": _STREAMING,
    "kaito.sh/upgrade-to-version": "the engine's image is pinned in kaigen, or by `images` in kaigen.yaml",
}
"""Annotations that KAITO reads and kaigen does not, and why."""

_EXACT: Mapping[str, str] = {
    "kaito.sh/enablelb": "True",
    "kaito.sh/disable-benchmark": "true",
    "kaito.sh/use-local-weights": "true",
}
"""The one value that KAITO takes for yes."""


@dataclass(frozen=True, slots=True)
class Wishes:
    """What annotations and labels ask for.

    Attributes:
        load_balancer: the Service is to be reached from outside.
        runtime: `vllm` or `transformers`; empty where none is asked for.
        unchecked: what does not fit is told and rendered all the same.
        performance: vLLM's performance mode; empty for its default.
        node_class: name of Karpenter's node class; empty for the default one.
        compat: KAITO's names, labels, ports and paths are kept.
        model: name of a Model that holds the weights; empty for none.
        api_key_secret: Secret with the API key that requests must bring; empty for none.
        provisioning: `karpenter` or `none`; empty to leave it to the profile.
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


class Reading(Lowering):
    """One resource of KAITO's on its way."""

    def __init__(
        self, metadata: ForeignMetadata, document: Positioned, context: LoweringContext, *known: str
    ) -> None:
        """Begin, and say what in its metadata and status has no effect.

        Args:
            metadata: of the resource.
            document: the resource with places.
            context: what else the lowering may read.
            known: annotations behind `kaigen.dev/` that direct it; those of what serves when none are named.
        """
        super().__init__(document, context)
        self.metadata = metadata
        self.ignored(CLUSTER_FIELDS, _METADATA, "a cluster writes it")
        self.ignored(("status",), (), "the operator writes it")
        self._known = known or DIRECTIVES
        self.annotations = dict(metadata.annotations)
        self.labels = dict(metadata.labels)
        self._template: Path = ()

    def take_template(self, metadata: Mapping[str, Any], at: Path) -> None:
        """Read the metadata of a template too, which is copied to what is made of it.

        Args:
            metadata: of the template.
            at: where it stands.
        """
        self._template = at
        for field, own in (("labels", self.labels), ("annotations", self.annotations)):
            given = metadata.get(field, {})
            if not isinstance(given, dict) or not all(isinstance(value, str) for value in given.values()):
                self.error("KG0412", f"`{field}` must hold texts by name", (*at, field))
                continue
            own.update(given)
        for field in metadata:
            if field not in {"labels", "annotations", "creationTimestamp"}:
                self.unused((*at, field), "names and labels come from the resource itself")

    def annotation_at(self, key: str) -> Path:
        """Where an annotation stands."""
        own = key in self.metadata.annotations or not self._template
        return (*_ANNOTATIONS, key) if own else (*self._template, "annotations", key)

    def wishes(self) -> Wishes:
        """What annotations and labels ask for; what they cannot have is told."""
        annotations = self.annotations
        directives = self.directives(annotations, self._known)
        for key, wanted in _EXACT.items():
            value = annotations.get(key)
            if value is not None and value != wanted and value.lower() == wanted.lower():
                self.warning(
                    "KG0405",
                    f'`{key}: "{value}"` has no effect: KAITO takes exactly "{wanted}"',
                    self.annotation_at(key),
                    f'write "{wanted}", or delete it',
                )
        for key, why in _NO_EFFECT.items():
            if key in annotations and annotations[key] not in {"false", ""}:
                self.warning("KG0405", f"`{key}` has no effect: {why}", self.annotation_at(key), key=True)
        for key in annotations:
            if key.startswith("inference.kaito.sh/stream-"):
                self.warning(
                    "KG0405", f"`{key}` has no effect: {_STREAMING}", self.annotation_at(key), key=True
                )
        if "kaito.sh/inference-role" in self.metadata.labels:
            self.unused(
                ("metadata", "labels", "kaito.sh/inference-role"),
                "every pod does both prefill and decode, since kaigen makes no endpoint picker",
            )
        provisioning = self._word(directives, PREFIX + "provisioning", ("karpenter", "none"))
        return Wishes(
            load_balancer=annotations.get("kaito.sh/enablelb") == "True",
            runtime=self._word(annotations, "kaito.sh/runtime", ("vllm", "transformers")),
            unchecked="kaito.sh/bypass-resource-checks" in annotations,
            performance=self._word(
                annotations, "kaito.sh/performance-mode", ("balanced", "interactivity", "throughput")
            ).replace("balanced", ""),
            node_class=annotations.get("kaito.sh/node-class-name", ""),
            compat=self.flag(directives, "compat", False),
            model=directives.get("model", ""),
            api_key_secret=directives.get("api-key-secret", ""),
            provisioning=provisioning,
        )

    def _word(self, values: Mapping[str, str], key: str, known: tuple[str, ...]) -> str:
        value = values.get(key.removeprefix(PREFIX), "") if key.startswith(PREFIX) else values.get(key, "")
        if value and value not in known:
            from kaigen.diagnostics.suggest import did_you_mean

            listed = ", ".join(f'"{word}"' for word in known)
            self.error(
                "KG0412",
                f"`{key}` cannot be `{value}`",
                self.annotation_at(key),
                did_you_mean(value, known) or f"one of {listed}",
            )
            return ""
        return value

    def draft(self, kind: str, *, name: str = "", namespace: str | None = None) -> Draft:
        """An empty spec of kaigen's own with the resource's name, labels and annotations.

        Args:
            kind: of kaigen's own.
            name: another name than the resource's.
            namespace: another namespace than the resource's.
        """
        metadata = self.metadata
        data: dict[str, Any] = {"name": name or metadata.name}
        namespace = namespace or metadata.namespace
        if namespace:
            data["namespace"] = namespace
        labels = {key: value for key, value in self.labels.items() if not _FOREIGN.match(key)}
        if labels:
            data["labels"] = labels
        kept = {
            key: value
            for key, value in self.annotations.items()
            if not _FOREIGN.match(key) and (not key.startswith(PREFIX) or key == f"{PREFIX}version")
        }
        if kept:
            data["annotations"] = kept
        draft = Draft(_METADATA)
        draft.put(("apiVersion",), "kaigen.dev/v1alpha1")
        draft.put(("kind",), kind)
        draft.put(("metadata",), data)
        draft.origins |= {
            ("metadata", "labels"): ("metadata", "labels"),
            ("metadata", "annotations"): _ANNOTATIONS,
        }
        return draft

    def is_placeholder(self, value: str, path: Path, what: str) -> bool:
        """Whether a text is one that an example left for its reader to fill in; told if so."""
        if not _PLACEHOLDER.search(value):
            return False
        self.error("KG0410", f"`{value}` stands for {what} that you are to fill in", path, f"write {what}")
        return True

    def unused(self, path: Path, why: str, hint: str = "delete it") -> None:
        """Warn of a field that is there and has no effect."""
        self.warning("KG0405", f"`{path[-1]}` has no effect: {why}", path, hint, key=True)
