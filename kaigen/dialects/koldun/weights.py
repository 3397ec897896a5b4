"""Lowers Koldun's `Model` to a Model: a download into a bucket, and its conversion into another.

kaigen keeps the meaning of fields and fixes bugs of the operator (source: its code at commit edc6442):

- Files are verified and belong to a commit; the operator skips files of the same size and reads the default branch.
- The downloader and the converter are kaigen's images; the operator installs unpinned packages when its Jobs run.
- A converted file is whole before it has its name; the operator writes it in place, through a mount.
- Types of weights that the runtime cannot load are replaced or rejected.
- Names in a bucket and in a cluster depend on content, so that two Models cannot share them.
"""

from __future__ import annotations

import re
from typing import Any

from msgspec import ValidationError

from kaigen.catalog.presets import find_preset
from kaigen.core.json_types import FieldPath
from kaigen.dialects.draft import Draft
from kaigen.dialects.koldun import API_VERSION
from kaigen.dialects.koldun.files import (
    SOURCE,
    STORAGE,
    File,
    Folder,
    Repository,
    check_folders,
    check_pv,
    converted_folder,
    mount_block,
    read_source,
    source_folder,
    volume_block,
)
from kaigen.dialects.koldun.ingress_kinds import Ingress
from kaigen.dialects.koldun.model_kinds import Download, Model, ObjectStorage
from kaigen.dialects.koldun.options import NAMED_FILES, check_options, put_files, read_options
from kaigen.dialects.koldun.resource import KoldunLowering
from kaigen.kinds import model as kinds_model
from kaigen.kinds.base import SHA256, matches
from kaigen.kinds.block import read_block
from kaigen.kinds.lowering import PREFIX, LoweringContext, LoweringResult
from kaigen.kinds.positioned import Positioned
from kaigen.kubernetes.quantities import units

DIRECTIVES = ("sha256", "version")

_DOWNLOAD: FieldPath = ("spec", "download")
_CONVERSION: FieldPath = ("spec", "conversion")
_STORE: FieldPath = ("spec", "store")
_CONVERT: FieldPath = ("spec", "convert", "distributedLlama")

_OWN_DOWNLOADER = "kaigen's own downloader fetches the files"
_OWN_CONVERTER = "kaigen's own image converts the files, and installs nothing when it runs"
_PROGRAM = ("command", "args")
"""Fields by which a container of the operator runs another program than the operator's."""
_UNUSED_OF_DOWNLOAD = {"image": _OWN_DOWNLOADER}
_UNUSED_OF_CONVERSION = {
    **dict.fromkeys(("image", "dependencies"), _OWN_CONVERTER),
    "rcloneImage": "the operator never reads it, and kaigen's own downloader uploads the files",
    "toolsImage": "kaigen's image contains the converter and measures what it writes",
}
_VERSION = re.compile(r"^v?([0-9]{1,9})\.([0-9]{1,9})\.([0-9]{1,9})")
_FIRST_VERSION = (0, 16, 2)
"""First version of distributed-llama whose converter writes what kaigen's does; all later ones do, too."""
_UNUSED_OF_CONVERTED = {
    "preConvertedSizeBytes": "kaigen reads the size of the files where it needs it",
    "preConvertedSizeHuman": "kaigen reads the size of the files where it needs it",
}

_MIB = 1 << 20
_LEAST_PART = 8
"""Smallest part of the operator's uploads, in MiB."""
_BASE_MEMORY = 256
"""Memory of kaigen's downloader without the buffers of its connections, in MiB (source: its README)."""


