"""A container that the spec describes by image, command and arguments."""

from __future__ import annotations

from kaigen.compile.builders.pods import entry_point
from kaigen.compile.engines.base import Engine
from kaigen.compile.engines.launch import Launch
from kaigen.compile.expressions import Tree

SERVER_FIELDS = (
    "engine_version",
    "served_names",
    "engine_args",
    "context_length",
    "concurrency",
    "trust_remote_code",
)
"""Fields of `spec` that become flags of a model server."""

PARALLEL_FIELDS = ("tensor_parallel", "pipeline_parallel", "data_parallel", "executor", "groups")
"""Fields of `spec.shape` that only an engine on several GPUs understands."""

ONLY_VLLM = "use `engine: vllm`, which supports it"


class Container(Engine):
    """Any server in a container."""

    name = "container"
    ignored_fields = dict.fromkeys(
        (*SERVER_FIELDS, "preset", "token_secret", "quantization", "adapters", "auth"),
        "use `command`, `args` and `env` instead",
    )
    ignored_shape_fields = dict.fromkeys(PARALLEL_FIELDS, ONLY_VLLM)
    requires_model = False

    def command(self, launch: Launch) -> dict[str, Tree]:
        """Return the entry point of the spec."""
        return entry_point(launch.spec.command, launch.spec.args)
