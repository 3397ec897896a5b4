"""The command line of an engine, and the variables that it runs with."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from kaigen.compile.builders import settings
from kaigen.compile.builders.jobs import seconds
from kaigen.compile.expressions import Joined, Json, Setting, SpecPath, Text, Tree
from kaigen.compile.field_expressions import Arguments, flags
from kaigen.compile.problems import Problems
from kaigen.compile.topology.parallel import Parallel
from kaigen.compile.topology.weights import CACHE_FOLDER, Weights
from kaigen.kinds.topology import TopologySpec

KEY_FOLDER = "/etc/kaigen/auth"
KEY_VARIABLE = "VLLM_API_KEY"
MASTER_PORT = 29500
RAY_PORT = 6379

_ARGUMENTS = "Further flags of the engine."

OWNED: Mapping[str, str] = {
    "api-key": "auth",
    "api-key-file": "auth",
    "data-parallel-size": "shape.dataParallel",
    "distributed-executor-backend": "shape.executor",
    "drain-timeout": "drain",
    "enable-lora": "adapters",
    "headless": "shape.nodes",
    "lora-modules": "adapters",
    "master-addr": "shape.nodes",
    "master-port": "shape.nodes",
    "max-model-len": "contextLength",
    "max-num-seqs": "concurrency",
    "model": "model",
    "nnodes": "shape.nodes",
    "node-rank": "shape.nodes",
    "pipeline-parallel-size": "shape.pipelineParallel",
    "port": "port",
    "quantization": "quantization",
    "revision": "model",
    "served-model-name": "servedNames",
    "tensor-parallel-size": "shape.tensorParallel",
    "trust-remote-code": "trustRemoteCode",
}
"""Flags that fields of the spec stand for."""

_SHORT = {"-tp": "tensor-parallel-size", "-pp": "pipeline-parallel-size", "-dp": "data-parallel-size"}


def check_arguments(spec: TopologySpec, problems: Problems) -> None:
    """Tell of further arguments that a field stands for: the two would contradict each other."""
    given = spec.engine_args
    at: SpecPath = ("spec", "engineArgs")
    names: list[tuple[str, SpecPath]] = (
        [(name, (*at, name)) for name in given]
        if isinstance(given, dict)
        else [(argument.partition("=")[0], (*at, index)) for index, argument in enumerate(given)]
    )
    for written, path in names:
        if isinstance(given, list) and not written.startswith("-"):
            continue
        name = _SHORT.get(written) or written.lstrip("-").replace("_", "-")
        field = OWNED.get(name) or OWNED.get(name.removeprefix("no-"))
        if field is not None:
            problems.error(
                "KG0347", f"the flag `--{name}` is what `{field}` stands for", path, f"say it in `{field}`"
            )


def arguments(fixed: Sequence[Tree], spec: TopologySpec) -> Arguments:
    """All arguments of an engine: kaigen's own, then the spec's."""
    given = spec.engine_args
    schema = settings.OBJECT if isinstance(given, dict) else settings.STRINGS
    doc = f"{_ARGUMENTS} By name." if isinstance(given, dict) else _ARGUMENTS
    return Arguments(fixed, Setting("engineArgs", given, doc, schema, origin=("spec", "engineArgs")))


def _number(flag: str, path: str, value: int | None, doc: str, field: str) -> list[Tree]:
    if value is None:
        return []
    schema = {"type": "integer", "minimum": 1}
    return [Joined((f"{flag}=", Text(Setting(path, value, doc, schema, origin=("spec", field)))))]


def _limits(spec: TopologySpec) -> list[Tree]:
    return [
        *_number(
            "--max-model-len",
            "contextLength",
            spec.context_length,
            "Longest context of a request, in tokens.",
            "contextLength",
        ),
        *_number(
            "--max-num-seqs",
            "concurrency",
            spec.concurrency,
            "Most requests that one engine works on at a time.",
            "concurrency",
        ),
        *(["--trust-remote-code"] if spec.trust_remote_code else []),
    ]


def vllm_arguments(
    spec: TopologySpec,
    weights: Weights,
    adapters: Sequence[Weights],
    parallel: Parallel,
    names: Sequence[str],
    preset: Mapping[str, Json],
) -> list[Tree]:
    """vLLM's own arguments, the model first.

    Args:
        spec: the spec.
        weights: of the model.
        adapters: LoRA adapters.
        parallel: how one copy spreads.
        names: under which the model is asked for.
        preset: flags that the model needs by its catalogue entry.
    """
    own: list[Tree] = [weights.reference, "--served-model-name", *names, f"--port={spec.port}"]
    own += weights.arguments
    for flag, value in (
        ("tensor", parallel.tensor),
        ("pipeline", parallel.pipeline),
        ("data", parallel.data),
    ):
        own += [f"--{flag}-parallel-size={value}"] if value > 1 else []
    if spec.quantization:
        own.append(
            Joined(
                (
                    "--quantization=",
                    settings.text(
                        "quantization",
                        spec.quantization,
                        "Quantization, as the engine calls it.",
                        origin=("spec", "quantization"),
                    ),
                )
            )
        )
    own += _limits(spec)
    given = spec.engine_args if isinstance(spec.engine_args, dict) else {}
    own += flags({name: value for name, value in preset.items() if name not in given})
    if adapters:
        own += ["--enable-lora", "--lora-modules", *(adapter.reference for adapter in adapters)]
    return own


def across_nodes(parallel: Parallel, rank: Tree, leader: Tree, *, worker: bool) -> list[Tree]:
    """vLLM's arguments that let the pods of several nodes work together, by its own means."""
    return [
        "--distributed-executor-backend=mp",
        f"--nnodes={parallel.nodes}",
        Joined(("--node-rank=", rank)) if not isinstance(rank, str) else f"--node-rank={rank}",  # type: ignore[arg-type]
        Joined(("--master-addr=", leader)) if not isinstance(leader, str) else f"--master-addr={leader}",  # type: ignore[arg-type]
        f"--master-port={MASTER_PORT}",
        *(["--headless"] if worker else []),
    ]


