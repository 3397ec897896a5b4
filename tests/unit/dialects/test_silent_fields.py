"""No field of a foreign document is silent: without it, the specs or the messages of its documents change."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import pytest

from kaigen.config.settings import Config
from kaigen.core.json_types import FieldPath
from kaigen.diagnostics.collector import Diagnostics
from kaigen.diagnostics.problem import dotted_path
from kaigen.dialects.registry import find_kind
from kaigen.kinds.entry import OWN_SYSTEM
from kaigen.kinds.input_documents import InputDocuments
from kaigen.pipeline.document import read_document
from kaigen.yaml.document import Document, parse
from kaigen.yaml.sources import Source
from tests import plain_yaml
from tests.cases import SPECS, cases

NAMES: set[FieldPath] = {("apiVersion",), ("kind",), ("metadata",), ("metadata", "name")}


SILENT = {
    "EphemeralAccelerationJob: spec.model": "the default, and no other value is valid",
    "ModelMirror: spec.mode": "the default; `Static` is an error",
    "*.preset.accessMode": "the default; `private` has an effect or a warning",
    "Ingress: spec.service.type": "the default; other types have an effect or a warning",
    "InferenceSet: spec.autoUpgrade.*": "nothing is upgraded without `enabled`, and with it a warning names the block",
    "Workspace: tuning.input.name": "names the only source of the data, for people",
    "Model: spec.conversion.convertWeights": "the later name of `weightsFloatType`, with the same value",
    "Model: spec.conversion.weightsFloatType": "the earlier name of `convertWeights`, with the same value",
    "Model: spec.trainer.dataset": "an empty reference names no dataset",
    "Token: metadata.*": "a Token becomes a flag of the Ingress' rings, which has no metadata",
    "Token: spec.metadata*": "notes about the token, for people",
    "*: spec.build.git.branch": "the commit or the tag is more exact",
    "*: spec.build.git.tag": "the commit is more exact",
    "*: spec.container.git.ref": "the commit is more exact",
}
"""Fields that change nothing in these documents, with the reason."""


def foreign(document: Any) -> bool:
    """Return whether a document is of a dialect."""
    kind = find_kind(document["apiVersion"], document["kind"])
    return kind is not None and kind.system != OWN_SYSTEM


def texts(file: Path) -> list[Any]:
    """Return the documents of a file as plain data."""
    return [each for each in plain_yaml.load_all(file.read_text(encoding="utf-8")) if each]


FILES = {
    file.relative_to(SPECS).as_posix(): file
    for file in sorted(SPECS.rglob("*.yaml"))
    if any(foreign(each) for each in texts(file))
}


def parsed(data: Any) -> Document:
    """Return a document with positions."""
    (found,) = parse(Source("spec.yaml", plain_yaml.dump(data)), Diagnostics())
    return found


def state(documents: Sequence[Document], config: Config) -> list[Any]:
    """Return the specs and the messages of the foreign documents of a file."""
    found: list[Any] = []
    for document in documents:
        if foreign(document.data):
            result = read_document(document, "spec.yaml", config, InputDocuments(documents))
            found += [(spec.block, spec.naming) for spec in result.specs]
            found += sorted((item.code, item.path, item.message) for item in result.diagnostics)
            found.append((result.joined, len(result.consumed), [spec.urls for spec in result.specs]))
    return found


def parts(value: Any, path: FieldPath = ()) -> Iterator[FieldPath]:
    """Yield the path of everything in a document that can be deleted."""
    if path:
        yield path
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in items:
        yield from parts(item, (*path, key))


def without(data: Any, path: FieldPath) -> Any:
    """Return a document without a field."""
    changed = copy.deepcopy(data)
    here: Any = changed
    for step in path[:-1]:
        here = here[step]
    del here[path[-1]]
    return changed


def is_filled(data: Any, path: FieldPath) -> bool:
    """Return whether a field contains fields, which are judged one by one."""
    for step in path:
        data = data[step]
    return isinstance(data, dict | list) and bool(data)


def otherwise(data: Any, path: FieldPath) -> Iterator[Any]:
    """Yield valid documents with another value of a field."""
    changed = copy.deepcopy(data)
    here: Any = changed
    for step in path[:-1]:
        here = here[step]
    value = here[path[-1]]
    if isinstance(value, dict | list):
        return
    others = (not value,) if isinstance(value, bool) else (value + 1, 0) if isinstance(value, int) else ()
    for other in others or (f"{value}x", "x", "0.5", "7Gi"):
        here[path[-1]] = other
        kind = find_kind(data["apiVersion"], data["kind"])
        assert kind is not None
        block, _ = kind.validate(parsed(changed))
        if block is not None:
            yield changed


def is_named(path: FieldPath, places: set[str]) -> bool:
    """Return whether a message is about a field, or about one that contains it."""
    return any(dotted_path(path[:length]) in places for length in range(1, len(path) + 1))


@pytest.mark.parametrize("name", FILES)
def test_no_field_is_silent(name: str) -> None:
    file = FILES[name]
    (case,) = [each for each in cases().values() if each.paths == (str(file),)]
    data = texts(file)
    documents = [parsed(each) for each in data]
    before = state(documents, case.config)
    silent = set()
    for index, document in enumerate(data):
        if not foreign(document):
            continue
        own = read_document(documents[index], "spec.yaml", case.config, InputDocuments(documents))
        named = {item.path for item in own.diagnostics}

        def is_seen(changed: Any, index: int = index) -> bool:
            return state([*documents[:index], parsed(changed), *documents[index + 1 :]], case.config) != before

        for path in parts(document):
            if path in NAMES or is_named(path, named) or is_seen(without(document, path)):
                continue
            if not is_filled(document, path) and not any(is_seen(changed) for changed in otherwise(document, path)):
                silent.add(f"{document['kind']}: {dotted_path(path)}")
    assert {field for field in silent if not any(fnmatchcase(field, glob) for glob in SILENT)} == set()
