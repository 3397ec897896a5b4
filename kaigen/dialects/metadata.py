"""Metadata of foreign documents."""

from collections.abc import Mapping, Sequence
from typing import Annotated

from msgspec import Meta, field

from kaigen.core.json_types import Json
from kaigen.dialects.draft import Draft
from kaigen.kinds.base import APP_NAME_MAX, Annotations, AppName, LabelName, Labels, matches
from kaigen.kinds.block import Block
from kaigen.kinds.lowering import PREFIX, Lowering
from kaigen.kubernetes.metadata_keys import RESERVED_LABELS


class ForeignMetadata(Block):
    """Metadata of a foreign document. Fields that only a cluster writes are accepted and ignored."""

    name: Annotated[AppName, Meta(description=f"Name of the resource. At most {APP_NAME_MAX} characters and no dots.")]
    namespace: Annotated[LabelName | None, Meta(description="Namespace. Default: the one in `kaigen.yaml`.")] = None
    labels: Annotated[Labels, Meta(description="Labels. Labels that kaigen sets itself are ignored.")] = field(
        default_factory=dict
    )
    annotations: Annotated[
        Annotations, Meta(description="Annotations; those starting with `kaigen.dev/` direct kaigen.")
    ] = field(default_factory=dict)
    creation_timestamp: Annotated[
        str | None,
        Meta(
            description="Written by a cluster, and as null by its tools; ignored.",
            extra_json_schema={"type": ["string", "null"]},
        ),
    ] = None
    deletion_timestamp: Annotated[str | None, Meta(description="Written by a cluster; ignored.")] = None
    generation: Annotated[int | None, Meta(description="Written by a cluster; ignored.")] = None
    resource_version: Annotated[str | None, Meta(description="Written by a cluster; ignored.")] = None
    uid: Annotated[str | None, Meta(description="Written by a cluster; ignored.")] = None
    self_link: Annotated[str | None, Meta(description="Written by a cluster; ignored.")] = None
    finalizers: Annotated[list[str], Meta(description="Written by the operator; ignored.")] = field(
        default_factory=list
    )
    owner_references: Annotated[list[dict[str, Json]], Meta(description="Written by a cluster; ignored.")] = field(
        default_factory=list
    )
    managed_fields: Annotated[list[dict[str, Json]], Meta(description="Written by a cluster; ignored.")] = field(
        default_factory=list
    )


def own_labels(labels: Mapping[str, str]) -> dict[str, str]:
    """Return the labels that kaigen or a controller does not set itself."""
    return {key: value for key, value in labels.items() if not matches(RESERVED_LABELS, key)}


def read_directives(lowering: Lowering, metadata: ForeignMetadata, known: Sequence[str]) -> dict[str, str]:
    """Return the annotations that direct kaigen, and report what only a cluster or an operator writes.

    Args:
        lowering: of the document.
        metadata: its metadata.
        known: names of the annotations, without prefix.
    """
    report_cluster_fields(lowering)
    return lowering.directives(metadata.annotations, known)


def report_cluster_fields(lowering: Lowering) -> None:
    """Report fields that have no effect, because a cluster or an operator writes them."""
    lowering.ignored(CLUSTER_FIELDS, ("metadata",), "a cluster writes it")
    lowering.ignored(("status",), (), "the operator writes it")


def put_metadata(draft: Draft, metadata: ForeignMetadata, directives: Mapping[str, str]) -> None:
    """Put the name, namespace, labels and annotations of a foreign document into a spec.

    Args:
        draft: the spec.
        metadata: of the foreign document.
        directives: its annotations that direct kaigen; of those only `version` is put.
    """
    kept = {key: value for key, value in metadata.annotations.items() if not key.startswith(PREFIX)}
    if "version" in directives:
        kept[f"{PREFIX}version"] = directives["version"]
    draft.put(("metadata", "name"), metadata.name)
    if metadata.namespace is not None:
        draft.put(("metadata", "namespace"), metadata.namespace)
    draft.put(("metadata", "labels"), own_labels(metadata.labels), ("metadata", "labels"))
    draft.put(("metadata", "annotations"), kept, ("metadata", "annotations"))


CLUSTER_FIELDS = (
    "creationTimestamp",
    "deletionTimestamp",
    "generation",
    "resourceVersion",
    "uid",
    "selfLink",
    "finalizers",
    "ownerReferences",
    "managedFields",
)
"""Metadata that only a cluster writes."""
