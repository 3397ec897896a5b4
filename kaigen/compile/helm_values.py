"""Values that a chart cannot contain: Helm would drop, round or reject them, and the two forms would differ.

Found by experiments with Helm 3 and 4, which read YAML as 64-bit floats and text without control characters, and
write JSON and YAML that they then read again.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from msgspec import Struct

from kaigen.compile.expressions import Setting
from kaigen.compile.go_json import EXACT_MAX
from kaigen.compile.problems import Problems
from kaigen.core.json_types import FieldPath

# Go writes all of these raw. It reads U+0085 back as a space, treats U+2028 and U+2029 as line ends that it then
# fails to indent, and rejects the others. Half of a surrogate pair is invalid in every encoding.
_UNSUPPORTED = re.compile("[\x7f-\x9f\u2028\u2029\ufffe\uffff\ud800-\udfff]")


class UnsupportedValue(Struct, frozen=True):
    """One value that Helm changes or rejects.

    Attributes:
        path: its path in the value that was searched.
        code: diagnostic code.
        message: what Helm would do.
        hint: how to fix it.
    """

    path: FieldPath
    code: str
    message: str
    hint: str


def unsupported_values(node: Any, path: FieldPath = ()) -> Iterator[UnsupportedValue]:
    """Yield everything in a value that Helm changes or rejects, except nulls."""
    if isinstance(node, str):
        match = _UNSUPPORTED.search(node)
        if match:
            char = f"U+{ord(match[0]):04X}"
            yield UnsupportedValue(path, "KG0315", f"Helm does not support the character {char}", "delete it")
    elif isinstance(node, Mapping):
        for key, value in node.items():
            yield from unsupported_values(key, (*path, key))
            if key == "<<":
                yield UnsupportedValue(
                    (*path, key), "KG0315", "Helm would merge what is under the key `<<`", "rename it"
                )
            yield from unsupported_values(value, (*path, key))
    elif isinstance(node, list | tuple):
        for index, value in enumerate(node):
            yield from unsupported_values(value, (*path, index))
    elif isinstance(node, int) and abs(node) > EXACT_MAX:
        yield UnsupportedValue(path, "KG0312", f"Helm would round {node}", "quote it")
    elif isinstance(node, float) and node == 0 and math.copysign(1, node) < 0:
        yield UnsupportedValue(path, "KG0312", f"Helm would round {node}", "write 0")


def _is_supported(node: Any) -> bool:
    """Return True only if `unsupported_values` finds nothing; fast, by exact type."""
    kind = type(node)
    if kind is str:
        return _UNSUPPORTED.search(node) is None
    if kind is dict:
        return "<<" not in node and all(map(_is_supported, node)) and all(map(_is_supported, node.values()))
    if kind is list:
        return all(map(_is_supported, node))
    if kind is int:
        return bool(abs(node) <= EXACT_MAX)
    return kind is bool or node is None or (kind is float and bool(node))


def report_unsupported_values(settings: Iterable[Setting], problems: Problems) -> None:
    """Report every default that Helm changes or rejects, at the spec's field that it came from."""
    for setting in settings:
        if _is_supported(setting.default):
            continue
        for item in unsupported_values(setting.default):
            problems.error(item.code, item.message, (*setting.origin, *item.path), item.hint)
