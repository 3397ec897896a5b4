"""What the lowering of every Koldun kind shares: metadata, names of apps, annotations."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kaigen.core.json_types import FieldPath
from kaigen.dialects.draft import Draft
from kaigen.dialects.koldun import GROUP
from kaigen.dialects.koldun.kinds import KoldunMetadata
from kaigen.dialects.metadata import CLUSTER_FIELDS, own_labels
from kaigen.kinds.base import APP_NAME_MAX
from kaigen.kinds.lowering import PREFIX, Lowering, LoweringContext
from kaigen.kinds.positioned import Positioned

_ANNOTATIONS: FieldPath = ("metadata", "annotations")
_LABELS: FieldPath = ("metadata", "labels")
_WRANGLER = "objectset.rio.cattle.io/"
"""Prefix of the labels and annotations with which the operator finds the objects that it may delete."""
OPERATOR = (f"{GROUP}/", _WRANGLER)
"""Prefixes of the operator's labels and annotations."""
WRITTEN_LABEL = "the operator writes it, to find its own objects"
"""Why a label of the operator has no effect."""
LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
"""Annotation that kubectl writes."""
_NO_EFFECT: Mapping[str, str] = {
    "ttl-seconds": "a Job from Git stays, because Argo CD and Flux would start a deleted one again",
    "force-size-rerun": "the downloader measures what it stores, and no Job of its own does",
    "job-deleted-at": "the operator writes it",
    "model-generation": "the operator writes it",
    "slot": "the operator writes it",
}
"""Annotations of the operator, without its group, with the reason why they have no effect."""
NO_QUEUE = "requests reach the rings directly, and wait in the proxy of a ring"
"""Why a queue of the operator has no effect."""


def app_name(name: str) -> str:
    """Return the name of the app of a resource, which has no dots."""
    return name.replace(".", "-")


class KoldunLowering(Lowering):
    """Lowers one Koldun resource."""

    def __init__(
        self, metadata: KoldunMetadata, document: Positioned, context: LoweringContext, known: tuple[str, ...]
    ) -> None:
        """Start, and report fields of metadata and status that have no effect.

        Args:
            metadata: of the resource.
            document: the resource with positions.
            context: what else the lowering may read.
            known: annotations, without `kaigen.dev/`, that the resource accepts.
        """
        super().__init__(document, context)
        self.metadata = metadata
        self.ignored(CLUSTER_FIELDS, ("metadata",), "a cluster writes it")
        self.ignored(("status",), (), "the operator writes it")
        self.given = self.directives(metadata.annotations, known)
        self.compat = self.flag(self.given, "compat", False)
        for key in metadata.annotations:
            if key.startswith(OPERATOR):
                reason = _NO_EFFECT.get(key.removeprefix(f"{GROUP}/"), "no program of kaigen reads it")
                if key.startswith(_WRANGLER):
                    reason = "the operator writes it"
                self.without_effect((*_ANNOTATIONS, key), reason)

    def without_effect(self, path: FieldPath, reason: str, hint: str = "delete it") -> None:
        """Warn about a field without effect."""
        self.warning("KG0405", f"`{path[-1]}` has no effect: {reason}", path, hint, key=True)

    def directive_at(self, name: str) -> FieldPath:
        """Return the path of an annotation of kaigen."""
        return (*_ANNOTATIONS, PREFIX + name)

    def draft(self) -> Draft:
        """Return an empty spec with the resource's name, namespace, labels and annotations."""
        metadata = self.metadata
        name = app_name(metadata.name)
        at: FieldPath = ("metadata", "name")
        if len(name) > APP_NAME_MAX:
            message = f"`{metadata.name}` has {len(name)} characters, and the name of an app at most {APP_NAME_MAX}"
            self.error("KG0413", message, at, "choose a shorter name")
        elif name != metadata.name:
            message = f"the app of `{metadata.name}` is `{name}`: names of Services and releases have no dots"
            self.warning("KG0414", message, at, f"write `{name}`, also where it is referred to")
        draft = Draft(("spec",))
        draft.put(("metadata", "name"), name, at)
        if metadata.namespace is not None:
            draft.put(("metadata", "namespace"), metadata.namespace, ("metadata", "namespace"))
        draft.put(_LABELS, self._labels(), _LABELS)
        draft.put(("metadata", "annotations"), self._annotations(), _ANNOTATIONS)
        return draft

    def _labels(self) -> dict[str, str]:
        """Return the labels of the app without those of the operator, whose Services would select its pods."""
        kept = {}
        for key, value in own_labels(self.metadata.labels).items():
            if key.startswith(_WRANGLER) or (key.startswith(f"{GROUP}/") and not self.compat):
                self.without_effect((*_LABELS, key), WRITTEN_LABEL)
            else:
                kept[key] = value
        return kept

    def _annotations(self) -> dict[str, str]:
        kept = {
            key: value
            for key, value in self.metadata.annotations.items()
            if not key.startswith((PREFIX, *OPERATOR)) and key != LAST_APPLIED
        }
        if "version" in self.given:
            kept[f"{PREFIX}version"] = self.given["version"]
        return kept

    def block(self, *path: str) -> Mapping[str, Any]:
        """Return a mapping of the document as plain data; empty when the document does not have it."""
        found: Any = self.document.data
        for key in path:
            found = found.get(key) or {}
        return found  # type: ignore[no-any-return]

    def own_secret(self, namespace: str | None, path: FieldPath) -> None:
        """Warn about a Secret of another namespace, which pods cannot read."""
        if namespace is not None and namespace != self.namespace:
            self.warning(
                "KG0414",
                f"pods read the Secret of `{self.namespace}`, not of `{namespace}`: a pod cannot mount Secrets of "
                "another namespace",
                (*path, "namespace"),
                "create the Secret in the namespace of this resource",
            )
