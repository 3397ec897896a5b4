"""The schema data that ships with the package: its sources, its generator and its size."""

from __future__ import annotations

import hashlib
import importlib.metadata
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from kaigen.check import codes
from kaigen.check.schema_compiler import CHECKS, Schemas
from kaigen.diagnostics.codes import codes as all_codes
from kaigen.kubernetes import schemas
from kaigen.regex.pattern import compile_pattern, matches
from tools.make_schemas import CRDS, RULES, TARGETS, make_all

ROOT = Path(__file__).parents[3]
DATA = Path(schemas.DATA)
MANIFEST = json.loads((DATA / "manifest.json").read_bytes())


def digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def test_the_files_are_those_of_the_manifest() -> None:
    found = {path.name: digest(path) for path in DATA.glob("*.json") if path.name != "manifest.json"}
    assert found == MANIFEST["files"]


def test_the_files_were_made_from_the_current_sources() -> None:
    sources = MANIFEST["sources"]
    assert sources["kubernetes-validate"]["version"] == importlib.metadata.version("kubernetes-validate")
    assert sources["tools/core_rules.yaml"]["sha256"] == digest(RULES)
    at_hand = {f"crds/{path.name}": digest(path) for path in CRDS.glob("*.yaml")}
    assert at_hand == {name: s["sha256"] for name, s in sources.items() if name.startswith("crds/")}


def test_every_code_is_in_the_table_of_codes() -> None:
    constants = {value for name, value in vars(codes).items() if name.isupper()}
    registered = {code for code in all_codes() if code.startswith("KG05")}
    assert constants == registered, "the codes of checks are in `check/codes.py` and in `diagnostics/codes.yaml`"


def test_every_custom_resource_names_its_source() -> None:
    crds = {name: s for name, s in MANIFEST["sources"].items() if name.startswith("crds/")}
    assert len(crds) >= 50
    assert all(re.search(r"\d", s["source"]) for s in crds.values())


def test_the_generator_makes_the_same_files_again() -> None:
    files = make_all(CRDS)
    assert {path.name for path in DATA.glob("*.json")} == set(files)
    assert [name for name, content in files.items() if (DATA / name).read_bytes() != content] == []


def test_the_data_stays_small() -> None:
    sizes = {path.name: path.stat().st_size for path in DATA.glob("*.json")}
    assert sum(sizes.values()) < 600 * 1024
    assert max(sizes.values()) < 80 * 1024


@pytest.mark.parametrize("target", TARGETS)
def test_every_definition_compiles_and_every_reference_resolves(target: str) -> None:
    compiled = Schemas(target)
    waiting = [
        entry["ref"]
        for versions in schemas.index()["kinds"].values()
        for entry in versions.values()
        if "ref" in entry and schemas.definition(entry["ref"], target) is not None
    ]
    seen: set[str] = set()
    while waiting:
        ref = waiting.pop()
        if ref in seen:
            continue
        seen.add(ref)
        compiled.check_of(ref)
        found = schemas.definition(ref, target)
        assert found is not None
        for text in strings(found):
            if "/" in text:
                waiting.append(text)
            else:
                assert text in CHECKS
    assert len(seen) > 700


def strings(node: object) -> list[str]:
    """The names of atoms and of other definitions in a node."""
    if isinstance(node, str):
        return [node]
    assert isinstance(node, dict)
    found = [node["t"]] if "t" in node else []
    for key in ("l", "m", "none"):
        if key in node:
            found += strings(node[key])
    for child in [*node.get("p", {}).values(), *node.get("one", ()), *node.get("any", ())]:
        found += strings(child)
    return found


def test_every_pattern_is_one_of_linear_time() -> None:
    text = "".join(path.read_text() for path in DATA.glob("*.json"))
    patterns = {json.loads(f'"{found}"') for found in re.findall(r'"re":"((?:[^"\\]|\\.)*)"', text)}
    assert len(patterns) > 30
    for pattern in patterns:
        compile_pattern(pattern)


@pytest.mark.parametrize(
    ("pattern", "text", "fits"),
    [
        ("^a$", "a\n", False),
        ("^a$", "a", True),
        ("^[a$]+$", "a$", True),
        (r"^a\$$", "a$", True),
        ("(^0$)|(^1$)", "1", True),
    ],
)
def test_a_pattern_does_not_match_before_a_final_line_break(pattern: str, text: str, fits: bool) -> None:
    assert matches(pattern, text) is fits


def test_the_checks_import_nothing_heavy() -> None:
    code = (
        "import sys; from kaigen.check.schema_check import check_object;"
        "from kaigen.check.policy import check_policy; print(*sorted(sys.modules));"
        "obj = {'apiVersion': 'v1', 'kind': 'ConfigMap', 'metadata': {'name': 'a'}};"
        "check_object(obj), check_policy(obj); print(*sorted(sys.modules))"
    )
    result = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    on_import, on_use = (set(line.split()) for line in result.stdout.splitlines())
    assert not on_use & {
        "jsonschema",
        "yaml",
        "jinja2",
        "pydantic",
        "difflib",
        "asyncio",
        "urllib.request",
        "kubernetes",
    }
    assert not on_import & {"kaigen.check.references", "kaigen.kubernetes.schema_nodes"}


def test_the_supported_versions_are_those_of_the_schemas() -> None:
    assert list(schemas.SUPPORTED_VERSIONS) == schemas.index()["targets"]
    assert schemas.DEFAULT_VERSION in schemas.SUPPORTED_VERSIONS
