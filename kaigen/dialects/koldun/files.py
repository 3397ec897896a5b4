"""Files of a Model: the forms of `sourceUrl`, and the buckets in which Koldun stores them, mounted by a CSI driver."""

from __future__ import annotations

import re
from typing import Any
from urllib.parse import SplitResult, unquote, urlsplit

from msgspec import Struct

from kaigen.core.json_types import FieldPath
from kaigen.diagnostics.suggest import did_you_mean
from kaigen.dialects.koldun.model_kinds import Model, ObjectStorage, PersistentVolumes
from kaigen.kinds.base import AUTO
from kaigen.kinds.lowering import Lowering

SOURCE: FieldPath = ("spec", "sourceUrl")

_HUB_HOSTS = frozenset({"huggingface.co", "www.huggingface.co", "hf.co"})
_PAGES = frozenset(
    {
        *("api", "blog", "chat", "collections", "docs", "enterprise", "join", "learn", "login", "models", "new"),
        *("organizations", "papers", "posts", "pricing", "search", "settings", "tasks"),
    }
)
"""First segments of the paths of the Hub that are not owners."""
_OTHER_REPOSITORIES = {"datasets": "dataset", "spaces": "Space"}
_FILE = re.compile(r"\.(bin|gguf|m|pt|pth|safetensors|t|tar|zip|gz)$")
_REVISIONS = frozenset({"blob", "resolve", "tree"})
"""What precedes the revision in the path of a repository."""
_EXAMPLE = "write the repository as `https://huggingface.co/OWNER/NAME`"

STORAGE: FieldPath = ("spec", "objectStorage")
_LOCAL: FieldPath = ("spec", "localPath")
_OUTPUT: FieldPath = ("spec", "conversion", "outputPath")
_PV: FieldPath = ("spec", "pv")

_CSI_S3 = "ru.yandex.s3.csi"
_DRIVERS = {_CSI_S3: "csi-s3", "s3.csi.aws.com": "mountpoint-s3"}
"""kaigen's names of CSI drivers, by the name that a driver has in a cluster."""

_DEFAULT_SIZE = "10Gi"
"""The operator's default for `pv.capacity`."""

_MODES = ("ReadWriteMany", "ReadWriteOnce", "ReadOnlyMany")
_FROM_LOCATION = frozenset({"bucket", "prefix", "capacity"})
"""Attributes that the operator writes and no driver reads (source: k8s-csi-s3)."""


class Folder(Struct, frozen=True):
    """A folder of a bucket.

    Attributes:
        bucket: name of the bucket.
        key: the folder, without slashes at its ends; empty for the whole bucket.
    """

    bucket: str
    key: str

    @property
    def uri(self) -> str:
        """The folder as `s3://bucket/key`."""
        return "/".join(part for part in (f"s3://{self.bucket}", self.key) if part)


def source_folder(model: Model, storage: ObjectStorage) -> Folder:
    """Return the folder of the downloaded files, as `localPath` names it."""
    local = model.spec.local_path.strip()
    if local.startswith("s3://"):
        return _parsed(local)
    return Folder(storage.bucket_for_source.strip(), local.strip("/") or f"models/{model.metadata.name}")


def converted_folder(model: Model, storage: ObjectStorage, weights: str) -> Folder:
    """Return the folder of the converted files.

    Args:
        model: the Model.
        storage: its buckets.
        weights: type of the converted weights.
    """
    name, key = model.metadata.name, source_folder(model, storage).key
    path = (model.spec.conversion.output_path or "").strip() if model.spec.conversion else ""
    if path.startswith("s3://"):
        given = _parsed(path)
        return Folder(given.bucket, _joined(given.key, name) if given.key else _joined(key, "converted", name))
    return Folder(storage.bucket_for_convert.strip(), _joined(key, "converted", weights, name))


def _parsed(uri: str) -> Folder:
    bucket, _, key = uri.removeprefix("s3://").partition("/")
    return Folder(bucket, key.strip("/"))


