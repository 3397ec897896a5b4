"""What a chart's values cannot carry: Helm would drop, round or refuse it, and the two forms would differ.

Found by experiment with Helm 3 and 4, which read YAML as 64-bit floats and text without control characters, and
write JSON and YAML that they then read again.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from kaigen.compile.expressions import Setting, SpecPath
from kaigen.compile.go_json import EXACT_MAX
from kaigen.compile.problems import Problems

# Go writes all of these raw. It reads U+0085 back as a space, takes U+2028 and U+2029 for line ends that it then
# fails to indent, and refuses the rest. Half of a surrogate pair is no text in any encoding.
_UNCARRIED = re.compile("[\x7f-\x9f\u2028\u2029\ufffe\uffff\ud800-\udfff]")


@dataclass(frozen=True, slots=True)
class Uncarried:
    """One value that Helm cannot carry.

    Attributes:
        path: where it is, from the value that was looked at.
        code: diagnostic code.
        message: what Helm would do to it.
        hint: what to do about it.
    """

    path: SpecPath
    code: str
    message: str
    hint: str


def uncarried(node: Any, path: SpecPath = ()) -> Iterator[Uncarried]:
    """Everything in a value that Helm cannot carry, but for nulls."""
    if isinstance(node, str):
        found = _UNCARRIED.search(node)
        if found:
            char = f"U+{ord(found[0]):04X}"
            yield Uncarried(path, "KG0315", f"Helm cannot carry the character {char}", "take it out")
    elif isinstance(node, Mapping):
        for key, value in node.items():
            yield from uncarried(key, (*path, key))
            if key == "<<":
                yield Uncarried(
                    (*path, key), "KG0315", "Helm would merge what is under the key `<<`", "rename it"
                )
            yield from uncarried(value, (*path, key))
    elif isinstance(node, list | tuple):
        for index, value in enumerate(node):
            yield from uncarried(value, (*path, index))
    elif isinstance(node, int) and abs(node) > EXACT_MAX:
        yield Uncarried(path, "KG0312", f"Helm would round {node}", "quote it")
    elif isinstance(node, float) and node == 0 and math.copysign(1, node) < 0:
        yield Uncarried(path, "KG0312", f"Helm would round {node}", "write 0")


def _is_carried(node: Any) -> bool:
    """A fast look, by exact type: True only when `uncarried` finds nothing."""
    kind = type(node)
    if kind is str:
        return _UNCARRIED.search(node) is None
    if kind is dict:
        return "<<" not in node and all(map(_is_carried, node)) and all(map(_is_carried, node.values()))
    if kind is list:
        return all(map(_is_carried, node))
    if kind is int:
        return bool(abs(node) <= EXACT_MAX)
    return kind is bool or node is None or (kind is float and bool(node))


def report_uncarried(settings: Iterable[Setting], problems: Problems) -> None:
    """Tell of every default that Helm cannot carry, at the field of the spec that it came from."""
    for setting in settings:
        if _is_carried(setting.default):
            continue
        for item in uncarried(setting.default):
            problems.error(item.code, item.message, (*setting.origin, *item.path), item.hint)
