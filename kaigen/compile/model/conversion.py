"""The conversion of downloaded weights: the container that converts them, its volume, and what it needs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from msgspec import Struct, field

from kaigen.compile.app import Object
from kaigen.compile.builders import settings
from kaigen.compile.builders.bucket_access import location, transfer_arguments
from kaigen.compile.builders.buckets import bucket_volume, check_bucket, check_grant
from kaigen.compile.builders.frame import Frame
from kaigen.compile.builders.pods import NO_NETWORK, container_security, image_fields
from kaigen.compile.builders.source_checks import check_store_outside
from kaigen.compile.builders.sources import identity
from kaigen.compile.builders.storage import check_access_modes, claim
from kaigen.compile.context import Context
from kaigen.compile.expressions import Release, Setting, Tree
from kaigen.compile.model.mounted import (
    CONVERTED,
    CONVERTED_SUFFIX,
    CONVERTER,
    conversion,
    mounted_bucket,
    mounted_identity,
)
from kaigen.compile.model.store import FOLDER, Store
from kaigen.compile.problems import Problems
from kaigen.core.json_types import FieldPath
from kaigen.diagnostics.category import Category
from kaigen.diagnostics.problem import Problem
from kaigen.kinds.base import AUTO
from kaigen.kinds.bucket import Bucket
from kaigen.kinds.model import DownloadSpec, ModelSpec
from kaigen.kinds.store import ModelVolume
from kaigen.kubernetes.quantities import units
from kaigen.sizing.constants import GIB, room_for
from kaigen.system.lazy_import import lazy_imports

with lazy_imports():
    from kaigen.compile.model import scratch as scratches
    from kaigen.sizing import distributed_llama as llama
    from kaigen.sizing import distributed_llama as sizes
    from kaigen.sizing import problem

if TYPE_CHECKING:
    from kaigen.kinds.convert import DistributedLlama
    from kaigen.sizing.distributed_llama import Shape

CONVERT = "convert"
"""Name of the converter's container."""

PERMANENT_EXIT_CODES = (2, 10, 11)
"""Exit codes of kaigen-convert after which a retry cannot succeed (source: its README)."""

AT: FieldPath = ("spec", "convert", "distributedLlama")
_OWN_FOLDER = "/converted"


class ConvertedModel(Struct, frozen=True):
    """What kaigen knows about a model that is converted.

    Attributes:
        shape: None when it is unknown, or when the format cannot have the model.
        problems: why distributed-llama cannot run the model, or load the type of its weights: errors of their own, so
            that a size that is missing for this reason is none.
    """

    shape: Shape | None
    problems: tuple[Problem, ...] = ()


class Conversion(Struct, frozen=True):
    """A conversion, as its Job runs it.

    Attributes:
        format: the spec's block.
        objects: the claim of a volume of its own.
        mounts: volume mounts of the converter.
        volumes: volumes of the pod besides those of the store.
        folder: folder above the converted revisions, in the container.
        account: annotations of the service account, to write to the bucket.
        upload: arguments of the upload; None if the files are stored in a volume.
        env: variables of the upload with the bucket's keys.
        model: what kaigen knows about the model.
        request: requests of the converter for the disk of the node.
    """

    format: DistributedLlama
    objects: Sequence[Object]
    mounts: Sequence[Tree]
    volumes: Sequence[Tree]
    folder: str
    model: ConvertedModel
    account: Mapping[str, str] = field(default_factory=dict)
    upload: Sequence[Tree] | None = None
    env: Sequence[Tree] = ()
    request: Mapping[str, Tree] = field(default_factory=dict)


