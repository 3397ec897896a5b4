"""Problems of settings as lines of text: place, code, field, message and hint."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import pytest

from kaigen.config.merge import read_config
from kaigen.diagnostics.diagnostic import Diagnostic
from kaigen.diagnostics.errors import InputError


def report(problems: Iterable[Diagnostic]) -> list[str]:
    """Return a line for each problem, `FILE:LINE:COLUMN CODE [FIELD] MESSAGE | HINT`, without the folder."""
    return [
        " ".join(
            part
            for part in (
                Path(str(item.mark)).name if item.mark else "",
                item.code,
                f"[{item.path}]" if item.path else "",
                f"{item.message} | {item.hint}" if item.hint else item.message,
            )
            if part
        )
        for item in problems
    ]


def problems_of(root: Path, text: str, environment: str = "") -> list[str]:
    """Return the problems of a kaigen.yaml with this text, which has some."""
    (root / "kaigen.yaml").write_text(text, encoding="utf-8")
    with pytest.raises(InputError) as raised:
        read_config(root, environment)
    return report(raised.value.diagnostics)
