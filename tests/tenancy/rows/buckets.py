"""Buckets and folders in them: in arguments and variables, in volumes, and in volumes of pods."""

from __future__ import annotations

from collections.abc import Callable

from tests.tenancy.objects import container, persistent_volume, pod, pod_with_volume
from tests.tenancy.places import PATHS, URIS
from tests.tenancy.tenants import Body

_MOUNTPOINT: Body = {"driver": "s3.csi.aws.com", "volumeAttributes": {"bucketName": "shared"}}


def _inline(options: str, **attributes: str) -> Body:
    known = {"bucketName": "shared", "mountOptions": options}
    return {"driver": "gcsfuse.csi.storage.gke.io", "volumeAttributes": {**known, **attributes}}


def _s3_volume(path: str) -> Body:
    return persistent_volume(volumeHandle=f"shared/{path}")


def _prefixed_volume(path: str) -> Body:
    return persistent_volume({"mountOptions": ["read-only", f"prefix {path}"]}, **_MOUNTPOINT)


def _argument(text: str) -> Body:
    return pod(containers=[container(args=["run", text])])


def _variable(text: str) -> Body:
    return pod(initContainers=[container(name="i", env=[{"name": "A", "value": text}])])


def _gcs_volume(handle: str, *options: str, attribute: str = "") -> Body:
    attributes: Body = {"volumeAttributes": {"mountOptions": attribute}} if attribute else {}
    body: Body = {"driver": "gcsfuse.csi.storage.gke.io", "volumeHandle": handle, **attributes}
    return persistent_volume({"mountOptions": list(options)}, **body)


def _azure_volume(account: str, *options: str, handle: str = "team-a-x", **more: str) -> Body:
    attributes = {"storageAccount": account, "containerName": "shared", "protocol": "fuse2", **more}
    body: Body = {"driver": "blob.csi.azure.com", "volumeHandle": handle, "volumeAttributes": attributes}
    return persistent_volume({"mountOptions": ["-o allow_other", *options]}, **body)


IN_PLACES: dict[str, Callable[[str], Body]] = {
    "in an argument": lambda path: _argument(f"--to=s3://shared/{path}"),
    "in a variable": lambda path: _variable(f"gs://shared/{path}"),
    "of a volume": _s3_volume,
    "of a prefix": _prefixed_volume,
    "in a pod": lambda path: pod_with_volume(csi=_inline(f"implicit-dirs,only-dir={path}")),
    "of a volume of Google": lambda path: _gcs_volume("shared:x", f"only-dir={path}"),
    "of a volume of Azure": lambda path: _azure_volume("ours", f"--subdirectory={path}"),
}
"""Objects with a path in the bucket `shared`, by where they have it."""

_FOLDERS: dict[str, tuple[Body, bool]] = {
    "marked name": (_gcs_volume("shared:team-a-x", "only-dir=a"), True),
    "folder in an attribute": (_gcs_volume("shared", attribute="implicit-dirs,only-dir=a"), True),
    "folder in an attribute besides another": (_gcs_volume("shared", "only-dir=a", attribute="only-dir=b"), False),
    "folder of Azure": (_azure_volume("ours", "--subdirectory=a"), True),
    "another account of Azure": (_azure_volume("theirs", "--subdirectory=a"), False),
    "folder and container of Azure": (_azure_volume("ours", "--subdirectory=a --container-name=theirs"), False),
    "option of Azure in the handle": (
        _azure_volume("ours", "--subdirectory=a", handle="x --container-name=theirs"),
        False,
    ),
    "no folder of Azure": (_azure_volume("ours"), False),
    "no folder": (_gcs_volume("shared:x"), False),
    "two folders": (_gcs_volume("shared", "only-dir=a", "only-dir=b"), False),
    "folder twice": (_gcs_volume("shared", "only-dir=only-dir=a"), False),
    "folder of a configuration file": (_gcs_volume("shared", "only-dir:a"), False),
    "folder with an underscore": (_gcs_volume("shared", "only_dir=a"), False),
    "folder in capitals": (_gcs_volume("shared", "ONLY-DIR=a"), False),
    "folder after a comma": (_gcs_volume("shared", "implicit-dirs,only-dir=a"), False),
    "mark with a slash": (_gcs_volume("shared:/../theirs", "only-dir=a"), False),
    "mark with a line break": (_gcs_volume("shared:x\ny", "only-dir=a"), False),
    "colon in a name": (persistent_volume(volumeHandle="shared:b/a"), False),
    "colon in a path": (persistent_volume(volumeHandle="shared/a:b"), False),
    **{
        f"option {option}": (persistent_volume({"mountOptions": [option]}, **_MOUNTPOINT), False)
        for option in (
            "prefix  a/",
            "prefix=a/",
            "--prefix a/",
            "--prefix=a/",
            "--prefix=b/",
            " prefix b/",
            "prefix a/ b/",
            "prefix prefix a/",
            "PREFIX b/",
            "-o prefix=b/",
        )
    },
}
"""Volumes, and whether the tenant may have them, by how they name the folder."""

