"""Every preset on every instance type: the plan fits by its own calculation and uses as few nodes as possible."""

from __future__ import annotations

from math import ceil, inf

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from kaigen.catalog.catalog import BUILT_IN
from kaigen.catalog.instances import Instance, instances
from kaigen.catalog.presets import Preset, find_preset, preset_names, presets
from kaigen.sizing.facts import Hardware, ModelFacts, Request, facts_of, hardware_of_instance
from kaigen.sizing.memory import Layout, Load, memory_of_gpu
from kaigen.sizing.plan import Plan, plan, settle
from kaigen.sizing.problem import Field, PlanError

NODES = [hardware_of_instance(instance) for instance in instances(BUILT_IN)]


def asked(facts: ModelFacts, request: Request, hardware: Hardware) -> Plan | PlanError:
    """Return the plan, or the error."""
    try:
        return plan(facts, request, hardware)
    except PlanError as error:
        return error


def found_on(facts: ModelFacts, request: Request, hardware: Hardware) -> Plan | None:
    """Return the plan, or None if there is none; the error must be readable."""
    found = asked(facts, request, hardware)
    if isinstance(found, Plan):
        return found
    assert str(found)
    assert found.problem.code in {"KG1104", "KG1105", "KG1106"}
    if found.problem.code == "KG1105" and found.field is not Field.CONTEXT_LENGTH:
        assert "GiB" in found.hint
    return None


def check(found: Plan) -> None:
    """Check the properties of any plan."""
    facts, hardware, layout, memory = found.facts, found.hardware, found.layout, found.memory
    assert memory == memory_of_gpu(facts, hardware, layout, found.load)
    assert memory.weights + memory.kv_cache + memory.runtime + memory.activations <= memory.budget + 1e-6
    assert memory.budget <= memory.usable <= hardware.nominal
    assert min(memory.weights, memory.kv_cache, memory.runtime, memory.activations) > 0
    assert facts.heads % layout.tp == 0
    assert facts.latent_dim or facts.kv_heads % layout.tp == 0 or layout.tp % facts.kv_heads == 0
    assert 1 <= layout.pp <= facts.layers
    assert layout.gpus <= layout.nodes * hardware.count
    assert layout.gpus % layout.nodes == 0, "nodes share the work evenly"
    assert layout.dp == 1 or layout.nodes == 1
    # All GPUs together store the whole model once per replica.
    assert memory.weights * layout.tp * layout.pp >= facts.weights
    # The reported maximum fits, and a little more does not.
    assert found.max_concurrency >= found.load.concurrency
    assert found.max_context >= found.load.context
    longest = replace(found.load, context=found.max_context)
    assert memory_of_gpu(facts, hardware, layout, longest).fits
    if found.max_context < facts.max_context:
        longer = replace(found.load, context=found.max_context + 1)
        assert not memory_of_gpu(facts, hardware, layout, longer).fits
    most = replace(found.load, concurrency=found.max_concurrency)
    assert memory_of_gpu(facts, hardware, layout, most).fits
    more = replace(found.load, concurrency=found.max_concurrency + 1)
    assert not memory_of_gpu(facts, hardware, layout, more).fits


