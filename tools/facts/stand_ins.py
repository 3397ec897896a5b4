"""Build the parser of `vllm serve` from its Python files alone, and write its flags.

    PYTHONPATH=FOLDER python -m tools.facts.stand_ins FLAGS.json [LINES.json REFUSED.json]

FOLDER has the files of an sdist. Of the packages that vLLM needs only pydantic reads flags; in place of the others,
such as PyTorch, and of what loads models, modules that accept everything are imported. `tests/cluster/test_vllm.py`
compares the flags with those of a vLLM that is installed.
"""

from __future__ import annotations

import re
import sys
from importlib import import_module, metadata
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from operator import getitem
from types import ModuleType
from typing import Any, Union

from pydantic._internal._generate_schema import GenerateSchema
from pydantic_core import core_schema

from tools import vllm_parser

_UNREAD = (
    "vllm.compilation",
    "vllm.distributed",
    "vllm.ir",
    "vllm.kernels",
    "vllm.lora",
    "vllm.model_executor.models",
    "vllm.multimodal",
    "vllm.v1",
    "vllm.vllm_flash_attn",
)
"""Packages of vLLM without flags, which need PyTorch as soon as they are imported."""


_VERSION = "99.0.0"


class _Base:
    """Base class of classes that derive from a stand-in."""

    def __init__(self, *args: object, **options: object) -> None:
        pass

    def __init_subclass__(cls, **options: object) -> None:
        pass

    def __class_getitem__(cls, key: object) -> type:
        return cls


class StandIn:
    """Replaces a class, function, decorator or number of a package that is not installed."""

    def __init__(self, name: str) -> None:
        self.__name__ = self.__qualname__ = name
        self.__annotations__: dict[str, Any] = {}

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        found = StandIn(name)
        setattr(self, name, found)
        return found

    def __call__(self, *args: Any, **options: Any) -> Any:
        """Return the function that is decorated, or the stand-in as its own instance and result."""
        is_decorator = len(args) == 1 and not options and callable(args[0]) and not isinstance(args[0], StandIn)
        return args[0] if is_decorator else self

    def __mro_entries__(self, bases: tuple[Any, ...]) -> tuple[type, ...]:
        return (_Base,) if bases[0] is self and all(isinstance(base, StandIn) for base in bases) else ()

    def __instancecheck__(self, value: object) -> bool:
        return False

    def __subclasscheck__(self, value: object) -> bool:
        return False

    def __getitem__(self, key: object) -> Any:
        return self

    def __iter__(self) -> Any:
        return iter(())

    def __len__(self) -> int:
        return 0

    def __int__(self) -> int:
        return 0

    def __or__(self, other: Any) -> Any:
        return getitem(Union, (self, other))

    def __ror__(self, other: Any) -> Any:
        return getitem(Union, (other, self))

    def __neg__(self) -> Any:
        return self

    def _other(self, other: Any) -> Any:
        return other

    def _never(self, other: object) -> bool:
        return False

    def _always(self, other: object) -> bool:
        return True

    __index__ = __int__
    __add__ = __radd__ = __sub__ = __mul__ = __rmul__ = __truediv__ = __floordiv__ = _other
    __lt__ = __gt__ = __contains__ = _never
    __le__ = __ge__ = _always


class _Module(ModuleType):
    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.__path__ = []
        self.__file__ = "/stand-in/__init__.py"
        self.__version__ = _VERSION

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        found = StandIn(name)
        setattr(self, name, found)
        return found


class _Unread(MetaPathFinder, Loader):
    """Finds the packages of `_UNREAD` before their files are found."""

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        return self._spec(name) if any(f"{name}.".startswith(f"{each}.") for each in _UNREAD) else None

    def _spec(self, name: str) -> ModuleSpec:
        return ModuleSpec(name, self, is_package=True)

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        return _Module(spec.name)

    def exec_module(self, module: ModuleType) -> None:
        """Do nothing: a stand-in has no code."""


class _Missing(_Unread):
    """Finds packages that are not installed, and modules of vLLM that are compiled or made by its build."""

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        first, last = name.partition(".")[0], name.rpartition(".")[2]
        is_own = first == "vllm" and not last.startswith("_")
        return None if is_own or first in sys.stdlib_module_names else self._spec(name)


def _version_of(name: str) -> str:
    try:
        return metadata.distribution(name).version
    except metadata.PackageNotFoundError:
        return _VERSION


def install() -> None:
    """Make the stand-ins importable."""
    changes = [
        (metadata, "version", _version_of),
        (GenerateSchema, "_unknown_type_schema", lambda _self, _type: core_schema.any_schema()),
    ]
    for owner, name, change in changes:
        setattr(owner, name, change)
    sys.modules["regex"] = re
    sys.meta_path.insert(0, _Unread())
    sys.meta_path.append(_Missing())
    # vLLM asks for GPUs to find its platform; flags are the same on all.
    platforms: Any = import_module("vllm.platforms")
    platforms._current_platform = None
    platforms.resolve_current_platform_cls_qualname = lambda: "vllm.platforms.cpu.CpuPlatform"


if __name__ == "__main__":
    install()
    vllm_parser.main(*sys.argv[1:])
