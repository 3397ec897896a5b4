"""vLLM: its command line, environment, and how it uses several GPUs and nodes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, ClassVar

from kaigen.catalog.engines import Version
from kaigen.catalog.presets import Preset
from kaigen.compile.builders import settings
from kaigen.compile.builders.pods import default_shared_memory
from kaigen.compile.engines.arguments import (
    KEY_FOLDER,
    MANAGED_FLAGS,
    MODEL_SERVER_HINTS,
    hub_environment,
    key_mount,
    key_volume,
    limit_arguments,
    with_engine_args,
)
from kaigen.compile.engines.base import HUB_SERVER, Engine
from kaigen.compile.engines.launch import Launch, Member, Parallelism, Weights
from kaigen.compile.engines.lifecycle import (
    CONNECTIONS_CLASS,
    KEEP_ALIVE_SECONDS,
    KEYS_CLASS,
    SHUTDOWN_SECONDS,
    finding,
    in_group,
    with_own_key,
)
from kaigen.compile.engines.vllm_data_plane import check_data_plane, check_shared_cache, data_ports
from kaigen.compile.engines.vllm_flags import check_flags, flag_values, list_flags
from kaigen.compile.engines.vllm_parallelism import vllm_parallelism, vllm_version
from kaigen.compile.engines.vllm_repositories import check_repositories, revision_flags
from kaigen.compile.expressions import Expr, Joined, Release, Tree
from kaigen.compile.field_expressions import flags
from kaigen.compile.problems import Problems
from kaigen.core.json_types import Json
from kaigen.kinds.blocks import Image
from kaigen.kinds.compat import Folders
from kaigen.kinds.topology import TopologySpec
from kaigen.programs.files import program
from kaigen.sizing.constants import GIB
from kaigen.sizing.host import HostPart, host_parts
from kaigen.sizing.plan import Plan

if TYPE_CHECKING:
    from kaigen.config.lock_file import Lock
    from kaigen.kinds.monitoring import Traces

CPU_CACHE = 4
"""KV cache of an engine without GPUs in the default memory, in GiB. vLLM would take half of the node's memory."""
CPU_CACHE_VARIABLE = "VLLM_CPU_KVCACHE_SPACE"
CPU_RUNTIME = 4
"""Memory of an engine without GPUs in addition to the weights and the KV cache, in GiB."""
KEY_VARIABLE = "VLLM_API_KEY"
KEYS_VARIABLE = "KAIGEN_API_KEYS"
"""The file with the API keys, for the middleware."""
RAY_PORT = 6379

_RERANKER = "is_original_qwen3_reranker"
"""Setting of Qwen3's rerankers as their repositories have them."""
_MOST_LORAS = 8
"""Adapters that one batch may use: vLLM reserves GPU memory for each."""


def _check_template(spec: TopologySpec, preset_flags: Mapping[str, Json], problems: Problems) -> None:
    """Warn of a reranker without the template of its questions, whose place in the user's image is not known.

    Source: examples/pooling/score/qwen3_reranker_online.py of vLLM 0.33.0.
    """
    given = flag_values(spec)
    if _RERANKER in str(preset_flags.get("hf-overrides")) and "chat-template" not in {**preset_flags, **given}:
        problems.warning(
            "KG0415",
            "vLLM answers with scores that mean nothing without the chat template of the model",
            ("spec", "preset") if spec.preset else ("spec", "model"),
            "set `engineArgs.chat-template` to vLLM's examples/pooling/score/template/qwen3_reranker.jinja in the "
            "image, or leave out `image`",
        )


