"""Every example and every spec of `tests/chart/specs/`, rendered and compared with golden files byte for byte.

Nothing is listed by hand: a new example fails until `pytest tests/golden --update` writes its golden files. The output
of `examples/demo` is committed next to its specs, and that is its golden.

Examples are compared in both forms. Specs of `tests/chart/specs/` are compared as manifests only: `tests/chart` proves
that Helm renders each chart to the same objects.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cases import Case, cases
from tests.goldens import Goldens, joined

FOLDER = Path(__file__).parent / "rendered"


def has_golden_files(case: Case) -> bool:
    """Whether the golden files of the case are in this folder, and not committed next to its specs."""
    root = case.config.root
    return not (root / "kaigen.yaml").exists() or not (root / "rendered").exists()


CASES = [case for case in cases().values() if has_golden_files(case)]


def forms(case: Case) -> list[str]:
    return ["manifests", "chart"] if case.is_example else ["manifests"]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_output_equals_its_golden_files(golden: Goldens, case: Case) -> None:
    files = case.render()
    charts = {path: content for path, content in files.items() if "/chart/" in path}
    others = {path: content for path, content in files.items() if path not in charts}
    assert others
    for form, content in (("manifests", others), ("chart", charts)):
        if form in forms(case):
            golden.check(f"rendered/{case.name}.{form}.txt", joined(content))


def test_every_golden_file_has_an_example() -> None:
    expected = {f"{case.name}.{form}.txt" for case in CASES for form in forms(case)}
    assert {path.relative_to(FOLDER).as_posix() for path in FOLDER.rglob("*.txt")} == expected