def lower(model: Model, document: Positioned, context: LoweringContext) -> LoweringResult:
    """Return Koldun's `Model` as a Model of the same name.

    Args:
        model: the validated document.
        document: the document with positions.
        context: what else the lowering may read.
    """
    lowering = KoldunLowering(model.metadata, document, context, DIRECTIVES)
    spec = model.spec
    _warn_of_unused(model, lowering)
    draft = lowering.draft()
    weights = _weights(model, lowering)
    _check_launch_options(model, weights, lowering)
    if spec.pre_converted:
        reason = "`preConverted` says that the files are converted already"
        types = () if spec.pre_converted_pvc_name else ("weightsFloatType", "convertWeights")
        for name in (*types, "outputPath", "memory"):
            if lowering.block("spec", "conversion").get(name):
                lowering.without_effect((*_CONVERSION, name), reason)
    elif spec.pre_converted_pvc_name:
        lowering.without_effect(
            ("spec", "preConvertedPVCName"),
            "without `preConverted: true` the files are downloaded",
            "set `preConverted: true`, or delete it",
        )
    if spec.pre_converted and spec.pre_converted_pvc_name:
        _put_existing(draft, model, lowering)
    else:
        _put_source(draft, model, lowering)
        _put_stores(draft, model, weights, lowering)
        if spec.download is not None:
            _put_transfer(draft, spec.download, lowering)
    draft.hints["KG0310"] = "run `kaigen lock`, or add `/tree/COMMIT` to `sourceUrl`"
    draft.hints["KG0355"] = "set `download.huggingFaceTokenSecretRef` to a Secret with a Hub token"
    draft.hints["KG0317"] = "set `objectStorage.secretRef` to the Secret with the access keys"
    lowered = draft.finish(kinds_model.Model, lowering) if not lowering.failed else None
    return lowering.result() if lowered is None else lowering.result(draft.lowered(lowered))


def _warn_of_unused(model: Model, lowering: KoldunLowering) -> None:
    """Report fields about the operator's containers, in place of which kaigen's own run.

    They are warnings where the files are the same, and errors where a program of the user's would write them.
    """
    spec = model.spec
    if spec.pip_proxy:
        lowering.without_effect(
            ("spec", "pipProxy"),
            "only pip uses it, and kaigen's images install no Python packages",
            "delete it; for a proxy of downloads, set `network.httpsProxy` in kaigen.yaml",
        )
    for path, unused in ((_DOWNLOAD, _UNUSED_OF_DOWNLOAD), (_CONVERSION, _UNUSED_OF_CONVERSION)):
        given = lowering.block(*map(str, path))
        program = [name for name in _PROGRAM if given.get(name)]
        if spec.pre_converted:
            for name in program:
                lowering.without_effect((*path, name), "`preConverted` says that the files are converted already")
        elif program:
            lowering.error(
                "KG0413",
                f"`{program[0]}` runs a program of your own, and that of kaigen's {path[-1]} would write other files",
                (*path, program[0]),
                "delete `command` and `args` if the operator's own program does the same, or write a Model of kaigen "
                "with `source.loader` for yours",
                key=True,
            )
        for name, reason in unused.items():
            if given.get(name):
                lowering.without_effect((*path, name), reason)
    if spec.conversion is not None and spec.conversion.converter_version:
        _check_converter(spec.conversion.converter_version, lowering)
    for name, reason in _UNUSED_OF_CONVERTED.items():
        if name in lowering.block("spec"):
            lowering.without_effect(("spec", name), reason)
    if spec.replica_power is not None and not _sizes_rings(lowering):
        reason = "a Dllama states its own, and no Ingress of the specs leaves it out"
        lowering.without_effect(("spec", "replicaPower"), reason, "set `replicaPower` where it is used")


def _check_converter(version: str, lowering: KoldunLowering) -> None:
    """Report a version of the converter: it has no effect, or wrote files that kaigen's converter does not."""
    at = (*_CONVERSION, "converterVersion")
    found = _VERSION.match(version)
    first = ".".join(map(str, _FIRST_VERSION))
    if found is None or tuple(map(int, found.groups())) >= _FIRST_VERSION:
        reason = (
            f"the format is the same in all versions of distributed-llama from {first}, and kaigen's image contains "
        )
        lowering.without_effect(at, f"{reason}the converter")
        return
    lowering.error(
        "KG0413",
        f"`{version}` may write another format than kaigen's converter, which writes that of distributed-llama {first}",
        at,
        f"write `v{first}` or later, and images of such a version in the rings of the Model",
    )


