"""Explains what no object of an app shows: folders that moved, files of another origin, grants and settings."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from kaigen.diff.model import AppChange, Change, Effect
from kaigen.gitops.layout import SYNCER_FOLDERS


class Folder(Struct, frozen=True, order=True):
    """Where an environment is rendered, and where its tools read it.

    Attributes:
        environment: its name; empty for none.
        output: folder that it is rendered into.
        is_committed: whether that folder is in Git.
        source: what the tools read: repository, branch and path; empty without tools.
        syncers: folders of the tools, as in `SYNCER_FOLDERS`.
    """

    environment: str
    output: str
    is_committed: bool = False
    source: tuple[str, ...] = ()
    syncers: tuple[str, ...] = ()


def with_folders(change: Change, before: Iterable[Folder], after: Iterable[Folder]) -> Change:
    """Return a change with the folders that moved, are no longer rendered, or have no objects of a tool any more.

    Args:
        change: the result of `compare`.
        before: the environments before.
        after: the environments now.
    """
    old, new = ({folder.environment: folder for folder in folders} for folders in (before, after))
    found = [_removed(old[name]) for name in sorted(old.keys() - new.keys())]
    found += [_changed(old[name], new[name]) for name in sorted(old.keys() & new.keys())]
    folders = tuple(item for item in found if item is not None)
    gone = [
        "/".join(part for part in (name if len(new) > 1 else "", syncer) if part)
        for name in old.keys() & new.keys()
        for syncer in old[name].syncers
        if syncer not in new[name].syncers
    ]
    # Nothing deletes the objects of a tool whose folder is gone, as `compare` supposes.
    apps = tuple(app for app in change.apps if not any(_is_below(app.root, folder) for folder in gone))
    return replace(change, apps=(*folders, *apps))


def _is_below(root: str, folder: str) -> bool:
    return root == folder or root.startswith(f"{folder}/")


def _removed(old: Folder) -> AppChange | None:
    effects = []
    if old.is_committed:
        effects.append(_notice(f"kaigen does not delete {old.output}"))
    for syncer in old.syncers:
        where, tool = f"{old.output}/{syncer}", SYNCER_FOLDERS[syncer]
        effects.append(
            _notice(
                f"{tool} syncs the last content of the folder. Without it, {tool} reports an error and "
                f"deletes nothing. To delete the apps, run `kubectl delete -k {where}/bootstrap`, then "
                f"`kubectl delete -k {where}/apps`"
            )
        )
    return AppChange("", "", "removed", effects=tuple(effects), root=old.output) if effects else None


def _changed(old: Folder, new: Folder) -> AppChange | None:
    effects = [*_moved(old, new), *_without_tool(old, new)]
    if not effects:
        return None
    is_moved = old.output != new.output
    return AppChange(
        "",
        "",
        "moved" if is_moved else "changed",
        effects=tuple(effects),
        root=new.output,
        old_root=old.output if is_moved else "",
    )


def _moved(old: Folder, new: Folder) -> Iterator[Effect]:
    if old.is_committed and old.output != new.output:
        yield _notice(f"kaigen does not delete {old.output}")
    for syncer in old.syncers:
        if syncer in new.syncers and old.source != new.source:
            pairs = [pair for pair in zip(old.source, new.source, strict=True) if pair[0] != pair[1]]
            was, now = (" ".join(side) for side in zip(*pairs, strict=True))
            yield _notice(
                f"{SYNCER_FOLDERS[syncer]} syncs {was} until you run "
                f"`kubectl apply -k {new.output}/{syncer}/bootstrap`, then {now}. "
                "Without the old one, it reports an error and deletes nothing"
            )


def _without_tool(old: Folder, new: Folder) -> Iterator[Effect]:
    for syncer in old.syncers:
        if syncer not in new.syncers:
            yield _notice(
                f"{SYNCER_FOLDERS[syncer]} keeps its objects, and syncs the apps, until you delete them in the cluster"
            )


def _notice(text: str) -> Effect:
    return Effect("notice", text, "folder")


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