def _joined(*parts: str) -> str:
    return "/".join(part for part in parts if part)


def check_folders(model: Model, storage: ObjectStorage, lowering: Lowering) -> None:
    """Report buckets that are empty or contradict each other, and an output path that names no bucket."""
    folder, bucket = source_folder(model, storage), storage.bucket_for_source.strip()
    if not folder.bucket:
        at = _LOCAL if model.spec.local_path.strip() else (*STORAGE, "bucketForSource")
        lowering.error("KG0412", "the bucket of the downloaded files has no name", at, "name the bucket")
    elif bucket and folder.bucket != bucket:
        lowering.warning(
            "KG0414",
            f"files are stored in `{folder.uri}`: the operator downloads to the bucket `{bucket}` and converts from "
            f"`{folder.bucket}`, which is empty",
            _LOCAL,
            f"write `s3://{Folder(bucket, folder.key).uri.removeprefix('s3://')}` to use `bucketForSource`",
        )
    conversion = model.spec.conversion
    if conversion is None:
        return
    path = (conversion.output_path or "").strip()
    if path and not path.startswith("s3://"):
        lowering.warning(
            "KG0405", f"`{path}` has no effect: only `s3://BUCKET/PREFIX` is used", _OUTPUT, "delete it", key=True
        )
    if not converted_folder(model, storage, "q40").bucket:
        at = _OUTPUT if path.startswith("s3://") else (*STORAGE, "bucketForConvert")
        lowering.error("KG0412", "the bucket of the converted files has no name", at, "name the bucket")


def mount_block(pv: PersistentVolumes | None) -> dict[str, Any]:
    """Return the block `mount` of a bucket: the driver that the operator uses, with its options."""
    if pv is None:
        return {"driver": "csi-s3"}
    name = pv.csi_driver or _CSI_S3
    attributes = {key: value for key, value in pv.volume_attributes.items() if key not in _FROM_LOCATION}
    if pv.csi_mounter and pv.csi_mounter != "geesefs":
        attributes["mounter"] = pv.csi_mounter
    block: dict[str, Any] = {"driver": _DRIVERS.get(name, "csi-s3")}
    if name not in _DRIVERS:
        block["driverName"] = name
    options = mount_options(pv.csi_options or "")
    if options:
        block["options"] = options
    if attributes:
        block["attributes"] = attributes
    if pv.pvc_capacity or pv.capacity:
        block["size"] = pv.pvc_capacity or pv.capacity
    if pv.csi_secret_name or pv.csi_secret_namespace:
        block["secret"] = {
            "name": pv.csi_secret_name or "csi-s3-secret",
            "namespace": pv.csi_secret_namespace or "kube-system",
        }
    return block


def mount_options(text: str) -> list[str]:
    """Return the mount options of a text, each with its value."""
    options: list[str] = []
    for word in text.split():
        if word.startswith("-") or not options:
            options.append(word)
        else:
            options[-1] += f" {word}"
    return options


def volume_block(pv: PersistentVolumes | None, *, known: bool) -> dict[str, Any]:
    """Return the block of a volume of the cluster.

    Args:
        pv: its settings.
        known: whether the catalogue has the model, and therefore the size of its files.
    """
    block: dict[str, Any] = {"size": AUTO if known else _DEFAULT_SIZE, "retain": True}
    if pv is None:
        return block
    return block | {
        "size": pv.pvc_capacity or pv.capacity or block["size"],
        **({"storageClassName": pv.pvc_storage_class_name} if pv.pvc_storage_class_name else {}),
        **({"accessModes": [_mode(mode) or mode for mode in pv.pvc_access_modes]} if pv.pvc_access_modes else {}),
        "retain": (pv.reclaim_policy or "").lower() != "delete",
    }


