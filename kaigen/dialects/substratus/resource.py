"""What the lowering of every Substratus kind shares: metadata, names of apps, annotations, references."""

from __future__ import annotations

from functools import cached_property
from typing import Any

from kaigen.core.json_types import FieldPath
from kaigen.dialects.draft import Draft
from kaigen.dialects.metadata import put_metadata, read_directives
from kaigen.dialects.substratus.kinds import Foreign
from kaigen.dialects.substratus.names import app_name, short
from kaigen.kinds.base import APP_NAME_MAX, QUANTITY, matches
from kaigen.kinds.block import Block
from kaigen.kinds.lowering import PREFIX, Lowering, LoweringContext
from kaigen.kinds.positioned import Positioned

SPEC: FieldPath = ("spec",)
_NAME: FieldPath = ("metadata", "name")
_ANNOTATIONS: FieldPath = ("metadata", "annotations")
GROUP = 3003
"""Group of mounted volumes in the operator's pods."""

_OF_DESIGN = ("container", "loader", "trainer", "sourceModel")
"""Fields by which a resource has the shape of the design."""

_OBSOLETE = {"modelName": "model", "datasetName": "dataset"}
"""Fields of the first releases, by the fields of later ones."""

_BEFORE_0_4 = {
    "source": "write `build.git` or `image` for a container that writes the files into `/content/artifacts`",
    "training": "write `dataset`, `params`, and the `image` or `build` of a container that trains",
}
"""Blocks of the releases before 0.4, which built the files of a Model into its image, by what to write."""

_UNUSED_BEFORE = {
    "filename": "the container names the files in `/content/artifacts`",
    "size": "`resources` decides the memory and the disk of the container",
    "compute": "`resources.gpu` decides whether the container has a GPU",
}
"""Fields of releases before 0.4 or 0.5 that no later one has, by the reason why they have no effect."""


