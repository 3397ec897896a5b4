"""The block `allow` of kaigen.yaml: what specs may reach outside their own namespaces, and files of the user's own."""

from typing import Annotated

from msgspec import Meta, field

from kaigen.config.block_settings import Allowed, VolumeGrant
from kaigen.kinds.base import NO_BLANKS, ObjectName, text
from kaigen.kinds.block import Block

Glob = Annotated[str, text(NO_BLANKS, min_length=1, max_length=1024)]
_Secret = Annotated[str, text(r"^[a-z0-9*?.-]+/[a-z0-9*?.-]+$", max_length=317)]


class Volumes(Block):
    """Volumes that specs may mount. All of an entry must match; without a list, what it says is not restricted."""

    namespaces: Annotated[
        list[Glob] | None, Meta(description="Namespaces of the specs. Default: any.", examples=[["team-a"]])
    ] = None
    uris: Annotated[
        list[Glob] | None,
        Meta(description="Buckets and prefixes. Default: any.", examples=[["s3://acme-models/team-a/*"]]),
    ] = None
    drivers: Annotated[
        list[Glob], Meta(description="CSI drivers besides those of kaigen.", examples=[["nfs.csi.k8s.io"]])
    ] = field(default_factory=list)
    secrets: Annotated[
        list[_Secret],
        Meta(
            description="Secrets of other namespaces that the driver may read, `NAMESPACE/NAME`.",
            examples=[["kube-system/csi-s3-secret"]],
        ),
    ] = field(default_factory=list)
    attributes: Annotated[
        list[Glob],
        Meta(description="Keys of `attributes` besides `authenticationSource`.", examples=[["server", "share"]]),
    ] = field(default_factory=list)
    options: Annotated[
        list[Annotated[str, text(r"^\S(.*\S)?$", min_length=1, max_length=200)]],
        Meta(description="Mount `options`, with the wildcards `*` and `?`.", examples=[["max-threads *"]]),
    ] = field(default_factory=list)


class Allow(Block):
    """What specs may reach outside their own namespaces, and files of your own in the output."""

    files: Annotated[
        list[Glob],
        Meta(
            description="Files of your own in the output folder, relative to it, with the wildcards `*` (also over "
            "`/`) and `?`. Any other file that kaigen did not write is an error, and so is a `.sourceignore` above the "
            "output that is not listed, such as `../.sourceignore`.",
            examples=[["README.md", "team-a/*"]],
        ),
    ] = field(default_factory=list)
    namespaces: Annotated[
        list[Glob],
        Meta(
            description="Namespaces of Kubernetes and of cluster services that specs may use.",
            examples=[["kube-system"]],
        ),
    ] = field(default_factory=list)
    secrets: Annotated[
        list[ObjectName],
        Meta(
            description="Secrets named in `gitops.flux` that specs may use too, such as the login of a registry.",
            examples=[["registry-login"]],
        ),
    ] = field(default_factory=list)
    servers: Annotated[
        list[Annotated[str, text(r"^[A-Za-z0-9*?.:_-]+$", max_length=253)]],
        Meta(
            description="Hosts of URLs in specs that are otherwise refused: of the pod itself, link-local, or of the "
            "cloud's metadata.",
            examples=[["localhost"]],
        ),
    ] = field(default_factory=list)
    volumes: Annotated[
        list[Volumes],
        Meta(
            description="Volumes in buckets that specs may mount. Default: any bucket with kaigen's drivers, and no "
            "Secret of another namespace but `kube-system/csi-s3-secret`."
        ),
    ] = field(default_factory=list)


def allow_settings(block: Allow | None) -> Allowed:
    """Return the settings of the block; the defaults without it."""
    if block is None:
        return Allowed()
    return Allowed(
        files=tuple(block.files),
        namespaces=tuple(block.namespaces),
        secrets=tuple(block.secrets),
        servers=tuple(block.servers),
        volumes=tuple(
            VolumeGrant(
                tuple(entry.namespaces) if entry.namespaces is not None else ("*",),
                tuple(entry.uris) if entry.uris is not None else ("*",),
                tuple(entry.drivers),
                tuple(entry.secrets),
                tuple(entry.attributes),
                tuple(entry.options),
            )
            for entry in block.volumes
        )
        or Allowed().volumes,
    )
