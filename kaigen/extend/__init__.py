"""User-defined kinds, from folders of templates or installed packages, and patches of objects.

A package provides a kind as a `PythonKind` under the entry point group `kaigen.kinds`; see docs/extending.md.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from kaigen.extend.build import Part, build_app
    from kaigen.extend.plugins import PythonKind

__all__ = ["Part", "PythonKind", "build_app"]

_HOMES = {
    "Part": "kaigen.extend.build",
    "PythonKind": "kaigen.extend.plugins",
    "build_app": "kaigen.extend.build",
}


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'kaigen.extend' has no attribute {name!r}")
    return getattr(import_module(home), name)
