"""The interface of serving engines.

Sets of the fields that several engines understand have their names in documents. The name of a block contains all of
its fields, so blocks that concern engines are listed field by field: a new field of theirs is reported on each engine
until the engine lists it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import TYPE_CHECKING, ClassVar

from kaigen.catalog.engines import EngineFacts, Version, engine_facts
from kaigen.catalog.presets import Preset
from kaigen.compile.builders.jobs import seconds
from kaigen.compile.engines.launch import Launch, Member, Parallelism, Weights
from kaigen.compile.engines.lifecycle import SETTLE_SECONDS, SHUTDOWN_SECONDS, wait_for_leader, wait_for_requests
from kaigen.compile.expressions import Tree
from kaigen.compile.problems import Problems, is_understood
from kaigen.core.json_types import Json
from kaigen.kinds.block import document_names
from kaigen.kinds.blocks import Image
from kaigen.kinds.compat import Folders
from kaigen.kinds.pod import PodFields
from kaigen.kinds.topology import TopologySpec
from kaigen.sizing.constants import GIB
from kaigen.sizing.host import HostPart
from kaigen.sizing.plan import Plan

if TYPE_CHECKING:
    from kaigen.config.lock_file import Lock

AROUND_PODS = frozenset(
    (
        *("shape.replicas", "autoscale", "rollout", "disruption", "placement.queue", "placement.priority"),
        "security.podSecurity",
        *("port", "service", "route", "inferencePool", "canary", "pool"),
        *(f"router.{name}" for name in ("policy", "sessionHeader", "replicas", "hold", "metricsFrom")),
        *(f"monitoring.{name}" for name in ("interval", "labels", "alerts", "slo", "dashboard")),
    )
)
"""Fields about what is around the pods, whatever runs in them."""

PODS = AROUND_PODS | {
    *("engine", "image", "build", "env", "params", "paramsFile", "probes", "drain"),
    *("resources", "placement", "security", "provisioning", "shape.nodes"),
    *("model.name", "model.namespace", "model.image", "model.job", "model.folder", "model.mountPath"),
    *("model.volume.claimName", "model.volume.path"),
    *document_names(PodFields),
}
"""Fields of engines whose pods kaigen makes."""

SERVER = PODS | {*("engineArgs", "servedNames", "contextLength", "auth.secret"), "model.facts"}
"""Fields of model servers."""

HUB_SERVER = SERVER | {
    *(f"model.huggingFace.{name}" for name in ("repo", "revision", "tokenSecret", "endpoint")),
    *("preset", "tokenSecret", "trustRemoteCode", "concurrency", "storage", "transfer"),
    *(f"adapters.{name}" for name in ("name", "model", "job", "volume", "image", "huggingFace")),
}
"""Fields of model servers on Hugging Face's libraries."""


