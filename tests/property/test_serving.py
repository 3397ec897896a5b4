"""Every model of the catalogue on every kind of node gives objects that pass all checks, or a true error."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kaigen.catalog.catalog import BUILT_IN
from kaigen.catalog.instances import instances
from kaigen.catalog.presets import preset_names
from kaigen.catalog.profiles import get_profile
from kaigen.check.policy import check_policy
from kaigen.check.references import check_references
from kaigen.check.schema_check import check_object
from kaigen.compile.context import Context
from kaigen.compile.problems import Problems
from kaigen.compile.topology.compile import compile_topology
from kaigen.diagnostics.diagnostic import Severity
from kaigen.kinds.block import read_block
from kaigen.kinds.topology import Topology

NODES = ["g6.xlarge", "g6.12xlarge", "p5.48xlarge", "Standard_NC24ads_A100_v4", "Standard_NC80adis_H100_v5"]
REASONS = {"KG1104", "KG1105", "KG1106"}
CLOUDS = {"aws": "eks", "azure": "aks", "gcp": "gke"}


def judged(spec: dict[str, Any], profile: str) -> tuple[set[str], list[Any]]:
    """Return the codes of a Topology's errors, and its objects if there are none."""
    block = read_block(Topology, {"metadata": {"name": "t"}, "spec": spec})
    problems = Problems()
    app = compile_topology(block, Context(get_profile(profile)), problems)
    codes = {problem.code for problem in problems.items if problem.severity is Severity.ERROR}
    return codes, [] if codes else app.render()


def check(found: list[Any]) -> None:
    for item in found:
        assert [str(each) for each in check_object(item.body, target="1.36")] == []
        assert [str(each) for each in check_policy(item.body, pod_security="restricted")] == []
    assert [str(each) for _, each in check_references([item.body for item in found])] == []


def gpus(found: list[Any]) -> int:
    """Return the GPUs of one replica."""
    for item in found:
        spec = item.body.get("spec", {})
        if item.body["kind"] == "Deployment":
            nodes, pod = 1, spec["template"]["spec"]
        elif item.body["kind"] == "LeaderWorkerSet":
            template = spec["leaderWorkerTemplate"]
            nodes, pod = template["size"], template["leaderTemplate"]["spec"]
        else:
            continue
        limits = pod["containers"][0]["resources"]["limits"]
        return int(nodes) * sum(int(count) for name, count in limits.items() if "/" in name)
    raise AssertionError("nothing serves")


def degrees(found: list[Any]) -> int:
    """Return the GPUs in the engine's arguments."""
    (pod,) = [
        item.body["spec"]["template"]["spec"]
        if item.body["kind"] == "Deployment"
        else item.body["spec"]["leaderWorkerTemplate"]["leaderTemplate"]["spec"]
        for item in found
        if item.body["kind"] in {"Deployment", "LeaderWorkerSet"}
    ]
    product = 1
    for argument in pod["containers"][0]["args"]:
        if "-parallel-size=" in argument:
            product *= int(argument.partition("=")[2])
    return product


@pytest.mark.parametrize("preset", preset_names(BUILT_IN))
def test_every_preset_on_common_nodes_is_served_or_rejected_with_a_reason(preset: str) -> None:
    for node in NODES:
        spec = {
            "preset": preset,
            "resources": {"instanceType": node},
            "tokenSecret": {"name": "hf"},
            "trustRemoteCode": True,
        }
        codes, found = judged(spec, "aks" if node.startswith("Standard") else "eks")
        assert codes <= REASONS
        if not codes:
            check(found)
            assert degrees(found) <= gpus(found)


_SHAPES = st.fixed_dictionaries(
    {},
    optional={
        "replicas": st.integers(0, 3),
        "nodes": st.integers(1, 4),
        "tensorParallel": st.sampled_from([1, 2, 4, 8, 16]),
        "pipelineParallel": st.integers(1, 4),
        "dataParallel": st.integers(1, 4),
    },
)


@given(
    preset=st.sampled_from(preset_names(BUILT_IN)),
    node=st.sampled_from([each for each in instances(BUILT_IN) if each.cloud in CLOUDS]),
    shape=_SHAPES,
    context=st.sampled_from([None, 1, 2048, 131072]),
    karpenter=st.booleans(),
)
def test_any_request_is_compiled_correctly_or_rejected(
    preset: str, node: Any, shape: dict[str, int], context: int | None, karpenter: bool
) -> None:
    spec: dict[str, Any] = {
        "preset": preset,
        "resources": {"instanceType": node.name},
        "shape": shape,
        "tokenSecret": {"name": "hf"},
        "trustRemoteCode": True,
    }
    if context:
        spec["contextLength"] = context
    if karpenter:
        spec["provisioning"] = "karpenter"
    codes, found = judged(spec, CLOUDS[node.cloud])
    assert codes <= REASONS | {"KG0344", "KG0350"}
    if not codes:
        check(found)
        assert degrees(found) <= gpus(found)
        for name, count in shape.items():
            if name == "nodes" and count > 1:
                (group,) = [item for item in found if item.body["kind"] == "LeaderWorkerSet"]
                assert group.body["spec"]["leaderWorkerTemplate"]["size"] == count
