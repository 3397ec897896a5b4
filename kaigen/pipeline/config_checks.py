"""Checks of what kaigen.yaml leaves open for all apps: the namespace, and the versions of kaigen's images."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from kaigen.config.settings import FILE_NAME
from kaigen.core.text import series, some_of
from kaigen.diagnostics.diagnostic import Diagnostic, Mark, Severity
from kaigen.pipeline.summary import AppSummary
from kaigen.system.lazy_import import lazy_imports

if TYPE_CHECKING:
    from kaigen.config.settings import Config

with lazy_imports():
    from kaigen.environments import patch as environments_patch

_LISTED = 5
"""Most names in a message."""


def implied_namespace(config: Config, apps: Iterable[AppSummary]) -> Iterator[Diagnostic]:
    """Return a warning if kaigen.yaml sets no namespace, and objects of specs therefore go to `default`."""
    names = [app.name for app in apps if _is_in(app, config.namespace)] if config.implied_namespace else []
    if names:
        listed = some_of(sorted(names), _LISTED)
        yield Diagnostic(
            "KG0731",
            f"no `namespace` is set, so these apps go to `{config.namespace}`: {listed}",
            Mark(str(config.root / FILE_NAME)),
            f"set `namespace` in kaigen.yaml; `namespace: {config.namespace}` if you mean that one",
            Severity.WARNING,
        )


def _is_in(app: AppSummary, namespace: str) -> bool:
    """Return whether an app of a spec has objects in a namespace; a Queue may have some of the cluster only."""
    return app.position >= 0 and any(key.namespace == namespace for key in app.objects)


def unpinned_images(config: Config, apps: Iterable[AppSummary]) -> Iterator[Diagnostic]:
    """Return a warning of kaigen's own images that apps use and `images` of kaigen.yaml, which has others, does not
    pin."""
    users: dict[str, list[str]] = {}
    for app in apps:
        for image in app.unpinned:
            users.setdefault(image, []).append(app.name)
    if users:
        images = series([f"`{image}`" for image in sorted(users)])
        listed = some_of(sorted({name for names in users.values() for name in names}), _LISTED)
        yield Diagnostic(
            "KG0761",
            f"`images` does not pin {images}, so another version of kaigen may restart these apps: {listed}",
            environments_patch.FileEntry(config.root / FILE_NAME, ("images",)).mark(key=True),
            f"run `kaigen upgrade`, which pins {'it' if len(users) == 1 else 'them'}, or set `images.{min(users)}`",
            Severity.WARNING,
        )
