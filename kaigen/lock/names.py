"""The moving names of a repository: revisions on the Hub, prefixes of buckets, artifacts, and images."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from kaigen.catalog.presets import find_preset
from kaigen.compile.pod_images import mirror_image
from kaigen.config.lock_file import Lock, git_key, lock_ref, lock_with, namespace_of, source_key
from kaigen.config.settings import Config, LockRef
from kaigen.diagnostics.collector import Diagnostics
from kaigen.diagnostics.diagnostic import Mark
from kaigen.environments.combined import for_each
from kaigen.kinds.block import set_fields
from kaigen.kinds.blocks import FileSource
from kaigen.kinds.build import GitContext
from kaigen.kinds.model import Dataset
from kaigen.kinds.repositories import MovingSource, blocks_in, sources
from kaigen.kinds.serving import PulledModel
from kaigen.kinds.sources import S3, Oci
from kaigen.kinds.spec import Spec
from kaigen.kinds.topology import Topology
from kaigen.kubernetes.images import images_of, is_image, parse_image
from kaigen.lock.signed import Signed, signed_source
from kaigen.pipeline.result import Compiled
from kaigen.pipeline.run import Run


class SourceName(Struct, frozen=True):
    """A source of weights or data whose content can change.

    Attributes:
        source: the block of a spec.
        is_data: whether only datasets have it.
        mark: the first spec that names it.
        field: the field there.
        apps: the apps that use it.
        signed: the blocks of specs that need a signature of its files.
    """

    source: MovingSource
    is_data: bool
    mark: Mark | None
    field: str
    apps: tuple[str, ...]
    signed: tuple[Signed, ...] = ()

    @property
    def key(self) -> str:
        """Its name in the lock."""
        return source_key(self.source)

    @property
    def titles(self) -> set[str]:
        """Names by which a user may choose it, without those of apps."""
        if isinstance(self.source, S3):
            return {self.key, self.source.uri, self.source.uri.rstrip("/")}
        if isinstance(self.source, Oci):
            return {self.key, parse_image(self.source.ref).repository}
        return {self.key, f"{namespace_of(self.source)}{self.source.repo}"}


class GitName(Struct, frozen=True):
    """A branch or a tag of a Git repository.

    Attributes:
        git: the block of a spec.
        mark: the first spec that names it.
        field: the field there.
        apps: the apps that use it.
    """

    git: GitContext
    mark: Mark | None
    field: str
    apps: tuple[str, ...]

    @property
    def key(self) -> str:
        """Its name in the lock."""
        return git_key(self.git)

    @property
    def titles(self) -> set[str]:
        """Names by which a user may choose it, without those of apps."""
        return {self.key, self.git.url}


class Image(Struct, frozen=True):
    """An image without a digest.

    Attributes:
        name: as in the rendered objects, before mirroring.
        apps: the apps that use it.
        is_built: whether a Job of an app builds it.
        copies: where the mirrors of the environments have it.
    """

    name: str
    apps: tuple[str, ...]
    is_built: bool = False
    copies: tuple[str, ...] = ()


def source_names(configs: Sequence[Config]) -> dict[str, SourceName]:
    """Return the sources that the specs of all environments name, by their names in the lock.

    Raises:
        InputError: a spec is invalid.
    """
    found: dict[str, SourceName] = {}
    for names in for_each(configs, _source_names):
        for name in names:
            known = found.get(name.key, name)
            found[name.key] = replace(
                known,
                is_data=known.is_data and name.is_data,
                apps=tuple(dict.fromkeys((*known.apps, *name.apps))),
                signed=(*known.signed, *(each for each in name.signed if each not in known.signed)),
            )
    return found


def _source_names(config: Config) -> list[SourceName]:
    return [name for spec in _written_specs(config) for name in _names_in(spec, config)]


def _written_specs(config: Config) -> tuple[Spec, ...]:
    """Return the specs of an environment as people wrote them, without the lock."""
    run = Run.load((), replace(config, lock=LockRef(), follows_commits=False), use_cache=False)
    Diagnostics(run.load_diagnostics).raise_errors()
    return run.specs


def _names_in(spec: Spec, config: Config) -> Iterator[SourceName]:
    metadata, block = spec.block.metadata, spec.block
    app = f"{metadata.namespace or config.namespace}/{metadata.name}"
    signed = [
        found
        for _, each in blocks_in(block)
        if isinstance(each, FileSource) and (found := signed_source(each)) is not None
    ]
    for path, source in sources(block):
        place = spec.diagnostic("KG0751", "", (*path, _field(source)))
        own = tuple(each for each in signed if each.source is source)
        yield SourceName(source, isinstance(block, Dataset), place.mark, place.path, (app,), own)
    if isinstance(block, Topology) and block.spec.model is None and block.spec.preset:
        preset = find_preset(block.spec.preset, config.catalog)
        if preset is not None and not preset.revision:
            place = spec.diagnostic("KG0751", "", ("spec", "preset"))
            yield SourceName(PulledModel(repo=preset.repo), False, place.mark, place.path, (app,))


def git_names(configs: Sequence[Config]) -> dict[str, GitName]:
    """Return the branches and tags of Git repositories in the specs of all environments, by their names in the lock.

    Raises:
        InputError: a spec is invalid.
    """
    found: dict[str, GitName] = {}
    for names in for_each(configs, _git_names):
        for name in names:
            known = found.get(name.key, name)
            found[name.key] = replace(known, apps=tuple(dict.fromkeys((*known.apps, *name.apps))))
    return found


def _git_names(config: Config) -> list[GitName]:
    found = []
    for spec in _written_specs(config):
        metadata = spec.block.metadata
        app = f"{metadata.namespace or config.namespace}/{metadata.name}"
        for path, block in blocks_in(spec.block):
            if isinstance(block, GitContext) and not block.is_fixed:
                place = spec.diagnostic("KG0751", "", (*path, "commit"))
                found.append(GitName(block, place.mark, place.path, (app,)))
    return found


def _field(source: MovingSource) -> str:
    """Return the field that names the content of a source."""
    if isinstance(source, S3):
        return "revision" if source.revision is not None else "uri"
    if isinstance(source, Oci):
        return "ref"
    return "revision" if "revision" in set_fields(source) else "repo"


def images(configs: Sequence[Config], lock: Lock) -> dict[str, Image]:
    """Return the images without a digest that the apps of all environments need, by their names in the lock.

    Args:
        configs: the settings of each environment.
        lock: the sources; its images do not matter.

    Raises:
        InputError: a spec is invalid.
    """
    ref = lock_ref(lock_with(lock.entries, {}, lock.git))
    found = [image for each in for_each(configs, lambda config: _images(config, ref)) for image in each]
    used: dict[str, list[Image]] = {}
    for image in sorted(found, key=lambda image: image.name):
        used.setdefault(image.name, []).append(image)
    return {
        name: Image(
            name,
            tuple(dict.fromkeys(app for image in group for app in image.apps)),
            any(image.is_built for image in group),
            tuple(dict.fromkeys(copy for image in group for copy in image.copies)),
        )
        for name, group in used.items()
    }


def _images(config: Config, ref: LockRef) -> list[Image]:
    # The images' own names: a mirror has copies with the same digests.
    plain = replace(config, mirror=None, images=config.plain_images or config.images, lock=ref, licenses=None)
    # What an environment follows has the lock of its commit.
    plain = replace(plain, follows_commits=False)
    mirror = config.mirror
    return [
        Image(
            image,
            (f"{item.app.namespace}/{item.app.name}",),
            image in item.app.built,
            (mirror_image(image, mirror),) if mirror is not None else (),
        )
        for item in Run.load((), plain, use_cache=False).apps()
        for image in sorted(_of(item, item.values) & _of(item, item.app.default_values()))
        if is_image(image) and not parse_image(image).digest
    ]


def _of(item: Compiled, values: Mapping[str, Any]) -> set[str]:
    """Return the images of an app with some settings: a name in `values` of kaigen.yaml is used as it is written."""
    return set(images_of(each.body for each in item.app.render(values, tests=True)))
