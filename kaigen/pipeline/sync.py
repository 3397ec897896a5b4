"""The files for Argo CD and Flux, made again only when a fact about an app changes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

from kaigen.gitops.delivery import facts_digest
from kaigen.gitops.facts import AppFacts
from kaigen.output.contents import digest
from kaigen.pipeline.output import LazyFile, sync_tree
from kaigen.pipeline.store import SyncRecord

if TYPE_CHECKING:
    from kaigen.config.settings import Config, Format
    from kaigen.output.contents import FileContent


def sync_files(
    apps: Sequence[AppFacts], config: Config, form: Format, last: SyncRecord
) -> tuple[SyncRecord, Mapping[str, FileContent]]:
    """Return the files for Argo CD and Flux, and the record of them for the next run.

    Args:
        apps: the facts about every app.
        config: the repository's settings.
        form: the form of the output tree.
        last: the record of the last run. When its facts are the same, files are made when they are read.
    """

    def read(path: str) -> bytes:
        return sync_tree(apps, config, form)[path]

    known = f"{form} {facts_digest(apps)}"
    if last.digest == known:
        return last, {path: LazyFile(value, partial(read, path)) for path, value in last.files.items()}
    files = sync_tree(apps, config, form)
    return SyncRecord(known, {path: digest(data) for path, data in files.items()}), files