def resolve_conversion(
    spec: DownloadSpec, frame: Frame, context: Context, source: Store, problems: Problems, *, wave: int
) -> Conversion | None:
    """Return the conversion that a spec asks for; None for none.

    Args:
        spec: the spec.
        frame: names and labels of its objects.
        context: what it is compiled for.
        source: where the downloaded files are stored.
        problems: collects why the model cannot be converted.
        wave: sync wave of the Job.
    """
    convert = conversion(spec)
    if convert is None:
        return None
    model = _converted_model(spec, convert)
    for problem in model.problems:
        problems.add(problem)
    volume = convert.store.volume if convert.store is not None else None
    bucket = mounted_bucket(spec)
    if bucket is not None:
        return _into_bucket(spec, convert, bucket, source, frame, context, model)
    if volume is None:
        return Conversion(convert, [], source.mounts, [], f"{FOLDER}/{CONVERTED}", model)
    own = claim(
        frame,
        context,
        volume,
        what="converted",
        name=Release(CONVERTED_SUFFIX),
        retain=volume.retain,
        origin=(*AT, "store", "volume"),
        role="persistentvolumeclaim-converted",
        wave=wave,
    )
    mount: Tree = {"name": "converted", "mountPath": _OWN_FOLDER}
    added: Tree = {"name": "converted", "persistentVolumeClaim": {"claimName": Release(CONVERTED_SUFFIX)}}
    return Conversion(convert, [own], [*source.mounts, mount], [added], _OWN_FOLDER, model)


def _into_bucket(
    spec: DownloadSpec,
    convert: DistributedLlama,
    bucket: Bucket,
    source: Store,
    frame: Frame,
    context: Context,
    model: ConvertedModel,
) -> Conversion:
    """Return a conversion on the disk of the node, whose result is uploaded to a bucket."""
    mounts: list[Tree] = [{"name": "converted", "mountPath": _OWN_FOLDER}]
    scratch = scratches.scratch_of(spec, context)
    volumes = scratches.scratch_volumes(spec, scratch, AT)
    if spec.store.bucket is not None:
        mounts.insert(0, {"name": "weights", "mountPath": FOLDER})
    if bucket is spec.store.bucket:
        return Conversion(
            convert,
            [],
            [*source.mounts, *mounts],
            volumes,
            _OWN_FOLDER,
            model,
            {},
            source.arguments,
            source.env,
            scratch.request,
        )
    arguments, env = transfer_arguments(bucket, (*AT, "store", "bucket"), "upload")
    account = bucket.credentials.service_account if bucket.credentials else None
    return Conversion(
        convert,
        bucket_volume(frame, bucket, "-converted"),
        [*source.mounts, *mounts],
        volumes,
        _OWN_FOLDER,
        model,
        account.annotations if account else {},
        arguments,
        env,
        scratch.request,
    )


def _converted_model(spec: DownloadSpec, convert: DistributedLlama) -> ConvertedModel:
    """Return what kaigen knows about a model that is converted, and why distributed-llama cannot run it."""
    found = Problems()
    reason = llama.UNLOADABLE.get(convert.weights)
    if reason is not None:
        found.error(
            "KG0391",
            f"distributed-llama cannot load weights of type `{convert.weights}`: {reason}",
            (*AT, "weights"),
            "use `q40`, or `f32` for the full precision",
        )
    config = spec.facts.config if isinstance(spec, ModelSpec) and spec.facts is not None else None
    if not isinstance(config, Mapping):
        return ConvertedModel(None, tuple(found.items))
    try:
        shape = llama.shape_of_config(config)
        llama.check_blocks(shape, convert.weights)
    except problem.PlanError as error:
        path = ("spec", "facts", "config") if error.problem.category is Category.VALUE else AT
        found.error(error.problem.code, str(error), path, error.hint)
        shape = None
    return ConvertedModel(shape, tuple(found.items))