def _sizes_rings(lowering: KoldunLowering) -> bool:
    """Return whether an Ingress has the number of workers of the Model. Invalid ones are reported at their place."""
    for document in lowering.find_objects(API_VERSION, "Ingress"):
        try:
            ingress = read_block(Ingress, document.data)
        except ValidationError:
            continue
        named = ingress.metadata.annotations.get(f"{PREFIX}model", lowering.metadata.name)
        if named == lowering.metadata.name and not ingress.spec.backend.replica_power:
            return True
    return False


def _check_launch_options(model: Model, weights: str, lowering: KoldunLowering) -> None:
    """Report wrong options of the ring that serves a Model, and options of a Model that no ring can serve."""
    spec, at = model.spec, ("spec", "launchOptions")
    if not spec.launch_options:
        return
    if spec.pre_converted and not spec.pre_converted_pvc_name:
        lowering.without_effect(at, "rings read files that are converted already from a claim only")
    elif not spec.pre_converted and spec.conversion is None:
        lowering.without_effect(at, "no ring can load a Model without `conversion`")
    else:
        unused = None if spec.pre_converted else NAMED_FILES
        check_options(spec.launch_options, at, lowering, weights=weights, unused=unused)


def _put_existing(draft: Draft, model: Model, lowering: KoldunLowering) -> None:
    """Put the volume that has the converted files already."""
    at: FieldPath = ("spec", "preConvertedPVCName")
    volume: FieldPath = ("spec", "source", "volume")
    draft.put((*volume, "claimName"), model.spec.pre_converted_pvc_name, at)
    put_files(draft, volume, read_options(model.spec.launch_options, ("spec", "launchOptions")), lowering)
    reason = "the volume of `preConvertedPVCName` has the files, so nothing is downloaded"
    for name in ("sourceUrl", "localPath", "objectStorage", "download", "pv"):
        if lowering.block("spec").get(name):
            lowering.without_effect(("spec", name), reason, "leave it: the operator requires it")
    if "sha256" in lowering.given:
        lowering.without_effect(lowering.directive_at("sha256"), reason)


def _put_source(draft: Draft, model: Model, lowering: KoldunLowering) -> None:
    source = read_source(model.spec.source_url, lowering)
    checksum = lowering.given.get("sha256")
    if isinstance(source, Repository):
        if checksum is not None:
            lowering.without_effect(lowering.directive_at("sha256"), "the Hub has the checksums of its files")
        _put_repository(draft, source, model, lowering)
    elif isinstance(source, File):
        file = {"url": source.url}
        if checksum is None:
            lowering.error(
                "KG0413",
                f"kaigen downloads `{source.url}` only with its checksum",
                SOURCE,
                "set the annotation `kaigen.dev/sha256`",
            )
        elif not matches(SHA256, checksum):
            message = "`kaigen.dev/sha256` must be a SHA-256 checksum, 64 hex digits"
            lowering.error("KG0406", message, lowering.directive_at("sha256"))
        draft.put(("spec", "source", "http", "files"), [{**file, "sha256": checksum}], SOURCE)
        if model.spec.download and model.spec.download.hugging_face_token_secret_ref:
            reason = "`sourceUrl` is a file, and not a repository of the Hub"
            lowering.without_effect((*_DOWNLOAD, "huggingFaceTokenSecretRef"), reason)


def _put_repository(draft: Draft, source: Repository, model: Model, lowering: KoldunLowering) -> None:
    hub: FieldPath = ("spec", "source", "huggingFace")
    draft.put((*hub, "repo"), source.name, SOURCE)
    for name, value in (("revision", source.revision), ("endpoint", source.endpoint)):
        if value:
            draft.put((*hub, name), value, SOURCE)
    if source.include:
        draft.put((*hub, "include"), [source.include], SOURCE)
        draft.hints["KG0323"] = "write the URL of the repository, without the path of a file"
    token = model.spec.download.hugging_face_token_secret_ref if model.spec.download else None
    if token is not None:
        at = (*_DOWNLOAD, "huggingFaceTokenSecretRef")
        lowering.own_secret(token.namespace, at)
        draft.put((*hub, "tokenSecret", "name"), token.name, (*at, "name"))


