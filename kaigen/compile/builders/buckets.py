"""Buckets as volumes: a PersistentVolume of the folder, and the one claim that may bind it.

The source of a PersistentVolume and the volume of a claim are immutable. So both names end in a hash of the source:
another location is another volume, and a rollout moves the pods to it.
"""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import urlsplit

from msgspec import Struct, field
from msgspec.structs import replace

from kaigen.compile.app import Object
from kaigen.compile.builders import settings
from kaigen.compile.builders.frame import LOCATION, READS, Frame
from kaigen.compile.expressions import DIGEST_LENGTH, Expr, Joined, Namespace, Release, Tree
from kaigen.compile.go_json import go_json, sha256_hex
from kaigen.compile.problems import Problems, report_ignored_field
from kaigen.config.block_settings import Allowed
from kaigen.config.grants import find_ungranted, wanted_volume
from kaigen.core.json_types import FieldPath
from kaigen.kinds.block import document_name, set_fields
from kaigen.kinds.bucket import Bucket, BucketPlace, BucketSecret, FilledBucket, SecretPlace
from kaigen.kinds.sources import S3
from kaigen.kubernetes.buckets import S3_OPTIONS

SIDECAR: Mapping[str, str] = {"gke-gcsfuse/volumes": "true"}
"""Annotation of pods into which GKE puts the container that mounts for them (source: Cloud Storage FUSE CSI driver)."""

GOOGLE = "https://storage.googleapis.com"
"""Google's endpoint for the S3 protocol (source: Cloud Storage, XML API interoperability)."""

AMAZON = "https://s3.amazonaws.com"
"""Amazon's endpoint, besides those of regions (source: Amazon S3 endpoints and quotas)."""

DRIVER_NAMES = {
    "mountpoint-s3": "s3.csi.aws.com",
    "csi-s3": "ru.yandex.s3.csi",
    "gcsfuse": "gcsfuse.csi.storage.gke.io",
    "blobfuse": "blob.csi.azure.com",
}
_CLOUD_DRIVERS = {"gs": "gcsfuse", "az": "blobfuse"}
"""The driver of a cloud, which mounts its buckets only, by their scheme."""

_AZURE_HOSTS = (
    ".blob.core.windows.net",
    ".blob.core.usgovcloudapi.net",
    ".blob.core.chinacloudapi.cn",
)
"""Ends of the hosts of storage accounts (source: Azure, endpoints of Blob Storage in its clouds)."""
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


def location(bucket: BucketPlace) -> str:
    """Return a bucket's folder as one string, the same however the spec writes it."""
    return " at ".join([f"{bucket.scheme}://{_path(bucket)}", *_server(bucket)])


def _server(bucket: BucketPlace) -> list[str]:
    """Return the server of a bucket, besides that of its cloud."""
    return [bucket.endpoint.rstrip("/").partition("://")[2]] if bucket.endpoint else []


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


def uses_tokens(bucket: Bucket | FilledBucket | S3) -> bool:
    """Return whether the downloader sends tokens of Google, and not requests of the S3 protocol with access keys."""
    secret = bucket.credentials.secret if bucket.credentials else None
    return bucket.scheme == "gs" and (secret is None or secret.service_account_key is not None)


def check_access(bucket: Bucket | FilledBucket | S3, origin: FieldPath, problems: Problems) -> None:
    """Report a bucket that the downloader cannot read or write.

    Args:
        bucket: the spec's block.
        origin: the spec's field of the block.
        problems: collects the errors.
    """
    secret = bucket.credentials.secret if bucket.credentials else None
    if bucket.scheme == "az":
        _check_azure(bucket, origin, problems)
    elif uses_tokens(bucket) and bucket.endpoint:
        problems.error(
            "KG0317",
            f"the downloader sends tokens of Google to Google's server only, not to {bucket.endpoint}",
            (*origin, "endpoint"),
            "leave `endpoint` out, or set `credentials.secret` to a Secret with HMAC keys",
        )
    elif bucket.credentials is None and bucket.endpoint:
        problems.error(
            "KG0317",
            f"the downloader has no credentials for {bucket.endpoint}",
            origin,
            "set `credentials.secret` to the Secret with its access keys",
        )
    if secret is not None:
        _check_secret(secret, bucket.scheme, (*origin, "credentials", "secret"), problems)


def _check_azure(bucket: Bucket | FilledBucket | S3, origin: FieldPath, problems: Problems) -> None:
    """Report a server that would get a token of Azure, and is not one of the account."""
    secret = bucket.credentials.secret if bucket.credentials else None
    if not bucket.endpoint or secret is not None:
        return
    if is_azure_server(bucket):
        return
    account = bucket.name.partition("/")[0]
    problems.error(
        "KG0317",
        f"the downloader sends tokens of Azure to servers of the account `{account}` only, not to {bucket.endpoint}",
        (*origin, "endpoint"),
        "leave `endpoint` out, or set `credentials.secret` to a Secret with a key or a shared access signature",
    )


_SECRET_FIELDS = {
    "s3": ("access_key", "secret_key"),
    "gs": ("access_key", "secret_key", "service_account_key"),
    "az": ("account_key", "sas_token"),
}
"""Fields of a `BucketSecret` by the scheme of the bucket."""


