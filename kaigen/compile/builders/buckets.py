"""Buckets as volumes: a PersistentVolume that names the folder, and the one claim that may have it.

The fields of a PersistentVolume that say where it is can never change, nor can a claim's volume. So both names end
in a hash of them: another place is another volume, and pods move to it as they roll.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from kaigen.compile.app import Object
from kaigen.compile.builders import settings
from kaigen.compile.builders.frame import LOCATION, Frame
from kaigen.compile.expressions import DIGEST_LENGTH, Expr, Joined, Namespace, Release, SpecPath, Tree
from kaigen.compile.go_json import go_json, sha256_hex
from kaigen.compile.problems import Problems
from kaigen.kinds.bucket import Bucket, SecretPlace

SIDECAR: Mapping[str, str] = {"gke-gcsfuse/volumes": "true"}
"""Annotation of pods into which GKE puts the container that mounts for them (source: Cloud Storage FUSE CSI driver)."""

GOOGLE = "https://storage.googleapis.com"
"""Where Google's object storage speaks S3's protocol (source: Cloud Storage, XML API interoperability)."""

_NAMES = {
    "mountpoint-s3": "s3.csi.aws.com",
    "csi-s3": "ru.yandex.s3.csi",
    "gcsfuse": "gcsfuse.csi.storage.gke.io",
}
_SIZE = "1Ti"
"""Volumes and claims must state a size; none of the drivers looks at it."""


@dataclass(frozen=True, slots=True)
class _Mount:
    """What a driver is told.

    Attributes:
        options: of the mount.
        attributes: of the volume.
        secrets: references to Secrets.
        handle: what identifies the volume; empty for the name of the PersistentVolume.
        before: what stands before that name then.
    """

    options: list[str]
    attributes: dict[str, str]
    secrets: dict[str, dict[str, str]] = field(default_factory=dict)
    handle: str = ""
    before: str = ""


def driver_of(bucket: Bucket) -> str:
    """The driver that mounts a bucket: the spec's, or the one that fits."""
    if bucket.mount.driver:
        return bucket.mount.driver
    if bucket.scheme == "gs":
        return "gcsfuse"
    return "csi-s3" if bucket.endpoint else "mountpoint-s3"


def volume_suffix(bucket: Bucket) -> str:
    """Ending of the names of a bucket's volume and claim: a hash of all that cannot change."""
    mount = _mount(bucket)
    meaning = [location(bucket), _name(bucket), mount.options, mount.attributes, mount.secrets]
    return f"-weights-{sha256_hex(go_json(meaning))[:DIGEST_LENGTH]}"


def _name(bucket: Bucket) -> str:
    return bucket.mount.driver_name or _NAMES[driver_of(bucket)]


def location(bucket: Bucket) -> str:
    """A bucket's folder as one text, the same for all ways of writing it."""
    server = bucket.endpoint.rstrip("/").partition("://")[2] if bucket.endpoint else ""
    return f"{bucket.scheme}://{_path(bucket)}" + (f" at {server}" if server else "")


def check_bucket(bucket: Bucket, origin: SpecPath, problems: Problems) -> None:
    """Tell of a mount that cannot work, and of a bucket into which nothing may write.

    Args:
        bucket: what the spec says.
        origin: where it stands there.
        problems: takes what is wrong with it.
    """
    driver, mount = driver_of(bucket), bucket.mount
    if (driver == "gcsfuse") != (bucket.scheme == "gs"):
        hint = (
            "use `gcsfuse`" if bucket.scheme == "gs" else "use `mountpoint-s3`, or `csi-s3` for other servers"
        )
        problems.error(
            "KG0316", f"`{driver}` cannot mount `{bucket.scheme}://`", (*origin, "mount", "driver"), hint
        )
    if driver == "gcsfuse" and bucket.endpoint:
        problems.error(
            "KG0316", "`gcsfuse` mounts Google's buckets only", (*origin, "endpoint"), "leave `endpoint` out"
        )
    if mount.secret and driver != "csi-s3":
        problems.error(
            "KG0340",
            f"`secret` has no effect on `{driver}`, which mounts as the cloud knows it or its pods",
            (*origin, "mount", "secret"),
            "leave it out",
        )
    if bucket.credentials is None and bucket.scheme == "gs":
        problems.error(
            "KG0317",
            "the downloader writes to Google's buckets with HMAC keys, and has none",
            origin,
            "make HMAC keys for a service account and name their Secret in `credentials.secret`",
        )
    elif bucket.credentials is None and bucket.endpoint:
        problems.error(
            "KG0317",
            f"nothing lets the downloader write at {bucket.endpoint}",
            origin,
            "name the Secret with its access keys in `credentials.secret`",
        )
    if bucket.credentials and bucket.credentials.service_account and bucket.scheme == "gs":
        problems.error(
            "KG0317",
            "Google's S3 protocol knows HMAC keys only, no identities of service accounts",
            (*origin, "credentials", "serviceAccount"),
            "name a Secret with HMAC keys in `credentials.secret`",
        )