def _put_stores(draft: Draft, model: Model, weights: str, lowering: KoldunLowering) -> None:
    """Put the bucket or volume of the files, and their conversion."""
    spec, storage = model.spec, model.spec.object_storage
    conversion = None if spec.pre_converted else spec.conversion
    if spec.pv is not None:
        check_pv(spec.pv, lowering.block("spec", "pv"), lowering, in_bucket=storage is not None)
    if storage is None:
        _put_volume(draft, model, lowering)
        if conversion is not None and conversion.output_path:
            reason = "without `objectStorage` the converted files are in a volume of the cluster"
            lowering.without_effect((*_CONVERSION, "outputPath"), reason, "delete it, or set `objectStorage`")
    else:
        check_folders(model, storage, lowering)
        if storage.secret_ref is not None:
            lowering.own_secret(storage.secret_ref.namespace, (*STORAGE, "secretRef"))
        origin: FieldPath = ("spec", "localPath") if spec.local_path else (*STORAGE, "bucketForSource")
        _put_bucket(draft, (*_STORE, "bucket"), source_folder(model, storage), origin, storage)
    if conversion is None:
        if storage is not None:
            _put_mount(draft, (*_STORE, "bucket"), model)
        return
    draft.origins[_CONVERT] = _CONVERSION
    draft.put((*_CONVERT, "weights"), weights, (*_CONVERSION, "weightsFloatType"))
    if conversion.memory is not None:
        draft.put((*_CONVERT, "converter", "memory"), conversion.memory, (*_CONVERSION, "memory"))
    if storage is not None:
        path: FieldPath = (*_CONVERT, "store", "bucket")
        at = (*_CONVERSION, "outputPath") if conversion.output_path else (*STORAGE, "bucketForConvert")
        _put_bucket(draft, path, converted_folder(model, storage, weights), at, storage)
        _put_mount(draft, path, model)


def _put_volume(draft: Draft, model: Model, lowering: KoldunLowering) -> None:
    spec = model.spec
    if spec.object_storage is None:
        lowering.warning(
            "KG0414",
            "without `objectStorage` the files are stored in a volume of the cluster; the operator downloads nothing",
            ("spec",),
            "set `objectStorage`, or write a Model of kaigen with a volume",
        )
    repo = draft.get(("spec", "source", "huggingFace", "repo"))
    known = isinstance(repo, str) and find_preset(repo, lowering.context.catalog) is not None
    origin: FieldPath = ("spec", "pv") if spec.pv else ("spec",)
    draft.put((*_STORE, "volume"), volume_block(spec.pv, known=known), origin)
    # The operator keeps the files of one revision.
    draft.put((*_STORE, "keepRevisions"), 0)
    hint = "set `pv.pvcCapacity` to a larger size, or delete it"
    draft.hints.update(KG0320=hint, KG0321=hint)


def _put_bucket(draft: Draft, path: FieldPath, folder: Folder, origin: FieldPath, storage: ObjectStorage) -> None:
    """Put a bucket of the server."""
    draft.put((*path, "uri"), folder.uri, origin)
    if storage.endpoint.strip():
        draft.put((*path, "endpoint"), storage.endpoint.strip(), (*STORAGE, "endpoint"))
    if storage.secret_ref is not None:
        secret = (*STORAGE, "secretRef", "name")
        draft.put((*path, "credentials", "secret", "name"), storage.secret_ref.name, secret)
    draft.origins[path] = origin


