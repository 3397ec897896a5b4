"""`kaigen init`: the files that a folder needs to become a repository of kaigen."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from kaigen.diagnostics.diagnostic import Diagnostic, Mark
from kaigen.diagnostics.errors import InputError
from kaigen.scaffold.changes import FileChange, add_entry, add_lines, add_settings, read_text
from kaigen.scaffold.place import Place, find_place
from kaigen.scaffold.templates import (
    ATTRIBUTES,
    CONFIG,
    EXAMPLES,
    GITLAB,
    HOOKS,
    IGNORED,
    NO_REPOSITORY,
    README,
    SETTINGS,
    Choices,
    filled,
    root_files,
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
        files[file] = filled(f"reaper-{syncer}.yaml", words)
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
    wanted |= {place.top / path: (path, text) for path, text in top_files(place).items()}
    blocked = [path for path in wanted if path.is_dir()]
    if blocked:
        hint = "move the folder away"
        raise InputError([Diagnostic("KG0606", "is a folder", Mark(str(path)), hint) for path in blocked])
    return [_change(path, *wanted[path], force=force) for path in sorted(wanted)]


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
