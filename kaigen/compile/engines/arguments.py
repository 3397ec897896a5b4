"""Command-line arguments and environment that several engines share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from kaigen.compile.builders import settings
from kaigen.compile.engines.launch import Launch
from kaigen.compile.expressions import Joined, Setting, Text, Tree
from kaigen.compile.field_expressions import Arguments, ListFlags
from kaigen.kinds.exposure import Auth
from kaigen.kinds.topology import TopologySpec

MODEL_SERVER_HINTS: Mapping[str, str] = dict.fromkeys(
    ("command", "args"), "use `engineArgs` for further flags, or `engine: container`"
)
"""Hints by fields that only a container without an engine of kaigen's understands."""

KEY_FOLDER = "/etc/kaigen/auth"
"""Folder of the API key, for engines that read it from a file."""

MANAGED_FLAGS: Mapping[str, str] = {
    "api-key": "auth",
    "api-key-file": "auth",
    "data-parallel-size": "shape.dataParallel",
    "distributed-executor-backend": "shape.executor",
    "drain-timeout": "drain",
    "enable-lora": "adapters",
    "headless": "shape.nodes",
    "lora-modules": "adapters",
    "merge-adapters": "adapters",
    "master-addr": "shape.nodes",
    "master-port": "shape.nodes",
    "max-model-len": "contextLength",
    "max-num-seqs": "concurrency",
    "model": "model",
    "nnodes": "shape.nodes",
    "otlp-traces-endpoint": "monitoring.traces",
    "node-rank": "shape.nodes",
    "pipeline-parallel-size": "shape.pipelineParallel",
    "port": "port",
    "quantization": "quantization",
    "revision": "model",
    "served-model-name": "servedNames",
    "shutdown-timeout": "drain",
    "tensor-parallel-size": "shape.tensorParallel",
    "trust-remote-code": "trustRemoteCode",
}
"""Flags that fields of the spec set, in vLLM and in kaigen's own server, which takes vLLM's names."""

_DOC = "Additional flags of the engine."


def key_reference(auth: Auth) -> dict[str, Tree]:
    """Return the name of the Secret with the API key, and its key there."""
    name = settings.text(
        "auth.secretName",
        auth.secret.name if auth.secret else "",
        "Secret with the API key.",
        origin=("spec", "auth", "secret", "name"),
    )
    return {"name": name, "key": auth.key}


def key_mount() -> dict[str, Tree]:
    """Return the mount of the volume with the API key."""
    return {"name": "auth", "mountPath": KEY_FOLDER, "readOnly": True}


def key_volume(auth: Auth) -> dict[str, Tree]:
    """Return the volume with the API key."""
    items: Tree = [{"key": auth.key, "path": auth.key}]
    secret: Tree = {"secretName": key_reference(auth)["name"], "items": items, "defaultMode": 0o440}
    return {"name": "auth", "secret": secret}


def with_engine_args(fixed: Sequence[Tree], spec: TopologySpec, lists: ListFlags | None = None) -> Arguments:
    """Return all arguments of an engine: kaigen's own, then the spec's `engineArgs`.

    Args:
        fixed: kaigen's own.
        spec: the spec.
        lists: how flags of the engine take several values; None for all as further arguments.
    """
    given = spec.engine_args
    schema = settings.OBJECT if isinstance(given, dict) else settings.STRINGS
    doc = f"{_DOC} By name." if isinstance(given, dict) else _DOC
    return Arguments(
        fixed, Setting("engineArgs", given, doc, schema, origin=("spec", "engineArgs")), lists or ListFlags()
    )


def limit_arguments(spec: TopologySpec, most_context: int | None) -> list[Tree]:
    """Return the flags of context length, concurrency and remote code.

    Args:
        spec: the spec.
        most_context: tokens that the model supports; None if that is unknown.
    """
    return [
        *_number(
            "--max-model-len",
            "contextLength",
            spec.context_length,
            "Maximum context length of a request, in tokens.",
            "contextLength",
            most_context,
        ),
        *_number(
            "--max-num-seqs",
            "concurrency",
            spec.concurrency,
            "Maximum number of requests that one engine processes at a time.",
            "concurrency",
        ),
        *(["--trust-remote-code"] if spec.trust_remote_code else []),
    ]


def _number(flag: str, path: str, value: int | None, doc: str, field: str, most: int | None = None) -> list[Tree]:
    if value is None:
        return []
    schema = {"type": "integer", "minimum": 1, **({"maximum": most} if most is not None and value <= most else {})}
    return [Joined((f"{flag}=", Text(Setting(path, value, doc, schema, origin=("spec", field)))))]


def hub_environment(launch: Launch) -> dict[str, str]:
    """Return the folders that the libraries write to, and their switches.

    A user id that is not in the image has no name, which PyTorch's compiler requires.
    """
    cache = launch.folders.cache
    variables = {"HOME": cache, "USER": "kaigen", "HF_HOME": f"{cache}/huggingface", "HF_HUB_DISABLE_TELEMETRY": "1"}
    return variables | ({"HF_HUB_OFFLINE": "1"} if launch.weights.offline else {})