def check_conversion(
    spec: DownloadSpec, resolved: Conversion, namespace: str, context: Context, problems: Problems
) -> None:
    """Report stores that the converter cannot use, and too little memory."""
    convert = resolved.format
    own = convert.store.bucket if convert.store is not None else None
    if own is not None:
        place = (*AT, "store", "bucket")
        check_bucket(own, place, problems)
        check_grant(own, namespace, context.config.allow, place, problems, mount=(*place, "mount"))
        if spec.source.s3 is not None:
            check_store_outside(spec.source.s3, own, place, problems)
        if spec.store.bucket is not None and location(own) == location(spec.store.bucket):
            message = "the converted files are stored in the folder of the downloaded ones"
            problems.error("KG0392", message, place, "leave `store` out, or set another prefix")
    if convert.store is not None and convert.store.volume is not None and spec.store.bucket is not None:
        message = "the downloaded files are stored in a bucket, and the converted ones in a volume"
        problems.error("KG0392", message, (*AT, "store"), "use a bucket for both, or a volume for both")
    elif convert.store is not None and convert.store.volume is not None:
        _check_own_volume(spec, resolved.model, convert.store.volume, context, problems)
    _check_memory(resolved, problems)


def _check_memory(convert: Conversion, problems: Problems) -> None:
    """Warn of a converter with less memory than the tokens of a known model need."""
    given, shape = convert.format.converter.memory, convert.model.shape
    if given is None or shape is None:
        return
    needed = llama.converter_memory(shape)
    if (units(given) or 0) < (units(needed) or 0):
        problems.warning(
            "KG0322",
            f"a model with {shape.vocabulary} tokens needs {needed} of memory to be converted, and the "
            f"converter has {given}",
            (*AT, "converter", "memory"),
            f"set `{needed}` or more, or leave it out",
        )


def _check_own_volume(
    spec: DownloadSpec, model: ConvertedModel, volume: ModelVolume, context: Context, problems: Problems
) -> None:
    """Report a volume for converted weights that is too small, or has no size."""
    origin: FieldPath = (*AT, "store", "volume")
    check_access_modes(volume, context, origin, problems)
    needed, copies = sizes.converted_bytes(spec, context.catalog), spec.store.keep_revisions + 1
    if volume.size == AUTO and model.problems:
        return
    if volume.size == AUTO:
        message = "the size of the converted weights is not known, so `auto` has no value"
        hint = "run `kaigen lock`, set `facts`, or set a size"
        problems.error("KG0320", message, (*origin, "size"), hint)
        return
    room, gib = units(volume.size) or 0, needed / GIB
    hint = f"set `{room_for(gib, copies)}` or more"
    if room < needed:
        message = f"{volume.size} is smaller than the converted weights, which have {gib:.1f} GiB"
        problems.error("KG0320", message, (*origin, "size"), hint)
    elif room < copies * needed:
        problems.warning(
            "KG0321",
            f"{volume.size} has no room for {copies} revisions of converted weights with {gib:.1f} GiB each",
            (*origin, "size"),
            f"{hint}, or fewer `keepRevisions`",
        )


def converted_folder(spec: DownloadSpec, convert: Conversion) -> str:
    """Return the folder of the converted files, in the containers of the Job."""
    return f"{convert.folder}/{mounted_identity(spec)}"


def convert_container(spec: DownloadSpec, convert: Conversion, context: Context) -> dict[str, Tree]:
    """Return the container that converts the downloaded files."""
    given, origin = convert.format.converter, (*AT, "converter")
    image = given.image if given.image is not None else context.config.images["convert"]
    memory = given.memory or llama.converter_memory(convert.model.shape)
    return {
        "name": CONVERT,
        **NO_NETWORK,
        **image_fields(image, "convert.", (*origin, "image")),
        "args": [
            "distributed-llama",
            f"--source={FOLDER}/{identity(spec.source)}",
            f"--source-identity={identity(spec.source)}",
            f"--dest={converted_folder(spec, convert)}",
            f"--identity={mounted_identity(spec)}",
            f"--weights={convert.format.weights}",
            f"--output-version={CONVERTER}",
        ],
        "resources": Setting(
            "convert.resources",
            {"requests": {"cpu": given.cpu or "1", "memory": memory, **convert.request}, "limits": {"memory": memory}},
            "Resources of the converter.",
            settings.RESOURCES,
            origin=origin,
        ),
        "securityContext": container_security(read_only=True),
        "terminationMessagePolicy": "FallbackToLogsOnError",
        "volumeMounts": list(convert.mounts),
    }
