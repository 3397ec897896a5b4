"""Models and their JSON Schemas accept the same documents: msgspec reads them, the schema explains what is wrong."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from msgspec import ValidationError

from kaigen.config.file import CONFIG_ENTRY
from kaigen.config.pins import PINS_ENTRY
from kaigen.diagnostics.collector import Diagnostics
from kaigen.dialects.registry import own_kinds
from kaigen.extend.definition import DEFINITION_ENTRY
from kaigen.kinds.block import read_block
from kaigen.kinds.block_schema import violations
from kaigen.kinds.entry import KindEntry, find_entry
from kaigen.kinds.validate import validate_document
from kaigen.yaml.document import Document, parse
from kaigen.yaml.dump import dump
from kaigen.yaml.sources import Source

ROOT = Path(__file__).parents[2]
ENTRIES = (*own_kinds(), CONFIG_ENTRY, PINS_ENTRY, DEFINITION_ENTRY)
CONFIG = """\
apiVersion: kaigen.dev/v1alpha1
kind: Config
kubernetes: "1.35"
registry: mirror.example/x
images: {vllm: "vllm:1"}
values: {a: {b: 1}}
secrets: {provider: externalSecrets, externalSecrets: {store: {name: vault}, keyTemplate: "{name}"}}
overrides:
  - {match: {app: a, kind: [Job], labels: {a: b}}, spec: {retries: 3}, metadata: {labels: {a: b}}}
  - {match: {app: [a, "ns/*"], kind: Job}}
patches:
  - {target: {app: a}, patch: a.yaml}
  - {target: {app: a}, patch: [{op: remove}]}
  - {target: {app: a}, patch: {a: 1}}
clusters: {one: {server: "https://a"}}
gitops: {repository: "https://a", flux: {timeout: 1h}, argocd: {}, tenancy: {quota: {cpu: 2}, defaultDeny: [Egress]}}
environments: {dev: {clusters: [one], gitops: {argocd: {autoSync: true}}}}
publish: {branch: main}
"""
PINS = "apiVersion: kaigen.dev/v1alpha1\nkind: Pins\napps: {a: {spec.image: b}}\nimages: {vllm: a}\n"
DEFINITION = (
    "apiVersion: kaigen.dev/v1alpha1\nkind: KindDefinition\n"
    "defines: {apiVersion: acme.example/v1, kind: Scorer}\nsummary: scores rows\n"
)


def _documents() -> Iterator[tuple[KindEntry, Any]]:
    files = [path for folder in ("examples", "tests/chart/specs") for path in sorted((ROOT / folder).rglob("*.yaml"))]
    files.append(ROOT / "tests" / "property" / "refused.yaml")
    texts = [path.read_text(encoding="utf-8") for path in files if "rendered" not in path.parts]
    for text in (CONFIG, PINS, DEFINITION, *texts):
        for document in parse(Source("a.yaml", text), Diagnostics()):
            entry = find_entry(document.apiVersion, document.kind, ENTRIES)
            if entry is not None and validate_document(document, entry)[0] is not None:
                yield entry, document.data


DOCUMENTS = list(_documents())
VALUES: list[Any] = [
    *("", "a", "a\n", "A b", "5Gi", "1h", "none", "x" * 400, "https://a", "a/b", "main", "25%", "0", "../a", "true"),
    *(0, 1, -1, 3, 70000, 2**40, 10**18, 0.5, 1.0, -2.5, 1e30, True, False),
    *([], ["a"], [1], [{}], {}, {"a": 1}, {"a": "b"}, {"name": "a"}, {"a b": "c"}, {"a": ["b"]}),
]


def _paths(node: Any) -> Iterator[tuple[Any, Any]]:
    """Yield each mapping and list with each of its keys."""
    for key in [*node] if isinstance(node, dict) else range(len(node)):
        yield node, key
        if isinstance(node[key], dict | list):
            yield from _paths(node[key])


def _mutate(data: Any, draw: st.DrawFn) -> None:
    places = list(_paths(data))
    if not places:
        return
    node, key = draw(st.sampled_from(places))
    change = draw(st.sampled_from(["replace", "replace", "delete", "add", "rename"]))
    value = copy.deepcopy(draw(st.sampled_from(VALUES)))
    if change == "delete":
        del node[key]
    elif change == "replace" or isinstance(node, list):
        node[key] = value
    else:
        name = draw(st.sampled_from(["unknown", f"{key}s", "a b", "name", "image", "spec", "size", "x" * 400]))
        node[name] = node.pop(key) if change == "rename" else value


@st.composite
def mutated(draw: st.DrawFn) -> tuple[KindEntry, Any]:
    """Return a document with up to three changes."""
    entry, data = draw(st.sampled_from(DOCUMENTS))
    data = copy.deepcopy(data)
    for _ in range(draw(st.integers(1, 3))):
        _mutate(data, draw)
    return entry, data


def is_readable(entry: KindEntry, data: Any) -> bool:
    """Return whether msgspec reads a document."""
    try:
        read_block(entry.model(), data)
    except ValidationError:
        return False
    return True


def test_every_kind_has_a_valid_document() -> None:
    assert {entry.key for entry, _ in DOCUMENTS} == {entry.key for entry in ENTRIES}
    for entry, data in DOCUMENTS:
        assert is_readable(entry, data)
        assert [error.message for error in violations(entry.model(), data)] == []


@given(mutated())
def test_a_model_and_its_schema_agree(document: tuple[KindEntry, Any]) -> None:
    entry, data = document
    messages = [error.message for error in violations(entry.model(), data)]
    assert is_readable(entry, data) == (not messages), messages


@given(mutated())
def test_every_invalid_document_is_explained(document: tuple[KindEntry, Any]) -> None:
    entry, data = document
    (parsed,) = parse(Source("a.yaml", dump(data)), Diagnostics()) or (None,)
    if not isinstance(parsed, Document) or parsed.data != data:
        return
    block, found = validate_document(parsed, entry)
    assert (block is None) == bool(found)
    assert all(item.mark is not None and item.mark.line for item in found)
    assert "KG0210" not in {item.code for item in found}
