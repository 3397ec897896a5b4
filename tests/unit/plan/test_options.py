"""Options of `kaigen plan` for a spec replace what the spec says, and nothing else."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from kaigen.config.settings import Config
from kaigen.pipeline.run import Run
from kaigen.plan.specs import SpecPlans, plan_specs
from kaigen.sizing.answer import with_options


def planned(spec: dict[str, Any], **options: Any) -> SpecPlans:
    """Return what `kaigen plan` says of a Topology of phi-4."""
    document = {
        "apiVersion": "kaigen.dev/v1alpha1",
        "kind": "Topology",
        "metadata": {"name": "phi"},
        "spec": {"preset": "phi-4", "contextLength": 8192, **spec},
    }
    run = Run.load([document], Config(root=Path("/nowhere")), use_cache=False)
    return plan_specs(run.specs, run.resolve, lambda question: with_options(question, options))


def node(spec: dict[str, Any], **options: Any) -> tuple[str, int, bool]:
    """Return the GPU or instance type of the plan, its GPUs, and whether the spec or an option names them."""
    (plan,) = planned(spec, **options).plans
    hardware = plan.answer.plan.hardware
    return hardware.instance or f"{hardware.gpu} {hardware.mig}".strip(), hardware.count, plan.rendered


NODE = {"resources": {"instanceType": "p5.48xlarge"}}
GPU = {"resources": {"gpuType": "H100", "gpus": 2}}
SLICE = {"resources": {"gpuType": "H100", "gpus": {"count": 1, "profile": "3g.40gb"}}}
BOTH = {"resources": {"instanceType": "p5.48xlarge", "gpus": 2}}


@pytest.mark.parametrize(
    ("spec", "options", "expected"),
    [
        (NODE, {}, ("p5.48xlarge", 8, True)),
        (NODE, {"gpus": 4}, ("p5.48xlarge", 4, True)),
        (NODE, {"instance_type": "g6.xlarge"}, ("g6.xlarge", 1, True)),
        (NODE, {"gpu": "H200"}, ("H200", 1, True)),
        (NODE, {"gpu": "H200", "gpus": 2}, ("H200", 2, True)),
        (NODE, {"cloud": "azure"}, ("p5.48xlarge", 8, True)),
        (BOTH, {}, ("p5.48xlarge", 2, True)),
        (BOTH, {"gpus": 1}, ("p5.48xlarge", 1, True)),
        (GPU, {}, ("H100", 2, True)),
        (GPU, {"gpus": 1}, ("H100", 1, True)),
        (GPU, {"instance_type": "p5.48xlarge"}, ("p5.48xlarge", 8, True)),
        (SLICE, {}, ("H100 3g.40gb", 1, True)),
        (SLICE, {"gpu": "H100", "mig": "7g.80gb"}, ("H100 7g.80gb", 1, True)),
        (SLICE, {"gpu": "H100"}, ("H100", 1, True)),
    ],
)
def test_options_of_nodes(spec: dict[str, Any], options: dict[str, Any], expected: object) -> None:
    assert node(spec, **options) == expected


def test_without_nodes_the_best_instance_type_is_planned_and_not_rendered() -> None:
    (plan,) = planned({}).plans
    assert plan.answer.plan.hardware.instance
    assert not plan.rendered
    (plan,) = planned({}, gpu="H100").plans
    assert plan.rendered


def test_an_option_replaces_a_slice_that_does_not_exist() -> None:
    wrong = {"resources": {"gpuType": "H100", "gpus": {"count": 1, "profile": "1g.1gb"}}}
    refused = planned(wrong)
    assert refused.plans == ()
    assert [item.path for item in refused.diagnostics] == ["spec.resources.gpus"]
    assert node(wrong, gpu="H100") == ("H100", 1, True)
    assert planned(wrong, gpu="H100").diagnostics == ()


def test_an_option_replaces_nodes_that_are_too_small() -> None:
    small = {"resources": {"gpuType": "T4"}}
    refused = planned(small)
    assert refused.plans == ()
    ((code, hint),) = [(item.code, item.hint) for item in refused.diagnostics]
    assert code == "KG1104"
    assert "fits" in hint
    assert node(small, gpu="H100") == ("H100", 1, True)


def test_an_option_replaces_a_field_of_the_spec() -> None:
    (plan,) = planned(NODE, context_length=4096).plans
    assert plan.answer.plan.load.context == 4096
    (plan,) = planned(NODE).plans
    assert plan.answer.plan.load.context == 8192


def test_weights_are_quantized_once() -> None:
    (plan,) = planned({**GPU, "quantization": "fp8"}).plans
    (full,) = planned(GPU).plans
    assert plan.answer.plan.facts.quantization == "fp8"
    assert plan.answer.plan.facts.weights < full.answer.plan.facts.weights
    assert planned({**GPU, "quantization": "fp9"}).plans == ()
