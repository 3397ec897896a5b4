"""Checks of a resolved Model."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from msgspec import Struct

from kaigen.catalog.catalog import Catalog
from kaigen.catalog.presets import find_preset
from kaigen.compile.builders.access import account_of
from kaigen.compile.builders.bucket_access import check_access
from kaigen.compile.builders.buckets import check_bucket, check_grant
from kaigen.compile.builders.egress import check_egress
from kaigen.compile.builders.pod_options import Pod, check_pod_options
from kaigen.compile.builders.queueing import check_queueing
from kaigen.compile.builders.source_checks import check_reference, check_store_outside
from kaigen.compile.builders.sources import job_files
from kaigen.compile.builders.storage import check_access_modes, check_room
from kaigen.compile.builders.weights import check_paths
from kaigen.compile.expressions import Tree
from kaigen.compile.model.conversion import AT, check_conversion
from kaigen.compile.model.mounted import conversion
from kaigen.compile.model.pod import own_pod
from kaigen.compile.model.resolution import ModelResolution, download_servers
from kaigen.compile.model.store import STORE, check_existing
from kaigen.compile.problems import Problems, report_ignored_field
from kaigen.config.lock_file import Lock
from kaigen.config.locked_files import known_files, locked_files, selected_files
from kaigen.core.json_types import FieldPath
from kaigen.core.text import some_of
from kaigen.diagnostics.problem import ProblemError
from kaigen.diagnostics.suggest import nearest
from kaigen.kinds.base import AUTO
from kaigen.kinds.blocks import FileSource
from kaigen.kinds.model import DownloadSpec, ModelSpec
from kaigen.kinds.store import ModelVolume
from kaigen.kubernetes.quantities import units
from kaigen.sizing.constants import GIB, room_for
from kaigen.system.lazy_import import lazy_imports

if TYPE_CHECKING:
    from kaigen.compile.known_model import KnownModel

with lazy_imports():
    from kaigen.compile import known_model as known_models
    from kaigen.sizing import distributed_llama as sizes


_CODE = "KG0323"
_SHOWN = 3
"""Most names of files in a hint."""


def check_model(resolution: ModelResolution, problems: Problems) -> None:
    """Report every problem of a Model that its resolution did not."""
    spec = resolution.spec
    known = _known_model(spec, resolution.context.catalog, problems) if isinstance(spec, ModelSpec) else None
    is_empty = spec.source.empty is not None
    check_queueing(spec.placement, resolution.context.profile, problems, why_single="on one pod")
    if spec.source.volume or is_empty:
        check_existing(spec, problems)
    if spec.source.volume:
        return
    if not (spec.store.bucket or spec.store.volume):
        message = "`store` is required: nothing says where the files are stored"
        problems.error("KG0203", message, ("spec",), "add, for example, `store: {volume: {size: 50Gi}}`")
        return
    namespace = resolution.metadata.namespace or resolution.context.config.namespace
    if spec.store.bucket:
        place = (*STORE, "bucket")
        check_bucket(spec.store.bucket, place, problems, fills=not is_empty)
        check_grant(
            spec.store.bucket, namespace, resolution.context.config.allow, place, problems, mount=(*place, "mount")
        )
    check_locked_files(spec, resolution.context.lock, problems)
    if spec.store.volume:
        check_access_modes(spec.store.volume, resolution.context, (*STORE, "volume"), problems)
        if spec.store.volume.size == AUTO:
            _check_unknown_size(resolution, problems)
        elif isinstance(spec, ModelSpec) and known is not None:
            _check_size(spec, known, spec.store.volume, resolution.context.catalog, problems)
    if is_empty:
        return
    if resolution.conversion is not None:
        check_conversion(spec, resolution.conversion, namespace, resolution.context, problems)
    _check_account(spec, problems)
    check_egress(download_servers(resolution), resolution.context, problems)
    pod: Pod = own_pod(resolution)
    check_pod_options(lambda: pod, spec, resolution.metadata.name, resolution.context, problems)
    _check_variables(pod["containers"][0]["env"], spec, problems)
    if spec.source.s3:
        check_access(spec.source.s3, ("spec", "source", "s3"), problems)
        if spec.store.bucket:
            check_store_outside(spec.source.s3, spec.store.bucket, (*STORE, "bucket"), problems)
    if spec.source.oci:
        check_reference(spec.source.oci, ("spec", "source", "oci"), problems)
    if spec.source.http:
        check_paths(spec.source.http.files, ("spec", "source", "http", "files"), problems)


def _check_unknown_size(resolution: ModelResolution, problems: Problems) -> None:
    """Report a volume whose size nothing decides, unless another error says why."""
    spec, convert = resolution.spec, resolution.conversion
    is_rejected = convert is not None and bool(convert.model.problems)
    if is_rejected or selects_nothing(spec.source, resolution.context.lock):
        return
    message = "the size of the files is not known, so `auto` has no value"
    facts = "set `facts`, " if isinstance(spec, ModelSpec) else ""
    is_unknown = spec.source.http or job_files(spec.source) or spec.source.empty is not None
    hint = f"{facts}or set a size" if is_unknown else f"run `kaigen lock`, {facts}or set a size"
    problems.error("KG0320", message, (*STORE, "volume", "size"), hint)


def _check_variables(env: Sequence[Mapping[str, Tree]], spec: DownloadSpec, problems: Problems) -> None:
    """Report variables that the downloader has from kaigen."""
    names = [str(variable["name"]) for variable in env]
    for name in spec.env:
        if names.count(name) > 1:
            message = f"`{name}` is set by kaigen for the downloader"
            problems.error("KG0313", message, ("spec", "env", name), "leave it out")


def _check_account(spec: DownloadSpec, problems: Problems) -> None:
    """Report fields about the ServiceAccount that the downloader ignores."""
    keys = spec.store.bucket.credentials if spec.store.bucket else None
    existing = account_of(spec)
    if keys and keys.service_account and existing and existing.name:
        report_ignored_field(
            problems,
            "annotations",
            (*STORE, "bucket", "credentials", "serviceAccount", "annotations"),
            f"on the existing ServiceAccount `{existing.name}`",
            "annotate that ServiceAccount where it is made, or use `serviceAccount.create`",
        )


def _known_model(spec: ModelSpec, catalog: Catalog, problems: Problems) -> KnownModel | None:
    """Return the model with its size, as far as the spec or the catalogue knows it, and report wrong facts."""
    hub = spec.source.hugging_face
    preset = find_preset(hub.repo, catalog) if hub is not None else None
    if spec.facts is None:
        return known_models.model_of_preset(preset) if preset is not None else None
    name, facts = hub.repo if hub is not None else "the model", spec.facts
    try:
        return known_models.model_of_facts(facts, name, preset, ("spec", "facts"))
    except ProblemError as error:
        found = error.problem
        # A conversion has reported the config already.
        if not any((item.code, item.path) == (found.code, found.path) for item in problems.items):
            problems.add(found)
        return None


def _check_size(spec: ModelSpec, model: KnownModel, volume: ModelVolume, catalog: Catalog, problems: Problems) -> None:
    """Report a volume without room for the weights, or for those that are kept, if all of them are downloaded."""
    hub = spec.source.hugging_face
    if hub is not None and (hub.include or any("safetensors" in each for each in hub.exclude)):
        return
    path = (*STORE, "volume", "size")
    check_room(volume.size, model, path, problems)
    copies, weights, what = spec.store.keep_revisions + 1, model.facts.weights, "weights"
    convert = conversion(spec)
    if convert is not None and convert.store is None and weights * GIB <= (units(volume.size) or 0):
        weights, what = weights + sizes.converted_bytes(spec, catalog) / GIB, "downloaded and converted weights"
        if weights * GIB > (units(volume.size) or 0):
            message = f"{volume.size} is smaller than the {what} of `{model.name}`, which have {weights:.1f} GiB"
            problems.error("KG0320", message, path, f"set `{room_for(weights, copies)}` or more")
    if weights * GIB <= (units(volume.size) or 0) < copies * weights * GIB:
        problems.warning(
            "KG0321",
            f"{volume.size} has no room for {copies} revisions of `{model.name}` with {weights:.1f} GiB each, so the "
            "download of another revision may fail",
            path,
            f"set `{room_for(weights, copies)}` or more, or fewer `keepRevisions`",
        )


class _Needed(Struct, frozen=True):
    """Files of which the converter needs one.

    Attributes:
        name: in messages.
        glob: selects them; empty for the path of the file.
        matches: returns whether a path is that of such a file.
    """

    name: str
    glob: str
    matches: Callable[[str], bool]


def _is_weights(path: str) -> bool:
    return "/" not in path and path.endswith(".safetensors") and not path.startswith("consolidated")


_CONVERTER = (
    _Needed("config.json", "", lambda path: path == "config.json"),
    _Needed("tokenizer.json` or `tokenizer.model", "", lambda path: path in ("tokenizer.json", "tokenizer.model")),
    _Needed("*.safetensors", "*.safetensors", _is_weights),
)
"""What the converter reads, at the top of the source (source: the README of kaigen-convert)."""


def selects_nothing(source: FileSource, lock: Lock | None) -> bool:
    """Return whether the lock has the files of a source, and its globs select none of them."""
    return lock is not None and locked_files(source, lock) == {}


def check_locked_files(spec: DownloadSpec, lock: Lock | None, problems: Problems) -> None:
    """Report globs that select no file of the lock, and files that the converter needs and does not get.

    Args:
        spec: the spec.
        lock: the lock; None without one.
        problems: collects the errors.
    """
    known = known_files(spec.source, lock) if lock is not None else None
    chosen = locked_files(spec.source, lock) if lock is not None else None
    if known is None or chosen is None:
        return
    if not chosen:
        _report_nothing(spec.source, known, problems)
    elif conversion(spec) is not None:
        _check_converter(spec.source, known, chosen, problems)


def _report_nothing(source: FileSource, known: Collection[str], problems: Problems) -> None:
    include, block = _globs(source)
    if not known:
        problems.error(_CODE, "kaigen.lock has no files of this source", block, "run `kaigen lock --upgrade`")
        return
    if include:
        message = f"`include` selects none of the files in kaigen.lock ({len(known)})"
        if selected_files(dict.fromkeys(known), include, ()):
            message = f"`exclude` skips every file that `include` selects in kaigen.lock ({len(known)} files)"
    else:
        message = f"`exclude` skips all files in kaigen.lock ({len(known)})"
    names = _nearest(include, known)
    listed = some_of([f"`{path}`" for path in names], _SHOWN)
    at = (*block, "include" if include else "exclude")
    problems.error(_CODE, message, at, f"change the globs; the files are {listed}")


def _nearest(globs: Sequence[str], known: Collection[str]) -> list[str]:
    """Return the files, those first whose names or endings are similar to one of the globs."""
    forms = {path: path for path in sorted(known)}
    for path in sorted(known):
        forms.setdefault(f"*{PurePosixPath(path).suffix}", path)
    near = [forms[form] for glob in globs for form in nearest(glob, forms)]
    return list(dict.fromkeys([*near, *sorted(known)]))


def _check_converter(source: FileSource, known: Collection[str], chosen: Collection[str], problems: Problems) -> None:
    include, block = _globs(source)
    for needed in _CONVERTER:
        if any(map(needed.matches, chosen)):
            continue
        found = sorted(filter(needed.matches, known))
        message = f"the converter reads `{needed.name}`"
        if not found:
            problems.error(_CODE, f"{message}, and the source has no such file", AT, "use another source")
        elif selected_files(dict.fromkeys(found), include, ()):
            hint = f"change the glob that matches `{found[0]}`"
            problems.error(_CODE, f"{message}, and `exclude` skips it", (*block, "exclude"), hint)
        else:
            hint = f"add `{needed.glob or found[0]}`"
            problems.error(_CODE, f"{message}, and `include` does not select it", (*block, "include"), hint)


def _globs(source: FileSource) -> tuple[Sequence[str], FieldPath]:
    """Return `include` of a source that the lock can have, and the path of its block in the spec."""
    blocks = {"huggingFace": source.hugging_face, "s3": source.s3, "oci": source.oci}
    name, block = next((name, block) for name, block in blocks.items() if block is not None)
    return block.include, ("spec", "source", name)
