"""Overrides next to the specs: `FOLDER/overrides/ENVIRONMENT.yaml` changes the specs of its folder."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from hashlib import sha256
from typing import TYPE_CHECKING

from msgspec.structs import replace

from kaigen.config.document import validate_block
from kaigen.config.overrides import OVERRIDES_ENTRY, FolderOverrides, override_settings
from kaigen.diagnostics.collector import Diagnostics
from kaigen.diagnostics.diagnostic import Diagnostic
from kaigen.diagnostics.suggest import did_you_mean
from kaigen.yaml.document import Document, parse

if TYPE_CHECKING:
    from kaigen.config.settings import Config, Override
    from kaigen.yaml.sources import Source

_PLACE = re.compile(r"(?:(?P<folder>.+)/)?overrides/(?P<environment>[^/]+)\.ya?ml")


def with_folder_overrides(config: Config, sources: Mapping[str, Source], problems: Diagnostics) -> Config:
    """Return settings with the overrides of the environment that files next to the specs have.

    They apply before those of kaigen.yaml, which therefore have the last word.

    Args:
        config: the settings of kaigen.yaml.
        sources: the texts that may be such files, by their paths relative to the repository.
        problems: receives what is wrong with them.
    """
    found: list[Override] = []
    origin = config.origin
    for path, source in sorted(sources.items()):
        for document in _documents(source):
            place = _PLACE.fullmatch(path)
            if place is None or place["environment"] not in config.environments:
                problems.add(_misplaced(document, place["environment"] if place else "", config))
            elif place["environment"] == config.environment:
                block = validate_block(document, OVERRIDES_ENTRY, problems)
                if isinstance(block, FolderOverrides):
                    paths = [("overrides", index) for index, _ in enumerate(block.overrides)]
                    entries = override_settings(block.overrides, paths, document, problems)
                    found += [replace(entry, file=path, folder=place["folder"] or ".") for entry in entries]
                origin = sha256(f"{origin}{source.digest}".encode()).hexdigest()
    return replace(config, overrides=(*found, *config.overrides), origin=origin)


def _documents(source: Source) -> Iterator[Document]:
    """Yield the documents of overrides. What is wrong with the text is reported when its specs are read."""
    for document in parse(source, Diagnostics()):
        if (document.apiVersion, document.kind) == (OVERRIDES_ENTRY.api_version, OVERRIDES_ENTRY.kind):
            yield document


def _misplaced(document: Document, environment: str, config: Config) -> Diagnostic:
    if not environment:
        message = "overrides next to specs are in `FOLDER/overrides/ENVIRONMENT.yaml`, and this file is not"
        return Diagnostic("KG0762", message, document.mark(("kind",)), "move it, or write `overrides` in kaigen.yaml")
    known = sorted(config.environments)
    hint = did_you_mean(environment, known) or f"known: {', '.join(known) or 'none'}"
    message = f"these overrides are for the environment `{environment}`, which kaigen.yaml does not define"
    return Diagnostic("KG0762", message, document.mark(("kind",)), hint)
