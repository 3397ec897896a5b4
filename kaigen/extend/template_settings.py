"""What templates may pass to `setting`. Checked twice: where a template calls it, and where its calls are read."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from kaigen.extend.template_errors import MisusedValue
from kaigen.extend.tokens import Placeholder

_PATH = re.compile(r"[a-z][A-Za-z0-9]*(?:\.[a-z][A-Za-z0-9]*)*")


def check_path(path: object) -> str:
    """Return the name of a setting.

    Raises:
        MisusedValue: it is not one.
    """
    if not isinstance(path, str) or not _PATH.fullmatch(path) or path.split(".")[0] == "global":
        raise MisusedValue(
            f"`{path}` is not a valid name of a setting",
            "use letters and digits, with dots between levels, such as `storage.size`",
        )
    return str.__str__(path)


def check_default(path: str, default: Any, nonce: str) -> Any:
    """Return the default of a setting as plain data.

    Args:
        path: name of the setting.
        default: as the template passes it.
        nonce: beginning of the tokens, which a default must not contain.

    Raises:
        MisusedValue: there is none, or it is not plain data.
    """
    if default is None:
        raise MisusedValue(f"the setting `{path}` requires a default")
    if isinstance(default, Placeholder):
        raise MisusedValue(f"the default of `{path}` must be known at render time")
    return _plain(path, default, nonce)


def _plain(path: str, default: Any, nonce: str) -> Any:
    if isinstance(default, str) and nonce in default:
        raise MisusedValue(f"the default of `{path}` must be known at render time")
    if isinstance(default, Mapping):
        return {str(key): _plain(path, value, nonce) for key, value in default.items()}
    if isinstance(default, list | tuple):
        return [_plain(path, value, nonce) for value in default]
    if not isinstance(default, str | int | float | bool):
        raise MisusedValue(f"the default of `{path}` must be plain data")
    return str(default) if isinstance(default, str) else default


def check_same(path: str, known: object, default: object) -> None:
    """Check that two calls for one setting have the same default.

    Raises:
        MisusedValue: they have not.
    """
    if known != default:
        raise MisusedValue(f"the setting `{path}` has two different defaults", "rename one of the two settings")
