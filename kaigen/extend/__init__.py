"""What packages that extend kaigen import: kinds, dialects, and what both are made of.

A package provides a kind as a `PythonKind` under the entry point group `kaigen.kinds`, and the API of another system
as a `Dialect` under the group `kaigen.dialects`; see docs/extending.md. User-defined kinds in folders of templates and
patches of objects are in this package, too.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from kaigen.dialects.draft import Draft
    from kaigen.dialects.metadata import ForeignMetadata, put_metadata, read_directives
    from kaigen.dialects.registry import Dialect
    from kaigen.extend.build import Part, build_app
    from kaigen.extend.plugins import PythonKind
    from kaigen.kinds.base import Metadata, text
    from kaigen.kinds.block import Block, read_block
    from kaigen.kinds.kind import ForeignKind
    from kaigen.kinds.lowering import Lowered, Lowering, LoweringContext, LoweringResult
    from kaigen.kinds.positioned import Positioned

_HOMES = {
    "Block": "kaigen.kinds.block",
    "Dialect": "kaigen.dialects.registry",
    "Draft": "kaigen.dialects.draft",
    "ForeignKind": "kaigen.kinds.kind",
    "ForeignMetadata": "kaigen.dialects.metadata",
    "Lowered": "kaigen.kinds.lowering",
    "Lowering": "kaigen.kinds.lowering",
    "LoweringContext": "kaigen.kinds.lowering",
    "LoweringResult": "kaigen.kinds.lowering",
    "Metadata": "kaigen.kinds.base",
    "Part": "kaigen.extend.build",
    "Positioned": "kaigen.kinds.positioned",
    "PythonKind": "kaigen.extend.plugins",
    "build_app": "kaigen.extend.build",
    "put_metadata": "kaigen.dialects.metadata",
    "read_block": "kaigen.kinds.block",
    "read_directives": "kaigen.dialects.metadata",
    "text": "kaigen.kinds.base",
}

__all__ = [
    "Block",
    "Dialect",
    "Draft",
    "ForeignKind",
    "ForeignMetadata",
    "Lowered",
    "Lowering",
    "LoweringContext",
    "LoweringResult",
    "Metadata",
    "Part",
    "Positioned",
    "PythonKind",
    "build_app",
    "put_metadata",
    "read_block",
    "read_directives",
    "text",
]


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'kaigen.extend' has no attribute {name!r}")
    return getattr(import_module(home), name)
