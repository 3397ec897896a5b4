"""Changes of what is deployed that no spec explains: files of another origin, grants and settings in kaigen.yaml."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec.structs import replace

from kaigen.diff.model import AppChange, Change, Effect

_MOST = 10
"""Most files of a folder that are named."""


def with_hidden(
    change: Change, files: Mapping[str, Sequence[str]], grants: Sequence[str], settings: Sequence[str] = ()
) -> Change:
    """Return a change with a danger for each file that no spec explains, each new grant, and each setting.

    Args:
        change: the result of `compare`.
        files: new and changed paths by output folder.
        grants: what kaigen.yaml allows now and did not before.
        settings: changes of kaigen.yaml that may weaken what protects a cluster.
    """
    found = [
        AppChange("", "", "changed", effects=tuple(_effects(paths)), root=folder)
        for folder, paths in sorted(files.items())
    ]
    effects = [Effect("danger", each, "setting") for each in settings]
    effects += [Effect("danger", f"specs may now use {each}", "grant") for each in grants]
    if effects:
        found.append(AppChange("", "", "changed", effects=tuple(effects), root="kaigen.yaml"))
    return replace(change, apps=(*found, *change.apps)) if found else change


def _effects(paths: Sequence[str]) -> list[Effect]:
    effects = [
        Effect("danger", f"kaigen did not write {path}, and what syncs the folder reads it", "foreign")
        for path in paths[:_MOST]
    ]
    if len(paths) > _MOST:
        text = f"kaigen did not write {len(paths) - _MOST} more files"
        effects.append(Effect("danger", text, "foreign"))
    return effects
