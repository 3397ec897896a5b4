"""The files that a folder needs to become a repository of kaigen, and to follow the installed version."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from kaigen.catalog.images import default_images
from kaigen.diagnostics.diagnostic import Diagnostic, Mark
from kaigen.diagnostics.errors import InputError
from kaigen.scaffold.changes import FileChange, add_entry, add_lines, add_settings, read_text
from kaigen.scaffold.image_settings import with_images
from kaigen.scaffold.place import Place, find_place
from kaigen.scaffold.templates import (
    ATTRIBUTES,
    CONFIG,
    EXAMPLES,
    GITLAB,
    HOOKS,
    IGNORED,
    NO_REPOSITORY,
    PRETTIER,
    README,
    SETTINGS,
    TAG,
    YAMLLINT,
    Choices,
    fill_template,
    root_files,
    schema_files,
    top_files,
)

CHART = Path(__file__).parent / "charts" / "kaigen-reaper"
_FOLDER = "charts/kaigen-reaper"


def reaper_files(choices: Choices, place: Place) -> dict[str, str]:
    """Return the files in the folder of kaigen.yaml by path: the chart, and an object for each environment."""
    files = {
        f"{_FOLDER}/{path.relative_to(CHART).as_posix()}": path.read_text(encoding="utf-8")
        for path in sorted(CHART.rglob("*"))
        if path.is_file()
    }
    below = f"{place.below}/" if place.below else ""
    for environment, namespace, syncer in _installations(choices):
        file = f"reaper/{environment or 'reaper'}.{syncer}.yaml"
        words = {
            "file": file,
            "name": f"kaigen-reaper-{environment}" if environment else "kaigen-reaper",
            "namespace": namespace,
            "repository": place.repository or NO_REPOSITORY,
            "chart": f"{below}{_FOLDER}",
        }
        files[file] = fill_template(f"reaper-{syncer}.yaml", words)
    return files


def _installations(choices: Choices) -> Iterator[tuple[str, str, str]]:
    """Yield environment (empty for none), namespace and syncer of each installation."""
    everywhere = [name for name in ("argocd", "flux") if getattr(choices, name)]
    environments = [(name, choices.namespace_of(name)) for name in choices.environments]
    for name, namespace in environments or [("", choices.namespace)]:
        for syncer in [choices.syncers[name]] if name in choices.syncers else everywhere:
            yield name, namespace, syncer


_MERGES: Mapping[str, Callable[[str, str], str | None]] = {
    IGNORED: add_lines,
    ATTRIBUTES: add_lines,
    PRETTIER: add_lines,
    SETTINGS: add_settings,
    HOOKS: lambda text, wanted: text if _has_hooks(text) else add_entry(text, wanted, "repos"),
    GITLAB: lambda text, wanted: text if _has_hooks(text) else add_entry(text, wanted, "include"),
}
"""How files that may have other content are extended; None if they cannot be."""


def plan_repository(root: Path, choices: Choices, *, force: bool = False) -> list[FileChange]:
    """Return the changes that make a folder a repository of kaigen, by path. Files that exist are kept or extended.

    Args:
        root: the folder, which may not exist.
        choices: what the files depend on.
        force: replace files of kaigen that exist, instead of keeping them.

    Raises:
        InputError: a choice is not possible, or the folder is a file.
    """
    choices.check()
    if root.exists() and not root.is_dir():
        raise InputError.of("KG0606", f"{root} is not a folder")
    place = find_place(root)
    files = root_files(choices, place)
    if choices.reaper:
        files |= reaper_files(choices, place)
    if not force and _is_started(root):
        for path in EXAMPLES:
            del files[path]
    wanted = {root / path: (path, text) for path, text in files.items()}
    wanted |= {place.top / path: (path, text) for path, text in top_files(place, choices.runner).items()}
    below = f"{place.below}/" if place.below else ""
    if (place.top / PRETTIER).exists():
        wanted[place.top / PRETTIER] = (PRETTIER, f"{below}rendered/\n")
    blocked = [path for path in wanted if path.is_dir()]
    if blocked:
        hint = "move the folder away"
        raise InputError([Diagnostic("KG0606", "is a folder", Mark(str(path)), hint) for path in blocked])
    changes = [_change(path, *wanted[path], force=force) for path in sorted(wanted)]
    return [*changes, *_linters(place.top, f"{below}rendered/")]


def _linters(top: Path, rendered: str) -> Iterator[FileChange]:
    """Yield the configurations of yamllint that check the output tree, which has long lines and Helm's templates."""
    for name in YAMLLINT:
        text = read_text(top / name)
        if text is not None and rendered not in text:
            yield FileChange(top / name, text, text, f"checks {rendered}; add this by hand:\nignore: [{rendered}]")