class SubstratusLowering(Lowering):
    """Lowers one resource.

    Attributes:
        resource: the resource.
        kind: its kind.
        name: its name.
        given: its annotations that direct kaigen.
        compat: keep the operator's names.
        settings: of Substratus in kaigen.yaml.
        is_design: whether the resource has the shape of the design.
    """

    def __init__(
        self, resource: Foreign, kind: str, document: Positioned, context: LoweringContext, known: tuple[str, ...]
    ) -> None:
        """Start, and report fields without effect.

        Args:
            resource: the resource.
            kind: its kind.
            document: it with positions.
            context: what else the lowering may read.
            known: annotations, without `kaigen.dev/`, that it accepts besides those of every kind.
        """
        super().__init__(document, context)
        self.resource, self.kind, self.name = resource, kind, resource.metadata.name
        directives = ("build-context", "compat", "pod-security", "version", *known)
        self.given = read_directives(self, resource.metadata, directives)
        self.compat = self.flag(self.given, "compat", False)
        self.settings: dict[str, Any] = dict(context.settings.get("substratus", {}))
        self.is_design = kind == "ModelServer" or any(map(self.has, _OF_DESIGN))
        self.ignored(("status",), SPEC, "the operator writes it") if self.has("status") else None
        for old, new in _OBSOLETE.items():
            if self.has(old):
                self.error(
                    "KG0412",
                    f"the API of Substratus has no `{old}` any more: the API server drops it, and the operator waits "
                    f"forever for a `{new}`",
                    (*SPEC, old),
                    f"write `{new}: {{name: {self.data()[old]}}}`",
                    key=True,
                )
        for name, hint in _BEFORE_0_4.items():
            if self.has(name):
                self._refuse_early(name, hint)
        for name, reason in _UNUSED_BEFORE.items():
            if self.has(name):
                self.without_effect((*SPEC, name), reason)

    def _refuse_early(self, name: str, hint: str) -> None:
        """Report a block of the releases before 0.4."""
        base, dataset = self.data(name).get("modelName"), self.data(name).get("datasetName")
        if base is not None:
            hint = f"write `model: {{name: {base}}}`, and the `image` or `build` of a container that trains"
        elif dataset is not None:
            hint = hint.replace("`dataset`", f"`dataset: {{name: {dataset}}}`")
        message = (
            f"`{name}` is of releases before 0.4, which built the files of a Model into its image; no later one does"
        )
        self.error("KG0413", message, (*SPEC, name), hint, key=True)

    def data(self, *path: str) -> dict[str, Any]:
        """Return a mapping of the spec as plain data; empty when the spec does not have it."""
        document: Any = self.document.data
        found: Any = document.get("spec") or {}
        for key in path:
            found = found.get(key) or {}
        return found  # type: ignore[no-any-return]

    def has(self, name: str) -> bool:
        """Return whether the spec sets a field."""
        return name in self.data()

    def without_effect(self, path: FieldPath, reason: str, hint: str = "delete it") -> None:
        """Warn about a field without effect."""
        self.warning("KG0405", f"`{path[-1]}` has no effect: {reason}", path, hint, key=True)

    def directive_at(self, name: str) -> FieldPath:
        """Return the path of an annotation of kaigen."""
        return (*_ANNOTATIONS, PREFIX + name)

    def app_name(self, kind: str = "", name: str = "", namespace: str | None = None) -> str:
        """Return the name of an app: that of the resource, or of one that it refers to."""
        return app_name(kind or self.kind, name or self.name, self, namespace, compat=self.compat)

    def draft(self, name: str) -> Draft:
        """Return an empty spec with the resource's namespace, labels and annotations.

        Args:
            name: of the app.
        """
        if len(name) > APP_NAME_MAX:
            message = f"the app `{name}` of `{self.name}` has a name of more than {APP_NAME_MAX} characters"
            self.error("KG0413", message, _NAME, "choose a shorter name")
        draft = Draft(SPEC if self.has_spec else _NAME)
        put_metadata(draft, self.resource.metadata, self.given)
        draft.put(("metadata", "name"), name, _NAME)
        shared = "in kaigen.yaml, set `dialects.substratus.artifacts`, or `storageClassName` of shared volumes"
        draft.hints.update(KG0309=shared, KG0311=shared)
        return draft

    @property
    def has_spec(self) -> bool:
        """Whether the document has a spec."""
        document: Any = self.document.data
        return "spec" in document

    def put_security(self, draft: Draft) -> None:
        """Put the user of the container: another one than root, unless the resource asks for the image's."""
        security: FieldPath = ("spec", "security")
        level = self.pod_security
        at = self.directive_at("pod-security")
        if level != "restricted":
            origin = at if "pod-security" in self.given else self.directive_at("compat")
            draft.put((*security, "podSecurity"), level, origin)
            draft.put((*security, "fsGroup"), GROUP, origin)
        # The contract of its containers lets them write to their working folder.
        draft.put((*security, "readOnlyRootFilesystem"), False)

    @cached_property
    def pod_security(self) -> str:
        """The level of Pod Security: with `compat` the image's user runs, as in the operator."""
        level = self.given.get("pod-security", "baseline" if self.compat else "restricted")
        if level not in {"restricted", "baseline"}:
            message = '`kaigen.dev/pod-security` must be "restricted" or "baseline"'
            hint = 'write "baseline" for the user of the image, or delete it'
            self.error("KG0406", message, self.directive_at("pod-security"), hint)
            return "restricted"
        return level

    def put_labels(self, draft: Draft) -> None:
        """Put the labels of the operator's pods."""
        if self.compat:
            labels = {short(self.kind): self.name, "role": "run"}
            draft.put(("spec", "podLabels"), labels, self.directive_at("compat"))

    @cached_property
    def size(self) -> str:
        """Size of the volumes with files; empty for the default."""
        size = self.given.get("size", "")
        if size and not matches(QUANTITY, size):
            message = f"`{size}` is not a size of a volume"
            self.error("KG0406", message, self.directive_at("size"), "write a size such as `200Gi`")
            return ""
        return size

    def size_at(self) -> FieldPath:
        """Return the path of the field that sets the size of volumes."""
        return self.directive_at("size") if "size" in self.given else _NAME

    def reference(self, kind: str, ref: Block | str | None, field: str = "name") -> dict[str, str]:
        """Return the fields that name a Model or a Dataset, with its namespace if it is another one; none without one.

        Args:
            kind: `Model` or `Dataset`.
            ref: the reference: a block with `name`, or the name.
            field: the field with the name.
        """
        name = ref if isinstance(ref, str) or ref is None else getattr(ref, "name", None)
        if not isinstance(name, str):
            return {}
        namespace = getattr(ref, "namespace", None)
        if namespace in (None, self.namespace):
            return {field: self.app_name(kind, name)}
        return {field: self.app_name(kind, name, namespace), "namespace": namespace}

    def put_origins(self, draft: Draft, path: FieldPath, ref: Block | str, at: FieldPath, field: str = "name") -> None:
        """Put the origins of the fields that name a Model or a Dataset.

        Args:
            draft: the spec.
            path: its block with these fields.
            ref: the reference.
            at: the field of the reference.
            field: the field with the name.
        """
        if isinstance(ref, str):
            draft.origins[(*path, field)] = at
            return
        draft.origins[(*path, field)] = (*at, "name")
        draft.origins[(*path, "namespace")] = (*at, "namespace")
        draft.hints["KG0389"] = (
            "store its files in a bucket: set `dialects.substratus.artifacts` in kaigen.yaml. Or, if a claim of this "
            f"namespace has the same files, write one of that kind here with an empty `loader` and `{PREFIX}claim`"
        )


def one_of(given: list[tuple[str, Any, FieldPath]], lowering: SubstratusLowering) -> tuple[Any, FieldPath] | None:
    """Return the reference that a resource has under one of its names, with its field; None without one.

    Args:
        given: name of the field, its value, and the block that contains it.
        lowering: collects an error if several are set.
    """
    found = [(value, (*at, name)) for name, value, at in given if value is not None]
    if len(found) > 1:
        first, second = found[0][1], found[1][1]
        message = f"`{first[-1]}` and `{second[-1]}` mean the same"
        lowering.error("KG0412", message, second, "keep one of the two", key=True)
    return found[0] if found else None