def check_pv(pv: PersistentVolumes, document: Any, lowering: Lowering, *, in_bucket: bool) -> None:
    """Report fields of `pv` without effect, and values that the operator ignores.

    Args:
        pv: the block.
        document: it as plain data.
        lowering: collects the warnings.
        in_bucket: whether the files are stored in buckets.
    """
    for name, modes in (("accessModes", pv.access_modes), ("pvcAccessModes", pv.pvc_access_modes)):
        for index, mode in enumerate(modes):
            if _mode(mode) is None:
                message = f"`{mode}` is not an access mode"
                hint = did_you_mean(mode, _MODES) or f"one of {', '.join(_MODES)}"
                lowering.error("KG0412", message, (*_PV, name, index), hint)
    unused = _UNUSED_OF_BUCKETS if in_bucket else _UNUSED_OF_VOLUMES
    if pv.pvc_capacity:
        unused = {**unused, "capacity": "the size of the volume is that of `pvcCapacity`"}
    for name, reason in unused.items():
        given = document.get(name)
        if given in (None, "", [], {}):
            continue
        if in_bucket and name in _UNUSED_OF_BUCKETS and _asks_for_more(name, given):
            message = f"`{name}` cannot be what it says: {reason}"
            lowering.error("KG0413", message, (*_PV, name), "delete it", key=True)
        else:
            lowering.warning("KG0405", f"`{name}` has no effect: {reason}", (*_PV, name), "delete it", key=True)
    policy = (pv.reclaim_policy or "").lower()
    if policy not in {"", "retain", "delete", "recycle"}:
        message = f"`{pv.reclaim_policy}` is not a reclaim policy; the operator uses `Retain`"
        lowering.warning("KG0403", message, (*_PV, "reclaimPolicy"), "write `Retain` or delete it")
    elif policy == "recycle" or (policy == "delete" and in_bucket):
        message = f"`{pv.reclaim_policy}` has no effect: kaigen keeps what is stored, as the operator does"
        lowering.warning("KG0405", message, (*_PV, "reclaimPolicy"), "write `Retain`")
    if in_bucket:
        for key in sorted(_FROM_LOCATION & pv.volume_attributes.keys()):
            message = f"`{key}` has no effect: drivers read the location from the handle of the volume"
            lowering.warning("KG0405", message, (*_PV, "volumeAttributes", key), "delete it", key=True)


def _asks_for_more(name: str, given: Any) -> bool:
    """Return whether a field next to a bucket asks for what kaigen's volumes are not.

    The operator's own values do not: a class by which nothing is provisioned, and modes with which many pods mount.
    """
    if name in _MODES_OF_BUCKETS:
        return any(_mode(mode) == "ReadWriteOnce" for mode in given)
    return bool(given != _OPERATORS_CLASS.get(name))


def _mode(text: str) -> str | None:
    return next((mode for mode in _MODES if mode.lower() == text.lower()), None)


_STATIC = "kaigen binds each claim to the volume of its bucket by name"
_READ_ONLY = "all pods mount the bucket, and read-only"
_UNUSED_OF_BUCKETS = {
    "storageClassName": _STATIC,
    "accessModes": _READ_ONLY,
    "pvcStorageClassName": _STATIC,
    "pvcAccessModes": _READ_ONLY,
}
_MODES_OF_BUCKETS = frozenset({"accessModes", "pvcAccessModes"})
_OPERATORS_CLASS = {"storageClassName": "csi-s3"}
"""Class of the operator's volumes, which its README states in its example; its claims have none."""
_NO_BUCKET = "the files are in a volume of the cluster"
_UNUSED_OF_VOLUMES = {
    "storageClassName": "the class of the claim is `pvcStorageClassName`",
    "accessModes": "the access modes of the claim are `pvcAccessModes`",
    "csiDriver": _NO_BUCKET,
    "csiMounter": _NO_BUCKET,
    "csiOptions": _NO_BUCKET,
    "volumeAttributes": _NO_BUCKET,
    "csiSecretName": _NO_BUCKET,
    "csiSecretNamespace": _NO_BUCKET,
}


