"""The lock, applied to specs: commits in place of branches, facts of models, and sizes of volumes."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from kaigen.catalog.catalog import Catalog
from kaigen.catalog.presets import find_preset
from kaigen.config.lock_file import Lock, LockedWeights, git_key, lock_of
from kaigen.config.locked_files import bucket_revision, locked_files, locked_source
from kaigen.kinds.base import AUTO
from kaigen.kinds.block import Block, derive_fields
from kaigen.kinds.blocks import HubRepository
from kaigen.kinds.build import GitContext
from kaigen.kinds.model import DownloadSpec, ModelSpec
from kaigen.kinds.repositories import Repository, with_blocks
from kaigen.kinds.serving import Facts, PulledModel, ServedModel
from kaigen.kinds.sources import S3, Oci
from kaigen.kubernetes.quantities import units
from kaigen.sizing.config_json import facts_of_config
from kaigen.sizing.constants import GIB, room_for
from kaigen.sizing.distributed_llama import converted_bytes
from kaigen.sizing.problem import PlanError

if TYPE_CHECKING:
    from kaigen.config.settings import Config

B = TypeVar("B", bound=Block)
T = TypeVar("T")
_LAYERS_AND_FILES = 3
"""Bytes of the compressed layers and their files together, as a multiple of the layers: weights compress by a third at
most."""


def with_lock(block: T, config: Config) -> T:
    """Return a spec with what the lock knows: the lock leaves documents as they are.

    Args:
        block: the spec.
        config: the settings of the run.

    Raises:
        InputError: the lock is invalid.
    """
    lock, catalog = lock_of(config.root, config.lock), config.catalog

    def change(each: Block) -> Block:
        if isinstance(each, HubRepository | PulledModel):
            return _with_commit(each, lock)
        if isinstance(each, GitContext):
            commit = lock.git.get(git_key(each))
            return derive_fields(each, commit=commit) if commit is not None else each
        if isinstance(each, S3):
            return _with_revision(each, lock)
        if isinstance(each, Oci):
            return _with_digest(each, lock)
        if isinstance(each, ModelSpec):
            return _with_size(
                _with_facts(each, each.source.hugging_face, locked_source(each.source, lock), catalog), lock, catalog
            )
        if isinstance(each, DownloadSpec):
            return _with_size(each, lock, catalog)
        if isinstance(each, ServedModel) and each.hugging_face is not None:
            return _with_facts(each, each.hugging_face, lock.of(each.hugging_face), catalog)
        return each

    return with_blocks(block, change)


def _with_commit(hub: Block, lock: Lock) -> Block:
    assert isinstance(hub, HubRepository | PulledModel)
    model = lock.of(hub)
    return derive_fields(hub, revision=model.commit) if model and model.commit != hub.revision else hub


def _with_revision(s3: S3, lock: Lock) -> Block:
    """Return a bucket with the revision of the files that the lock has, unless the spec has one."""
    bucket = lock.buckets.get(s3.location)
    if bucket is None or s3.revision is not None:
        return s3
    return derive_fields(s3, revision=bucket_revision(bucket, s3))


def _with_digest(oci: Oci, lock: Lock) -> Block:
    """Return an artifact with the digest that the lock has, unless the spec has one."""
    artifact = lock.artifact(oci.ref)
    return oci if artifact is None or "@" in oci.ref else derive_fields(oci, ref=f"{oci.ref}@{artifact.digest}")


def _with_facts(block: B, hub: Repository | None, entry: LockedWeights | None, catalog: Catalog) -> B:
    """Return a block with the facts of its model, unless it has some, or the catalogue has the model."""
    assert isinstance(block, ModelSpec | ServedModel)
    # The catalogue does not have the shape, from which the size of converted weights is computed.
    converts = isinstance(block, ModelSpec) and block.convert is not None
    known = hub is not None and find_preset(hub.repo, catalog) is not None
    if entry is None or block.facts is not None or (known and not converts):
        return block
    facts = locked_facts(entry, hub.repo if hub is not None else "the model")
    return derive_fields(block, facts=facts) if facts is not None else block


def locked_facts(entry: LockedWeights, name: str) -> Facts | None:
    """Return the facts of a locked model; None if they do not suffice for a plan."""
    if not entry.weights or not entry.config:
        return None
    try:
        facts_of_config(entry.config, name=name, weights=entry.weights / GIB)
    except PlanError:
        return None
    return Facts(config=entry.config, weights=str(entry.weights))


def _with_size(spec: DownloadSpec, lock: Lock, catalog: Catalog) -> DownloadSpec:
    """Return a spec whose volumes have sizes in place of `auto`, as far as the sizes of the files are known."""
    block = spec.convert if isinstance(spec, ModelSpec) else None
    convert = block.distributed_llama if block is not None else None
    added = converted_bytes(spec, catalog)
    copies = spec.store.keep_revisions + 1
    if convert is not None and convert.store is not None and convert.store.volume is not None:
        own = convert.store.volume
        if own.size == AUTO and added:
            sized = derive_fields(convert.store, volume=derive_fields(own, size=room_for(added / GIB, copies)))
            changed = derive_fields(convert, store=sized)
            spec = derive_fields(spec, convert=derive_fields(block, distributed_llama=changed))  # type: ignore[type-var]
        needed = _bytes(spec, lock, catalog)
    else:
        known = _bytes(spec, lock, catalog)
        needed = known + added if known and (convert is None or added) else 0
    volume = spec.store.volume
    if volume is None or volume.size != AUTO or not needed:
        return spec
    room = room_for(needed / GIB, copies)
    return derive_fields(spec, store=derive_fields(spec.store, volume=derive_fields(volume, size=room)))


def _bytes(spec: DownloadSpec, lock: Lock, catalog: Catalog) -> int:
    """Return the bytes of a volume for the files; 0 if unknown."""
    files = locked_files(spec.source, lock)
    if files is not None:
        return sum(file.size for file in files.values())
    image = lock.artifact(spec.source.oci.ref) if spec.source.oci is not None else None
    if image is not None:
        # Layers of an image stay until their files are unpacked and verified.
        return _LAYERS_AND_FILES * sum(file.size for file in image.files.values())
    if isinstance(spec, ModelSpec) and spec.facts is not None:
        return units(spec.facts.weights) or 0
    hub = spec.source.hugging_face
    preset = find_preset(hub.repo, catalog) if hub is not None else None
    return int(preset.weights_gib * GIB) if preset is not None else 0
