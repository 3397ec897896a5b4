"""The `config.json` of a model, in place of its name in a spec."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar

from kaigen.diagnostics.errors import InputError
from kaigen.diagnostics.problem import ProblemError
from kaigen.kinds.block import Block, replace_fields
from kaigen.kinds.config_files import parse_config, read_file
from kaigen.kinds.lowering import Lowering

_B = TypeVar("_B", bound=Block)


def with_config(block: _B, path: Sequence[str], lowering: Lowering) -> _B | None:
    """Return a spec with the content of the `config.json` that it names in place of the file's name.

    Args:
        block: the spec.
        path: its field of the type `Facts`.
        lowering: finds the file, and reports what is wrong with it.

    Returns:
        The spec; None when the file is wrong.
    """
    chain: list[Any] = [block]
    for name in path:
        inner = getattr(chain[-1], name, None)
        if not isinstance(inner, Block):
            return block
        chain.append(inner)
    named = chain[-1].config
    if not isinstance(named, str):
        return block
    at = (*path, "config")
    try:
        found = lowering.find_file(named)
        config = parse_config(read_file(found), found)
    except ProblemError as error:
        lowering.error(error.problem.code, str(error), at, error.hint)
        return None
    except InputError as error:
        lowering.report(error.diagnostics)
        return None
    changed: Any = replace_fields(chain[-1], config=config)
    for name, outer in zip(reversed(path), reversed(chain[:-1]), strict=True):
        changed = replace_fields(outer, **{name: changed})
    result: _B = changed
    return result
