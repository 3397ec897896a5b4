"""Any document that KAITO's CustomResourceDefinitions allow renders and passes every check, or gets an error."""

from __future__ import annotations

import io
import json
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st

from kaigen.config.settings import Config
from kaigen.diagnostics.diagnostic import Severity
from kaigen.diagnostics.errors import InputError
from kaigen.pipeline.run import Run
from tests import plain_yaml

CRDS = sorted((Path(__file__).parents[1] / "cluster" / "crds").glob("kaito.sh_*.yaml"))

WORDS: dict[str, tuple[list[Any], list[Any]]] = {
    "name": (["phi-4", "falcon-7b", "gpt-oss-20b", "org/model"], ["llama-2-70b-chat", "nothing-like-it", "<name>"]),
    "instanceType": (
        ["Standard_NC24ads_A100_v4", "Standard_NC96ads_A100_v4"],
        ["Standard_NC12s_v3", "g5.12xlarge", "Standard_D8s_v5", "Standard_NC24ads_A100_v5", "<your-vm-sku>"],
    ),
    "image": (["registry.example.com/a/b:1"], ["<YOUR IMAGE URL>", "", "a b"]),
    "method": (["lora", "qlora", "LoRA"], ["full"]),
    "strength": (["0.5", "1"], ["2", "x"]),
    "profile": (["1g.10gb", "3g.40gb"], ["9g.9gb", "x"]),
    "size": (["60Gi", "1.5Ti"], ["x"]),
    "operator": (["In", "NotIn"], ["Exists", "Near"]),
    "url": (["http://phi-4/v1"], ["not an address"]),
    "urls": (["https://example.com/data.parquet"], ["ftp://x/y", "http://127.0.0.1/x"]),
    "modelID": (["microsoft/phi-4"], ["x", "<id>"]),
    "key": (["pool"], ["kaito.sh/workspace", "a b"]),
    "mountPath": (["/mnt/index"], ["mnt", "/"]),
    "config": (["settings"], ["A B"]),
}
"""Plausible values of fields, valid and invalid; any other field gets one of `TEXTS`."""

TEXTS = (["it", "hf-token"], ["https://example.com/d", "x" * 70, "", "é", "5", "<fill in>"])

VOLUMES: tuple[list[Any], list[Any]] = (
    [{"persistentVolumeClaim": {"claimName": "data"}}],
    [{"emptyDir": {}}, {"hostPath": {"path": "/x"}}, {}],
)
CONTAINER = {"name": "a", "image": "b:1", "ports": [{"containerPort": 80}]}
PODS: tuple[list[Any], list[Any]] = (
    [{"spec": {"containers": [CONTAINER]}}],
    [
        {"spec": {"containers": [{"name": "a", "image": "b:1"}], "affinity": {"nodeAffinity": {}}}},
        {"spec": {"containers": [CONTAINER], "affinity": 3, "nodeSelector": "x", "tolerations": {}}},
        {"spec": {"containers": []}},
        {"spec": None},
        {"metadata": {"labels": {"a": "b"}}},
        {},
    ],
)
OPEN: dict[str, tuple[list[Any], list[Any]]] = {
    "volumeSource": VOLUMES,
    "template": PODS,
    "metadata": (
        [{}, {"labels": {"a": "b"}}, {"annotations": {"kaito.sh/runtime": "vllm"}}],
        [{"labels": 3}, {"x": 1}],
    ),
    "updateStrategy": ([{}, {"rollingUpdate": {"maxUnavailable": 1}}], [{"type": "OnDelete"}, {"rollingUpdate": 3}]),
}
"""Values of fields without a schema, valid and invalid."""

ALTERNATIVES = [
    ("inference", "tuning"),
    ("preset", "template"),
    ("urls", "image", "volumeSource"),
    ("image", "volumeSource"),
    ("local", "remote"),
    ("persistentVolume", "vectorDB"),
]
"""Fields of which a meaningful document has exactly one."""

ALWAYS = {"resource", "labelSelector", "matchLabels", "source", "storage", "method", "roles"}
"""Fields that a meaningful document has although the schema does not require them."""

ANNOTATIONS: list[dict[str, str]] = [
    {},
    {},
    {"kaito.sh/enablelb": "True"},
    {"kaito.sh/runtime": "transformers"},
    {"kaito.sh/bypass-resource-checks": "false"},
    {"kaigen.dev/compat": "true"},
    {"kaigen.dev/roles": "merged"},
    {"scaledobject.kaito.sh/auto-provision": "true", "scaledobject.kaito.sh/max-replicas": "3"},
]


@cache
def versions() -> dict[str, tuple[str, str, dict[str, Any]]]:
    """Return kind, version and schema of every resource."""
    found = {}
    for file in CRDS:
        crd = plain_yaml.load(file.read_text())
        group, kind = crd["spec"]["group"], crd["spec"]["names"]["kind"]
        for version in crd["spec"]["versions"]:
            schema = version["schema"]["openAPIV3Schema"]
            found[f"{kind} {version['name']}"] = (kind, f"{group}/{version['name']}", schema)
    return found


