"""The workloads `benchmark` and `evaluate`: the program that judges a Topology, and what it may read and write."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from kaigen.compile.builders import settings
from kaigen.compile.builders.access import facts_rules
from kaigen.compile.builders.egress import Server
from kaigen.compile.builders.jobs import seconds
from kaigen.compile.builders.other_apps import find_spec, other_name
from kaigen.compile.builders.params import FOLDER, KEY, ParamsOf
from kaigen.compile.builders.pools import WORKLOADS, find_serving, workloads
from kaigen.compile.context import Context
from kaigen.compile.expressions import Expr, Joined, Release, Tree
from kaigen.compile.go_json import go_json, sha256_hex
from kaigen.compile.problems import Problems
from kaigen.core.json_types import FieldPath, Json
from kaigen.diagnostics.problem import ProblemError
from kaigen.kinds.block import document_name
from kaigen.kinds.blocks import Image
from kaigen.kinds.gate import GATES, Benchmark, Evaluate, Require, Target
from kaigen.kinds.job import Inputs, JobSpec, OutputVolume
from kaigen.kinds.topology import Topology
from kaigen.kubernetes.manifest import mapping
from kaigen.programs.files import program

PERMANENT_EXIT_CODES = (2, 11, 20)
"""Exit codes after which a retry cannot succeed (source: kaigen/programs/gate.py)."""

COMMAND = ("python3", program("gate.py"))
MEMORY = {"benchmark": "4Gi", "evaluate": "2Gi"}
API_KEY = "TARGET_API_KEY"
"""Variable with the API key of the Topology."""

_AT: FieldPath = ("spec", "target")
_IGNORES_END = frozenset({"vllm"})
"""Engines whose requests have the field `ignore_eos`."""
_COUNT = frozenset({"replicas", "topologySpreadConstraints"})
_MEASURED = {"benchmark": ("accuracy",), "evaluate": (*Require.latencies, "throughput", "requestThroughput", "errors")}
"""Requirements that a workload does not measure."""


def is_gate(spec: JobSpec) -> bool:
    """Return whether a Job judges a Topology."""
    return spec.workload in GATES


def target_of(spec: JobSpec) -> Target | None:
    """Return the Topology that a Job judges as a block; None if it names none."""
    return Target(name=spec.target) if isinstance(spec.target, str) else spec.target


def _topology(spec: JobSpec, namespace: str, context: Context) -> Topology | None:
    """Return the Topology that a Job judges; None if it names none.

    Raises:
        ProblemError: there is no such Topology.
    """
    target = target_of(spec)
    if target is None:
        return None
    origin = _AT if isinstance(spec.target, str) else (*_AT, "name")
    serving = find_serving(context, namespace, target.name, origin)
    if target.version == "canary" and serving.canary:
        return find_spec(Topology, context, namespace, serving.canary, origin)
    return serving.topology


def judged_topology(spec: JobSpec, namespace: str, context: Context) -> Topology | None:
    """Return the Topology that a Job judges; None without one, which `check_gate` reports, and for other Jobs."""
    if not is_gate(spec):
        return None
    try:
        return _topology(spec, namespace, context)
    except ProblemError:
        return None


def judged_objects(spec: JobSpec, namespace: str, context: Context) -> Sequence[Mapping[str, Any]]:
    """Return the objects of the Topology; none when it has errors."""
    if context.objects_of is None or not is_gate(spec):
        return ()
    topology = judged_topology(spec, namespace, context)
    if topology is None:
        return ()
    return context.objects_of(("Topology", namespace, topology.metadata.name), context) or ()


def _container(body: Mapping[str, Any]) -> dict[str, Json]:
    found: dict[str, Json] = {name: body[name] for name in ("name", "image", "command", "args") if name in body}
    variables = body.get("env") or ()
    plain: list[Json] = [{"name": each["name"], "value": each["value"]} for each in variables if "value" in each]
    return {**found, "env": plain} if plain else found


def _without_count(node: Any) -> Any:
    """Return the spec of a workload without the number of its pods, and without what follows from that number."""
    if isinstance(node, Mapping):
        return {key: _without_count(value) for key, value in node.items() if key not in _COUNT}
    return [_without_count(each) for each in node] if isinstance(node, list | tuple) else node


def _digest(objects: Sequence[Mapping[str, Any]]) -> str:
    """Return a hash of what the pods of the Topology run, not how many: another one starts a new run of the Job."""
    kept: list[Any] = []
    for body in objects:
        kind = body["kind"]
        if kind in WORKLOADS:
            kept.append(_without_count(body.get("spec")))
        elif kind == "ConfigMap":
            kept.append(dict(mapping(body.get("data"))))
    return sha256_hex(go_json(kept))


def gate_settings(spec: JobSpec) -> Benchmark | Evaluate | None:
    """Return the settings of the workload; None of `evaluate` without them."""
    if spec.workload == "benchmark":
        return spec.benchmark if spec.benchmark is not None else Benchmark()
    return spec.evaluate


def gate_image(spec: JobSpec, context: Context) -> Image:
    """Return the image of the container: that of the spec, vLLM's for CPUs, or that of lm-evaluation-harness."""
    own = gate_settings(spec)
    if own is not None and own.image is not None:
        return own.image
    return context.config.images["vllmCpu" if spec.workload == "benchmark" else "evaluate"]