RAY_LEADER = """\
set -e
ray start --head --port="$RAY_PORT" --disable-usage-stats
python3 - "$NODES" <<'END'
import sys, time
import ray
ray.init(address="auto")
while sum(node["Alive"] for node in ray.nodes()) < int(sys.argv[1]):
    time.sleep(2)
END
exec "$@"
"""
"""Starts Ray's head, waits for the other nodes, then runs the engine that its arguments are."""

RAY_WORKER = """\
until ray health-check --address "$LEADER:$RAY_PORT" 2>/dev/null; do sleep 2; done
exec ray start --block --address="$LEADER:$RAY_PORT" --disable-usage-stats
"""
"""Waits for Ray's head, then works for it until it goes."""


def transformers_arguments(spec: TopologySpec, weights: Weights, names: Sequence[str]) -> list[Tree]:
    """Arguments of kaigen's own small server."""
    return [
        f"--model={weights.reference}",
        f"--served-model-name={names[0]}",
        f"--port={spec.port}",
        *_limits(spec),
        f"--drain-timeout={seconds(spec.drain)}s",
        *([f"--api-key-file={KEY_FOLDER}/{spec.auth.key}"] if spec.auth else []),
    ]


def surroundings(engine: str, *, offline: bool) -> list[tuple[str, str]]:
    """Variables that an engine runs with: folders that it may write to, and what it shall not do.

    A user id that no image knows has no name, which PyTorch's compiler asks for.
    """
    if engine == "container":
        return [("HOME", CACHE_FOLDER)]
    found = [
        ("HOME", CACHE_FOLDER),
        ("USER", "kaigen"),
        ("HF_HOME", f"{CACHE_FOLDER}/huggingface"),
        ("HF_HUB_DISABLE_TELEMETRY", "1"),
    ]
    if offline:
        found += [("HF_HUB_OFFLINE", "1")]
    if engine == "vllm":
        found += [
            ("VLLM_CACHE_ROOT", f"{CACHE_FOLDER}/vllm"),
            ("TORCHINDUCTOR_CACHE_DIR", f"{CACHE_FOLDER}/inductor"),
            ("TRITON_CACHE_DIR", f"{CACHE_FOLDER}/triton"),
            ("VLLM_NO_USAGE_STATS", "1"),
        ]
    return found


DRAIN = """\
import re, sys, time, urllib.request
port, names, seconds = sys.argv[1], sys.argv[2].split(","), float(sys.argv[3])
end = time.monotonic() + seconds
time.sleep(min(10, seconds))
while time.monotonic() < end:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=5) as answer:
            text = answer.read().decode()
    except OSError:
        break
    busy = 0.0
    for line in text.splitlines():
        name = re.split(r"[{ ]", line, maxsplit=1)[0]
        if name in names:
            busy += float(line.rsplit(" ", 1)[1])
    if busy == 0:
        break
    time.sleep(1)
"""
"""Waits until no request is at work, as the metrics tell; first ten seconds, in which proxies learn of it."""
