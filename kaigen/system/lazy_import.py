"""Imports that wait until a module is used.

Start-up is import time, and most runs do not need most modules: not those that explain errors, draw graphs or
publish. A module that only some runs need is imported at the top of a file like any other, inside a block:

    with lazy_imports():
        from kaigen.graph import mermaid

Type checkers and readers see a plain import. The module's code runs when one of its attributes is first read, so a
block imports modules, never names in them.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.machinery import ModuleSpec, PathFinder
from importlib.util import LazyLoader
from types import ModuleType

if sys.version_info >= (3, 13):
    # LazyLoader imports it at the first lazy import, which would make it lazy, too, and fail.
    import threading  # noqa: F401


class _LazyFinder:
    """A finder of modules whose code runs on first use.

    The code of packages runs at once: importing a submodule would otherwise run the package in the middle of that
    import, which loads the submodule twice. kaigen's packages are nearly empty.
    """

    @staticmethod
    def find_spec(
        name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        spec = PathFinder.find_spec(name, path, target)
        if spec is not None and spec.loader is not None and spec.submodule_search_locations is None:
            spec.loader = LazyLoader(spec.loader)
        return spec


@contextmanager
def lazy_imports() -> Iterator[None]:
    """Delay the code of the modules that are imported inside the block until they are used."""
    sys.meta_path.insert(0, _LazyFinder)
    try:
        yield
    finally:
        sys.meta_path.remove(_LazyFinder)
