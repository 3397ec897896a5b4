"""`kaigen plan` prints what `kaigen render` writes, whatever the way in which a spec names its model."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from kaigen.catalog.catalog import BUILT_IN
from kaigen.catalog.instances import instances
from kaigen.catalog.presets import Preset, find_preset, preset_names
from kaigen.config.settings import Config
from kaigen.diagnostics.diagnostic import Diagnostic, Severity
from kaigen.pipeline.compile_spec import SpecResult
from kaigen.pipeline.compiler import Compiler
from kaigen.pipeline.run import Run
from kaigen.pipeline.units import FreshUnit
from kaigen.plan.specs import SpecPlans, plan_specs
from tests.rendering import pod_specs

NODES = [instance.name for instance in instances(BUILT_IN)]
SIZING = {"KG1101", "KG1102", "KG1103", "KG1104", "KG1105", "KG1106"}


PRESETS = ["phi-4", "llama-3.1-8b-instruct", "deepseek-r1-0528"]
"""One that fits one GPU, one with several heads for each, and one that fits few instance types."""


def load(folder: Path, documents: list[Any]) -> Run:
    file = folder / "specs.yaml"
    file.write_text("\n---\n".join(json.dumps(document) for document in documents))
    run = Run.load([str(file)], Config(root=folder), use_cache=False)
    assert [str(item) for item in run.load_diagnostics] == []
    return run


def answers(run: Run) -> tuple[SpecPlans, dict[str, SpecResult]]:
    """Return what `plan` prints, and what `render` writes for each app."""
    compiler = Compiler(run.config)
    compiler.load([FreshUnit(unit.source, compiler) for unit in run.units])
    rendered = {spec.block.metadata.name: compiler.compile(spec) for spec in run.specs}
    return plan_specs(run.specs, run.resolve), rendered


def topology(name: str, **spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "kaigen.dev/v1alpha1",
        "kind": "Topology",
        "metadata": {"name": name},
        "spec": {"trustRemoteCode": True, **spec},
    }


def documents(preset: Preset, nodes: list[str]) -> list[Any]:
    """Return a Topology for each instance type and each way to name the model."""
    hub = {"repo": preset.repo, "revision": "a" * 40, "tokenSecret": {"name": "hub", "key": "token"}}
    model = {
        "apiVersion": "kaigen.dev/v1alpha1",
        "kind": "Model",
        "metadata": {"name": "weights"},
        "spec": {
            "source": {"huggingFace": hub},
            "store": {"volume": {"size": "2Ti", "accessModes": ["ReadWriteMany"]}},
        },
    }
    ways: dict[str, Any] = {
        "preset": {"preset": preset.name, "tokenSecret": hub["tokenSecret"]},
        "hub": {"model": {"huggingFace": hub}},
        "model": {"model": "weights"},
    }
    return [model] + [
        topology(f"{way}-{number}", resources={"instanceType": node}, **named)
        for number, node in enumerate(nodes)
        for way, named in ways.items()
    ]


def arguments(result: SpecResult) -> list[str]:
    """Return the arguments of the engine in the pod that serves."""
    assert result.compiled is not None
    pods = pod_specs(item.body for item in result.compiled.objects)
    first: list[str] = next(iter(pods.values()))["containers"][0]["args"]
    return first


def refusals(diagnostics: Iterable[Diagnostic]) -> list[tuple[str, str, str]]:
    return sorted((item.code, item.severity.name, item.message) for item in diagnostics if item.code in SIZING)


def config_of(preset: Preset) -> dict[str, Any]:
    """Return a `config.json` with the shape of a preset."""
    mla, window = preset.mla, preset.sliding_window
    sliding = window.layers if window else 0
    config = {
        "model_type": "any",
        "num_hidden_layers": preset.layers,
        "num_attention_heads": preset.heads,
        "num_key_value_heads": preset.kv_heads,
        "head_dim": preset.head_dim,
        "hidden_size": preset.hidden_size,
        "max_position_embeddings": preset.max_context,
        "vocab_size": preset.vocabulary,
        "kv_lora_rank": mla.kv_lora_rank if mla else None,
        "qk_rope_head_dim": mla.rope_head_dim if mla else None,
        "sliding_window": window.tokens if window else None,
        "layer_types": ["sliding_attention"] * sliding + ["full_attention"] * (preset.layers - sliding),
        "quantization_config": {"quant_method": preset.quantization} if preset.quantization else None,
    }
    return {key: value for key, value in config.items() if value is not None}


def local_documents(preset: Preset, nodes: list[str], facts: Any) -> list[Any]:
    """Return a Topology for each instance type and each way to describe a model that the catalogue does not have."""
    hub = {"repo": "acme/tuned", "revision": "a" * 40}
    store = {"volume": {"size": "2Ti", "accessModes": ["ReadWriteMany"]}}

    def model(name: str, **more: Any) -> dict[str, Any]:
        source = {"huggingFace": {**hub, "repo": f"acme/{name}"}}
        document = {"apiVersion": "kaigen.dev/v1alpha1", "kind": "Model", "metadata": {"name": name}}
        return {**document, "spec": {"source": source, "store": store, **more}}

    ways: dict[str, Any] = {
        "model": "described",
        "hub": {"huggingFace": hub, "facts": facts},
        "folder": {"folder": "/weights", "facts": facts},
        "inline": {"huggingFace": hub, "facts": {**facts, "config": config_of(preset)}},
        "unknown": "unknown",
    }
    return [model("described", facts=facts), model("unknown")] + [
        topology(f"{way}-{number}", resources={"instanceType": node}, model=named)
        for number, node in enumerate(nodes)
        for way, named in ways.items()
    ]


def nodes_of(name: str) -> list[str]:
    """Return three instance types: every preset meets three, and every instance type several presets."""
    first = preset_names(BUILT_IN).index(name) * 3
    return [NODES[(first + offset) % len(NODES)] for offset in range(3)]


def check_same(planned: SpecPlans, rendered: dict[str, SpecResult]) -> None:
    """Check that the flags and the refusals of `plan` are those of `render`."""
    for plan in planned.plans:
        result = rendered[plan.name]
        if result.compiled is None:
            # Something else is wrong, such as weights that a node has no room for.
            errors = {item.code for item in result.diagnostics if item.severity is Severity.ERROR}
            assert errors
            assert not errors & SIZING
            continue
        flags = [f"--{flag}={value}" for flag, value in plan.answer.plan.flags]
        assert [flag for flag in flags if flag not in arguments(result)] == [], plan.name
    every = [item for result in rendered.values() for item in result.diagnostics]
    assert refusals(planned.diagnostics) == refusals(every)


@pytest.mark.parametrize("name", PRESETS)
def test_render_writes_the_flags_that_plan_prints(tmp_path: Path, name: str) -> None:
    preset = find_preset(name, BUILT_IN)
    assert preset is not None
    planned, rendered = answers(load(tmp_path, documents(preset, nodes_of(name))))
    assert planned.without == ()
    check_same(planned, rendered)


@pytest.mark.parametrize("name", PRESETS)
def test_both_know_a_model_from_its_config_alone(tmp_path: Path, name: str) -> None:
    preset = find_preset(name, BUILT_IN)
    assert preset is not None
    (tmp_path / "models").mkdir()
    (tmp_path / "models" / "config.json").write_text(json.dumps(config_of(preset)))
    facts = {"config": "models/config.json", "weights": f"{preset.weights_gib}Gi"}
    planned, rendered = answers(load(tmp_path, local_documents(preset, nodes_of(name), facts)))
    check_same(planned, rendered)
    unknown = {item.name: item.why for item in planned.without}
    assert sorted(unknown) == [f"unknown-{number}" for number in range(3)]
    for app, why in unknown.items():
        compiled = rendered[app].compiled
        assert compiled is not None
        assert f"It is not known whether the model fits: {why}." in [note.text for note in compiled.app.notes]
    described = [plan for plan in planned.plans if not plan.name.startswith("unknown")]
    ways = {plan.name.partition("-")[0]: plan.answer.plan.flags for plan in described if plan.name.endswith("-0")}
    assert len(set(ways.values())) <= 1
    assert len(described) + len(planned.diagnostics) == 12


def test_both_say_that_a_model_is_unknown_and_name_the_way(tmp_path: Path) -> None:
    hub = {"huggingFace": {"repo": "acme/tuned", "revision": "a" * 40}}
    planned, rendered = answers(load(tmp_path, [topology("own", model=hub, resources={"gpuType": "L4"})]))
    (without,) = planned.without
    compiled = rendered["own"].compiled
    assert compiled is not None
    notes = [note.text for note in compiled.app.notes]
    assert without.why.startswith(
        "the catalogue does not have `acme/tuned`; record it with `kaigen lock`, describe it with `facts`, or compute "
        "its GPUs with `kaigen plan"
    )
    assert f"It is not known whether the model fits: {without.why}." in notes
