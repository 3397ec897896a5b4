"""KAITO's own controller as the judge: what it makes of a Workspace, and what kaigen renders for it."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml
from msgspec import Struct

from kaigen.catalog.catalog import BUILT_IN
from kaigen.catalog.presets import Preset, find_preset, presets
from kaigen.config.settings import Config
from kaigen.dialects.kaito.catalog import kaito_preset
from kaigen.pipeline.run import compile_specs
from tests.cluster.client import Object
from tests.cluster.kaito import STATEFUL_SET, Kaito, served_by_kaigen, served_by_kaito
from tests.cluster.plane import Plane
from tools.kaito_differences import Difference, known

pytestmark = pytest.mark.engine

EXAMPLES = Path(__file__).parents[2] / "examples" / "kaito"
SMALL, LARGE = "Standard_NC24ads_A100_v4", "Standard_ND96isr_H100_v5"
LATER = {
    "deepseek-v3.2",
    "deepseek-v4-flash-0731",
    "deepseek-v4-pro",
    "gemma-4-12b-it",
    "glm-5.2-fp8",
    "granite-4.1-8b",
    "kimi-k2.7-code",
    "nvidia-nemotron-3-ultra-550b-a55b-nvfp4",
    "qwen3.8-27b",
}
"""Presets that KAITO v0.12 added. v0.11 asks the Hub about them, which it cannot reach here."""


class Case(Struct, frozen=True):
    """A Workspace for both.

    Attributes:
        preset: name of its preset.
        document: the Workspace.
        others: documents that it uses, such as a ConfigMap.
    """

    preset: str
    document: Object
    others: tuple[Object, ...] = ()

    @property
    def name(self) -> str:
        """Name of the Workspace."""
        name: str = self.document["metadata"]["name"]
        return name

    @property
    def config(self) -> dict[str, Any]:
        """The flags of vLLM in its ConfigMap."""
        texts = [each["data"]["inference_config.yaml"] for each in self.others]
        return {name: value for text in texts for name, value in yaml.safe_load(text)["vllm"].items()}


def of_presets() -> Iterator[Case]:
    """Yield a Workspace for each preset of KAITO's catalog, on nodes with one A100 or, for large models, eight H100."""
    for preset in presets(BUILT_IN):
        if kaito_preset(preset).in_catalog and preset.name not in LATER:
            yield Case(preset.name, workspace(preset, LARGE if preset.weights_gib > 60 else SMALL))


def workspace(preset: Preset, instance_type: str) -> Object:
    return {
        "apiVersion": "kaito.sh/v1beta1",
        "kind": "Workspace",
        "metadata": {"name": f"preset-{preset.name.replace('.', '-')}"},
        "resource": {"instanceType": instance_type, "labelSelector": {"matchLabels": {"pool": instance_type.lower()}}},
        "inference": {"preset": {"name": preset.repo}},
    }


def of_examples() -> Iterator[Case]:
    """Yield the examples that serve a preset of KAITO's catalog."""
    for file in sorted(EXAMPLES.glob("*.yaml")):
        first, *others = yaml.safe_load_all(file.read_text())
        name = first.get("inference", {}).get("preset", {}).get("name")
        preset = find_preset(name, BUILT_IN) if name else None
        if first["kind"] == "Workspace" and preset is not None and kaito_preset(preset).in_catalog:
            yield Case(preset.name, first, tuple(others))


@pytest.fixture(scope="module")
def cases() -> list[Case]:
    return [*of_presets(), *of_examples()]


@pytest.fixture(scope="module")
def in_kaito(plane: Plane, cases: list[Case]) -> Iterator[Mapping[str, Object]]:
    """The StatefulSets that KAITO makes of all Workspaces, by name."""
    kaito = Kaito(plane)
    namespace = "kaito-workspaces"
    plane.make_namespace(namespace)
    for case in cases:
        resource = case.document["resource"]
        kaito.add_nodes(resource["instanceType"], resource["labelSelector"]["matchLabels"], count=3)
    for case in cases:
        for document in (*case.others, case.document):
            plane.client.create(document, namespace)
    wanted = {case.name for case in cases}

    def made() -> bool:
        found = plane.client.objects(STATEFUL_SET, namespace)
        return wanted <= {each["metadata"]["name"] for each in found}

    plane.processes.wait_until(made, "KAITO has made a StatefulSet of each Workspace")
    yield {each["metadata"]["name"]: each for each in plane.client.objects(STATEFUL_SET, namespace)}
    plane.client.delete("v1/Namespace", namespace)
    kaito.close()


def in_kaigen(cases: list[Case], folder: Path) -> Mapping[str, list[Object]]:
    """Return the objects that kaigen renders for each Workspace, by its name."""
    documents = [document for case in cases for document in (case.document, *case.others)]
    file = folder / "workspaces.yaml"
    file.write_text("\n---\n".join(json.dumps(document) for document in documents))
    config = Config(root=folder)
    apps = compile_specs([str(file)], config).apps
    return {app.app.name: [item.body for item in app.objects] for app in apps}


def test_each_field_is_equal_or_different_for_a_reason(
    in_kaito: Mapping[str, Object], cases: list[Case], tmp_path: Path, record_property: Any
) -> None:
    rendered = in_kaigen(cases, tmp_path)
    equal: Counter[str] = Counter()
    reasons: Counter[Difference] = Counter()
    unexplained = []
    for case in cases:
        theirs = served_by_kaito(in_kaito[case.name], case.config).fields
        ours = served_by_kaigen(rendered[case.name]).fields
        for field in sorted(theirs.keys() | ours.keys()):
            pair = theirs.get(field, ""), ours.get(field, "")
            if (field in theirs) == (field in ours) and pair[0] == pair[1]:
                equal[field] += 1
                continue
            found = [each for each in known().differences if each.explains(field, *pair, case.preset)]
            reasons.update(found)
            if not found:
                unexplained.append(f"{case.name}: {field} is {pair[0]!r} in KAITO and {pair[1]!r} in kaigen")
    assert not unexplained, (
        "\n".join(unexplained) + "\nadd the reason to tools/kaito_differences.yaml, or change what kaigen renders"
    )
    for field in ("nodes", "gpus", "--served-model-name", "--max-model-len"):
        assert equal[field] == len(cases), field
    unused = [each.reason for each in known().differences if not reasons[each]]
    assert unused == [], "no Workspace needs these entries of tools/kaito_differences.yaml"
    report = {
        "workspaces": len(cases),
        "equal": dict(equal),
        "different": {each.reason: number for each, number in reasons.items()},
    }
    record_property("kaito", json.dumps(report))
    print(json.dumps(report, indent=1))


def test_a_name_of_an_older_kaito_still_reaches_the_model(tmp_path: Path) -> None:
    """KAITO v0.11 serves the preset `mistral-7b` by the name of its repository; before, it served it by that name."""
    preset = find_preset("mistral-7b", BUILT_IN)
    assert preset is not None
    document = workspace(preset, SMALL) | {"inference": {"preset": {"name": "mistral-7b"}}}
    ((_, objects),) = in_kaigen([Case(preset.name, document)], tmp_path).items()
    assert served_by_kaigen(objects).served_names == ("mistral-7b-v0.3", "mistral-7b")
