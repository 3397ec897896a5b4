"""The choice of files: globs, and weights that a repository has in several formats."""

from __future__ import annotations

import fnmatch
from collections.abc import Collection, Iterable

from kaigen_downloader.text import listed, plural, say, shown

_OTHER_FORMATS = (".bin", ".bin.index.json", ".h5", ".msgpack", ".ot")


def chosen(path: str, include: Collection[str], exclude: Collection[str]) -> bool:
    """Return whether globs select a file.

    As in huggingface_hub, `*` crosses slashes and `folder/` selects everything in it.

    Args:
        path: the file.
        include: globs over the whole path; none means all files.
        exclude: globs of files left out.
    """

    def matches(glob: str) -> bool:
        return fnmatch.fnmatchcase(path, glob + "*" if glob.endswith("/") else glob)

    return (not include or any(map(matches, include))) and not any(map(matches, exclude))


def _is_other_format(name: str) -> bool:
    return "model" in name and name.endswith(_OTHER_FORMATS)


def duplicates(paths: Iterable[str]) -> set[str]:
    """Return the files with weights that other files have as safetensors.

    They are `original/`, if the top folder has safetensors files, and `consolidated*` and other formats next to them.
    `kaigen.config.locked_files.duplicates` has the same rule.
    """
    places = {path: path.rpartition("/")[::2] for path in paths}
    plain = {
        folder
        for folder, name in places.values()
        if name.endswith(".safetensors") and not name.startswith("consolidated") and folder != "original"
    }
    return {
        path
        for path, (folder, name) in places.items()
        if (path.startswith("original/") and "" in plain)
        or (folder in plain and (name.startswith("consolidated") or _is_other_format(name)))
    }


def report_skipped(skipped: Collection[str]) -> None:
    """Print which files are not fetched because others have the same weights."""
    if skipped:
        some = listed(map(shown, sorted(skipped)), 3)
        say(f"{plural(len(skipped), 'file')} with the weights of safetensors files skipped: {some}")