def _check_secret(secret: BucketSecret, scheme: str, origin: FieldPath, problems: Problems) -> None:
    """Report keys that have no effect on a bucket of this scheme, or next to each other."""
    given = [name for name in set_fields(secret) if name not in ("name", *_SECRET_FIELDS[scheme])]
    for field_name in given:
        name = document_name(secret, field_name)
        fitting = " or ".join(f"`{document_name(secret, each)}`" for each in _SECRET_FIELDS[scheme])
        message = f"`{name}` has no effect on `{scheme}://`, which has {fitting}"
        problems.error("KG0340", message, (*origin, name), "leave it out, or correct the scheme of the bucket")
    first = "sas_token" if scheme == "az" else "service_account_key"
    others = ("account_key",) if scheme == "az" else ("access_key", "secret_key")
    for field_name in others if getattr(secret, first) is not None else ():
        if field_name in set_fields(secret) and field_name not in given:
            name = document_name(secret, field_name)
            where = f"next to `{document_name(secret, first)}`"
            report_ignored_field(problems, name, (*origin, name), where, "leave one of them out")


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
        wanted = replace(wanted, uri=f"{bucket.scheme}://{_path(bucket)}", servers=tuple(_server(bucket)))
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
        _path(bucket),
    )


def _path(bucket: BucketPlace) -> str:
    return "/".join(part for part in (bucket.name, bucket.prefix) if part)


def transfer_arguments(
    bucket: Bucket | FilledBucket, origin: FieldPath, prefix: str = "download"
) -> tuple[list[str], list[Tree]]:
    """Return the downloader's arguments about the bucket, and variables with its keys.

    Args:
        bucket: the spec's block.
        origin: the spec's field of the block.
        prefix: start of the paths of the settings.
    """
    endpoint, region = transfer_server(bucket)
    arguments = [*([f"--s3-endpoint={endpoint}"] if endpoint else []), *([f"--s3-region={region}"] if region else [])]
    secret = bucket.credentials.secret if bucket.credentials else None
    if secret is None:
        return arguments, []
    at: FieldPath = (*origin, "credentials", "secret")
    name = settings.text(
        f"{prefix}.credentials.name", secret.name, "Secret with the bucket's keys.", origin=(*at, "name")
    )
    return arguments, [
        {
            "name": variable,
            "valueFrom": {
                "secretKeyRef": {
                    "name": name,
                    "key": settings.text(
                        f"{prefix}.credentials.{part}", key, f"Key of the {what} in the Secret.", origin=(*at, part)
                    ),
                }
            },
        }
        for variable, (part, key, what) in key_variables(secret, bucket.scheme).items()
    ]


def transfer_server(bucket: Bucket | FilledBucket | S3) -> tuple[str | None, str | None]:
    """Return the endpoint and the region that the downloader gets; None for those of the cloud."""
    if bucket.scheme == "gs" and not uses_tokens(bucket):
        return bucket.endpoint or GOOGLE, bucket.region or "auto"
    return bucket.endpoint, bucket.region


def key_variables(secret: BucketSecret, scheme: str) -> Mapping[str, tuple[str, str, str]]:
    """Return the keys of a Secret: the field, the key, and what it contains, by the variable of the downloader.

    Args:
        secret: the spec's block.
        scheme: of the bucket.
    """
    if scheme == "az" and secret.sas_token is not None:
        return {"AZURE_STORAGE_SAS_TOKEN": ("sasToken", secret.sas_token, "shared access signature")}
    if scheme == "az":
        return {"AZURE_STORAGE_KEY": ("accountKey", secret.account_key or "AZURE_STORAGE_KEY", "account's key")}
    if secret.service_account_key is not None:
        return {
            "GOOGLE_SERVICE_ACCOUNT_KEY": (
                "serviceAccountKey",
                secret.service_account_key,
                "service account's key file",
            )
        }
    return {
        "AWS_ACCESS_KEY_ID": ("accessKey", secret.access_key, "access key ID"),
        "AWS_SECRET_ACCESS_KEY": ("secretKey", secret.secret_key, "secret access key"),
    }


def destination(bucket: Bucket | FilledBucket) -> str:
    """Return the downloader's `--dest`."""
    return f"{protocol_of(bucket)}://{_path(bucket)}"


def protocol_of(bucket: Bucket | FilledBucket | S3) -> str:
    """Return the scheme with which the downloader gets a bucket: `s3` also for Google's with HMAC keys."""
    return bucket.scheme if bucket.scheme == "az" or uses_tokens(bucket) else "s3"


def cloud_server(bucket: BucketPlace | S3) -> str:
    """Return the URL of the server of a bucket."""
    if bucket.endpoint:
        return bucket.endpoint.rstrip("/")
    if bucket.scheme == "az":
        return f"https://{bucket.name.partition('/')[0]}{_AZURE_HOSTS[0]}"
    return GOOGLE if bucket.scheme == "gs" else AMAZON


def is_azure_server(bucket: BucketPlace | S3) -> bool:
    """Return whether the server of a container is Azure's own for its account, which may get tokens."""
    account = bucket.name.partition("/")[0]
    parts = urlsplit(cloud_server(bucket))
    return parts.scheme == "https" and (parts.hostname or "").lower() in {f"{account}{end}" for end in _AZURE_HOSTS}


def folder_of(place: str) -> str:
    """Return the bucket and the folder of a `location` or of a `destination`, whichever protocol it is used with."""
    return place.partition("://")[2].partition(" ")[0]
