"""Promotion of whole specs: the commit that an environment follows, app by app."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from kaigen.config.load import load_config
from kaigen.config.pins import pins_text, read_pins
from kaigen.config.settings import FILE_NAME, LOCK_NAME, Config, pins_path
from kaigen.diagnostics.collector import Diagnostics
from kaigen.diagnostics.diagnostic import Diagnostic, Severity
from kaigen.diagnostics.errors import InputError
from kaigen.diagnostics.suggest import did_you_mean
from kaigen.diff.compare import compare
from kaigen.diff.model import Change
from kaigen.environments.match import pin_name
from kaigen.environments.patch import PatchedDocument
from kaigen.git.repository import head_commit, is_dirty, is_published, resolve
from kaigen.output.contents import data_of
from kaigen.pipeline.commits import names_in, sources_at
from kaigen.pipeline.load import is_absent
from kaigen.pipeline.run import Run
from kaigen.promote import OWN_IMAGES, Move, Promotion, check_step, plan_promotion
from kaigen.yaml.sources import SUFFIXES

COMMIT = "commit"
"""The field of a move that is not of one value but of the whole spec."""
HOLD = "hold"
"""The field of a move of an app that is held now, or no longer."""
_YES = "yes"


class Request(Struct, frozen=True):
    """What to promote.

    Attributes:
        target: the environment to update; it follows commits.
        source: the environment that was tested; empty with `commit`, and to hold apps only.
        apps: `NAME`, `NAMESPACE/NAME`, or names of the pins file; all when empty.
        commit: the commit of the apps, as Git names it, in place of that of the source.
        hold: keep the apps at their commits until they are promoted by name.
        skip: allow a step that `promotion` in kaigen.yaml does not list.
    """

    target: str
    source: str = ""
    apps: tuple[str, ...] = ()
    commit: str = ""
    hold: bool = False
    skip: bool = False


class CommitPromotion(Promotion, frozen=True, kw_only=True):
    """A planned promotion of commits.

    Attributes:
        held: apps that stay at their commits.
        change: what it changes in the objects of the environment; None if its present state cannot be rendered.
    """

    held: tuple[str, ...] = ()
    change: Change | None = None


class _Tree(Struct, frozen=True):
    """The rendered environment.

    Attributes:
        files: content by path.
        apps: the folders of each app in it, by the app's name in a pins file.
    """

    files: Mapping[str, bytes]
    apps: Mapping[str, frozenset[str]]

    def of(self, folders: Iterable[str]) -> dict[str, bytes]:
        """Return the files in some of its folders."""
        prefixes = tuple(f"{folder}/" for folder in folders)
        return {path: data for path, data in self.files.items() if path.startswith(prefixes)}


def plan_commit_promotion(root: Path, request: Request) -> CommitPromotion:
    """Return the commits to promote to an environment that follows commits. Nothing is written.

    Args:
        root: the repository's folder.
        request: what to promote.

    Raises:
        InputError: for an unknown environment, app or commit, a step out of order, uncommitted specs, or specs with
            errors.
    """
    target = load_config(root, request.target)
    pins = read_pins(root, request.target)
    old = dict(target.commits or {})
    held_before = set(pins.holds) if pins else set()
    wanted = _wanted(root, request, target)
    chosen = _chosen(request.apps, {*wanted, *old}, target)
    held = () if request.apps else tuple(sorted(held_before & (wanted.keys() | old.keys())))
    now = _render(target if target.commits is not None else replace(target, follows_commits=False), now=True)
    new = dict(old)
    for name in chosen:
        if name not in held:
            new[name] = wanted.get(name, "")
    new = {name: commit for name, commit in new.items() if commit}
    images, image_moves = _images(root, request, target)
    after = replace(target, commits=new, **_settings_of(images, target))
    tree = _render(after)
    assert tree is not None
    if now is not None and not request.commit and target.commits is not None:
        same = {name for name in new.keys() & old.keys() if _is_same(name, now, tree)}
        files = {name for name in same if name.endswith(SUFFIXES)}
        same -= {name for name in files if _text(name, old[name], after) != _text(name, new[name], after)}
        new |= {name: old[name] for name in same}
    holds = held_before | set(chosen) if request.hold else held_before - (set(chosen) if request.apps else set())
    holds &= new.keys()
    moves = [
        Move(name, COMMIT, old.get(name, ""), new[name])
        for name in sorted(old.keys() | new.keys())
        if old.get(name) != new.get(name) and name in new
    ]
    moves += [
        Move(name, HOLD, _YES if name in held_before else "", _YES if name in holds else "no")
        for name in sorted((held_before ^ holds) & new.keys())
    ]
    apps = {name: fields for name, fields in target.pins.items() if name not in new}
    text = pins_text(apps, images, new, holds)
    path = pins_path(root, request.target)
    current = path.read_text(encoding="utf-8") if path.is_file() else ""
    return CommitPromotion(
        path,
        (*moves, *image_moves),
        tuple(sorted(old.keys() - new.keys())),
        None if text == current else text,
        tuple(item for commit in sorted({*new.values()} - {*old.values()}) for item in _unpublished(root, commit)),
        held=held,
        change=None if now is None else compare(now.files, tree.files, settings={"": after}),
    )


def _wanted(root: Path, request: Request, target: Config) -> dict[str, str]:
    """The commit of each app that may be promoted, by its name in a pins file."""
    if request.hold and not (request.commit or request.source):
        return dict(target.commits or {})
    if request.commit:
        commit = resolve(root, request.commit)
        return dict.fromkeys(_names_at(target, commit), commit)
    source = load_config(root, request.source)
    check_step(source, request.source, request.target, request.skip)
    if source.follows_commits:
        wanted = dict(source.commits or {})
        there = {commit: _names_at(target, commit) for commit in set(wanted.values())}
        return {name: commit for name, commit in wanted.items() if name in there[commit]}
    dirty = [path for path in (FILE_NAME, LOCK_NAME, *source.specs) if is_dirty(root, path)]
    if dirty:
        hint = "commit first: what is promoted is a commit"
        raise InputError.of("KG0901", f"uncommitted changes in {', '.join(dirty)}", hint=hint)
    commit = head_commit(root)
    names = _names_at(source, commit) & _names_at(target, commit)
    return dict.fromkeys(names, commit)


def _names_at(config: Config, commit: str) -> set[str]:
    """The names of what an environment may have as of a commit."""
    sources, problems = sources_at(config, commit)
    problems.raise_errors()
    return {
        name
        for source in sources
        for name, documents in names_in(source, config).items()
        if any(not is_absent(document, config, Diagnostics()) for document in documents)
    }


def _unpublished(root: Path, commit: str) -> list[Diagnostic]:
    if is_published(root, commit):
        return []
    message = f"commit {commit[:12]} is on no branch of a remote"
    hint = "merge and push it before this promotion: a commit that a squash replaces is in no clone"
    return [Diagnostic("KG0715", message, None, hint, Severity.WARNING)]


def _chosen(requested: Sequence[str], names: set[str], config: Config) -> list[str]:
    """The apps that are meant, by their names in pins files."""
    if not requested:
        return sorted(names)
    forms: dict[str, set[str]] = {}
    for name in names:
        # `NAME` also names `NAMESPACE/NAME`, and `NAMESPACE/NAME` a spec that names no namespace.
        for form in {name, name.rpartition("/")[2], f"{config.namespace}/{name}"}:
            forms.setdefault(form, set()).add(name)
    unknown = [name for name in requested if name not in forms]
    if unknown:
        listed = "apps: " + (", ".join(sorted(names)) or "none")
        raise InputError(
            [Diagnostic("KG0716", f"no app `{name}`", None, did_you_mean(name, forms) or listed) for name in unknown]
        )
    return sorted({name for form in requested for name in forms[form]})


def _images(root: Path, request: Request, target: Config) -> tuple[dict[str, str], tuple[Move, ...]]:
    """kaigen's own images of the target after the promotion, and their moves."""
    images = dict(target.pinned_images)
    if request.apps or request.commit or not request.source:
        return images, ()
    planned = plan_promotion(root, request.source, request.target, skip=request.skip)
    moves = tuple(move for move in planned.moves if move.app == OWN_IMAGES)
    images |= {move.field.removeprefix("images."): move.new for move in moves}
    for name in planned.dropped:
        if name.startswith(f"{OWN_IMAGES} images."):
            images.pop(name.removeprefix(f"{OWN_IMAGES} images."), None)
    return images, moves


