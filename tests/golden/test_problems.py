"""The diagnostics of wrong specs and objects: code, field, message and hint.

Each document of `problems/*.yaml` is compiled, and its diagnostics are compared with the `.txt` file next to it: a new
document needs no code. `problems/objects.txt` lists findings about changed copies of the objects in `tests/unit/check`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
import yaml

from kaigen.check.policy import check_policy
from kaigen.check.references import check_references
from kaigen.check.schema_check import check_object
from kaigen.diagnostics.diagnostic import Severity
from tests import plain_yaml
from tests.goldens import Goldens
from tests.rendering import Object, diagnostics_of
from tests.unit.check.example_objects import objects
from tests.unit.check.mutations import DAMAGES, at, damaged, places

FOLDER = Path(__file__).parent / "problems"
MODEL = """\
apiVersion: kaigen.dev/v1alpha1
kind: Model
metadata: {{name: {name}}}
spec:
  source: {{huggingFace: {{repo: a/b, revision: {revision}}}}}
  store: {{volume: {{size: 100Gi, accessModes: [{mode}]}}}}
"""
MODELS = "---\n".join(
    MODEL.format(name=name, mode=mode, revision="0" * 40)
    for name, mode in (("one", "ReadWriteOnce"), ("many", "ReadWriteMany"), ("readers", "ReadOnlyMany"))
)


def lines_of(document: Any) -> Iterator[str]:
    text = yaml.safe_dump(document, sort_keys=False)
    for item in diagnostics_of(f"{MODELS}---\n{text}"):
        yield f"  {item.severity.name.lower()} {item.code} {item.path}: {item.message}\n"
        if item.hint:
            yield f"    hint: {item.hint}\n"


@pytest.mark.parametrize("file", sorted(FOLDER.glob("*.yaml")), ids=lambda file: file.stem)
def test_diagnostics_of_specs_equal_the_golden_file(golden: Goldens, file: Path) -> None:
    parts = []
    for document in plain_yaml.load_all(file.read_text(encoding="utf-8")):
        found = list(lines_of(document))
        parts += [f"{document['metadata']['name']}\n", *(found or ["  no problems\n"])]
    golden.check(file.with_suffix(".txt").relative_to(FOLDER.parent), "".join(parts))


TEXTS = ("Not_valid!", "x" * 254)


def damaged_objects() -> Iterator[tuple[str, Object, list[Object]]]:
    """Return every example object with one change at each place, in turn: its name, itself, and all objects."""
    originals = objects()
    for number, original in enumerate(originals):
        for turn, path in enumerate(places(original)):
            damage = DAMAGES[(turn + number) % len(DAMAGES)]
            changes = [(damage, damaged(original, path, damage))]
            if isinstance(at(original, path), str):
                text = deepcopy(original)
                at(text, path[:-1])[path[-1]] = TEXTS[turn % 2]
                changes.append(("another text", text))
            for what, changed in changes:
                if changed is not None:
                    name = f"{original['kind']} {'.'.join(map(str, path))}: {what}"
                    yield name, changed, [*originals[:number], changed, *originals[number + 1 :]]


def test_findings_of_damaged_objects_equal_the_golden_file(golden: Goldens) -> None:
    """Only the first finding of each message is listed, whatever names the message quotes."""
    known: set[tuple[str, ...]] = set()
    parts = []
    for name, changed, together in damaged_objects():
        findings = [*check_object(changed), *check_policy(changed)]
        if all(each.severity is not Severity.ERROR for each in findings):
            findings += [finding for _, finding in check_references(together)]
        lines = []
        for each in findings:
            hint = f" ({each.hint})" if each.hint else ""
            line = f"  {each.severity.name.lower()} {each.code} {each.where}: {each.message}{hint}\n"
            pattern = (each.code, re.sub("`[^`]*`|[0-9]+", "", each.message + hint), str(each.path[-1:]))
            if pattern not in known:
                known.add(pattern)
                lines.append(line)
        if lines:
            parts += [f"{name}\n", *lines]
    golden.check("problems/objects.txt", "".join(parts))
