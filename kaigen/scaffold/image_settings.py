"""The block `images` of kaigen.yaml: what it lacks of the images that apps use, and how it is written into the file."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from kaigen.compile.pod_images import pod_image
from kaigen.config.images import Images, image_repository
from kaigen.config.settings import Config
from kaigen.core.json_types import JsonObject
from kaigen.diagnostics.collector import Diagnostics
from kaigen.diagnostics.errors import SystemFailure
from kaigen.files import walk
from kaigen.images.build import Built
from kaigen.kinds.block import document_names
from kaigen.pipeline.app_reach import own_images
from kaigen.pipeline.run import Run
from kaigen.scaffold.changes import FileChange, mark_of, read_text
from kaigen.yaml.document import Document, parse
from kaigen.yaml.edit import Edit, edit_text
from kaigen.yaml.sources import Source


def settings_of(built: list[Built]) -> dict[str, str]:
    """Return the fields of `images` in kaigen.yaml for images that were built; some images have none."""
    fields = document_names(Images)
    return {item.name: item.reference for item in built if item.name in fields}


def images_to_pin(configs: Sequence[Config]) -> dict[str, str]:
    """Return kaigen's own images that apps use and no setting pins, those of `helm test` too, by name.

    The reference is that of the rendered tree, so that the apps stay as they are; of several trees the last one, which
    is nearest to production. An image that no tree has is that of the installed version. Specs with errors count for
    nothing.

    Args:
        configs: the settings of all environments, in their order.
    """
    found: dict[str, str] = {}
    for config in configs:
        run = Run.load((), config, use_cache=False)
        used = {
            name
            for unit in run.units
            for item in unit.apps()
            if item.spec is not None
            for name in own_images(
                item.app.render(item.values, tests=config.format != "manifests"), unit.compiler.context
            )
        }
        for name in sorted(used - {*config.fixed_images}):
            mirrored = image_repository(pod_image(config.images[name], run.units[0].compiler.context))
            version = _rendered_version(config, mirrored)
            if version or name not in found:
                plain = config.plain_images.get(name, config.images[name])
                found[name] = f"{image_repository(plain)}{version}" if version else plain
    return dict(sorted(found.items()))


def _rendered_version(config: Config, repository: str) -> str:
    """Return tag and digest of an image in the rendered tree; empty if it is not there, or has several versions."""
    pattern = re.compile(rf"(?<![\w./-]){re.escape(repository)}((?::[\w.-]+)?(?:@sha256:[0-9a-f]{{64}})?)(?![\w.:@/-])")
    versions = {version for text in _rendered_texts(config) for version in pattern.findall(text) if version}
    return versions.pop() if len(versions) == 1 else ""


def _rendered_texts(config: Config) -> Iterator[str]:
    for folder, _, files in walk(config.root / config.output):
        for file in files:
            if file.endswith((".yaml", ".yml")):
                yield read_text(Path(folder) / file) or ""


def with_images(path: Path, images: Mapping[str, str]) -> FileChange:
    """Return kaigen.yaml with other images; comments and everything else stay.

    Args:
        path: the file, which may not exist.
        images: references by the names of fields of `images`.

    Raises:
        InputError: the file is not valid YAML.
        SystemFailure: it cannot be read, or cannot be changed without changing something else.
    """
    old = read_text(path)
    text = (old or "").removeprefix("\ufeff")
    if "images" not in _data(_document(path, text)):
        lines = "".join(f"  {name}: {reference}\n" for name, reference in images.items())
        ended = f"{text.rstrip()}\n" if text.strip() else ""
        text = f"{ended}images:\n{lines}"
    else:
        for name, reference in images.items():
            text = _with_image(path, text, name, reference)
    mark = mark_of(path) if old is not None else ""
    return FileChange(path, old, mark + text)


def _with_image(path: Path, text: str, name: str, reference: str) -> str:
    document = _document(path, text)
    fields = _data(document)["images"]
    new = None
    if document is not None and isinstance(fields, dict) and fields:
        after = name if name in fields else list(fields)[-1]
        new = edit_text(Source(str(path), text), [Edit(document, ("images", name), reference, after)])
    if new is None:
        raise SystemFailure(
            f"cannot write `images` into {path} without changing something else",
            hint="write the printed block into the file by hand",
        )
    return new


def _data(document: Document | None) -> JsonObject:
    return document.data if document is not None and isinstance(document.data, dict) else {}


def _document(path: Path, text: str) -> Document | None:
    found = Diagnostics()
    documents = parse(Source(str(path), text), found)
    found.raise_errors()
    return documents[0] if documents else None