DENIED: dict[str, tuple[Body, str]] = {
    **{
        f"path {number} {place}": (make(path), "the bucket `")
        for number, (path, granted) in enumerate(PATHS.items())
        for place, make in IN_PLACES.items()
        if not granted
    },
    **{
        f"URI {number} in {place}": (make(text), "the bucket `")
        for number, (text, granted) in enumerate(URIS.items())
        for place, make in (("an argument", _argument), ("a variable", _variable))
        if not granted
    },
    **{f"bucket, {case}": (body, "the bucket `") for case, (body, granted) in _FOLDERS.items() if not granted},
    "account of Azure in another spelling": (
        _azure_volume("ours", "--subdirectory=a", storageaccount="theirs"),
        "the volume attribute `storageaccount`",
    ),
    "bucket in an argument": (
        pod(containers=[container(args=["--to=s3://shared/ab"])]),
        "the bucket `s3://shared/ab`",
    ),
    "bucket in a variable": (
        pod(containers=[container(env=[{"name": "A", "value": "gs://other"}])]),
        "the bucket `gs://other`",
    ),
    "bucket in a pod": (
        pod_with_volume(csi={"driver": "gcsfuse.csi.storage.gke.io", "volumeAttributes": {"bucketName": "theirs"}}),
        "the bucket `gs://theirs/`",
    ),
    "folder in a pod": (pod_with_volume(csi=_inline("implicit-dirs,only-dir=b")), "the bucket `gs://shared/b`"),
    "attribute in a pod": (
        pod_with_volume(csi=_inline("only-dir=a", server="10.0.0.1")),
        "the volume attribute `server`",
    ),
    "option in a pod": (pod_with_volume(csi=_inline("only-dir=a,temp-dir=/etc")), "the mount options `temp-dir=/etc`"),
    "attribute of a volume": (persistent_volume(volumeAttributes={"server": "x"}), "the volume attribute `server`"),
    "option of a volume": (
        persistent_volume({"mountOptions": ["endpoint-url https://evil.example.org"]}),
        "the mount options `endpoint-url https://evil.example.org`",
    ),
    "bucket of a volume": (persistent_volume(volumeHandle="shared/b"), "the bucket `s3://shared/b`"),
    "bucket without its prefix": (persistent_volume(**_MOUNTPOINT), "the bucket `s3://shared/`"),
    "prefix twice": (
        persistent_volume({"mountOptions": ["prefix a/", "prefix b/"]}, **_MOUNTPOINT),
        "the bucket `s3://shared/a/ b/`",
    ),
}
"""Objects with what the finding names, by what is wrong with them."""

ALLOWED: dict[str, Body] = {
    **{
        f"path {number} {place}": make(path)
        for number, (path, granted) in enumerate(PATHS.items())
        for place, make in IN_PLACES.items()
        if granted
    },
    **{f"URI {number}": _argument(text) for number, (text, granted) in enumerate(URIS.items()) if granted},
    **{f"bucket, {case}": body for case, (body, granted) in _FOLDERS.items() if granted},
    "bucket in an argument": pod(containers=[container(args=["--to=s3://shared/a/x", "s3"])]),
    "volume with its prefix": persistent_volume({"mountOptions": ["prefix a/"]}, **_MOUNTPOINT),
    "bucket in a pod": pod_with_volume(csi=_inline("implicit-dirs,only-dir=a")),
}
"""Objects that the tenant may have."""
