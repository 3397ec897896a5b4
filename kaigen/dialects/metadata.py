"""Metadata of foreign documents."""

from collections.abc import Mapping
from typing import Annotated

from msgspec import Meta, field

from kaigen.kinds.base import APP_NAME_MAX, Annotations, AppName, JsonValue, LabelName, Labels, matches
from kaigen.kinds.block import Block
from kaigen.kubernetes.metadata_keys import RESERVED_LABELS


class ForeignMetadata(Block):
    """Metadata of a foreign document. Fields that only a cluster writes are accepted and ignored."""

    name: Annotated[
        AppName, Meta(description=f"Name of the resource. At most {APP_NAME_MAX} characters and no dots.")
    ]
    namespace: Annotated[
        LabelName | None, Meta(description="Namespace. Default: the one in `kaigen.yaml`.")
    ] = None
    labels: Annotated[Labels, Meta(description="Labels. Labels that kaigen sets itself are ignored.")] = (
        field(default_factory=dict)
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
    owner_references: Annotated[
        list[dict[str, JsonValue]], Meta(description="Written by a cluster; ignored.")
    ] = field(default_factory=list)
    managed_fields: Annotated[
        list[dict[str, JsonValue]], Meta(description="Written by a cluster; ignored.")
    ] = field(default_factory=list)


def own_labels(labels: Mapping[str, str]) -> dict[str, str]:
    """Return the labels that kaigen or a controller does not set itself."""
    return {key: value for key, value in labels.items() if not matches(RESERVED_LABELS, key)}


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
