"""Checks of volume mounts."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from kaigen.compile.expressions import SpecPath, Tree
from kaigen.compile.problems import Problems


def check_mounts(
    mounts: Iterable[Mapping[str, Tree]], origin: Callable[[tuple[Tree, Tree]], SpecPath], problems: Problems
) -> None:
    """Report two volumes that are mounted at one folder.

    Args:
        mounts: volume mounts of a container.
        origin: the spec's field for the names of two volumes.
        problems: collects the errors.
    """
    volumes: dict[str, Tree] = {}
    for mount in mounts:
        folder, name = str(mount["mountPath"]).rstrip("/"), mount["name"]
        first = volumes.setdefault(folder, name)
        if first != name:
            problems.error(
                "KG0314",
                f"two volumes are mounted at `{folder}`: {first} and {name}",
                origin((name, first)),
                "set another `mountPath`",
            )
