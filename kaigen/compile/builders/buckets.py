"""Buckets as volumes: a PersistentVolume of the folder, and the one claim that may bind it.

The source of a PersistentVolume and the volume of a claim are immutable. So both names end in a hash of the source:
another location is another volume, and a rollout moves the pods to it.
"""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct, field
from msgspec.structs import replace

from kaigen.compile.app import Object
from kaigen.compile.builders.bucket_access import check_access, location, own_server, path_of
from kaigen.compile.builders.frame import LOCATION, READS, Frame
from kaigen.compile.expressions import DIGEST_LENGTH, Expr, Joined, Namespace, Release, Tree
from kaigen.compile.go_json import go_json, sha256_hex
from kaigen.compile.problems import Problems
from kaigen.config.block_settings import Allowed
from kaigen.config.grants import find_ungranted, wanted_volume
from kaigen.core.json_types import FieldPath
from kaigen.kinds.bucket import Bucket, SecretPlace
from kaigen.kubernetes.buckets import S3_OPTIONS

SIDECAR: Mapping[str, str] = {"gke-gcsfuse/volumes": "true"}
"""Annotation of pods into which GKE puts the container that mounts for them (source: Cloud Storage FUSE CSI driver)."""

DRIVER_NAMES = {
    "mountpoint-s3": "s3.csi.aws.com",
    "csi-s3": "ru.yandex.s3.csi",
    "gcsfuse": "gcsfuse.csi.storage.gke.io",
    "blobfuse": "blob.csi.azure.com",
}
_CLOUD_DRIVERS = {"gs": "gcsfuse", "az": "blobfuse"}
"""The driver of a cloud, which mounts its buckets only, by their scheme."""
_SIZE = "1Ti"
"""Volumes and claims require a size; the drivers ignore it."""


class _Mount(Struct, frozen=True):
    """The configuration of a driver.

    Attributes:
        options: mount options.
        attributes: volume attributes.
        secrets: references to Secrets.
        handle: what identifies the volume; empty for the name of the PersistentVolume.
        before: prefix of that name.
    """

    options: list[str]
    attributes: dict[str, str]
    secrets: dict[str, dict[str, str]] = field(default_factory=dict)
    handle: str = ""
    before: str = ""


def driver_of(bucket: Bucket) -> str:
    """Return the driver that mounts a bucket: the spec's, else the default for its provider."""
    if bucket.mount.driver:
        return bucket.mount.driver
    if bucket.scheme in _CLOUD_DRIVERS:
        return _CLOUD_DRIVERS[bucket.scheme]
    return "csi-s3" if bucket.endpoint else "mountpoint-s3"


def volume_suffix(bucket: Bucket) -> str:
    """Return the end of the names of a bucket's volume and claim: a hash of all immutable fields."""
    mount = _mount(bucket)
    size = [bucket.mount.size] if bucket.mount.size else []
    meaning = [location(bucket), _name(bucket), mount.options, mount.attributes, mount.secrets, *size]
    return f"-weights-{sha256_hex(go_json(meaning))[:DIGEST_LENGTH]}"


def _name(bucket: Bucket) -> str:
    return bucket.mount.driver_name or DRIVER_NAMES[driver_of(bucket)]


def check_bucket(bucket: Bucket, origin: FieldPath, problems: Problems, *, fills: bool = True) -> None:
    """Report a mount that cannot work, and a bucket that the downloader cannot write to.

    Args:
        bucket: the spec's block.
        origin: the spec's field of the block.
        problems: collects the errors.
        fills: whether the downloader writes to it.
    """
    driver, mount = driver_of(bucket), bucket.mount
    own = _CLOUD_DRIVERS.get(bucket.scheme)
    if not _can_mount(bucket):
        hint = f"use `{own}`" if own else "use `mountpoint-s3`, or `csi-s3` for other servers"
        problems.error("KG0316", f"`{driver}` cannot mount `{bucket.scheme}://`", (*origin, "mount", "driver"), hint)
    if driver == "gcsfuse" and bucket.endpoint:
        problems.error(
            "KG0316", "`gcsfuse` mounts Google's buckets only", (*origin, "endpoint"), "leave `endpoint` out"
        )
    if mount.secret and driver not in ("csi-s3", "blobfuse"):
        problems.error(
            "KG0340",
            f"`secret` has no effect on `{driver}`, which uses the cloud's identity of the node or the pod",
            (*origin, "mount", "secret"),
            "leave it out",
        )
    if fills:
        check_access(bucket, origin, problems)


def _can_mount(bucket: Bucket) -> bool:
    """Return whether the driver mounts buckets of this scheme."""
    driver, own = driver_of(bucket), _CLOUD_DRIVERS.get(bucket.scheme)
    return driver == own or not (own or driver in _CLOUD_DRIVERS.values())


def check_grant(
    bucket: Bucket, namespace: str, allow: Allowed, origin: FieldPath, problems: Problems, *, mount: FieldPath = ()
) -> None:
    """Report what the spec asks of a bucket and its driver, and kaigen.yaml does not allow.

    Args:
        bucket: the bucket.
        namespace: of the spec.
        allow: what kaigen.yaml allows.
        origin: the field that names the bucket.
        problems: collects the errors.
        mount: the field with the driver and its options; empty when another spec has it.
    """
    if not _can_mount(bucket):
        return
    own = bucket.mount
    wanted = wanted_volume({**_source(bucket, _mount(bucket).before)}, namespace)
    if not wanted.uri:  # The table of drivers does not have this one.
        wanted = replace(wanted, uri=f"{bucket.scheme}://{path_of(bucket)}", servers=tuple(own_server(bucket)))
    missing: dict[FieldPath, list[str]] = {}
    for item in find_ungranted(wanted, allow):
        place = origin
        if mount and item.field == "driver":
            place = (*mount, "driverName")
        elif mount and item.field == "attributes" and item.name in own.attributes:
            place = (*mount, "attributes", item.name)
        elif mount and item.field == "options" and item.name in own.options:
            place = (*mount, "options", own.options.index(item.name))
        missing.setdefault(place, []).append(str(item))
    for place, items in missing.items():
        message = f"kaigen.yaml does not allow {', '.join(items)}"
        problems.error("KG0581", message, place, "add it to `allow.volumes` in kaigen.yaml")


