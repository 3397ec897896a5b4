"""The specs of the chart tests cover every field."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any

import pytest

from kaigen.compile.expressions import find_settings
from kaigen.core.json_types import Json
from kaigen.dialects.registry import own_kinds
from kaigen.kinds.entry import KindEntry
from kaigen.kinds.schema import branches, deref, json_schema, walk
from tests import plain_yaml
from tests.cases import SPECS, AppCase, app_cases

NOT_WRITTEN = {
    "status",
    *(
        f"metadata.{name}"
        for name in (
            *("creationTimestamp", "deletionTimestamp", "generation", "resourceVersion", "uid", "selfLink"),
            *("finalizers", "ownerReferences", "managedFields"),
        )
    ),
    # Which environments have the app, and no part of it.
    "metadata.environments",
    # KAITO's schema has URLs for adapters, but its admission webhook rejects them, and so does kaigen.
    "inference.adapters.*.source.urls",
    "spec.template.inference.adapters.*.source.urls",
    # Fine-tuning reads no weights of a claim.
    *(f"tuning.preset.presetOptions.{name}" for name in ("modelWeightsPVC", "modelWeightsSubPath")),
    # Fields of Substratus' first releases, which later ones drop.
    "spec.modelName",
    "spec.datasetName",
    "spec.source",
    "spec.training",
    "spec.size",
    "spec.compute",
    # Only a Notebook has another image in place of an upload.
    "spec.build.upload",
    "spec.build.upload.md5Checksum",
    "spec.build.upload.requestID",
    "spec.image.upload",
    "spec.image.upload.md5Checksum",
    "spec.image.upload.requestID",
    # Programs in place of the operator's downloader and converter, which kaigen does not run.
    *(f"spec.{block}.{name}" for block in ("download", "conversion") for name in ("command", "args")),
    # Only files of the output volume are waited for, so `inputs` is a block with `into: output`.
    "spec.inputs.*.wait",
    # The pods of a Job have an account of their own.
    "spec.model.source.s3.credentials.serviceAccount",
    "spec.model.source.s3.credentials.serviceAccount.annotations",
    *(
        f"spec.inputs{files}.*.s3.credentials.serviceAccount{part}"
        for files in ("", ".files")
        for part in ("", ".annotations")
    ),
}
"""Fields of foreign documents that only a cluster writes or that are never allowed."""


ONE_POD = {f"spec.placement.topology{part}" for part in ("", ".preferred", ".required")}
"""Fields about pods that work together, which these kinds refuse."""
OF_ONE_POD = ("Model", "Dataset", "Notebook")


def fields(root: dict[str, Any], node: dict[str, Any], path: str = "") -> Iterator[str]:
    """Return every field of a schema; items of lists and of open mappings are `*`."""
    for branch in branches(root, node):
        for name, inner in branch.get("properties", {}).items():
            here = f"{path}.{name}" if path else name
            yield here
            yield from fields(root, deref(root, inner), here)
        for keyword in ("items", "additionalProperties"):
            inner = branch.get(keyword)
            if isinstance(inner, dict):
                yield from fields(root, deref(root, inner), f"{path}.*")


def used(root: dict[str, Any], node: Json, path: tuple[str | int, ...] = ()) -> Iterator[str]:
    """Return every field of a document, in the notation of `fields`."""
    if isinstance(node, dict):
        for key, value in node.items():
            yield _generalised(root, (*path, key))
            yield from used(root, value, (*path, key))
    elif isinstance(node, list):
        for index, value in enumerate(node):
            yield from used(root, value, (*path, index))


def _generalised(root: dict[str, Any], path: tuple[str | int, ...]) -> str:
    parts = []
    for length, part in enumerate(path):
        at = walk(root, path[:length]) or {}
        named = {name for branch in branches(root, at) for name in branch.get("properties", {})}
        parts.append(part if isinstance(part, str) and part in named else "*")
    return ".".join(parts)


# A Session of Koldun is an error.
@pytest.mark.parametrize(
    "entry", [entry for entry in own_kinds() if entry.key != "koldun.Session"], ids=lambda entry: entry.key
)
def test_every_field_of_every_kind_occurs_in_a_spec(entry: KindEntry) -> None:
    seen = written(entry)
    if entry.key in ("Model", "Dataset"):
        # A loader becomes a Job with the same fields: `tests/unit/kinds/test_loaded.py` compares them.
        (job,) = [each for each in own_kinds() if each.key == "Job"]
        seen |= {name.replace("spec.", "spec.source.loader.", 1) for name in written(job)}
    root = json_schema(entry)
    never = NOT_WRITTEN | (ONE_POD if entry.key in OF_ONE_POD else set())
    # So has a canary those of its Topology: `tests/unit/kinds/test_versions.py` compares them.
    own = {field for field in fields(root, root) if not (field.startswith("spec.canary.") and field.count(".") > 2)}
    missing = sorted(own - seen - never)
    assert missing == [], "write them in a document of the kind in `tests/chart/specs`"


def written(entry: KindEntry) -> set[str]:
    """Return the fields that occur in the specs of a kind."""
    root = json_schema(entry)
    own = [each for each in documents() if (each["apiVersion"], each["kind"]) == (entry.api_version, entry.kind)]
    return {name for document in own for name in used(root, document)}


@cache
def documents() -> list[dict[str, Any]]:
    return [document for file in SPECS.rglob("*.yaml") for document in plain_yaml.load_all(file.read_text())]


@pytest.mark.parametrize("app_case", app_cases(), ids=lambda case: case.name)
def test_every_setting_comes_from_a_field_of_the_kind_or_from_kaigen(app_case: AppCase) -> None:
    item = app_case.compiled
    assert item.spec is not None
    entry = item.spec.target
    for setting in item.app.settings:
        assert setting.origin == () or walk(json_schema(entry), setting.origin) is not None, setting.path
        assert setting.doc.endswith("."), setting.path


@pytest.mark.parametrize("app_case", app_cases(), ids=lambda case: case.name)
def test_an_app_lists_exactly_the_settings_it_uses(app_case: AppCase) -> None:
    app = app_case.compiled.app
    uses = {s.path for o in app.objects for s in [*([o.when] if o.when else []), *find_settings(o.body)]}
    assert sorted(uses) == sorted(setting.path for setting in app.settings)
