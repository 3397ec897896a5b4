"""distributed-llama: one model split over the CPUs of a root and its workers, behind a proxy that checks requests.

Facts of the program (tried with v0.16.2 and v0.16.4): the first TCP connection to a worker is its root, and one that
closes ends the worker; the API ends on a connection without a request, and on requests that it cannot parse. So nothing
connects to its ports but the program itself and the proxy: probes read `/proc/net/tcp`, and the root waits for its
workers by DNS.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar

from kaigen.catalog.engines import Version, parse_version, tag_version
from kaigen.compile.builders.jobs import seconds
from kaigen.compile.builders.pods import NO_NETWORK, container_security, image_fields, image_ref
from kaigen.compile.engines.arguments import KEY_FOLDER, key_mount, key_volume, with_engine_args
from kaigen.compile.engines.base import SERVER, Engine
from kaigen.compile.engines.launch import Launch, Member, Parallelism
from kaigen.compile.engines.lifecycle import SETTLE_SECONDS, SHUTDOWN_SECONDS, http_probe, probe_flags, probe_port
from kaigen.compile.expressions import Joined, Release, Tree
from kaigen.compile.field_expressions import ListFlags
from kaigen.compile.problems import Problems
from kaigen.core.json_types import FieldPath
from kaigen.kinds.blocks import GpuShare, Image
from kaigen.kinds.exposure import Auth
from kaigen.kinds.topology import TopologySpec
from kaigen.kubernetes.quantities import NANO, nano
from kaigen.programs.files import program
from kaigen.sizing.ring import BUFFER_TYPES, RING_FLAGS, wrong_value

WORKER_PORT = 9990
API_PORT = 9991
"""Port of the API, which only the proxy in the same pod connects to."""

READY_SUFFIX = "-ready"
"""End of the name of the Service that has the addresses of the workers that are ready."""

_LISTEN, _ESTABLISHED = "0A", "01"
_ADDRESS = "[0-9A-F]{8}"
_PROXY_RESOURCES: Mapping[str, Any] = {"requests": {"cpu": "100m", "memory": "128Mi"}, "limits": {"memory": "128Mi"}}


def _sockets(port: int, *states: str) -> str:
    """Return the expression that finds lines of `/proc/net/tcp`: sockets of a local port in one of these states."""
    remote = f"{_ADDRESS}:[0-9A-F]{{4}}"
    return f"^ *[0-9]+: {_ADDRESS}:{port:04X} {remote} ({'|'.join(states)}) "


def _key_flags(auth: Auth | None) -> list[Tree]:
    """Return the flags of the proxy about the API keys that requests must have."""
    if auth is None:
        return []
    if auth.sha256 is not None:
        return [f"--api-key-sha256={checksum}" for checksum in auth.sha256]
    return [f"--api-key-file={KEY_FOLDER}/{auth.key}"]


class DistributedLlama(Engine):
    """The root of a ring with its proxy, and its workers."""

    name = "distributedLlama"
    understood = SERVER | {"auth.sha256", "engineVersion", "quantization", "shape.groups", "model.volume.files"}
    hints: ClassVar[Mapping[str, str]] = {
        "model.huggingFace": "create a Model with `convert`, and set `model` to its name",
        "preset": "set `model` to a Model with `convert`",
        "tokenSecret": "set it in the Model",
        "trustRemoteCode": "leave it out",
        "concurrency": "leave it out: a ring answers one request at a time; set `shape.replicas` for more",
        "command": "use `engineArgs` for further flags",
        "args": "use `engineArgs` for further flags",
        "storage": "leave it out: the root reads the Model, and workers get their share from the root",
        "transfer": "set it in the Model",
        "shape": "set `shape.nodes`: a ring splits each layer over all nodes",
    }
    managed_flags: ClassVar[Mapping[str, str]] = {
        "buffer-float-type": "quantization",
        "host": "engineVersion",
        "max-seq-len": "contextLength",
        "model": "model",
        "nthreads": "resources.cpu",
        "port": "port",
        "tokenizer": "model",
        "workers": "shape.nodes",
    }
    several_names = True
    rendezvous_port = WORKER_PORT
    is_ring = True

    def check(self, spec: TopologySpec, problems: Problems) -> None:
        """Report a port that the program itself uses, and GPUs that it would not use."""
        if spec.port in (WORKER_PORT, API_PORT):
            message = f"port {spec.port} is that of distributed-llama itself"
            problems.error("KG0393", message, ("spec", "port"), "use another port, such as 8000")
        gpus = spec.resources.gpus
        count = gpus.count if isinstance(gpus, GpuShare) else gpus
        if count is not None and count > 1:
            problems.error(
                "KG0393",
                f"each node of a ring uses one GPU, and would request {count}",
                ("spec", "resources", "gpus"),
                "set 1, and more `shape.nodes` for more GPUs",
            )

    def check_flags(self, spec: TopologySpec, image: Image, parallelism: Parallelism, problems: Problems) -> None:
        """Report flags that the program does not know, which would end it, and values that it would misread."""
        turbo: tuple[Any, FieldPath] = (None, ())
        for written, value, path in _given(spec.engine_args):
            name = written.lstrip("-").replace("_", "-")
            if name in self.managed_flags:
                continue
            if name not in RING_FLAGS:
                message = f"distributed-llama has no flag `--{name}` that kaigen knows"
                problems.error("KG0393", message, path, f"known: {', '.join(RING_FLAGS)}")
                continue
            message, hint = wrong_value(name, value)
            if message:
                problems.error("KG0393", message, path, hint)
            elif name == "net-turbo":
                turbo = value, path
        cpu = spec.resources.cpu
        if str(turbo[0]) == "1" and cpu is not None and (nano(cpu) or 0) % NANO:
            problems.warning(
                "KG0327",
                f"`--net-turbo` needs CPUs of its own, and a node with `cpu: {cpu}` shares them with other containers",
                turbo[1],
                "set `resources.cpu` to a whole number, or delete the flag",
            )

    def version(self, spec: TopologySpec, image: Image) -> Version | None:
        """Return the version that the spec gives, else the image's tag; None when neither does."""
        return parse_version(spec.engine_version) if spec.engine_version else tag_version(image_ref(image))

    def _knows(self, flag: str, launch: Launch) -> bool:
        """Return whether the version is known to have a feature: an unknown flag ends the program."""
        return self.facts.knows(flag, launch.version)

    def command(self, launch: Launch) -> dict[str, Tree]:
        """Return the command line of the root or of a worker."""
        threads = [f"--nthreads={1 if launch.parallelism.gpus else launch.cpus}"]
        ring, member = launch.ring, launch.member
        assert ring is not None
        if not member.serves:
            own: list[Tree] = ["dllama", "worker", f"--port={WORKER_PORT}", *threads]
            return {"command": ["sh", program("ring_worker.sh")], "args": _flags(_separate(own), launch)}
        own = [*self.facts.command]
        if member.peers:
            own += ["--workers", *(Joined((peer, f":{WORKER_PORT}")) for peer in member.peers)]
        folder, names = launch.weights.reference, launch.weights.files
        model, tokenizer = (f"{folder}/{names.get(name, name)}" for name in ("model.m", "tokenizer.t"))
        own += [
            *("--model", model, "--tokenizer", tokenizer),
            f"--port={API_PORT}",
            *(["--host=127.0.0.1"] if self._knows("host", launch) else []),
            *threads,
            f"--buffer-float-type={BUFFER_TYPES[ring.weights]}",
            f"--max-seq-len={ring.context}",
        ]
        return {"command": ["sh", program("ring_root.sh")], "args": _flags(_separate(own), launch)}

    def container_fields(self, member: Member) -> dict[str, Tree]:
        """Return a terminal: without one the program keeps its messages, and loses them when it crashes."""
        return {"tty": True}

    def ports(self, spec: TopologySpec, member: Member) -> list[Tree]:
        """Return no ports of the root, whose API only the proxy uses, and that of a worker."""
        if member.serves:
            return []
        return [{"name": "ring", "containerPort": WORKER_PORT, "protocol": "TCP"}]

    def probes(self, launch: Launch) -> dict[str, Tree] | None:
        """Return probes that read the table of sockets: opening a port would end the program."""
        if not launch.member.serves:
            command: Tree = _grep(WORKER_PORT, _LISTEN, _ESTABLISHED)
            return {"readinessProbe": {"exec": {"command": command}, "periodSeconds": 5, "timeoutSeconds": 5}}
        listens: dict[str, Tree] = {"exec": {"command": _grep(API_PORT, _LISTEN)}}
        startup = {"periodSeconds": 10, "timeoutSeconds": 5, "failureThreshold": launch.startup_attempts}
        probes: dict[str, Tree] = {"startupProbe": {**listens, **startup}}
        if launch.member.peers:
            # It notices a lost worker with the next request only, and old versions never connect again. New ones get
            # a minute to do so.
            attempts = 6 if self._knows("reconnect", launch) else 2
            remote = f"{_ADDRESS}:[0-9A-F]{{4}} {_ADDRESS}:{WORKER_PORT:04X} {_ESTABLISHED} "
            count: Tree = ["sh", program("count_sockets.sh"), str(len(launch.member.peers)), remote]
            probes["livenessProbe"] = {
                "exec": {"command": count},
                "periodSeconds": 10,
                "timeoutSeconds": 5,
                "failureThreshold": attempts,
            }
        return probes

    def connects(self, launch: Launch) -> bool:
        """Return False: the program loads a folder, and connects to its peers only."""
        return False

    def gates(self, launch: Launch) -> list[Tree]:
        """Return the container of the root that waits until DNS has all workers as ready."""
        peers = launch.member.peers
        if not peers:
            return []
        return [
            {
                "name": "wait-for-workers",
                **NO_NETWORK,
                **image_fields(launch.images["ringproxy"], "proxy.", ()),
                "args": ["wait", Joined(("--ready=", Release(READY_SUFFIX))), *peers],
                **({"env": list(launch.member.env)} if launch.member.env else {}),
                "resources": {"requests": {"cpu": "10m", "memory": "64Mi"}, "limits": {"memory": "64Mi"}},
                "securityContext": container_security(read_only=True),
                "terminationMessagePolicy": "FallbackToLogsOnError",
            }
        ]

    def sidecars(self, launch: Launch) -> list[Tree]:
        """Return the proxy of the root."""
        if not launch.member.serves:
            return []
        spec, ring = launch.spec, launch.ring
        assert ring is not None
        port = probe_port(tag_version(launch.images["ringproxy"]), spec, WORKER_PORT, API_PORT)
        ready = http_probe(spec.probes.ready, self.facts.ready, port)
        live = http_probe(spec.probes.live, self.facts.live, port)
        return [
            {
                "name": "proxy",
                **NO_NETWORK,
                **image_fields(launch.images["ringproxy"], "proxy.", ()),
                "args": [
                    "serve",
                    f"--port={spec.port}",
                    *probe_flags(port),
                    f"--upstream-port={API_PORT}",
                    *(f"--model-name={name}" for name in launch.served_names),
                    f"--context={ring.context}",
                    f"--drain-timeout={seconds(spec.drain)}s",
                    *_key_flags(spec.auth),
                ],
                "ports": [{"name": "http", "containerPort": spec.port, "protocol": "TCP"}],
                "resources": dict(_PROXY_RESOURCES),
                "readinessProbe": {**ready, "periodSeconds": 5, "timeoutSeconds": 5, "failureThreshold": 3},
                "livenessProbe": {**live, "periodSeconds": 10, "timeoutSeconds": 10, "failureThreshold": 6},
                "lifecycle": {"preStop": {"sleep": {"seconds": SETTLE_SECONDS}}},
                "securityContext": container_security(read_only=True),
                "terminationMessagePolicy": "FallbackToLogsOnError",
                **({"volumeMounts": [key_mount()]} if spec.auth and spec.auth.secret else {}),
            }
        ]

    def secret_volumes(self, spec: TopologySpec) -> list[Tree]:
        """Return the volume of the API key, which the proxy reads."""
        return [key_volume(spec.auth)] if spec.auth and spec.auth.secret else []

    def required_environment(self, launch: Launch) -> list[Tree]:
        """Return the variables of the root that the names of its workers contain."""
        return list(launch.member.env) if launch.member.serves else []

    def grace_seconds(self, spec: TopologySpec) -> int:
        """Return the time for the requests in flight, which the proxy finishes."""
        return seconds(spec.drain) + SETTLE_SECONDS + SHUTDOWN_SECONDS + 10

    def pre_stop(self, spec: TopologySpec, member: Member) -> dict[str, Tree]:
        """Return the hook that waits: the root for its proxy, and a worker for its root."""
        sockets = _sockets(WORKER_PORT, _ESTABLISHED)
        if member.serves:
            sockets = f"{_sockets(spec.port, _LISTEN)}|{_sockets(API_PORT, _ESTABLISHED)}"
        longest = seconds(spec.drain) + SETTLE_SECONDS + SHUTDOWN_SECONDS
        return {"exec": {"command": ["sh", program("wait_for_sockets.sh"), str(longest), sockets]}}