def gate_params(
    spec: JobSpec, inputs: Inputs | None, output: OutputVolume | None, namespace: str, context: Context
) -> ParamsOf:
    """Return the settings of the program as a file."""
    own, target = gate_settings(spec), target_of(spec)
    topology = judged_topology(spec, namespace, context)
    objects = judged_objects(spec, namespace, context)
    values: dict[str, Json] = {}
    if own is not None:
        given = {document_name(own, name): getattr(own, name) for name in own.__struct_fields__ if name != "image"}
        values = {name: value for name, value in given.items() if value is not None}
    if isinstance(own, Evaluate) and own.folder is None and inputs is not None:
        values["folder"] = inputs.mount_path
    if isinstance(own, Benchmark):
        values["ignoreEos"] = topology is not None and topology.spec.engine in _IGNORES_END
    judged: dict[str, Json] = {
        "name": topology.metadata.name if topology is not None else "",
        "wait": seconds(target.wait) if target is not None else 0,
        "containers": [[_container(each) for each in pod["spec"]["containers"]] for _, _, pod in workloads(objects)],
        "digest": _digest(objects),
    }
    found: dict[str, Json] = {
        "workload": str(spec.workload),
        str(spec.workload): values,
        "target": judged,
        "require": _limits(spec),
    }
    if output is not None:
        found["output"] = output.mount_path
    return ParamsOf(found, "Settings of the gate.", origin=("spec", str(spec.workload)), exported=False)


def _limits(spec: JobSpec) -> dict[str, Json]:
    """Return the limits by name: times in milliseconds."""
    require = spec.require if spec.require is not None else Require()
    found: dict[str, Json] = {}
    for name in Require.latencies:
        limits = getattr(require, name)
        for each in limits.__struct_fields__ if limits is not None else ():
            if (value := getattr(limits, each)) is not None:
                found[f"{name}.{each}"] = {"max": _milliseconds(value)}
    if require.throughput is not None:
        found["throughput"] = {"min": require.throughput.min}
    if require.request_throughput is not None:
        found["requestThroughput"] = {"min": require.request_throughput.min}
    if spec.workload == "benchmark":
        found["errors"] = {"max": require.errors.max if require.errors is not None else 0}
    if require.accuracy is not None:
        found["accuracy"] = {"min": require.accuracy.min}
    return found


def _milliseconds(latency: str) -> float:
    number, unit = (latency[:-2], 1.0) if latency.endswith("ms") else (latency[:-1], 1000.0)
    return float(number) * unit


def gate_arguments(spec: JobSpec, namespace: str, context: Context) -> list[str]:
    """Return the arguments of the program; none without a Topology.

    Raises:
        ProblemError: there is no such Topology.
    """
    topology = _topology(spec, namespace, context)
    if topology is None:
        return []
    return [f"{FOLDER}/{KEY}", (topology.spec.served_names or [topology.metadata.name])[0]]


def _paths(spec: JobSpec, namespace: str, context: Context) -> Iterator[tuple[Expr, str, Tree]]:
    """Yield the path in the API of what runs the pods, its kind and its name."""
    topology = judged_topology(spec, namespace, context)
    app = topology.metadata.name if topology is not None else ""
    for number, (kind, name, _) in enumerate(workloads(judged_objects(spec, namespace, context))):
        group, version, plural = WORKLOADS[kind]
        key = "target.workload" if number == 0 else f"target.workload{number + 1}"
        known = other_name(key, f"{kind} of the Topology `{app}`", app, name, origin=_AT)
        yield Joined((f"apis/{group}/{version}/{plural}/", known)), kind, known


def gate_rules(spec: JobSpec, namespace: str, context: Context) -> list[Tree]:
    """Return the rules of the Role: it reads what runs the Topology's pods, and writes the ConfigMap of the report."""
    if not is_gate(spec) or target_of(spec) is None:
        return []
    rules = facts_rules()
    for _, kind, name in _paths(spec, namespace, context):
        group, _, plural = WORKLOADS[kind]
        rules.append({"apiGroups": [group], "resources": [plural], "resourceNames": [name], "verbs": ["get"]})
    return rules


