"""The registry of diagnostic codes."""

from __future__ import annotations

import re
from pathlib import Path

import kaigen
from kaigen.diagnostics.codes import codes

PACKAGE = Path(kaigen.__file__).parent


def codes_in_use() -> set[str]:
    registry = PACKAGE / "load" / "codes.py"
    return {
        code
        for path in PACKAGE.rglob("*.py")
        if path != registry
        for code in re.findall(r"\bKG[0-9]{4}\b", path.read_text())
    }


def test_every_code_in_use_is_registered() -> None:
    assert sorted(codes_in_use() - set(codes())) == []


def test_every_registered_code_is_in_use() -> None:
    assert sorted(set(codes()) - codes_in_use()) == []


def test_codes_are_in_order_and_say_something() -> None:
    assert list(codes()) == sorted(codes())
    for code, entry in codes().items():
        assert re.fullmatch(r"KG[01][0-9]{3}", code)
        assert 3 <= len(entry.title) <= 60, code
        assert not entry.title.endswith("."), code
        assert entry.explanation.endswith("."), code
        assert entry.title not in entry.explanation.splitlines(), code
