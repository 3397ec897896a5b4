"""A new engine is one class, one line of the registry and one row of the catalogue."""

from __future__ import annotations

from typing import Any

import pytest

from kaigen.catalog.engines import engine_facts, engine_names
from kaigen.catalog.vllm_flags import flags_of, known_versions
from kaigen.catalog.yaml_files import load
from kaigen.compile.engines import registry
from kaigen.compile.engines.base import PODS, Engine
from kaigen.compile.engines.launch import Launch
from kaigen.compile.engines.registry import ENGINES, engine_of
from kaigen.compile.engines.vllm import Vllm
from kaigen.compile.expressions import Tree
from kaigen.kinds.block import read_block, replace_fields
from kaigen.kinds.topology import Topology, TopologySpec
from tests.unit.compile.specs import app, objects, pod, problem_paths, topology
from tests.unit.compile.topologies import CONTEXT, TEMPLATE

ROW: dict[str, Any] = {
    "title": "Tiny",
    "image": "chat",
    "other_images": {},
    "command": ["tiny", "run"],
    "ready": "/ready",
    "live": "/live",
    "metrics": {"path": "/tiny", "waiting": "tiny_waiting"},
    "drain_metrics": ["tiny_running"],
    "guarded": "/",
    "planned": False,
    "adapters": False,
    "fits_context": "",
    "nodes": [],
    "flags": {},
}


class Tiny(Engine):
    """An engine that exists in this test only."""

    name = "tiny"
    understood = PODS

    def command(self, launch: Launch) -> dict[str, Tree]:
        return {"command": list(self.facts.command), "args": [launch.weights.reference]}


@pytest.fixture
def tiny(monkeypatch: pytest.MonkeyPatch) -> None:
    """The engine in the registry, and its row in the catalogue."""
    monkeypatch.setattr(registry, "ENGINES", (*ENGINES, Tiny))
    monkeypatch.setitem(load("engines")["engines"], "tiny", ROW)
    return


def tiny_topology(**spec: Any) -> Topology:
    """A Topology that the engine serves."""
    block = topology(**spec)
    return replace_fields(block, spec=replace_fields(block.spec, engine="tiny"))


@pytest.mark.usefixtures("tiny")
def test_a_registered_engine_serves_a_topology() -> None:
    spec = pod(tiny_topology(model="many"), CONTEXT)
    container = spec["containers"][0]
    assert (container["command"], container["args"]) == (["tiny", "run"], ["/model"])
    assert container["readinessProbe"]["httpGet"]["path"] == "/ready"
    assert container["livenessProbe"]["httpGet"]["path"] == "/live"
    assert "tiny_running" in container["lifecycle"]["preStop"]["exec"]["command"]
    assert [entry["name"] for entry in container["env"]] == ["HOME"]
    assert app(tiny_topology(model="many"), CONTEXT).summary == "Serves a model with Tiny behind a Service."


@pytest.mark.usefixtures("tiny")
def test_metrics_of_a_registered_engine_scale_and_are_scraped() -> None:
    made = objects(tiny_topology(model="many", autoscale={"max": 2}, monitoring={}), CONTEXT)
    metric = made["HorizontalPodAutoscaler"]["spec"]["metrics"][0]["pods"]["metric"]["name"]
    assert metric == "tiny_waiting"
    assert made["PodMonitor"]["spec"]["podMetricsEndpoints"][0]["path"] == "/tiny"


@pytest.mark.usefixtures("tiny")
def test_a_registered_engine_rejects_fields_that_it_ignores() -> None:
    block = tiny_topology(model="many", quantization="fp8", shape={"nodes": 2})
    assert problem_paths(block, CONTEXT) == [("KG0343", "spec.shape.nodes"), ("KG0340", "spec.quantization")]


def test_every_engine_of_the_catalogue_is_registered() -> None:
    assert tuple(engine.name for engine in ENGINES) == engine_names()


def test_a_pod_template_takes_the_place_of_an_engine() -> None:
    spec = read_block(TopologySpec, {"template": TEMPLATE})
    assert not engine_of(spec).builds_pods
    assert engine_of(read_block(TopologySpec, {})).facts == engine_facts("vllm")


def test_vllm_answers_to_several_names_as_its_parser_reads_them() -> None:
    flags = [flags_of(version)["served-model-name"] for version in known_versions()]
    assert {flag.many == "list" for flag in flags} == {Vllm.several_names}
