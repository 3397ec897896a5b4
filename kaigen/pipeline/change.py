"""The change between a commit and the current output trees."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping, Sequence
from hashlib import sha256
from pathlib import Path

from msgspec.structs import replace

from kaigen.config.load import load_config
from kaigen.config.lock_file import lock_of
from kaigen.config.settings import FILE_NAME, LOCK_NAME, PINS_FOLDER, Config, LockRef
from kaigen.diff.compare import compare
from kaigen.diff.folders import Folder, with_folders, with_hidden
from kaigen.diff.lock import lock_changes
from kaigen.diff.model import Change
from kaigen.git.repository import is_below, read_file_at, read_submodules_at, read_tree_at
from kaigen.gitops.layout import ARGOCD_FOLDER, FLUX_FOLDER
from kaigen.output.foreign import checkout_top, foreign_files, ignore_files
from kaigen.output.index import INDEX_NAME
from kaigen.pipeline.grant_changes import free_specs, new_grants, replaced_images
from kaigen.pipeline.run import render
from kaigen.pipeline.setting_changes import dangerous_settings


def change_since(
    commit: str,
    before: Mapping[str, Config],
    configs: Sequence[Config],
    trees: Sequence[Mapping[str, bytes]],
    *,
    is_readable: bool = True,
) -> Change:
    """Return what changes between a commit and the current trees, including folders that move or go.

    Args:
        commit: the commit.
        before: the settings at the commit, by environment.
        configs: the current settings of each environment.
        trees: the current output tree of each environment.
        is_readable: whether the settings at the commit could be read; if not, what the current ones allow is new.

    Raises:
        InputError: the specs of the commit are invalid.
    """
    old: dict[str, bytes] = {}
    new: dict[str, bytes] = {}
    for config, tree in zip(configs, trees, strict=True):
        place = f"{config.environment}/" if len(configs) > 1 else ""
        was = before.get(config.environment)
        if was is not None:
            old |= {f"{place}{path}": data for path, data in tree_at(config, commit, was.output).items()}
        new |= {f"{place}{path}": data for path, data in tree.items()}
    folders = sorted({config.output_base for config in (*configs, *before.values())})
    found = {folder: _foreign_at([*configs, *before.values()], folder) for folder in folders}
    committed = {folder: read_tree_at(configs[0].root, commit, folder) for folder in folders}
    for folder, files in found.items():
        for path, data in files.items():
            place = _place(configs, folder, path)
            new.setdefault(place, data)
            if path in committed[folder]:
                old.setdefault(place, committed[folder][path])
    places = {config.environment if len(configs) > 1 else "": config for config in configs}
    compared = replace(
        compare(old, new, settings=places), lock=_lock_changes(commit, configs[0]), order=_order(configs[0])
    )
    reviewed = before if is_readable else {"": Config()}
    settings = dangerous_settings(reviewed, configs)
    grants = [*_grants(reviewed, configs), *replaced_images(reviewed, configs)]
    grants += free_specs(configs[0], commit)
    hidden = _hidden(configs[0], before, committed, found)
    for folder in folders:
        if ignored := _changed_ignore_files(configs[0], commit, folder):
            hidden[folder] = [*ignored, *hidden.get(folder, ())]
    change = with_hidden(compared, hidden, grants, settings)
    were, are = [_folder(config) for config in before.values()], [_folder(config) for config in configs]
    if sorted(were) == sorted(are):
        return change
    root = configs[0]
    were = [
        replace(folder, is_committed=folder not in are and is_rendered_at(root, commit, folder.output))
        for folder in were
    ]
    return with_folders(change, were, are)


def _order(config: Config) -> tuple[str, ...]:
    return tuple(dict.fromkeys((*config.promotion, *config.environments)))


def _grants(before: Mapping[str, Config], configs: Sequence[Config]) -> list[str]:
    """Return what kaigen.yaml grants now and did not before, in any environment."""
    first = next(iter(before.values()), Config())
    found = [each for config in configs for each in new_grants(before.get(config.environment, first), config)]
    return list(dict.fromkeys(found))


def _lock_changes(commit: str, config: Config) -> tuple[str, ...]:
    """Return what a changed lock means.

    Raises:
        InputError: the lock is invalid, now or at the commit.
    """
    content = read_file_at(config.root, commit, LOCK_NAME)
    before = LockRef(sha256(content or b"").hexdigest(), content) if content is not None else LockRef()
    if before.digest == config.lock.digest:
        return ()
    return tuple(lock_changes(lock_of(config.root, before), lock_of(config.root, config.lock)))


def _place(configs: Sequence[Config], folder: str, path: str) -> str:
    """Return the path of a foreign file as that of a file of the tree that contains it, or a path of its own."""
    for config in configs:
        if f"{folder}/{path}".startswith(f"{config.output}/"):
            below = f"{folder}/{path}".removeprefix(f"{config.output}/")
            return f"{config.environment}/{below}" if len(configs) > 1 else below
    return f"{folder}/{path}"


def _foreign_at(configs: Sequence[Config], folder: str) -> dict[str, bytes]:
    """Return the foreign files of an output folder as they are now; links, folders and special files as empty."""
    root = configs[0].root / folder
    trees = {tree for config in configs if config.output_base == folder for tree in config.trees}
    paths = foreign_files(root, trees)
    return {
        path: (root / path).read_bytes() if not (root / path).is_symlink() and (root / path).is_file() else b""
        for path in paths
    }


def _hidden(
    config: Config,
    before: Mapping[str, Config],
    committed: Mapping[str, Mapping[str, bytes]],
    found: Mapping[str, Mapping[str, bytes]],
) -> dict[str, list[str]]:
    """Return the files that syncers read and no spec explains, by output folder.

    These are new and changed foreign files, and files that were edited in a folder that is no longer rendered.
    """
    hidden = {}
    rendered = {each.output_base for each in before.values()}
    for folder, files in found.items():
        was = committed[folder]
        paths = {path for path, data in files.items() if was.get(path) != data}
        if folder in rendered and folder != config.output_base:
            paths |= {path for path, data in was.items() if _content(config.root / folder / path) != data}
        if paths:
            hidden[folder] = sorted(paths)
    return hidden


def _changed_ignore_files(config: Config, commit: str, folder: str) -> list[str]:
    """Return the new and changed `.sourceignore` files above an output folder, relative to it."""
    root, top = config.root / folder, checkout_top(config.root)
    changed = []
    for path in ignore_files(root, config.root):
        place = Path(os.path.abspath(root / path))
        was = read_file_at(top, commit, place.relative_to(top).as_posix())
        if was is None or _content(place) != was:
            changed.append(path)
    return changed


def _content(path: Path) -> bytes | None:
    return path.read_bytes() if path.is_file() and not path.is_symlink() else None


def _folder(config: Config) -> Folder:
    gitops = config.gitops
    if gitops is None:
        return Folder(config.environment, config.output)
    texts = (gitops.repository, gitops.branch, gitops.path)
    source = tuple((text or "").replace("{env}", config.environment) for text in texts)
    tools = ((ARGOCD_FOLDER, gitops.argocd), (FLUX_FOLDER, gitops.flux))
    syncers = tuple(folder for folder, settings in tools if settings is not None)
    return Folder(config.environment, config.output, source=source, syncers=syncers)


def configs_at(config: Config, commit: str) -> dict[str, Config]:
    """Return the settings at a commit by environment; under an empty name for a repository without environments.

    Args:
        config: the current settings of any environment.
        commit: the commit.

    Raises:
        InputError: kaigen.yaml of the commit is invalid.
    """
    text = read_file_at(config.root, commit, FILE_NAME)
    with tempfile.TemporaryDirectory() as folder:
        if text is not None:
            Path(folder, FILE_NAME).write_bytes(text)
        first = load_config(Path(folder))
        return {name: load_config(Path(folder), name) for name in first.environments or ("",)}


def tree_at(config: Config, commit: str, output: str) -> dict[str, bytes]:
    """Return the output tree of a commit: the committed tree, or the commit's specs rendered if there is none.

    Args:
        config: the current settings of the environment, which the commit has.
        commit: the commit.
        output: folder that the environment was rendered into.

    Raises:
        InputError: the specs of the commit are invalid.
    """
    tree = read_tree_at(config.root, commit, output)
    return tree if INDEX_NAME in tree else _render_at(config, commit)


def is_rendered_at(config: Config, commit: str, output: str) -> bool:
    """Return whether a folder is an output tree at a commit."""
    return read_file_at(config.root, commit, f"{output}/{INDEX_NAME}") is not None


def _render_at(config: Config, commit: str) -> dict[str, bytes]:
    with tempfile.TemporaryDirectory() as folder:
        files = read_tree_at(config.root, commit)
        _write(folder, files)
        _write(folder, read_submodules_at(config.root, commit, (config.catalog_folder, PINS_FOLDER)))
        before = replace(load_config(Path(folder), config.environment), repository=config.root)
        inner = read_submodules_at(
            config.root, commit, (*before.specs, *before.kinds, *before.patch_files, before.catalog_folder)
        )
        if not any(is_below(path, before.specs) for path in (*files, *inner)):
            return {}
        _write(folder, inner)
        return render((), before)


def _write(folder: str, files: Mapping[str, bytes]) -> None:
    for path, data in files.items():
        target = Path(folder, path)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(data)
