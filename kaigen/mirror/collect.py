"""Collect what the apps of an environment pull."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from msgspec.structs import replace

from kaigen.catalog.presets import find_preset
from kaigen.compile.builders.bucket_access import cloud_server
from kaigen.config.lock_file import LockedFile, LockedModel, lock_of, namespace_of
from kaigen.config.locked_files import bucket_revision, chosen_files, files_of
from kaigen.config.settings import Config
from kaigen.hub.client import HUB
from kaigen.kinds.blocks import HttpFile, HubRepository
from kaigen.kinds.repositories import Repository, blocks_in
from kaigen.kinds.serving import PulledModel
from kaigen.kinds.sources import S3, Oci
from kaigen.kinds.topology import Topology
from kaigen.kubernetes.images import image_fields, parse_image
from kaigen.mirror.model import ChartItem, FileItem, ImageItem, ModelItem, TransferList
from kaigen.oci.reference import registry_url
from kaigen.pipeline.commits import with_lock_at
from kaigen.pipeline.result import Compiled
from kaigen.pipeline.run import Run
from kaigen.sizing.constants import GIB

_FIXED = re.compile("[0-9a-f]{40}|sha256:[0-9a-f]{64}|[0-9]+:[0-9]+:[0-9a-f]{64}")
"""A commit, a digest, or the revision of a bucket."""


def transfer_list(config: Config) -> TransferList:
    """Return what the apps of an environment pull.

    Args:
        config: the settings of the environment.

    Raises:
        InputError: a spec is invalid.
    """
    apps = Run.load((), config, use_cache=False).apps()
    # The same apps with the images' own names.
    plain = replace(config, mirror=None, images=config.plain_images or config.images)
    sources = Run.load((), plain, use_cache=False).apps()
    images, models, charts = _images(sources, apps), models_in(apps, config), _charts(apps, config)
    return TransferList(config.environment, images, models, charts, len(_unpinned(images, models)))


def count_unpinned(lists: Iterable[TransferList]) -> int:
    """Return how many images of several environments have no digest, and repositories no commit, each once."""
    return len({item for found in lists for item in _unpinned(found.images, found.models)})


def _unpinned(images: Iterable[ImageItem], models: Iterable[ModelItem]) -> set[tuple[str, str]]:
    found = {("", item.source) for item in images if not item.digest}
    moving = (item for item in models if not (item.sha256 or _FIXED.fullmatch(item.revision)))
    return found | {(item.source, item.revision) for item in moving}


def _key(item: Compiled) -> str:
    return f"{item.app.namespace}/{item.app.name}"


def _images(sources: Iterable[Compiled], apps: Iterable[Compiled]) -> tuple[ImageItem, ...]:
    """Return the images of apps by their own names, each with the name in the same field of the rendered app."""
    used: dict[tuple[str, str], list[str]] = {}
    for source, item in zip(sources, apps, strict=True):
        pairs = zip(_image_fields(source), _image_fields(item), strict=True)
        for names in sorted(set(pairs)):
            if names[0].partition("@")[0] in source.app.built:
                continue
            used.setdefault(names, []).append(_key(item))
    return tuple(
        ImageItem(source=str(parse_image(image)), target=target, digest=parse_image(image).digest, apps=tuple(names))
        for (image, target), names in sorted(used.items())
    )


def _image_fields(item: Compiled) -> list[str]:
    objects = item.app.render(item.values, tests=True)
    return [image for rendered in objects for image in image_fields(rendered.body)]


def models_in(apps: Iterable[Compiled], config: Config) -> tuple[ModelItem, ...]:
    """Return the repositories and files that pods download.

    Args:
        apps: the apps.
        config: the settings of the environment.
    """
    found: dict[ModelItem, list[str]] = {}
    configs = {"": config}
    for item in apps:
        if item.spec is None:
            continue
        commit = item.spec.commit
        if commit not in configs:
            configs[commit] = with_lock_at(config, commit)
        for model in dict.fromkeys(_models_of(item.spec.block, configs[commit])):
            found.setdefault(model, []).append(_key(item))
    items = [replace(model, apps=tuple(names)) for model, names in found.items()]
    return tuple(sorted(items, key=lambda item: (item.source, item.revision, item.include, item.exclude)))


def _models_of(block: Any, config: Config) -> Iterator[ModelItem]:
    """Yield the repositories and files that a spec names, and the repository of its preset."""
    if isinstance(block, Topology) and block.spec.model is None and block.spec.preset:
        preset = find_preset(block.spec.preset, config.catalog)
        if preset is not None:
            yield _repository(PulledModel(repo=preset.repo, revision=preset.revision or "main"), config)
    for _, each in blocks_in(block):
        if isinstance(each, HubRepository | PulledModel):
            yield _repository(each, config)
        elif isinstance(each, HttpFile):
            yield ModelItem(each.url, "", each.url, each.sha256, None, (), (), ())
        elif isinstance(each, S3):
            yield _bucket(each, config)
        elif isinstance(each, Oci):
            yield _artifact(each, config)


def _repository(repository: Repository, config: Config) -> ModelItem:
    repo, revision = f"{namespace_of(repository)}{repository.repo}", repository.revision
    named = repository.endpoint or (config.network.hub_endpoint if config.network is not None else "")
    target = f"{(named or HUB).rstrip('/')}/{repo}"
    include, exclude = (
        (tuple(repository.include), tuple(repository.exclude)) if isinstance(repository, HubRepository) else ((), ())
    )
    locked = lock_of(config.root, config.lock).of(repository)
    if locked is not None:
        chosen = _chosen(locked, repository)
        files = tuple(FileItem(path, file.size, file.sha256) for path, file in chosen.items())
        size = sum(file.bytes for file in files)
        return ModelItem(repo, locked.commit, target, "", size, include, exclude, (), files)
    preset = find_preset(repo, config.catalog)
    about = round(preset.weights_gib * GIB) if preset is not None else None
    return ModelItem(repo, revision, target, "", about, include, exclude, ())


def _bucket(s3: S3, config: Config) -> ModelItem:
    bucket = lock_of(config.root, config.lock).buckets.get(s3.location)
    target = f"{server_of(s3)}/{s3.place}"
    include, exclude, revision = tuple(s3.include), tuple(s3.exclude), s3.revision or ""
    if bucket is None or bucket_revision(bucket, s3) != revision:
        return ModelItem(s3.uri, revision, target, "", None, include, exclude, ())
    files = tuple(
        FileItem(path, file.size, file.sha256 or "", file.version or "")
        for path, file in files_of(bucket.files, s3).items()
    )
    size = sum(file.bytes for file in files)
    return ModelItem(s3.uri, revision, target, "", size, include, exclude, (), files)


def _artifact(oci: Oci, config: Config) -> ModelItem:
    image, artifact = parse_image(oci.ref), lock_of(config.root, config.lock).artifact(oci.ref)
    target = f"{server_of(oci)}/{image.repository}"
    include, exclude = tuple(oci.include), tuple(oci.exclude)
    if artifact is None:
        return ModelItem(oci.ref, image.digest, target, "", None, include, exclude, ())
    chosen = artifact.files
    if not artifact.is_image:
        chosen = files_of(chosen, oci)
    files = tuple(FileItem(path, file.size, file.sha256) for path, file in chosen.items())
    size = sum(file.bytes for file in files)
    return ModelItem(oci.ref, artifact.digest, target, "", size, include, exclude, (), files)


def server_of(source: S3 | Oci) -> str:
    """Return the URL of the server that has a bucket or an artifact."""
    if isinstance(source, S3):
        return cloud_server(source)
    return registry_url(parse_image(source.ref).registry, plain_http=source.plain_http)


def _chosen(locked: LockedModel, repository: Repository) -> Mapping[str, LockedFile]:
    return chosen_files(locked, repository) if isinstance(repository, HubRepository) else locked.files


def _charts(apps: Iterable[Compiled], config: Config) -> tuple[ChartItem, ...]:
    found: dict[tuple[str, str], list[str]] = {}
    registry = config.gitops.charts if config.gitops is not None and config.format != "manifests" else None
    for item in apps:
        if registry and item.spec is not None:
            name = f"{registry.replace('{env}', config.environment)}/{item.app.name}"
            found.setdefault((name, item.version_in("chart")), []).append(_key(item))
        for each in item.objects:
            for chart in _installed(each.body):
                found.setdefault(chart, []).append(_key(item))
    return tuple(ChartItem(*key, tuple(names)) for key, names in sorted(found.items()))


def _installed(body: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield the charts that an object for Flux or Argo CD installs, with their versions."""
    spec: Any = body.get("spec")
    if not isinstance(spec, dict):
        return
    if body.get("kind") == "HelmRelease" and isinstance(spec.get("chart"), dict):
        chart: Any = spec["chart"].get("spec")
        if isinstance(chart, dict):
            name = f"{_text(chart.get('sourceRef'), 'name')}/{chart.get('chart', '')}"
            yield name, str(chart.get("version", ""))
    if body.get("kind") == "Application":
        sources: Any = spec.get("sources") or [spec.get("source")]
        for source in sources:
            if isinstance(source, dict) and source.get("chart"):
                yield f"{source.get('repoURL', '')}/{source['chart']}", str(source.get("targetRevision", ""))


def _text(node: object, key: str) -> str:
    return str(node.get(key, "")) if isinstance(node, dict) else ""
