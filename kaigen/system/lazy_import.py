"""Imports that wait until a module is used.

Start-up is import time, and most runs do not need most modules: not those that explain errors, draw graphs or
publish. A module that only some runs need is imported at the top of a file like any other, inside a block:

    with lazy_imports():
        from kaigen.graph import mermaid

Type checkers and readers see a plain import. The module's code runs when one of its attributes is first read, so a
block imports modules, never names in them. Only the import statements of the block wait: those of modules that they
run, and those of other threads, do not. A thread that uses a module while another one runs its code waits for it.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec, PathFinder
from importlib.util import LazyLoader
from threading import RLock
from types import FrameType, ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from importlib.abc import Loader

_MACHINERY = ("<frozen importlib._bootstrap>", "<frozen importlib._bootstrap_external>")
"""Files of the frames between an import statement and a finder."""


class _LazyModule(ModuleType):
    """A module whose code runs when an attribute is read first.

    `importlib.util.LazyLoader` of Python 3.11 shows other threads a module in the middle of its code.
    """

    def __getattribute__(self, name: str) -> Any:
        spec = ModuleType.__getattribute__(self, "__spec__")
        state: _Delayed = spec.loader_state
        with state.lock:
            if not state.is_run:
                # The code itself, and what it imports, reads attributes in this thread.
                state.is_run = True
                try:
                    state.loader.exec_module(self)
                except BaseException:
                    state.is_run = False
                    raise
                object.__setattr__(self, "__class__", ModuleType)
        return ModuleType.__getattribute__(self, name)


class _Delayed(LazyLoader):
    """A loader that leaves the code of a module to its first use.

    Attributes:
        loader: the loader that runs it.
        lock: held by the thread that runs it.
        is_run: whether a thread has begun.
    """

    loader: Loader

    def __init__(self, loader: Loader) -> None:
        super().__init__(loader)
        self.lock = RLock()
        self.is_run = False

    def exec_module(self, module: ModuleType) -> None:
        """Delay the code."""
        spec = module.__spec__
        assert spec is not None
        spec.loader = module.__loader__ = self.loader
        spec.loader_state = self
        module.__class__ = _LazyModule


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
            spec.loader = _Delayed(spec.loader)
        return spec


class lazy_imports:
    """Delays the code of the modules that the block imports until they are used."""

    def __enter__(self) -> None:
        self._finder = _LazyFinder(sys._getframe(1))
        sys.meta_path.insert(0, self._finder)

    def __exit__(self, *_: object) -> None:
        sys.meta_path.remove(self._finder)
        del self._finder  # It refers to the frame, which refers to this block.
