"""Imports that wait until a module is used.

Start-up is import time, and most runs do not need most modules: not those that explain errors, draw graphs or
publish. A module that only some runs need is imported at the top of a file like any other, inside a block:

    with lazy_imports():
        from kaigen.graph import mermaid

Type checkers and readers see a plain import. The module's code runs when one of its attributes is first read, so a
block imports modules, never names in them. Only the import statements of the block wait: those of modules that they
run, and those of other threads, do not.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec, PathFinder
from importlib.util import LazyLoader
from types import FrameType, ModuleType

_MACHINERY = ("<frozen importlib._bootstrap>", "<frozen importlib._bootstrap_external>")
"""Files of the frames between an import statement and a finder."""


class _LazyFinder:
    """A finder of modules whose code runs on first use, for the import statements of one frame.

    The code of packages runs at once: importing a submodule would otherwise run the package in the middle of that
    import, which loads the submodule twice. kaigen's packages are nearly empty.
    """

    def __init__(self, frame: FrameType) -> None:
        self._frame = frame

    def find_spec(self, name: str, path: Sequence[str] | None, target: ModuleType | None = None) -> ModuleSpec | None:
        importer: FrameType | None = sys._getframe(1)
        while importer is not None and importer.f_code.co_filename in _MACHINERY:
            importer = importer.f_back
        if importer is not self._frame:
            return None
        spec = PathFinder.find_spec(name, path, target)
        if spec is not None and spec.loader is not None and spec.submodule_search_locations is None:
            spec.loader = LazyLoader(spec.loader)
        return spec


class lazy_imports:
    """Delays the code of the modules that the block imports until they are used."""

    def __enter__(self) -> None:
        self._finder = _LazyFinder(sys._getframe(1))
        sys.meta_path.insert(0, self._finder)

    def __exit__(self, *_: object) -> None:
        sys.meta_path.remove(self._finder)
        del self._finder  # It refers to the frame, which refers to this block.