class Engine(ABC):
    """A serving engine: what its pods run, and which fields of a Topology it understands.

    Attributes:
        name: value of `engine` in a spec, and name of the row in `kaigen/catalog/engines.yaml`.
        facts: that row.
        understood: the fields of `spec` that have an effect (see `kaigen.compile.problems`); others are reported.
        hints: what to do in place of a field that has none, by field or block. Default: to use an engine that
            understands it.
        managed_flags: fields of the spec by flags of the engine that kaigen sets from them.
        short_flags: long names of flags that have a short one.
        builds_pods: whether kaigen makes the pods, rather than the user.
        requires_image: whether the engine cannot run without an image.
        requires_model: whether the engine cannot run without weights.
        reads_presets: whether it can serve a preset of the catalogue.
        several_names: whether its server answers to several names of the model; others have `servedNames` with one.
        pulls_weights: whether it gets weights from the Hub itself; else kaigen's downloader fetches them before.
        default_gpus: GPUs of a pod when nothing in the spec decides it.
        rendezvous_port: port on which the pods of one replica find each other; 0 for an engine on one node.
        has_picker: whether the endpoint picker reads its metrics and requests, to choose a replica for each.
        is_ring: whether its replicas are rings: the leader knows its workers by name, and only it reads the weights.
        cpu_resources: CPUs and GiB of memory of a pod without GPUs.
    """

    name: ClassVar[str]
    understood: ClassVar[frozenset[str]]
    hints: ClassVar[Mapping[str, str]] = {}
    managed_flags: ClassVar[Mapping[str, str]] = {}
    short_flags: ClassVar[Mapping[str, str]] = {}
    builds_pods: ClassVar[bool] = True
    requires_image: ClassVar[bool] = True
    requires_model: ClassVar[bool] = True
    reads_presets: ClassVar[bool] = False
    several_names: ClassVar[bool] = False
    pulls_weights: ClassVar[bool] = True
    default_gpus: ClassVar[int] = 0
    rendezvous_port: ClassVar[int] = 0
    has_picker: ClassVar[bool] = False
    is_ring: ClassVar[bool] = False
    cpu_resources: ClassVar[tuple[int, int]] = (2, 8)

    def __init__(self, facts: EngineFacts | None = None) -> None:
        self.facts = engine_facts(self.name) if facts is None else facts

    @property
    def label(self) -> str:
        """The engine's name in messages."""
        return f"engine `{self.name}`"

    def understands(self, field: str) -> bool:
        """Return whether a field of `spec`, by its name in documents, has an effect."""
        return is_understood(field, self.understood)

    def check(self, spec: TopologySpec, problems: Problems) -> None:  # noqa: B027 - most engines check nothing more
        """Report values that this engine cannot use. Fields without effect are reported from the attributes."""

    def check_flags(  # noqa: B027 - only some know
        self, spec: TopologySpec, image: Image, parallelism: Parallelism, problems: Problems
    ) -> None:
        """Report flags of `engineArgs` that the engine's version in an image, or its group of pods, does not accept."""

    def check_weights(  # noqa: B027 - only some can tell
        self,
        spec: TopologySpec,
        weights: Weights,
        preset_flags: Mapping[str, Json],
        folders: Folders,
        image: Image,
        lock: Lock | None,
        problems: Problems,
    ) -> None:
        """Report weights and further repositories that the engine cannot read.

        Args:
            spec: the spec.
            weights: the weights of the model.
            preset_flags: flags that the model needs according to the catalogue.
            folders: folders in the engine's container.
            image: image of the engine.
            lock: what the names of the specs stand for; None for nothing.
            problems: collects what is wrong.
        """

    def port(self, spec: TopologySpec, problems: Problems) -> int:
        """Return the port that the engine listens on."""
        return spec.port

    def preset_flags(self, preset: Preset, *, templates: str) -> Mapping[str, Json]:
        """Return the flags that a preset needs.

        Args:
            preset: the catalogue's entry.
            templates: folder of chat templates in the engine's image; empty where it is unknown.
        """
        return {}

    def preset_env(self, preset: Preset) -> Mapping[str, str]:
        """Return the variables that a preset needs."""
        return {}

    def parallelism(
        self, spec: TopologySpec, image: Image, plan: Plan | None, gpus: int, problems: Problems
    ) -> Parallelism:
        """Return how one replica uses GPUs and nodes; one node unless an engine overrides this.

        Args:
            spec: the spec.
            image: image of the engine.
            plan: how the model fits; None when the model or the GPUs are unknown.
            gpus: GPUs of each pod.
            problems: collects what cannot work.
        """
        if (spec.shape.nodes or 1) > 1:
            problems.error(
                "KG0343",
                f"{self.label} runs a replica on one node only",
                ("spec", "shape", "nodes"),
                "use `engine: vllm`, which can use several nodes",
            )
        return Parallelism(gpus=gpus)

    def version(self, spec: TopologySpec, image: Image) -> Version | None:
        """Return the engine's version; None when it is unknown or makes no difference."""
        return None

    def default_resources(self, gpus: int, weights_bytes: int) -> tuple[int, int]:
        """Return the CPUs and GiB of memory of a pod, few enough for the smallest nodes with so many GPUs.

        Args:
            gpus: GPUs of the pod.
            weights_bytes: size of the weights that the pod loads; 0 when unknown.
        """
        if not gpus:
            return self.cpu_resources
        # Weights pass through the page cache, which counts as the pod's memory. Nodes with one GPU may have less memory
        # than the GPU, nodes with several have more.
        loaded = -(-weights_bytes * (50 if gpus == 1 else 80) // (100 * GIB))
        return 2 * gpus, max(12 if gpus == 1 else 16 * gpus, loaded)

    def host_parts(self, spec: TopologySpec, parallelism: Parallelism) -> tuple[HostPart, ...]:
        """Return the memory of the node that flags of the spec reserve in each pod."""
        return ()

    def shared_memory(self, gpus: int) -> str:
        """Return the size of `/dev/shm`; empty for the container runtime's default."""
        return ""

    @abstractmethod
    def command(self, launch: Launch) -> dict[str, Tree]:
        """Return `command` and `args` of the container."""

    def container_fields(self, member: Member) -> dict[str, Tree]:
        """Return further fields of the container."""
        return {}

    def ports(self, spec: TopologySpec, member: Member) -> list[Tree]:
        """Return the ports of the container."""
        return [{"name": "http", "containerPort": spec.port, "protocol": "TCP"}] if member.serves else []

    def data_ports(self, spec: TopologySpec, parallelism: Parallelism) -> list[Tree]:
        """Return the further ports that clients of the engine connect to, as ports of a NetworkPolicy."""
        return []

    def probes(self, launch: Launch) -> dict[str, Tree] | None:
        """Return the probes of the container; None for those of the HTTP paths of `facts` and of the spec."""
        return None

    def probe_port(self, launch: Launch) -> int | None:
        """Return the port that answers the HTTP paths of `facts` for probes; None for the port of requests."""
        return None

    def connects(self, launch: Launch) -> bool:
        """Return whether the engine may connect to servers outside the cluster."""
        return True

    def gates(self, launch: Launch) -> list[Tree]:
        """Return containers that run before the engine's, after those of the weights."""
        return []

    def sidecars(self, launch: Launch) -> list[Tree]:
        """Return containers that run next to the engine's."""
        return []

    def environment(self, launch: Launch) -> Mapping[str, Tree]:
        """Return variables that the spec may override."""
        return {"HOME": launch.folders.cache}

    def required_environment(self, launch: Launch) -> list[Tree]:
        """Return variables that the spec may not override."""
        return list(launch.member.env)

    def secret_mounts(self, spec: TopologySpec) -> list[dict[str, Tree]]:
        """Return the mounts of Secrets that the engine reads."""
        return []

    def secret_volumes(self, spec: TopologySpec) -> list[Tree]:
        """Return the volumes of Secrets that the engine reads."""
        return []

    def grace_seconds(self, spec: TopologySpec) -> int:
        """Return how long a pod may take to stop."""
        drain = seconds(spec.drain)
        return drain + (SHUTDOWN_SECONDS if self.facts.drain_metrics else SETTLE_SECONDS + 10) + 10

    def pre_stop(self, spec: TopologySpec, member: Member) -> dict[str, Tree]:
        """Return the hook that runs before a pod stops."""
        drain = seconds(spec.drain)
        if not self.facts.drain_metrics:
            return {"sleep": {"seconds": SETTLE_SECONDS}}
        if not member.serves:
            # The leader still works on its requests meanwhile, and needs its workers for that.
            return wait_for_leader(member, drain + SHUTDOWN_SECONDS)
        return wait_for_requests(spec.port, self.facts.drain_metrics, drain)
