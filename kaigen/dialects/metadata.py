"""Metadata of foreign documents."""

from __future__ import annotations

from pydantic import Field, JsonValue

from kaigen.kinds.base import APP_NAME_MAX, Annotations, AppName, Block, LabelName, Labels


class ForeignMetadata(Block):
    """Metadata of a foreign document. Fields that only a cluster writes are accepted and ignored."""

    name: AppName = Field(description=f"Name of the resource. At most {APP_NAME_MAX} characters and no dots.")
    namespace: LabelName | None = Field(None, description="Namespace. Default: the one in `kaigen.yaml`.")
    labels: Labels = Field({}, description="Labels. Labels that kaigen sets itself are ignored.")
    annotations: Annotations = Field(
        {}, description="Annotations; those starting with `kaigen.dev/` direct kaigen."
    )
    creation_timestamp: str | None = Field(
        None,
        description="Written by a cluster, and as null by its tools; ignored.",
        json_schema_extra={"type": ["string", "null"]},
    )
    deletion_timestamp: str | None = Field(None, description="Written by a cluster; ignored.")
    generation: int | None = Field(None, description="Written by a cluster; ignored.")
    resource_version: str | None = Field(None, description="Written by a cluster; ignored.")
    uid: str | None = Field(None, description="Written by a cluster; ignored.")
    self_link: str | None = Field(None, description="Written by a cluster; ignored.")
    finalizers: list[str] = Field([], description="Written by the operator; ignored.")
    owner_references: list[dict[str, JsonValue]] = Field([], description="Written by a cluster; ignored.")
    managed_fields: list[dict[str, JsonValue]] = Field([], description="Written by a cluster; ignored.")


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
