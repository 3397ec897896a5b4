"""Where the weights of a Model are stored: a volume, a folder of a bucket, or a volume that has them already."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec import Struct, field

from kaigen.compile.app import Object
from kaigen.compile.builders import settings
from kaigen.compile.builders.bucket_access import destination, transfer_arguments
from kaigen.compile.builders.buckets import bucket_volume
from kaigen.compile.builders.frame import Frame
from kaigen.compile.builders.storage import claim
from kaigen.compile.context import Context
from kaigen.compile.expressions import Release, Tree
from kaigen.compile.problems import Problems, ignored_fields, report_ignored_field
from kaigen.core.json_types import FieldPath
from kaigen.kinds.bucket import Bucket
from kaigen.kinds.model import DownloadSpec
from kaigen.kinds.serving import ExistingVolume
from kaigen.kinds.store import ModelVolume
from kaigen.kinds.store import Store as StoreBlock

_UNDERSTOOD = frozenset({"source", "facts"})
"""Fields that such a Model uses; all others are about a download."""

FOLDER = "/model"
"""Mount path of the store, in the pods of the downloader."""
STORE: FieldPath = ("spec", "store")
WAVE = 1

_UNDERSTOOD_EMPTY = _UNDERSTOOD | {"store.volume", "store.bucket"}


class Store(Struct, frozen=True):
    """Where the weights are stored, for the downloader that fills it.

    Attributes:
        objects: the claim, or the bucket's volume.
        title: the kind of store, in a sentence.
        destination: where the downloader stores a folder for each revision.
        arguments: further arguments of the downloader.
        env: variables with the bucket's keys.
        mounts: volume mounts of the downloader.
        volumes: volumes of its pod.
        account: annotations of its service account.
    """

    objects: Sequence[Object]
    title: str
    destination: str
    arguments: Sequence[str] = ()
    env: Sequence[Tree] = ()
    mounts: Sequence[Tree] = ()
    volumes: Sequence[Tree] = ()
    account: Mapping[str, str] = field(default_factory=dict)


def resolve_store(store: StoreBlock, frame: Frame, context: Context, *, is_served: bool, wave: int) -> Store:
    """Return the volume or the bucket that a spec asks for.

    Args:
        store: the spec's block.
        frame: names and labels of its objects.
        context: what it is compiled for.
        is_served: whether other apps mount it: a bucket that only the downloader uses has no volume.
        wave: sync wave of the Job that fills it.
    """
    if store.bucket:
        return _bucket(store.bucket, frame, is_served=is_served)
    if store.volume is None:
        return Store([], "", "")
    return _volume(store.volume, frame, context, wave)


def _volume(volume: ModelVolume, frame: Frame, context: Context, wave: int) -> Store:
    volume_claim = claim(
        frame,
        context,
        volume,
        what="storage",
        name=Release("-weights"),
        retain=volume.retain,
        origin=(*STORE, "volume"),
        role="persistentvolumeclaim",
        wave=wave,
    )
    return Store(
        [volume_claim],
        "a volume",
        FOLDER,
        mounts=[{"name": "weights", "mountPath": FOLDER}],
        volumes=[{"name": "weights", "persistentVolumeClaim": {"claimName": Release("-weights")}}],
    )


def _bucket(bucket: Bucket, frame: Frame, *, is_served: bool) -> Store:
    arguments, env = transfer_arguments(bucket, (*STORE, "bucket"))
    account = bucket.credentials.service_account if bucket.credentials else None
    return Store(
        bucket_volume(frame, bucket) if is_served else [],
        "a bucket",
        destination(bucket),
        arguments,
        env,
        account=account.annotations if account else {},
    )


def record(frame: Frame, volume: ExistingVolume) -> Object:
    """Return the ConfigMap that says where the weights are: an app has at least one object."""
    claim = settings.text(
        "storage.claimName",
        volume.claim_name,
        "PersistentVolumeClaim with the weights, for readers of this ConfigMap.",
        origin=("spec", "source", "volume", "claimName"),
    )
    return Object(
        role="configmap",
        body={
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": frame.metadata("-weights", "model"),
            "data": {"claimName": claim, "path": volume.path or "."},
        },
    )


def check_existing(spec: DownloadSpec, problems: Problems) -> None:
    """Report fields of a Model that downloads nothing which would have no effect."""
    is_empty = spec.source.empty is not None
    where = "on a place for files" if is_empty else "on weights that are in a volume already"
    for name, path in ignored_fields(spec, _UNDERSTOOD_EMPTY if is_empty else _UNDERSTOOD):
        report_ignored_field(problems, name, path, f"{where}: nothing is downloaded", "leave it out")
    if spec.source.signature:
        problems.error(
            "KG0396",
            f"nothing is downloaded {'to a place for files' if is_empty else 'from a volume'}, so its signature is not "
            "verified",
            ("spec", "source", "signature"),
            "delete `signature`, or download the files from where they are signed",
        )