def bucket_volume(frame: Frame, bucket: Bucket) -> list[Object]:
    """The PersistentVolume and its claim; read-only, since pods only read."""
    suffix = volume_suffix(bucket)
    claim: Expr = Release(suffix)
    volume = Joined((Namespace(), "-", Release(suffix)))
    metadata = frame.metadata(suffix, "storage", annotations={LOCATION: location(bucket)}, name=volume)
    del metadata["namespace"]  # It belongs to the cluster, so its name begins with the namespace's.
    mount = _mount(bucket)
    return [
        Object(
            role="persistentvolume",
            body={
                "apiVersion": "v1",
                "kind": "PersistentVolume",
                "metadata": metadata,
                "spec": {
                    "accessModes": ["ReadOnlyMany"],
                    "capacity": {"storage": _SIZE},
                    "persistentVolumeReclaimPolicy": "Retain",
                    "claimRef": {
                        "apiVersion": "v1",
                        "kind": "PersistentVolumeClaim",
                        "name": claim,
                        "namespace": Namespace(),
                    },
                    **({"mountOptions": list(mount.options)} if mount.options else {}),
                    "csi": {
                        "driver": _name(bucket),
                        "volumeHandle": mount.handle or Joined((mount.before, volume)),
                        "readOnly": True,
                        **({"volumeAttributes": dict(mount.attributes)} if mount.attributes else {}),
                        **mount.secrets,
                    },
                },
            },
        ),
        Object(
            role="persistentvolumeclaim",
            body={
                "apiVersion": "v1",
                "kind": "PersistentVolumeClaim",
                "metadata": frame.metadata(suffix, "storage"),
                "spec": {
                    "accessModes": ["ReadOnlyMany"],
                    "storageClassName": "",
                    "volumeName": volume,
                    "resources": {"requests": {"storage": _SIZE}},
                },
            },
        ),
    ]


def _mount(bucket: Bucket) -> _Mount:
    """What each driver wants to be told.

    Sources: Mountpoint's CONFIGURATION.md and the static provisioning of its CSI driver; k8s-csi-s3's mounter for
    GeeseFS and its example of a manual claim; the Cloud Storage FUSE CSI driver's example of a folder.
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
    # Its processes run as nobody: without modes, nobody else could read.
    text = " ".join(["--memory-limit=1000", "--dir-mode=0555", "--file-mode=0444", *given.options])
    secret = given.secret or SecretPlace(name="csi-s3-secret", namespace="kube-system")
    reference = {"name": secret.name, "namespace": secret.namespace}
    return _Mount(
        [],
        {"mounter": "geesefs", "options": text, **given.attributes},
        {f"{use}SecretRef": dict(reference) for use in ("controllerPublish", "nodePublish", "nodeStage")},
        _path(bucket),
    )


def _path(bucket: Bucket) -> str:
    return "/".join(part for part in (bucket.name, bucket.prefix) if part)


def transfer_arguments(bucket: Bucket) -> tuple[list[str], list[Tree]]:
    """What the downloader is told of the bucket that it fills: arguments, and variables with its keys."""
    endpoint = bucket.endpoint or (GOOGLE if bucket.scheme == "gs" else None)
    region = bucket.region or ("auto" if bucket.scheme == "gs" else None)
    arguments = [
        *([f"--s3-endpoint={endpoint}"] if endpoint else []),
        *([f"--s3-region={region}"] if region else []),
    ]
    secret = bucket.credentials.secret if bucket.credentials else None
    if secret is None:
        return arguments, []
    at: SpecPath = ("spec", "store", "bucket", "credentials", "secret")
    name = settings.text(
        "download.credentials.name", secret.name, "Secret with the bucket's keys.", origin=(*at, "name")
    )
    keys = {
        "AWS_ACCESS_KEY_ID": ("accessKey", secret.access_key, "Key that holds the access key's id."),
        "AWS_SECRET_ACCESS_KEY": ("secretKey", secret.secret_key, "Key that holds the secret access key."),
    }
    return arguments, [
        {
            "name": variable,
            "valueFrom": {
                "secretKeyRef": {
                    "name": name,
                    "key": settings.text(f"download.credentials.{part}", key, doc, origin=(*at, part)),
                }
            },
        }
        for variable, (part, key, doc) in keys.items()
    ]


def destination(bucket: Bucket) -> str:
    """Where the downloader puts the files, as it is told."""
    return destination_of(location(bucket))


def destination_of(place: str) -> str:
    """What the downloader is told of a `location`: it speaks S3's protocol, whoever's bucket it is."""
    return "s3://" + place.partition("://")[2].partition(" ")[0]
