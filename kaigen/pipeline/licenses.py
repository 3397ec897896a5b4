"""Check the licences of the models and datasets that a spec names."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct

from kaigen.catalog.presets import find_preset
from kaigen.compile.context import Context
from kaigen.config.licenses import Licenses
from kaigen.config.lock_file import namespace_of
from kaigen.config.settings import FILE_NAME
from kaigen.core.json_types import FieldPath
from kaigen.diagnostics.diagnostic import Diagnostic
from kaigen.kinds.block import Block
from kaigen.kinds.blocks import Http, HubRepository
from kaigen.kinds.pod import PodVolume
from kaigen.kinds.repositories import blocks_in
from kaigen.kinds.serving import ImageVolume, PulledModel
from kaigen.kinds.sources import S3, Oci
from kaigen.kinds.spec import Spec
from kaigen.kinds.topology import Topology
from kaigen.kubernetes.images import parse_image

_CODE = "KG0752"


class _Source(Struct, frozen=True):
    """Files that a spec names.

    Attributes:
        name: as in messages and in `licenses.known`.
        licence: empty if they name none; None if `kaigen lock` has not asked yet.
        path: of the field that names them.
    """

    name: str
    licence: str | None
    path: FieldPath


def check_licenses(spec: Spec, context: Context, policy: Licenses) -> Iterator[Diagnostic]:
    """Yield an error for each source whose licence the policy denies, and a warning where a person must decide."""
    for source in _sources(spec, context):
        licence = source.licence or policy.licence_of(source.name) or source.licence
        if licence is None:
            yield spec.diagnostic(
                _CODE,
                f"the licence of {source.name} is not known, and `licenses` in {FILE_NAME} restricts licences",
                source.path,
                "run `kaigen lock`",
            )
            continue
        about = f"{source.name} has the licence `{licence or 'unknown'}`"
        verdict = policy.verdict(licence or "unknown")
        if verdict == "deny":
            change = "change the policy" if licence else f"add its licence to `licenses.known` in {FILE_NAME}"
            message = f"{about}, which `licenses` in {FILE_NAME} does not allow"
            yield spec.diagnostic(_CODE, message, source.path, f"use another source, or {change}")
        elif verdict == "ask":
            hint = f"add it to `licenses.allow` in {FILE_NAME} and remove it from `ask` once it is accepted"
            message = f"{about}, which a person must accept"
            yield spec.diagnostic(_CODE, message, source.path, hint, warning=True)


def _sources(spec: Spec, context: Context) -> Iterator[_Source]:
    """Yield the sources of models and datasets of a spec."""
    block = spec.block
    for path, each in blocks_in(block):
        yield from _of_block(each, path, context)
    if isinstance(block, Topology) and block.spec.model is None and block.spec.preset:
        preset = find_preset(block.spec.preset, context.catalog)
        if preset is not None:
            found = _hub_licence(preset.repo, preset.revision or "main", None, context)
            yield _Source(preset.repo, found, ("spec", "preset"))


def _of_block(block: Block, path: FieldPath, context: Context) -> Iterator[_Source]:
    """Yield the sources that a block names itself."""
    if isinstance(block, HubRepository | PulledModel):
        repo = f"{namespace_of(block)}{block.repo}"
        name = f"{block.endpoint.rstrip('/')}/{repo}" if block.endpoint else repo
        yield _Source(name, _hub_licence(repo, block.revision, block.endpoint, context), (*path, "repo"))
    elif isinstance(block, S3):
        yield _Source(block.location, "", (*path, "uri"))
    elif isinstance(block, Oci):
        artifact = context.lock.artifact(block.ref) if context.lock is not None else None
        yield _Source(_repository(block.ref), artifact.licence if artifact else None, (*path, "ref"))
    elif isinstance(block, ImageVolume):
        yield _Source(_repository(block.ref), "", (*path, "ref"))
    elif isinstance(block, PodVolume) and block.image is not None:
        yield _Source(_repository(block.image), "", (*path, "image"))
    elif isinstance(block, Http):
        for index, file in enumerate(block.files):
            yield _Source(file.url, "", (*path, "files", index, "url"))


def _repository(ref: str) -> str:
    image = parse_image(ref)
    return f"{image.registry}/{image.repository}"


def _hub_licence(repo: str, revision: str, endpoint: str | None, context: Context) -> str | None:
    model = context.lock.find(repo, revision, endpoint) if context.lock is not None else None
    if model is not None:
        return model.licence
    preset = find_preset(repo, context.catalog)
    return preset.licence if preset is not None else None