def smallest_need(facts: ModelFacts, hardware: Hardware, load: Load, nodes: int) -> float:
    """Return the minimum GiB per GPU on this many nodes, by trying every layout."""
    needs = [
        memory_of_gpu(facts, hardware, Layout(nodes, tp, pp, dp), load).needed
        for tp in range(1, hardware.count + 1)
        if facts.heads % tp == 0 and (facts.latent_dim or facts.kv_heads % tp == 0 or tp % facts.kv_heads == 0)
        for pp in range(nodes, nodes * (hardware.count // tp) + 1)
        if pp <= facts.layers
        for dp in (1, hardware.count // (tp * pp) if nodes == 1 else 1)
        if dp >= 1
    ]
    return min(needs, default=inf)


@pytest.mark.parametrize("preset", presets(BUILT_IN), ids=lambda preset: preset.name)
def test_a_preset_uses_as_few_nodes_of_each_instance_type_as_possible(preset: Preset) -> None:
    facts = facts_of(preset)
    fitting = 0
    for hardware in NODES:
        load = settle(facts, Request(), hardware)
        found = asked(facts, Request(), hardware)
        if isinstance(found, PlanError):
            assert found.problem.code in {"KG1104", "KG1105"}
            fewer = range(1, min(16, facts.layers) + 1) if found.problem.code == "KG1105" else range(0)
        else:
            fitting += 1
            check(found)
            fewer = range(1, found.nodes)
        budget = (hardware.usable or 0.0) * load.utilization
        for nodes in fewer:
            assert smallest_need(facts, hardware, load, nodes) > budget, f"{nodes} of {hardware.name} would do"
    assert fitting, "a preset that fits nowhere is of no use"


def requests() -> st.SearchStrategy[Request]:
    """Return requests of users, sensible or not."""
    few = st.none() | st.integers(1, 9)
    return st.builds(
        Request,
        context_length=st.none() | st.integers(1, 300_000),
        concurrency=st.none() | st.integers(1, 400),
        dtype=st.sampled_from([None, "float16", "bfloat16"]),
        quantization=st.sampled_from([None, None, "fp8", "awq"]),
        kv_cache_dtype=st.sampled_from([None, "auto", "fp8"]),
        utilization=st.none() | st.floats(0.3, 1.0),
        tensor_parallel=few,
        pipeline_parallel=few,
        data_parallel=few,
        nodes=few,
    )


@given(st.sampled_from(preset_names(BUILT_IN)), st.sampled_from(NODES), requests())
def test_a_plan_satisfies_the_request_or_is_rejected(name: str, hardware: Hardware, request: Request) -> None:
    preset = find_preset(name, BUILT_IN)
    assert preset is not None
    found = found_on(facts_of(preset), request, hardware)
    if found is None:
        return
    check(found)
    layout, load = found.layout, found.load
    assert request.tensor_parallel in (None, layout.tp)
    assert request.pipeline_parallel in (None, layout.pp)
    assert request.data_parallel in (None, layout.dp)
    assert request.nodes in (None, layout.nodes)
    assert request.context_length in (None, load.context)
    assert request.concurrency in (None, load.concurrency)
    assert request.utilization in (None, load.utilization)
    assert (load.kv_bits == 8) == ("fp8" in (request.kv_cache_dtype or preset.engine.kv_cache_dtype))


@given(st.sampled_from(preset_names(BUILT_IN)), st.sampled_from(NODES), st.integers(1, 8), st.integers(1, 8))
def test_more_work_never_takes_fewer_nodes(name: str, hardware: Hardware, first: int, second: int) -> None:
    preset = find_preset(name, BUILT_IN)
    assert preset is not None
    facts = facts_of(preset)
    less, more = (
        found_on(facts, Request(context_length=min(2048, facts.max_context), concurrency=number * 8), hardware)
        for number in sorted((first, second))
    )
    if more is not None:
        assert less is not None
        assert less.nodes <= more.nodes


def test_the_calculation_covers_every_gpu_and_not_only_the_first() -> None:
    """Layers that do not divide evenly make one stage the largest, and the calculation uses that stage."""
    preset = find_preset("deepseek-v3-0324", BUILT_IN)
    assert preset is not None
    found = plan(facts_of(preset), Request(), hardware_of_instance(instance("Standard_NC80adis_H100_v5")))
    assert found.layout.pp == 5
    layers = ceil(61 / 5) / 61
    assert found.memory.weights >= (641.3 - found.facts.embedding) * layers / found.layout.tp


def instance(name: str) -> Instance:
    return next(item for item in instances(BUILT_IN) if item.name == name)
