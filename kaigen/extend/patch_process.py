"""Apply patches to objects: what the process of patches does."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from kaigen.compile.expressions import Scope
from kaigen.extend.child import Report
from kaigen.extend.merge import Merge, MergeFailed
from kaigen.extend.patch_wire import Patched, PatchFailure, PatchRequest, encode_answer, read_held
from kaigen.extend.pointer import OperationFailed, apply, close_expressions
from kaigen.extend.wire import encode

_SCOPE = Scope("", "", {})
"""Expressions have their values with them."""


def prepare() -> None:
    """Load what patches need: nothing is loaded late."""
    request = PatchRequest([{"a": 1}], msgspec.Raw(encode([{"op": "remove", "path": "/b"}])))
    answer(encode(request), lambda _: None)


def answer(request: bytes, report: Report) -> bytes:
    """Return the patched objects.

    Args:
        request: an encoded `PatchRequest`.
        report: receives the number of the operation that is applied next.
    """
    wanted = msgspec.msgpack.decode(request, type=PatchRequest, ext_hook=read_held)
    content = msgspec.msgpack.decode(wanted.content)
    return encode([_patched(body, content, report) for body in wanted.bodies])


def _patched(body: Any, content: Any, report: Report) -> Patched:
    try:
        return _merged(body, content) if isinstance(content, Mapping) else _operated(body, content, report)
    except RecursionError:
        return Patched(failure=PatchFailure("the object is nested too deep", "", ()))


def _merged(body: Any, content: Mapping[str, Any]) -> Patched:
    merge = Merge(_SCOPE)
    try:
        body = merge.apply(body, content)
    except MergeFailed as error:
        return Patched(failure=PatchFailure(str(error), error.hint, error.path))
    return Patched(encode_answer(close_expressions(body)), tuple(merge.written), tuple(merge.absent))


def _operated(body: Any, content: Sequence[Mapping[str, Any]], report: Report) -> Patched:
    written = []
    for index, operation in enumerate(content):
        report(index)
        try:
            body, changed = apply(body, operation, _SCOPE)
        except OperationFailed as error:
            return Patched(failure=PatchFailure(str(error), error.hint, (index, error.member)))
        if changed:
            written.append((changed, (index,)))
    return Patched(encode_answer(close_expressions(body)), tuple(written))
