"""kaigen accepts the characters that kustomize, which Argo CD and Flux build with, reads and writes unchanged."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest
import yaml

from kaigen.diagnostics.collector import Diagnostics
from kaigen.yaml.document import parse
from kaigen.yaml.sources import Source

KEPT = (0x01, 0x1F, 0x7E, 0xA0, 0xAD, 0x2028, 0xD7FF, 0xE000, 0xFFFD, 0x1FFFE, 0x10FFFF)
LOST = (0x7F, 0x80, 0x84, 0x85, 0x86, 0x9F, 0xFFFE, 0xFFFF)


@pytest.mark.parametrize("number", [*KEPT, *LOST], ids=hex)
def test_a_character_is_accepted_if_kustomize_keeps_it(tmp_path: Path, kubectl: Path, number: int) -> None:
    text = f"x{chr(number)}y"
    manifest = f'apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: a}}\ndata:\n  a: "x\\U{number:08X}y"\n'
    found = Diagnostics()
    documents = parse(Source("a.yaml", manifest), found)
    assert [each.code for each in found] == (["KG0119"] if number in LOST else [])
    as_json = Diagnostics()
    for escaped in (True, False) if number > 0x1F else (True,):
        parse(Source("a.json", json.dumps({"a": text}, ensure_ascii=escaped)), as_json)
    assert {each.code for each in as_json} == {each.code for each in found}
    assert documents[0].data["data"] == {"a": text}  # type: ignore[index, call-overload]
    (tmp_path / "kustomization.yaml").write_text("resources: [a.yaml]\n", encoding="utf-8")
    (tmp_path / "a.yaml").write_text(manifest, encoding="utf-8")
    built = subprocess.run([str(kubectl), "kustomize", str(tmp_path)], capture_output=True, text=True)
    kept = built.returncode == 0 and yaml.safe_load(built.stdout)["data"] == {"a": text}
    assert kept == (number in KEPT)