def _put_mount(draft: Draft, path: FieldPath, model: Model) -> None:
    """Put how pods mount a bucket."""
    pv = model.spec.pv
    at: FieldPath = (*path, "mount")
    draft.put(at, mount_block(pv), ("spec", "pv") if pv else STORAGE)
    fields: dict[FieldPath, tuple[str, Any]] = {
        ("driverName",): ("csiDriver", pv and pv.csi_driver),
        ("options",): ("csiOptions", pv and pv.csi_options),
        ("attributes",): ("volumeAttributes", pv and pv.volume_attributes),
        ("secret",): ("csiSecretName", pv and pv.csi_secret_name),
        ("size",): ("pvcCapacity", pv.pvc_capacity) if pv and pv.pvc_capacity else ("capacity", pv and pv.capacity),
    }
    for name, (field, value) in fields.items():
        if value and draft.get((*at, *name)) is not None:
            draft.origins[(*at, *name)] = ("spec", "pv", field)
    if pv:
        for key in pv.volume_attributes:
            if key in (draft.get((*at, "attributes")) or {}):
                draft.origins[(*at, "attributes", key)] = ("spec", "pv", "volumeAttributes", key)


def _weights(model: Model, lowering: KoldunLowering) -> str:
    """Return the type of the converted weights, one that the runtime loads; empty when the Model states none."""
    conversion, existing = model.spec.conversion, model.spec.pre_converted
    if conversion is None:
        return ""
    names = {"weightsFloatType": conversion.weights_float_type, "convertWeights": conversion.convert_weights}
    given = {name: value for name, value in names.items() if value}
    if conversion.convert_weights == "skip":
        lowering.error(
            "KG0413",
            "`skip` disables the conversion, and no ring can load files that are not converted",
            (*_CONVERSION, "convertWeights"),
            "delete `conversion` if no ring serves the Model, or write `preConverted: true` for converted files",
        )
        return ""
    if len(set(given.values())) > 1:
        listed = " and ".join(f"`{name}: {value}`" for name, value in given.items())
        lowering.error("KG0412", f"{listed} differ", (*_CONVERSION, "convertWeights"), "write one of the two")
    name, weights = next(iter(given.items()), ("weightsFloatType", "" if existing else "q40"))
    if existing and weights in {"q80", "f16"}:
        lowering.error(
            "KG0413",
            f"distributed-llama cannot load weights of type {weights}, and kaigen converts no files of `preConverted`",
            (*_CONVERSION, name),
            "convert the files to `q40` or `f32` again, and write that type",
        )
        return ""
    if weights == "q80":
        lowering.warning(
            "KG0414",
            "distributed-llama cannot load weights of type q80, so kaigen converts to q40",
            (*_CONVERSION, name),
            f"write `{name}: q40`, or `f32` for the weights without loss",
        )
        return "q40"
    if weights == "f16":
        lowering.error(
            "KG0413",
            "distributed-llama cannot load weights of type f16",
            (*_CONVERSION, name),
            "write `q40`, or `f32`, which has twice the size and no loss",
        )
        return "f32"
    return weights


def _put_transfer(draft: Draft, download: Download, lowering: KoldunLowering) -> None:
    """Put the settings of the downloader, whose parts must fit into its memory."""
    transfer: FieldPath = ("spec", "transfer")
    values: dict[str, Any] = {}
    connections = download.concurrency or 0
    if connections > 0:
        values["concurrency"] = connections
    part = download.chunk_max_mi_b or 0
    if download.memory is not None:
        values["memory"] = download.memory
        most = ((units(download.memory) or 0) // _MIB - _BASE_MEMORY) // (connections if connections > 0 else 4)
        if most < _LEAST_PART:
            lowering.warning(
                "KG0414",
                f"{download.memory} is not enough for kaigen's downloader, so it gets what it needs",
                (*_DOWNLOAD, "memory"),
                "delete it",
            )
            del values["memory"]
        elif part > most or (not part and most < 16):
            part = most
    if part > 0:
        values["partSize"] = f"{max(part, _LEAST_PART)}Mi"
    names = {"partSize": "chunkMaxMiB"}
    for name, value in values.items():
        draft.put((*transfer, name), value, (*_DOWNLOAD, names.get(name, name)))
