"""Each engine lists the fields of a Topology that it understands, each program of a Job too; others are reported."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from typing import Any

import pytest

from kaigen.compile.engines.base import Engine
from kaigen.compile.engines.container import PodTemplate
from kaigen.compile.engines.registry import ENGINES, engine_of, hint_of
from kaigen.compile.expressions import Joined, Tree
from kaigen.compile.field_expressions import Arguments
from kaigen.compile.job.checks import BENCHMARK, CLASSIFY, EVALUATE, GENERATE, IMAGE, TEMPLATE, TUNE, Runs
from kaigen.compile.job.compile import compile_job
from kaigen.compile.model.compile import compile_model
from kaigen.compile.notebook.compile import compile_notebook
from kaigen.compile.problems import Problems, is_understood
from kaigen.compile.topology.compile import compile_topology
from kaigen.diagnostics.collector import Diagnostics
from kaigen.kinds.block import Block, document_names
from kaigen.kinds.entry import API_VERSION
from kaigen.kinds.exposure import Auth, Router
from kaigen.kinds.job import JobSpec
from kaigen.kinds.operation import Monitoring
from kaigen.kinds.serving import Adapter, PulledModel, ServedModel, Shape, WeightsVolume
from kaigen.kinds.topology import Topology, TopologySpec
from kaigen.pipeline.result import Compiled
from kaigen.yaml.document import parse
from kaigen.yaml.sources import Source
from tests.cases import SPECS, cases
from tests.unit.compile import topologies
from tests.unit.compile.specs import Object, job, problem_paths, topology

ENGINES_AND_TEMPLATE: list[Engine] = [*(engine() for engine in ENGINES), PodTemplate()]
RECORDS: dict[str, type[Block]] = {
    "": TopologySpec,
    "shape": Shape,
    "model": ServedModel,
    "model.volume": WeightsVolume,
    "model.huggingFace": PulledModel,
    "adapters": Adapter,
    "auth": Auth,
    "monitoring": Monitoring,
    "router": Router,
}
"""Records whose fields concern engines: no engine may list one of them as a whole."""
FIELDS = [f"{record}.{name}" if record else name for record, block in RECORDS.items() for name in document_names(block)]
RUNS = {
    "template": TEMPLATE,
    "image": IMAGE,
    "benchmark": BENCHMARK,
    "classify": CLASSIFY,
    "evaluate": EVALUATE,
    "generate": GENERATE,
    "tune": TUNE,
}
LAST = {
    "Topology": {"adapters", "auth", "networkPolicy", "nodes", "proxy", "storage", "workerResources"},
    "Job": {"networkPolicy"},
    "Model": {"env"},
    "Notebook": {"download", "networkPolicy"},
}
"""Settings that come after those that a kind orders, among those of every pod: the order of a released values.yaml."""
OF_EVERY_POD = {
    *("labels", "annotations", "podLabels", "podAnnotations", "test"),
    *("runtimeClassName", "priorityClassName", "schedulerName", "nodeSelector", "tolerations", "affinity"),
    *("topologySpreadConstraints", "hostname", "dnsPolicy", "dnsConfig", "hostAliases"),
    *("sidecars", "initContainers", "envFrom", "extraEnv", "extraVolumeMounts", "extraVolumes"),
}
DEGREES = {"nodes", "tensorParallel", "pipelineParallel", "dataParallel"}


def not_understood() -> Iterator[Any]:
    """Yield each engine with each field that it does not understand, but those of a block that it does not either."""
    for engine in ENGINES_AND_TEMPLATE:
        for field in FIELDS:
            block = field.rpartition(".")[0]
            if not engine.understands(field) and (not block or engine.understands(block)):
                yield pytest.param(engine, field, id=f"{engine.name}-{field}")


@cache
def examples(kind: str) -> dict[str, Object]:
    """Return, by the fields that they set, blocks of the specs in which every field of a kind has a value."""
    found: dict[str, Object] = {}
    for file in sorted(SPECS.rglob("*.yaml")):
        documents: list[Any] = [each.data for each in parse(Source(file.name, file.read_text()), Diagnostics())]
        for document in documents:
            if document["kind"] == kind and document["apiVersion"] == API_VERSION:
                for name, value in document["spec"].items():
                    for field in (name, *(f"{name}.{inner}" for inner in _fields(value))):
                        if value is True or 1 not in (value, _at(value, field.split(".")[1:])):
                            found.setdefault(field, {name: value})
    return found


def _fields(value: object) -> Iterator[str]:
    for item in value if isinstance(value, list) else [value]:
        if isinstance(item, dict):
            for name, inner in item.items():
                yield str(name)
                yield from (f"{name}.{each}" for each in _fields(inner))


def _at(value: object, path: list[str]) -> object:
    for name in path:
        value = value.get(name) if isinstance(value, dict) else None
    return value


def test_each_field_of_a_topology_is_understood_by_an_engine() -> None:
    nowhere = [field for field in FIELDS if not any(each.understands(field) for each in ENGINES_AND_TEMPLATE)]
    assert nowhere == [], "list them in `understood` of an engine, or in `compile/engines/base.py`"


@pytest.mark.parametrize("engine", ENGINES_AND_TEMPLATE, ids=lambda engine: engine.name)
def test_an_engine_lists_fields_that_exist_and_blocks_that_concern_engines_field_by_field(engine: Engine) -> None:
    assert engine.understood & RECORDS.keys() == set()
    blocks = {"placement.queue", "placement.priority", "security.podSecurity", *FIELDS}
    assert engine.understood - blocks == set()
    assert engine.hints.keys() - {"", *FIELDS} == set()
    assert not [field for field in engine.hints if field and field in engine.understood]


@pytest.mark.parametrize(("engine", "field"), list(not_understood()))
def test_a_field_that_an_engine_does_not_understand_is_reported_with_a_hint(engine: Engine, field: str) -> None:
    assert hint_of(engine, field)
    if engine.name != "template" and field == "template":
        return  # Then it is no longer this engine.
    own = {"template": topologies.TEMPLATE} if engine.name == "template" else {"engine": engine.name}
    assert field in examples("Topology"), "write it in a Topology of `tests/chart/specs`"
    block = topology(**examples("Topology")[field], **own)
    reported = {(code, _without_indexes(path)) for code, path in problem_paths(block)}
    assert ("KG0340", f"spec.{field}") in reported


def _without_indexes(path: str) -> str:
    return ".".join(part for part in path.split(".") if not part.isdigit())


def test_degrees_of_one_are_allowed_on_every_engine() -> None:
    block = topology(**topologies.CONTAINER, shape=dict.fromkeys(DEGREES, 1))
    assert problem_paths(block) == []


def test_each_field_of_a_job_has_an_effect_on_what_one_runs() -> None:
    assert [
        name
        for name in document_names(JobSpec)
        if not any(is_understood(name, runs.understood) for runs in RUNS.values())
    ] == [], "list them in `compile/job/checks.py`"


@pytest.mark.parametrize(
    ("what", "runs", "field"),
    [
        pytest.param(what, runs, field, id=f"{what}-{field}")
        for what, runs in RUNS.items()
        for field in document_names(JobSpec)
        if not is_understood(field, runs.understood) and field not in JobSpec.exactly_one
    ],
)
def test_a_field_that_has_no_effect_on_what_a_job_runs_is_reported(what: str, runs: Runs, field: str) -> None:
    assert field in examples("Job"), "write it in a Job of `tests/chart/specs`"
    own: dict[str, Object] = {
        "template": {"template": {"spec": {"containers": [{"name": "a", "image": "i"}]}}},
        "image": {"image": "i"},
        "benchmark": {"workload": "benchmark"},
        "classify": {"workload": "classify"},
        "evaluate": {"workload": "evaluate"},
        "generate": {"workload": "generate"},
        "tune": {"tune": {}},
    }
    block = job(**{"image": None, **own[what], **examples("Job")[field]})
    assert ("KG0340", f"spec.{field}") in problem_paths(block)
    assert runs.hints.get(field, runs.hint)


@pytest.mark.parametrize("engine", ENGINES_AND_TEMPLATE, ids=lambda engine: engine.name)
def test_managed_flags_name_fields(engine: Engine) -> None:
    known = {*FIELDS, "resources.cpu"}
    assert {field for field in engine.managed_flags.values() if field not in known} == set()
    assert all(hint_of(engine, field) for field in engine.managed_flags.values())


def test_a_flag_of_a_field_that_only_another_engine_understands_names_that_engine() -> None:
    problems = Problems()
    block = topology(engine="transformers", model="many", engineArgs={"tensor-parallel-size": 2})
    compile_topology(block, topologies.CONTEXT, problems)
    (problem,) = problems.items
    assert problem.code == "KG0347"
    assert problem.hint == "use `engine: vllm`, which supports it"


OVERRIDABLE = {
    "vllm": {
        # A preset and its plan bring flags for what a spec does not set.
        *("chat-template", "enable-auto-tool-choice", "tool-call-parser", "reasoning-parser"),
        "gpu-memory-utilization",
        *("middleware", "max-loras", "distributed-timeout-seconds"),
        # A spec may take the tokenizer and the code from another commit than the weights.
        *("tokenizer-revision", "code-revision"),
    },
    "transformers": {"probe-port"},
    "distributedLlama": {"net-turbo", "gpu-index"},
}
"""Flags that kaigen sets and that `engineArgs` may set as well."""


@cache
def rich_apps() -> list[Compiled]:
    """Return the apps of the specs in which every field has a value."""
    return [item for case in cases().values() if not case.is_example for item in case.compile().apps]


@cache
def set_flags() -> dict[str, set[str]]:
    """Return, by engine, the flags that kaigen sets in these apps."""
    found: dict[str, set[str]] = {}
    for item in rich_apps():
        block = item.spec.block if item.spec else None
        if isinstance(block, Topology):
            flags = found.setdefault(engine_of(block.spec).name, set())
            flags.update(flag for made in item.app.objects for flag in _flags(made.body))
    return found


@pytest.mark.parametrize("engine", ENGINES_AND_TEMPLATE, ids=lambda engine: engine.name)
def test_each_flag_that_kaigen_sets_is_managed_or_may_be_set_as_well(engine: Engine) -> None:
    flags = set_flags()[engine.name]
    unknown = flags - engine.managed_flags.keys() - OVERRIDABLE.get(engine.name, set())
    assert unknown == set(), "add them to `managed_flags` of the engine, or to OVERRIDABLE if `engineArgs` may set them"
    assert flags or engine.name in {"container", "template"}


def _flags(tree: Tree) -> Iterator[str]:
    """Yield the flags that kaigen itself gives engines in an object."""
    if isinstance(tree, Arguments):
        for argument in tree.fixed:
            beginning = argument.parts[0] if isinstance(argument, Joined) else argument
            if isinstance(beginning, str) and beginning.startswith("--"):
                yield beginning.removeprefix("--").partition("=")[0]
    for inner in tree.values() if isinstance(tree, dict) else tree if isinstance(tree, list) else ():
        yield from _flags(inner)


@pytest.mark.parametrize(
    ("kind", "order"),
    [
        ("Topology", compile_topology.settings_order),
        ("Job", compile_job.settings_order),
        ("Model", compile_model.settings_order),
        ("Notebook", compile_notebook.settings_order),
    ],
)
def test_each_setting_of_a_kind_has_one_place_in_its_order(kind: str, order: Sequence[str]) -> None:
    used = {
        setting.path.partition(".")[0]
        for item in rich_apps()
        if item.spec is not None and item.spec.target.kind == kind
        for setting in item.app.settings
    } - OF_EVERY_POD
    ordered = {*order, *LAST[kind]}
    assert used - ordered == set(), "add them to `settings_order` of the KindCompiler"
    assert ordered - used == set(), "no spec in `tests/chart/specs` has these settings"
    assert len(order) + len(LAST[kind]) == len(ordered)