def bucket_volume(frame: Frame, bucket: Bucket, what: str = "", *, fills: bool = True) -> list[Object]:
    """Return the PersistentVolume and its claim; read-only, since pods only read.

    Args:
        frame: the app.
        bucket: the bucket.
        what: end of the objects' roles, in an app that also has another volume.
        fills: whether the app stores the files, as only one app may.
    """
    annotations = {LOCATION if fills else READS: location(bucket)}
    suffix = volume_suffix(bucket)
    claim: Expr = Release(suffix)
    volume = Joined((Namespace(), "-", Release(suffix)))
    metadata = frame.metadata(suffix, "storage", annotations=annotations, name=volume)
    del metadata["namespace"]  # It belongs to the cluster, so its name begins with the namespace's.
    return [
        Object(
            role=f"persistentvolume{what}",
            body={
                "apiVersion": "v1",
                "kind": "PersistentVolume",
                "metadata": metadata,
                "spec": {
                    "accessModes": ["ReadOnlyMany"],
                    "capacity": {"storage": bucket.mount.size or _SIZE},
                    "persistentVolumeReclaimPolicy": "Retain",
                    "claimRef": {
                        "apiVersion": "v1",
                        "kind": "PersistentVolumeClaim",
                        "name": claim,
                        "namespace": Namespace(),
                    },
                    **_source(bucket, Joined((_mount(bucket).before, volume))),
                },
            },
        ),
        Object(
            role=f"persistentvolumeclaim{what}",
            body={
                "apiVersion": "v1",
                "kind": "PersistentVolumeClaim",
                "metadata": frame.metadata(suffix, "storage"),
                "spec": {
                    "accessModes": ["ReadOnlyMany"],
                    "storageClassName": "",
                    "volumeName": volume,
                    "resources": {"requests": {"storage": bucket.mount.size or _SIZE}},
                },
            },
        ),
    ]


def _source(bucket: Bucket, handle: Tree) -> dict[str, Tree]:
    """Return the fields of a PersistentVolume that name the bucket.

    Args:
        bucket: the bucket.
        handle: identifies the volume where the driver does not identify it by the bucket.
    """
    mount = _mount(bucket)
    return {
        **({"mountOptions": list(mount.options)} if mount.options else {}),
        "csi": {
            "driver": _name(bucket),
            "volumeHandle": mount.handle or handle,
            "readOnly": True,
            **({"volumeAttributes": dict(mount.attributes)} if mount.attributes else {}),
            **mount.secrets,
        },
    }


def _mount(bucket: Bucket) -> _Mount:
    """Return the configuration of the driver.

    Sources: Mountpoint's CONFIGURATION.md and the static provisioning of its CSI driver; k8s-csi-s3's mounter for
    GeeseFS and its example of a manual claim; the Cloud Storage FUSE CSI driver's example of a folder; the Azure Blob
    CSI driver's driver-parameters.md, and blobfuse2's options.
    """
    given, driver = bucket.mount, driver_of(bucket)
    if driver == "mountpoint-s3":
        options = [
            "read-only",
            "allow-other",  # Else only the user who mounts, root, could read.
            *([f"region {bucket.region}"] if bucket.region else []),
            *([f"prefix {bucket.prefix}/"] if bucket.prefix else []),
            *([f"endpoint-url {bucket.endpoint}", "force-path-style"] if bucket.endpoint else []),
        ]
        return _Mount([*options, *given.options], {"bucketName": bucket.name, **given.attributes})
    if driver == "gcsfuse":
        options = ["implicit-dirs", *([f"only-dir={bucket.prefix}"] if bucket.prefix else [])]
        # Two volumes of one handle cannot be in one pod. What follows the colon is not the bucket's name any more.
        return _Mount([*options, *given.options], dict(given.attributes), before=f"{bucket.name}:")
    if driver == "blobfuse":
        account, _, container = bucket.name.partition("/")
        options = ["-o allow_other", *([f"--subdirectory={bucket.prefix}"] if bucket.prefix else [])]
        attributes = {"containerName": container, "protocol": "fuse2", "storageAccount": account}
        own = given.secret
        secrets = {"nodeStageSecretRef": {"name": own.name, "namespace": own.namespace}} if own else {}
        return _Mount([*options, *given.options], {**attributes, **given.attributes}, secrets)
    # Its processes run as the user `nobody`: without modes, no other user could read.
    text = " ".join([S3_OPTIONS, *given.options])
    secret = given.secret or SecretPlace(name="csi-s3-secret", namespace="kube-system")
    reference = {"name": secret.name, "namespace": secret.namespace}
    return _Mount(
        [],
        {"mounter": "geesefs", "options": text, **given.attributes},
        {f"{use}SecretRef": dict(reference) for use in ("controllerPublish", "nodePublish", "nodeStage")},
        path_of(bucket),
    )
