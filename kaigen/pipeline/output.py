"""The whole output tree."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kaigen.config.settings import Config, Format
    from kaigen.gitops.delivery import AppFacts
    from kaigen.pipeline.result import Compilation


def output_files(compilation: Compilation, config: Config, form: Format | None = None) -> dict[str, bytes]:
    """The whole output tree: the files of every app, and those for Argo CD and Flux.

    Args:
        compilation: every app of the repository.
        config: the repository's settings.
        form: `manifests`, `chart` or `both`; the configured one when None.

    Returns:
        Content by relative path, sorted.
    """
    form = form or config.format
    files = compilation.files(form)
    if config.gitops is not None:
        from kaigen.gitops.delivery import facts_of

        apps = [facts_of(item.app, item.objects, item.needs) for item in compilation.apps]
        files |= sync_tree(apps, config, form)
    return dict(sorted(files.items()))


def sync_tree(apps: Sequence[AppFacts], config: Config, form: Format) -> dict[str, bytes]:
    """The files for Argo CD and Flux, by facts about every app; none when kaigen.yaml asks for none."""
    from kaigen.gitops.delivery import Delivery
    from kaigen.gitops.files import sync_files

    if config.gitops is None:
        return {}
    return sync_files(Delivery(config.environment, form == "chart", config.gitops, tuple(apps)))
