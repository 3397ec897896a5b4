"""Overrides and pins that match no spec. Every render runs this, so imports wait until one is found."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator

from kaigen.config.settings import FILE_NAME, Config, Override, pins_path
from kaigen.diagnostics.diagnostic import Diagnostic, Severity
from kaigen.diagnostics.suggest import did_you_mean
from kaigen.dialects.registry import own_kinds
from kaigen.environments.patch import FileEntry, place_of


def warn_of_unmatched(
    config: Config, matched: Collection[int | str], apps: Iterable[tuple[str, str]]
) -> list[Diagnostic]:
    """Return warnings about overrides and pins that match no spec.

    Args:
        config: the settings of the run.
        matched: indices of overrides and names of pins that match a spec.
        apps: namespace and name of every app.
    """
    found = []
    known = {form for namespace, name in apps for form in (name, f"{namespace}/{name}")}
    listed = "apps: " + (", ".join(sorted(name for name in known if "/" not in name)) or "none")
    for index, override in enumerate(config.overrides):
        if index in matched and len(override.apps) < 2:
            continue
        wrong = [
            (number, name)
            for number, name in enumerate(override.apps)
            if not set("*?") & set(name) and name not in known
        ]
        if not wrong and index in matched:
            continue
        place = place_of(override, config)
        for number, name in wrong:
            mark = place.mark(("match", "app", number) if len(override.apps) > 1 else ("match", "app"))
            found.append(
                Diagnostic("KG0707", f"no app `{name}` to override", mark, did_you_mean(name, known) or listed)
            )
        if not wrong:
            found.append(_matches_none(override, place, listed))
    for name in config.pins:
        if name not in matched:
            pins = pins_path(config.root, config.environment)
            mark = FileEntry(pins, ("apps", name)).mark(key=True)
            hint = did_you_mean(name, known) or "its spec was deleted; the next `kaigen promote` removes the pin"
            found.append(
                Diagnostic("KG0713", f"`{name}` is pinned, but no app has this name", mark, hint, Severity.WARNING)
            )
    return found


def unknown_apps(config: Config, apps: Iterable[tuple[str, str]]) -> Iterator[Diagnostic]:
    """Return an error for each app that `apps` of the environment names and no spec has.

    Args:
        config: the settings of the run.
        apps: namespace and name of every app, also of those that the environment does not have.
    """
    known = {form for namespace, name in apps for form in (name, f"{namespace}/{name}")}
    place = FileEntry(config.root / FILE_NAME, ("environments", config.environment, "apps"))
    for key, names in (("include", config.apps.include), ("exclude", config.apps.exclude)):
        for index, name in enumerate(names):
            if not set("*?") & set(name) and name not in known:
                listed = "apps: " + (", ".join(sorted(each for each in known if "/" not in each)) or "none")
                hint = did_you_mean(name, known) or listed
                yield Diagnostic("KG0716", f"no app `{name}`", place.mark((key, index)), hint)


def _matches_none(override: Override, place: FileEntry, listed: str) -> Diagnostic:
    every = [entry.key for entry in own_kinds()]
    for kind in override.kinds:
        meant = did_you_mean(kind, every) if kind not in every else ""
        if meant:
            mark = place.mark(("match", "kind"))
            return Diagnostic("KG0709", f"no spec has kind `{kind}`", mark, meant, Severity.WARNING)
    hint = listed if override.apps else "`match.labels` compares labels in the specs themselves"
    if override.kinds and not override.apps and not override.labels:
        hint = f"no spec has kind {' or '.join(override.kinds)}"
    if override.folder:
        hint = f"it changes only specs in {override.folder}; {hint}"
    mark = place.mark(("match",))
    return Diagnostic("KG0709", "this override matches no spec", mark, hint, Severity.WARNING)