class Vllm(Engine):
    """vLLM's OpenAI-compatible server."""

    name = "vllm"
    understood = HUB_SERVER | {
        "monitoring.traces",
        *("engineVersion", "quantization", "models", "model.file", "model.huggingFace.gguf"),
        *("shape.executor", "shape.groups", "router.failureMode"),
        *("shape.tensorParallel", "shape.pipelineParallel", "shape.dataParallel"),
    }
    hints: ClassVar[Mapping[str, str]] = {
        **MODEL_SERVER_HINTS,
        "adapters.strength": "leave it out: a request chooses the adapter by its name",
    }
    managed_flags = MANAGED_FLAGS
    short_flags: ClassVar[Mapping[str, str]] = {
        "-tp": "tensor-parallel-size",
        "-pp": "pipeline-parallel-size",
        "-dp": "data-parallel-size",
    }
    reads_presets = True
    several_names = True
    has_picker = True
    default_gpus = 1
    rendezvous_port = 29500
    cpu_resources = (4, 16)

    def check(self, spec: TopologySpec, problems: Problems) -> None:
        """Report a key that the middleware of the keys would replace, and traces that do not arrive."""
        if spec.auth and KEY_VARIABLE in spec.env:
            message = f"`{KEY_VARIABLE}` is set by kaigen for this Topology"
            problems.error("KG0313", message, ("spec", "env", KEY_VARIABLE), "leave it out")
        traces = traces_of(spec)
        # Source: `insecure=True` in get_span_exporter, vllm/tracing/otel.py of 0.29.0.
        if traces is not None and traces.protocol == "grpc" and traces.endpoint.startswith("https:"):
            problems.error(
                "KG0442",
                "vLLM sends traces by gRPC without TLS only",
                ("spec", "monitoring", "traces", "endpoint"),
                "use an endpoint with `http:`, or `protocol: http/protobuf` with the path `/v1/traces`",
            )

    def preset_flags(self, preset: Preset, *, templates: str) -> Mapping[str, Json]:
        """Return parsers, formats and further flags of a preset."""
        engine = preset.engine
        given: dict[str, Json] = {
            flag: value
            for flag, value in (
                ("tool-call-parser", engine.tool_call_parser),
                ("reasoning-parser", engine.reasoning_parser),
                ("tokenizer-mode", engine.tokenizer_mode),
                ("config-format", engine.config_format),
                ("load-format", engine.load_format),
                ("kv-cache-dtype", engine.kv_cache_dtype),
            )
            if value
        }
        if engine.tool_call_parser:
            given["enable-auto-tool-choice"] = True
        if engine.tool_chat_template and templates:
            given["chat-template"] = f"{templates}/{engine.tool_chat_template}"
        return {**given, **(engine.args or {})}

    def preset_env(self, preset: Preset) -> Mapping[str, str]:
        """Return the variables of a preset."""
        return preset.engine.env or {}

    def parallelism(
        self, spec: TopologySpec, image: Image, plan: Plan | None, gpus: int, problems: Problems
    ) -> Parallelism:
        """Return the plan's parallelism, else what the spec asks for."""
        return vllm_parallelism(spec, image, plan, gpus, self.facts, problems)

    def version(self, spec: TopologySpec, image: Image) -> Version | None:
        """Return the version of vLLM in the image."""
        return vllm_version(spec, image)

    def check_flags(self, spec: TopologySpec, image: Image, parallelism: Parallelism, problems: Problems) -> None:
        """Report flags that the version of vLLM in the image does not accept."""
        check_flags(spec, self.version(spec, image), problems)
        check_data_plane(spec, parallelism, problems)

    def check_weights(
        self,
        spec: TopologySpec,
        weights: Weights,
        preset_flags: Mapping[str, Json],
        folders: Folders,
        image: Image,
        lock: Lock | None,
        problems: Problems,
    ) -> None:
        """Report further repositories that vLLM cannot read, and weights in files that it would not find."""
        _check_template(spec, preset_flags, problems)
        check_repositories(spec, weights, preset_flags, self.version(spec, image), lock, problems)
        check_shared_cache(spec, weights, folders, problems)

    def data_ports(self, spec: TopologySpec, parallelism: Parallelism) -> list[Tree]:
        """Return the ports of KV events and of NIXL."""
        return data_ports(spec, parallelism)

    def host_parts(self, spec: TopologySpec, parallelism: Parallelism) -> tuple[HostPart, ...]:
        """Return the caches and weights that flags keep in memory of the node, and what a CPU's cache has more."""
        engines = -(-parallelism.data // parallelism.nodes)
        parts = host_parts(flag_values(spec), parallelism.gpus, engines)
        written = str(spec.env.get(CPU_CACHE_VARIABLE, ""))
        if not parallelism.gpus and written.isdecimal() and int(written) > CPU_CACHE:
            size = float(int(written) - CPU_CACHE)
            parts += (HostPart("KV cache above the default", size, shared=False, flag=CPU_CACHE_VARIABLE),)
        return parts

    def shared_memory(self, gpus: int) -> str:
        """Return a size that lets the processes of all GPUs exchange tensors."""
        return default_shared_memory(gpus)

    def default_resources(self, gpus: int, weights_bytes: int) -> tuple[int, int]:
        """Return CPUs and GiB of memory; without GPUs, the memory contains the weights and the KV cache."""
        cpus, memory = super().default_resources(gpus, weights_bytes)
        if gpus:
            return cpus, memory
        return cpus, max(memory, -(-weights_bytes * 11 // (10 * GIB)) + CPU_CACHE + CPU_RUNTIME)

    def command(self, launch: Launch) -> dict[str, Tree]:
        """Return the command line; on several nodes, of the process that keeps the group together."""
        container = self._container(launch)
        return container if launch.member.role == "single" else in_group(container, launch)

    def _container(self, launch: Launch) -> dict[str, Tree]:
        """Return the command line of the engine, of Ray where the pods find each other by it."""
        role = launch.member.role
        command: list[Tree] = list(self.facts.command)
        own = self._arguments(launch)
        if launch.member.serves:
            # The last one is the outermost, and sees the answers of all others.
            keys = KEYS_CLASS if launch.spec.auth else ""
            for middleware in filter(None, (launch.middleware, keys, CONNECTIONS_CLASS)):
                command = with_own_key(command) if middleware == keys else finding(middleware, command)
                own.append(f"--middleware={middleware}")
        if launch.parallelism.ray and role == "leader":
            own += ["--distributed-executor-backend=ray"]
            # The engine is what the script's arguments are, so that nothing needs a shell's quotes.
            script: list[Tree] = ["/bin/sh", program("ray_leader.sh")]
            return {
                "command": script,
                "args": with_engine_args([*command, *own], launch.spec, list_flags(launch.version)),
            }
        if launch.parallelism.ray and role == "worker":
            return {"command": ["/bin/sh", program("ray_worker.sh")]}
        if role != "single":
            own += self._node_arguments(launch.parallelism, launch.member)
        return {"command": command, "args": with_engine_args(own, launch.spec, list_flags(launch.version))}

    def _arguments(self, launch: Launch) -> list[Tree]:
        """Return vLLM's arguments on one node, the model first."""
        spec, parallelism = launch.spec, launch.parallelism
        own: list[Tree] = [launch.weights.reference, "--served-model-name", *launch.served_names]
        own += [f"--port={spec.port}", *revision_flags(launch.weights, spec)]
        for flag, degree in (
            ("tensor", parallelism.tensor),
            ("pipeline", parallelism.pipeline),
            ("data", parallelism.data),
        ):
            own += [f"--{flag}-parallel-size={degree}"] if degree > 1 else []
        if spec.quantization:
            setting = settings.text(
                "quantization",
                spec.quantization,
                "Quantization method, by the engine's name for it.",
                origin=("spec", "quantization"),
            )
            own.append(Joined(("--quantization=", setting)))
        own += limit_arguments(spec, launch.most_context)
        traces = traces_of(spec)
        own += [] if traces is None else [f"--otlp-traces-endpoint={traces.endpoint}"]
        given = spec.engine_args if isinstance(spec.engine_args, dict) else {}
        own += flags({name: value for name, value in launch.preset_flags.items() if name not in given})
        if launch.adapters:
            if len(launch.adapters) > 1 and "max-loras" not in given:
                own.append(f"--max-loras={min(len(launch.adapters), _MOST_LORAS)}")
            loras = zip(spec.adapters, launch.adapters, strict=False)
            own += ["--enable-lora", "--lora-modules", *(f"{lora.name}={at.folder}" for lora, at in loras)]
        return [*own, *self._timeouts(launch, given)]

    def _timeouts(self, launch: Launch, given: Mapping[str, Json]) -> list[Tree]:
        """Return the flags, where the version knows them, that let starts be slow and requests finish."""
        found: list[Tree] = []
        name = "distributed-timeout-seconds"
        if _starts_together(launch.parallelism) and name not in given and self.facts.knows(name, launch.version):
            found.append(_flag(f"--{name}", launch.startup))
        if self.facts.knows("shutdown-timeout", launch.version):
            found.append(f"--shutdown-timeout={SHUTDOWN_SECONDS}")
        return found

    def connects(self, launch: Launch) -> bool:
        """Return whether it pulls weights, or gets requests, whose pictures and sounds it fetches by their URLs."""
        return launch.member.serves or not launch.weights.offline

    def environment(self, launch: Launch) -> Mapping[str, Tree]:
        """Return the folders that vLLM writes to, and its switches."""
        cache, together = launch.folders.cache, _starts_together(launch.parallelism)
        return {
            **hub_environment(launch),
            "VLLM_CACHE_ROOT": f"{cache}/vllm",
            "TORCHINDUCTOR_CACHE_DIR": f"{cache}/inductor",
            "TRITON_CACHE_DIR": f"{cache}/triton",
            "VLLM_NO_USAGE_STATS": "1",
            "VLLM_HTTP_TIMEOUT_KEEP_ALIVE": str(KEEP_ALIVE_SECONDS),
            **({} if launch.parallelism.gpus else {CPU_CACHE_VARIABLE: str(_cpu_cache(launch))}),
            **({"VLLM_ENGINE_READY_TIMEOUT_S": launch.startup} if together else {}),
            **_trace_environment(launch.spec),
        }

    def required_environment(self, launch: Launch) -> list[Tree]:
        """Return the file of API keys of pods that serve, and what pods of several nodes need to find each other."""
        auth, member = launch.spec.auth, launch.member
        variables: list[Tree] = []
        if auth and member.serves:
            variables.append({"name": KEYS_VARIABLE, "value": f"{KEY_FOLDER}/{auth.key}"})
        if member.role != "single":
            pod_ip: Tree = {"fieldRef": {"fieldPath": "status.podIP"}}
            variables.append({"name": "VLLM_HOST_IP", "valueFrom": pod_ip})
            variables += member.env
            if launch.parallelism.ray:
                variables.append({"name": "RAY_PORT", "value": str(RAY_PORT)})
                variables.append({"name": "NODES", "value": str(launch.parallelism.nodes)})
                variables.append({"name": "LEADER", "value": member.leader})
        return variables

    def secret_mounts(self, spec: TopologySpec) -> list[dict[str, Tree]]:
        """Return the mount of the API keys."""
        return [key_mount()] if spec.auth else []

    def secret_volumes(self, spec: TopologySpec) -> list[Tree]:
        """Return the volume of the API keys."""
        return [key_volume(spec.auth)] if spec.auth else []

    def _node_arguments(self, parallelism: Parallelism, member: Member) -> list[Tree]:
        """Return the arguments that let the pods of several nodes work together without Ray."""
        return [
            "--distributed-executor-backend=mp",
            f"--nnodes={parallelism.nodes}",
            _flag("--node-rank", member.rank),
            _flag("--master-addr", member.leader),
            f"--master-port={self.rendezvous_port}",
            *([] if member.serves else ["--headless"]),
        ]


def traces_of(spec: TopologySpec) -> Traces | None:
    """Return where the engine sends traces; None for nowhere."""
    return spec.monitoring.traces if spec.monitoring is not None else None


def _trace_environment(spec: TopologySpec) -> Mapping[str, Tree]:
    """Return the variables that the exporter of traces reads.

    Source: vllm/tracing.py of 0.10.2 and vllm/tracing/otel.py of 0.29.0.
    """
    traces = traces_of(spec)
    if traces is None:
        return {}
    return {"OTEL_SERVICE_NAME": Release(), "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL": traces.protocol}


def _starts_together(parallelism: Parallelism) -> bool:
    """Return whether processes that load weights on their own wait for each other."""
    return parallelism.data > 1 or parallelism.nodes > 1


def _cpu_cache(launch: Launch) -> int:
    """Return the KV cache of a pod without GPUs, in GiB: its memory without weights and runtime, at least 1."""
    return CPU_CACHE if launch.room is None else max(1, launch.room // GIB - CPU_RUNTIME)


def _flag(name: str, value: Tree) -> Tree:
    return Joined((f"{name}=", value)) if isinstance(value, Expr) else f"{name}={value}"