def _settings_of(images: Mapping[str, str], target: Config) -> dict[str, Mapping[str, str]]:
    """The settings with other images of kaigen, as far as the promotion changes them."""
    changed = {name: ref for name, ref in images.items() if target.pinned_images.get(name) != ref}
    return {"images": {**target.images, **changed}, "plain_images": {**target.plain_images, **changed}}


def _render(config: Config, *, now: bool = False) -> _Tree | None:
    """The environment as rendered; None when its present state has errors, which the promotion may end."""
    run = Run.load((), config, use_cache=False)
    try:
        files = {path: data_of(content) for path, content in run.files().items()}
    except InputError:
        if now:
            return None
        raise
    apps: dict[str, set[str]] = {}
    for unit in run.units:
        for spec, (_, namespace, name) in zip(unit.loaded.specs, unit.defines, strict=True):
            document: Any = spec.document
            base = document.base if isinstance(document, PatchedDocument) else document
            apps.setdefault(pin_name(base, spec.entry), set()).add(f"{namespace}/{name}")
    return _Tree(files, {name: frozenset(folders) for name, folders in apps.items()})


def _is_same(name: str, now: _Tree, after: _Tree) -> bool:
    folders = now.apps.get(name, frozenset()) | after.apps.get(name, frozenset())
    return now.of(folders) == after.of(folders)


def _text(name: str, commit: str, config: Config) -> list[str]:
    """The texts of a file at a commit; none for an app."""
    return [source.text for source in sources_at(config, commit)[0] if source.file == str(config.root / name)]