def _given(arguments: Mapping[str, Any] | Sequence[str]) -> Iterator[tuple[str, Any, FieldPath]]:
    """Yield the flags that a spec sets: as they are written, value (None for none), and place of the value."""
    at: FieldPath = ("spec", "engineArgs")
    if isinstance(arguments, Mapping):
        for name, value in arguments.items():
            yield name, value, (*at, name)
        return
    for index, written in enumerate(arguments):
        if written.startswith("--"):
            has_value = index + 1 < len(arguments) and not arguments[index + 1].startswith("--")
            value = arguments[index + 1] if has_value else None
            yield written, value, (*at, index + has_value)


def _grep(port: int, *states: str) -> list[Tree]:
    return ["grep", "-Eq", _sockets(port, *states), "/proc/net/tcp"]


def _separate(arguments: list[Tree]) -> list[Tree]:
    """Return arguments with each flag apart from its value, as the program reads them."""
    separate: list[Tree] = []
    for each in arguments:
        separate += each.split("=", 1) if isinstance(each, str) and each.startswith("--") else [each]
    return separate


def _flags(own: list[Tree], launch: Launch) -> Tree:
    """Return the arguments with the spec's own.

    The program waits for messages in a loop that takes a whole CPU, which makes it 200 times as slow where containers
    share CPUs. Nothing in a pod says that they do not, so it must be asked for.
    """
    given = launch.spec.engine_args
    names = [name.lstrip("-").replace("_", "-") for name in given]
    turbo = [] if "net-turbo" in names else ["--net-turbo", "0"]
    gpu = ["--gpu-index", "0"] if launch.parallelism.gpus and "gpu-index" not in names else []
    return with_engine_args([*own, *turbo, *gpu], launch.spec, ListFlags(pairs=True))