@st.composite
def admitted(draw: st.DrawFn, schema: dict[str, Any], tame: bool, name: str = "", depth: int = 0) -> Any:
    """Return a value that a CustomResourceDefinition allows; a meaningful one if the document is tame."""

    def pick(choice: tuple[list[Any], list[Any]]) -> Any:
        right, wrong = choice
        return draw(st.sampled_from(right if tame else [*right, *wrong]))

    if schema.get("x-kubernetes-preserve-unknown-fields"):
        return pick(OPEN[name])
    if "enum" in schema:
        return draw(st.sampled_from(schema["enum"]))
    if "allOf" in schema:
        return draw(st.sampled_from(schema["allOf"][0]["enum"]))
    match schema["type"]:
        case "object":
            return draw(_mapping(schema, tame, depth))
        case "array":
            least, most = schema.get("minItems", int(tame)), schema.get("maxItems", 2)
            count = draw(st.integers(least, most))
            return [draw(admitted(schema["items"], tame, name, depth + 1)) for _ in range(count)]
        case "integer":
            return draw(st.sampled_from([1, 2] if tame else [0, 1, 2, 6, -1]))
        case "boolean":
            return draw(st.booleans())
        case _:
            return pick(WORDS.get(name, TEXTS))


@st.composite
def _mapping(draw: st.DrawFn, schema: dict[str, Any], tame: bool, depth: int) -> dict[str, Any]:
    if isinstance(schema.get("additionalProperties"), dict):
        return draw(st.sampled_from([{"pool": "gpu"}] if tame else [{"pool": "gpu"}, {}, {"a b": "c"}]))
    required = set(schema.get("required", []))
    found: dict[str, Any] = {}
    for name, inner in schema.get("properties", {}).items():
        if name in {"status", "apiVersion", "kind"} or (depth == 0 and name == "metadata"):
            continue
        if tame and name == "config":
            continue  # It names a ConfigMap that is not in the file.
        if tame and name == "partition":
            found[name] = {"mode": "accelerator", "count": 1}
            continue
        wanted = tame and (name in ALWAYS or any(name in fields for fields in ALTERNATIVES))
        if name in required or wanted or draw(st.integers(0, 9)) < (4 if tame else 6):
            found[name] = draw(admitted(inner, tame, name, depth + 1))
    for fields in ALTERNATIVES if tame else ():
        given = [name for name in fields if name in found]
        if len(given) > 1:
            kept = draw(st.sampled_from(given))
            found = {name: value for name, value in found.items() if name == kept or name not in given}
    if tame and "roles" in found:
        for role, name in zip(found["roles"], ("decode", "prefill"), strict=True):
            role |= {"type": name}
            role.pop("instanceType", None)
            role.pop("runtimeConfig", None)
    return found


def rendered(document: dict[str, Any], profile: str) -> list[str]:
    """Return the codes of a document's errors; none if it renders."""
    config = Config(profile=profile)
    run = Run.load(["-"], config, stdin=io.BytesIO(json.dumps(document).encode()), use_cache=False)
    errors = [item.code for item in run.load_diagnostics if item.severity is Severity.ERROR]
    if errors:
        return errors
    assert run.specs, "a document without errors becomes a spec"
    try:
        compilation = run.compilation()
    except InputError as error:
        codes = [item.code for item in error.diagnostics if item.severity is Severity.ERROR]
        assert codes
        return codes
    assert compilation.files("both")
    return []


def drawn(data: st.DataObject, resource: str, *, tame: bool) -> list[str]:
    """Return the codes of the errors of a document of a kind."""
    kind, version, schema = versions()[resource]
    document = data.draw(admitted(schema, tame))
    annotations = {} if tame else data.draw(st.sampled_from(ANNOTATIONS))
    if tame and kind == "MultiRoleInference":
        annotations = {"kaigen.dev/roles": "merged"}
    metadata = {"name": "it", "annotations": annotations}
    profile = data.draw(st.sampled_from(["generic", "aks", "k3s"]))
    return rendered({"apiVersion": version, "kind": kind, "metadata": metadata, **document}, profile)


@pytest.mark.parametrize("resource", sorted(versions()))
@settings(max_examples=max(20, settings().max_examples // 4))
@given(data=st.data())
def test_any_document_that_kaito_allows_renders_or_gets_an_error(resource: str, data: st.DataObject) -> None:
    event("rejected" if drawn(data, resource, tame=False) else "rendered")


@pytest.mark.parametrize("resource", sorted(versions()))
def test_meaningful_documents_render_often_enough(resource: str) -> None:
    verdicts: list[bool] = []

    @settings(max_examples=30, database=None)
    @given(data=st.data())
    def look(data: st.DataObject) -> None:
        verdicts.append(not drawn(data, resource, tame=True))

    look()
    assert sum(verdicts) > len(verdicts) / 10


@pytest.mark.parametrize("resource", sorted(versions()))
def test_every_version_that_kaito_serves_is_read(resource: str) -> None:
    from kaigen.dialects.registry import find_kind

    kind, version, _ = versions()[resource]
    assert find_kind(version, kind) is not None