def new_files(place: Place, choices: Choices | None = None) -> dict[str, str]:
    """Return the content of every file of a new repository by its path from the top of the Git repository."""
    below = f"{place.below}/" if place.below else ""
    own = root_files(choices or Choices(), place)
    return {**{f"{below}{path}": text for path, text in own.items()}, **top_files(place)}


def _change(path: Path, name: str, text: str, *, force: bool) -> FileChange:
    old = read_text(path)
    if old is None or old == text:
        return FileChange(path, old, text)
    merge = _MERGES.get(name)
    if merge is not None:
        merged = merge(old, text)
        if merged is not None:
            return FileChange(path, old, merged)
        return FileChange(path, old, old, f"cannot be extended; add this by hand:\n{text}")
    if force and name != README:
        return FileChange(path, old, text)
    return FileChange(path, old, old)


def _is_started(root: Path) -> bool:
    """Return whether a folder has a configuration or specs, so that it needs no examples."""
    specs = root / "specs"
    return (root / CONFIG).exists() or (specs.is_dir() and any(specs.iterdir()))


def _has_hooks(text: str) -> bool:
    return "kaigen-dev/kaigen" in text


_PINS = (
    r"(repo: \S*kaigen-dev/kaigen(?:\.git)?[ \t]*\n(?:[ \t]*#.*\n)*[ \t]+rev:[ \t]*)([^\s#]+)",
    r"(kaigen-dev/kaigen/gitops/github-(?:action|comment)@)([^\s#]+)",
    r"(kaigen-dev/kaigen/)([^/\s]+)(?=/gitops/)",
    r"(kaigen\.gitlab-ci\.yml[ \t]*\n[ \t]+inputs:[ \t]*\{version:[ \t]*)([^\s,}]+)",
)
"""Where pipelines and hooks name the version of kaigen: the text before it, and the version."""


def plan_upgrade(root: Path, pins: Mapping[str, str], *, images: bool = False) -> list[FileChange]:
    """Return the changes of a repository that the installed version needs, by path.

    Args:
        root: folder of kaigen.yaml.
        pins: images to add to those that kaigen.yaml pins.
        images: change the pinned images, too, which starts Jobs again and restarts pods.
    """
    place = find_place(root)
    lines = root_files(Choices(), place)
    changes = [FileChange(root / path, read_text(root / path), text) for path, text in schema_files().items()]
    for path in (IGNORED, ATTRIBUTES):
        old = read_text(root / path)
        changes.append(FileChange(root / path, old, add_lines(old or "", lines[path])))
    workflows = place.top / ".github" / "workflows"
    for file in (place.top / HOOKS, place.top / GITLAB, *sorted(workflows.glob("*.y*ml"))):
        text = read_text(file)
        if text is not None:
            changes.append(FileChange(file, text, _with_version(text)))
    config = read_text(root / CONFIG)
    if config is not None:
        new = with_images(root / CONFIG, pins).new if pins else config
        changes.append(FileChange(root / CONFIG, config, _with_newer_images(new, default_images()) if images else new))
    return sorted(changes, key=lambda change: change.path)


def _with_version(text: str) -> str:
    for pattern in _PINS:
        text = re.sub(pattern, lambda match: match[1] + _newer(match[2]), text)
    return text


def _newer(pinned: str) -> str:
    """Return the installed version in the form of a pinned one; the pinned one if it is newer, or is a commit."""
    own = TAG if pinned.startswith("v") else TAG[1:]
    return own if _is_older(pinned, own) else pinned


def _with_newer_images(text: str, images: Mapping[str, str]) -> str:
    """Return kaigen.yaml with newer tags of kaigen's own images. A digest, or an image of a mirror, stays."""
    for reference in images.values():
        name, _, tag = reference.rpartition(":")

        def tagged(match: re.Match[str], tag: str = tag) -> str:
            return match[1] + (tag if _is_older(match[2], tag) else match[2])

        text = re.sub(rf"(:[ \t]*[\"']?{re.escape(name)}:)([\w.-]+)(?![\w.@-])", tagged, text)
    return text


def _is_older(pinned: str, own: str) -> bool:
    numbers = list(_numbers((pinned, own)))
    return len(numbers) == 2 and numbers[0] < numbers[1]


def _numbers(versions: tuple[str, ...]) -> Iterator[tuple[int, ...]]:
    for version in versions:
        found = re.fullmatch(r"v?(\d+)\.(\d+)\.(\d+)", version)
        if found:
            yield tuple(map(int, found.groups()))