class Repository(Struct, frozen=True):
    """A repository of the Hub, or of a mirror.

    Attributes:
        name: `owner/name`.
        revision: commit, tag or branch; empty for the default.
        include: glob of the files that are meant; empty for all.
        endpoint: URL of the mirror; empty for the Hub.
    """

    name: str
    revision: str = ""
    include: str = ""
    endpoint: str = ""


class File(Struct, frozen=True):
    """A file of a web server.

    Attributes:
        url: its URL.
    """

    url: str


def read_source(text: str, lowering: Lowering) -> Repository | File | None:
    """Return what a `sourceUrl` names, or None after an error.

    Args:
        text: the field.
        lowering: collects the error.
    """
    text = text.strip()
    if not text:
        lowering.error("KG0412", "`sourceUrl` is empty, so nothing would be downloaded", SOURCE, _EXAMPLE)
        return None
    if "://" not in text:
        first = text.partition("/")[0]
        text = f"https://{text}" if first in _HUB_HOSTS else f"https://huggingface.co/{text}"
    elif text.startswith("hf://"):
        text = f"https://huggingface.co/{text.removeprefix('hf://')}"
    parts = _split(text)
    if parts is None:
        lowering.error("KG0412", f"`{text}` is not the URL of a repository or of a file", SOURCE, _EXAMPLE)
        return None
    segments = [unquote(part) for part in parts.path.split("/") if part]
    of_hub = parts.hostname in _HUB_HOSTS
    if of_hub and segments and segments[0] in _OTHER_REPOSITORIES:
        what = _OTHER_REPOSITORIES[segments[0]]
        lowering.error("KG0412", f"`{text}` is a {what}, not a model", SOURCE, _EXAMPLE)
        return None
    if of_hub and (len(segments) < 2 or segments[0] in _PAGES):
        message = f"`{text}` does not name a repository `OWNER/NAME`"
        lowering.error("KG0412", message, SOURCE, _EXAMPLE)
        return None
    if not of_hub and (len(segments) < 2 or _is_file(segments)):
        return File(parts.geturl())
    if of_hub and segments[2:3] == ["raw"]:
        segments[2] = "blob"
    return _repository(segments, "" if of_hub else f"{parts.scheme}://{parts.netloc}", text, lowering)


def _split(text: str) -> SplitResult | None:
    """Return the parts of a URL of a web server without a user; None if it is none."""
    try:
        parts = urlsplit(text)
        # The port is read when it is asked for.
        valid = parts.scheme in {"http", "https"} and parts.hostname and parts.port != 0
    except ValueError:
        return None
    return parts if valid and parts.username is None else None


def _is_file(segments: list[str]) -> bool:
    """Return whether the path of a URL is that of a file, rather than of a repository on a mirror of the Hub."""
    if len(segments) > 2 and segments[2] in _REVISIONS:
        return False
    return len(segments) > 2 or _FILE.search(segments[-1]) is not None


def _repository(segments: list[str], endpoint: str, text: str, lowering: Lowering) -> Repository | None:
    """Return the repository of a path `OWNER/NAME[@REVISION]` or `OWNER/NAME/tree/REVISION[/FOLDER]`.

    After an error it is None.
    """
    owner, name, *rest = segments
    name, _, revision = name.removesuffix(".git").partition("@")
    if not rest:
        return Repository(f"{owner}/{name}", revision, endpoint=endpoint)
    if len(rest) < 2 or rest[0] not in _REVISIONS or revision:
        message = f"`{text}` does not name one revision of a repository"
        lowering.error("KG0412", message, SOURCE, f"{_EXAMPLE}, or with `/tree/REVISION`")
        return None
    length = 3 if rest[1] == "refs" else 1
    path = "/".join(rest[1 + length :])
    include = f"{path}/*" if path and rest[0] == "tree" else path
    return Repository(f"{owner}/{name}", "/".join(rest[1 : 1 + length]), include, endpoint)
