"""The block `dialects` of kaigen.yaml: what the installation of another system was configured with."""

from collections.abc import Iterable, Mapping
from types import new_class
from typing import Annotated, Any

from msgspec import Meta, field

from kaigen.kinds.base import DNS_LABEL, ObjectName, check_text, listable_text, text
from kaigen.kinds.block import Block, document_names
from kaigen.kinds.bucket import LOCATION, Bucket

_REGISTRY = r"^[A-Za-z0-9.-]+(:[0-9]+)?(/[a-z0-9]+([._-]+[a-z0-9]+)*)*$"


class Substratus(Block):
    """The settings that Substratus' operator has of its cluster, and where kaigen stores what runs write."""

    cluster_name: Annotated[
        Annotated[str, text(DNS_LABEL, min_length=1, max_length=63)] | None,
        Meta(
            description="Name of the cluster, `CLUSTER_NAME` of the operator. It is part of the paths of artifacts and "
            "of the names of built images.",
            examples=["substratus-1"],
        ),
    ] = None
    artifacts: Annotated[
        Annotated[str, listable_text(LOCATION)] | Bucket | None,
        Meta(
            description="Bucket and prefix for Models and Datasets, `ARTIFACT_BUCKET_URL` of the operator; a block for "
            "a server, credentials, or mount options. Default: a volume for each.",
            examples=["gs://acme-substratus-artifacts"],
        ),
    ] = None
    registry: Annotated[
        Annotated[str, text(_REGISTRY, max_length=200)] | None,
        Meta(
            description="Registry of built images, with a path, `REGISTRY_URL` of the operator.",
            examples=["us-central1-docker.pkg.dev/acme/substratus"],
        ),
    ] = None
    push_secret: Annotated[
        ObjectName | None, Meta(description="Secret of type dockerconfigjson that may push to `registry`.")
    ] = None
    pull_secret: Annotated[
        ObjectName | None, Meta(description="Secret of type dockerconfigjson with which pods pull built images.")
    ] = None
    storage_class_name: Annotated[
        ObjectName | None,
        Meta(
            description="StorageClass of the volumes with Models and Datasets, for volumes that pods of several nodes "
            "mount: claims with it are ReadWriteMany. Default: ReadWriteOnce, with the class of the profile."
        ),
    ] = None

    def __post_init__(self) -> None:
        check_text(LOCATION, self.artifacts)


class Dialects(Block):
    """Settings of other systems."""

    substratus: Annotated[Substratus | None, Meta(description="Settings of Substratus.")] = None


def names_of_packages(names: Iterable[str]) -> set[str]:
    """Return the names of dialects among these that have no settings in kaigen itself."""
    return {*names} - {*document_names(Dialects)}


def with_settings(settings: Mapping[str, type[Block]]) -> type[Dialects]:
    """Return the block with the settings of dialects of installed packages.

    Args:
        settings: their blocks, by dialect.
    """
    members: dict[str, Any] = {"__module__": __name__, "__doc__": Dialects.__doc__, "__annotations__": {}}
    for name, block in settings.items():
        attribute = f"of_{name.replace('-', '_')}"
        described = Meta(description=f"Settings of the dialect `{name}`.")
        members["__annotations__"][attribute] = Annotated[block | None, described]
        members[attribute] = field(default=None, name=name)
    return new_class(Dialects.__name__, (Dialects,), exec_body=lambda body: body.update(members))