def gate_variables(spec: JobSpec, namespace: str, context: Context) -> list[Tree]:
    """Return the variables that are no plain texts: the run, and the API key of the Topology."""
    if not is_gate(spec):
        return []
    found: list[Tree] = [{"name": "KAIGEN_APP", "value": Release()}]
    for name, label in (("JOB_NAME", "job-name"), ("JOB_UID", "controller-uid")):
        found.append(
            {"name": name, "valueFrom": {"fieldRef": {"fieldPath": f"metadata.labels['batch.kubernetes.io/{label}']"}}}
        )
    topology = judged_topology(spec, namespace, context)
    if topology is None:
        return found
    found += _places(topology, [path for path, _, _ in _paths(spec, namespace, context)])
    auth = topology.spec.auth
    if auth is not None and auth.secret is not None and API_KEY not in spec.env:
        secret = settings.text("target.secretName", auth.secret.name, "Secret with the API key of the Topology.")
        found.append({"name": API_KEY, "valueFrom": {"secretKeyRef": {"name": secret, "key": auth.key}}})
    return found


def _places(topology: Topology, paths: Sequence[Expr]) -> list[Tree]:
    """Return the variables with what is asked, what is waited for, and where the report goes."""
    name = topology.metadata.name
    service = other_name("target.service", f"Service of the Topology `{name}`", name, name, origin=_AT)
    port = settings.count("target.port", topology.spec.service.port, "Port of the Service.")
    between: list[str | Expr] = [part for path in paths for part in (",", path)][1:]
    return [
        {"name": "TARGET_URL", "value": Joined(("http://", service, ":", port))},
        {"name": "TARGET_WORKLOADS", "value": Joined(tuple(between)) if between else ""},
        {"name": "KAIGEN_FACTS", "value": Release("-facts")},
    ]


def gate_environment(cache: str) -> Mapping[str, str]:
    """Return the variables of the tools, which write to a folder of the pod and reach nothing but the Topology."""
    return {
        "USER": "kaigen",
        "HF_HOME": f"{cache}/huggingface",
        "HF_HUB_OFFLINE": "1",
        "HF_DATASETS_OFFLINE": "1",
        "HF_EVALUATE_OFFLINE": "1",
        "HF_HUB_DISABLE_TELEMETRY": "1",
        "VLLM_CACHE_ROOT": f"{cache}/vllm",
        "VLLM_NO_USAGE_STATS": "1",
    }


def gate_servers(spec: JobSpec, namespace: str, context: Context) -> list[Server]:
    """Return the server that the program asks, by the ports of its Service and of its pods."""
    topology = judged_topology(spec, namespace, context)
    if topology is None or not is_gate(spec):
        return []
    ports = dict.fromkeys((topology.spec.service.port, topology.spec.port))
    return [Server(f"http://{topology.metadata.name}.{namespace}.svc:{port}", _AT) for port in ports]


def check_gate(spec: JobSpec, namespace: str, context: Context, problems: Problems) -> None:
    """Report what a Job that judges a Topology lacks, and requirements that it cannot measure."""
    if not is_gate(spec):
        return
    at: FieldPath = ("spec", "workload")
    if spec.target is None:
        problems.error("KG0465", "there is no Topology to judge", at, "set `target` to the name of a Topology")
    if spec.workload == "evaluate" and spec.evaluate is None:
        hint = "set `evaluate.tasks`, and add their files with `inputs`"
        problems.error("KG0465", "there are no tasks to evaluate", at, hint)
    for name in _MEASURED[str(spec.workload)] if spec.require is not None else ():
        if getattr(spec.require, "request_throughput" if name == "requestThroughput" else name) is not None:
            path: FieldPath = ("spec", "require", name)
            other = "evaluate" if spec.workload == "benchmark" else "benchmark"
            message = f"`workload: {spec.workload}` does not measure `{name}`"
            problems.error("KG0466", message, path, f"leave it out, or require it of a Job with `workload: {other}`")
    topology = problems.attempt(lambda: _topology(spec, namespace, context), None)
    auth = topology.spec.auth if topology is not None else None
    if auth is not None and auth.secret is None and API_KEY not in spec.env:
        message = "the Topology requires an API key, and its spec has only the checksums"
        hint = f"set `env.{API_KEY}` to a Secret with a key"
        problems.error("KG0465", message, at, hint)
