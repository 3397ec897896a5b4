"""Images, files of models and charts that an environment pulls, and the list of them as text, JSON and YAML."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any

from msgspec import Struct, to_builtins

from kaigen.yaml.dump import dump

HEAD = ("KIND", "SOURCE", "VERSION", "TARGET", "BYTES", "DIGEST")


class ImageItem(Struct, frozen=True):
    """An image of a pod.

    Attributes:
        source: the image by its own name.
        target: the image as pods name it.
        digest: its digest; empty when the name has none.
        apps: the apps that use it, `NAMESPACE/NAME`.
    """

    source: str
    target: str
    digest: str
    apps: tuple[str, ...]


class FileItem(Struct, frozen=True, omit_defaults=True):
    """A file of a source, as the lock has it.

    Attributes:
        path: in the source; the digest of a layer of an image.
        bytes: its size.
        sha256: checksum of its content; empty if the bucket has none.
        version: version of an object of a bucket that keeps versions; empty for none.
    """

    path: str
    bytes: int
    sha256: str
    version: str = ""


class ModelItem(Struct, frozen=True, omit_defaults=True):
    """Files of a model, or of data: a repository of the Hub, a prefix of a bucket, an artifact, or one file.

    Attributes:
        source: repository, `s3://BUCKET/PREFIX`, reference of an artifact, or URL.
        revision: commit, branch or tag; `revision` of a bucket; digest of an artifact; empty for a URL.
        target: URL that pods download from.
        sha256: checksum of a file; empty for all others.
        bytes: size of the chosen files if the lock has them, else about how large the weights are; None if unknown.
        include: globs of the files; empty for all.
        exclude: globs of files that are not needed.
        apps: the apps that use it, `NAMESPACE/NAME`.
        files: the chosen files, if the lock has them.
    """

    source: str
    revision: str
    target: str
    sha256: str
    bytes: int | None
    include: tuple[str, ...]
    exclude: tuple[str, ...]
    apps: tuple[str, ...]
    files: tuple[FileItem, ...] = ()


class ChartItem(Struct, frozen=True):
    """A Helm chart.

    Attributes:
        source: the chart with its repository.
        version: as in the release.
        apps: the apps that install it, `NAMESPACE/NAME`.
    """

    source: str
    version: str
    apps: tuple[str, ...]


class TransferList(Struct, frozen=True):
    """Everything that an environment pulls.

    Attributes:
        environment: its name; empty for none.
        images: by name.
        models: by repository or URL.
        charts: by name.
        unpinned: how many images have no digest, and repositories no commit: they may change before they are copied.
    """

    environment: str
    images: tuple[ImageItem, ...]
    models: tuple[ModelItem, ...]
    charts: tuple[ChartItem, ...]
    unpinned: int


def rows(found: TransferList) -> Iterator[tuple[str, ...]]:
    """Return the lines of a list, one an item: kind, source, version, target, bytes, and digest or checksum."""
    for image in found.images:
        yield "image", image.source, "", image.target, "", image.digest
    for model in found.models:
        size = "" if model.bytes is None else str(model.bytes)
        yield "model", model.source, model.revision, model.target, size, model.sha256
    for chart in found.charts:
        yield "chart", chart.source, chart.version, chart.source, "", ""


def render_text(lists: Iterable[TransferList]) -> str:
    """Return lists as lines of fields that tabs separate, `-` for an empty one, each line once."""
    lines = dict.fromkeys(row for found in lists for row in rows(found))
    return "".join("\t".join(field or "-" for field in row) + "\n" for row in (HEAD, *lines))


def render_json(lists: Iterable[TransferList]) -> str:
    """Return lists as JSON."""
    return json.dumps(_data(lists), indent=2, ensure_ascii=False) + "\n"


def render_yaml(lists: Iterable[TransferList]) -> str:
    """Return lists as YAML."""
    return dump(_data(lists))


def _data(lists: Iterable[TransferList]) -> list[dict[str, Any]]:
    return [to_builtins(found) for found in lists]
