"""What engines of vLLM exchange with each other and with routers: KV events, KV transfer, and shared KV caches."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from kaigen.compile.engines.launch import Parallelism, Weights
from kaigen.compile.engines.vllm_flags import flag_values, given_flags
from kaigen.compile.expressions import Tree
from kaigen.compile.problems import Problems
from kaigen.core.json_types import FieldPath
from kaigen.kinds.compat import Folders
from kaigen.kinds.topology import TopologySpec
from kaigen.sizing.host import json_flag

_EVENTS_ENDPOINT = "tcp://*:5557"
"""Default of `endpoint` (source: vLLM's KVEventsConfig). Each data parallel rank adds its number to the port."""

_NIXL_PORT = 5600
"""Default of `VLLM_NIXL_SIDE_CHANNEL_PORT` (source: vllm/envs.py). Data parallel ranks add their number to the port."""

_NIXL_VARIABLE = "VLLM_NIXL_SIDE_CHANNEL_PORT"
_BALANCERS = {
    **dict.fromkeys(("data-parallel-hybrid-lb", "-dph"), "data-parallel-hybrid-lb"),
    **dict.fromkeys(("data-parallel-external-lb", "-dpe"), "data-parallel-external-lb"),
}
_REMOTE = re.compile(r"LMCACHE_(CONFIG_FILE|.*REMOTE.*)", re.IGNORECASE)
"""Variables of LMCache that name a server, or a file that may."""


def data_ports(spec: TopologySpec, parallelism: Parallelism) -> list[Tree]:
    """Return the ports of KV events and of NIXL's side channel, as ports of a NetworkPolicy.

    Args:
        spec: the spec.
        parallelism: has the number of data parallel ranks.
    """
    ports: list[int] = []
    events = json_flag(flag_values(spec), "kv-events-config")
    if events.get("enable_kv_cache_events"):
        endpoints = (events.get("endpoint", _EVENTS_ENDPOINT), events.get("replay_endpoint"))
        ports += [number for endpoint in endpoints if (number := _port(endpoint))]
    if any("Nixl" in name for name, _ in _connectors(spec)):
        given = spec.env.get(_NIXL_VARIABLE, _NIXL_PORT)
        ports += [number] if (number := _port(given)) else []
    found: list[Tree] = []
    for first in dict.fromkeys(ports):
        last: dict[str, Tree] = {"endPort": first + parallelism.data - 1} if parallelism.data > 1 else {}
        found.append({"port": first, "protocol": "TCP", **last})
    return found


def check_data_plane(spec: TopologySpec, parallelism: Parallelism, problems: Problems) -> None:
    """Report load balancing that kaigen's groups of pods cannot do, and ports that the NetworkPolicy does not open.

    Args:
        spec: the spec.
        parallelism: how one replica uses nodes.
        problems: collects what is wrong.
    """
    for given in given_flags(spec):
        if given.name in _BALANCERS and given.value is not False and parallelism.nodes > 1:
            problems.error(
                "KG0343",
                f"`--{_BALANCERS[given.name]}` needs a server on each node, and the workers of a group are headless",
                given.path,
                "leave it out: the leader distributes the requests. Or use one node for each replica",
            )
    if any("Nixl" in name for name, _ in _connectors(spec)):
        path: FieldPath = ("spec", "engineArgs")
        message = "the NetworkPolicy opens the side channel of NIXL, and not the ports that UCX chooses without RDMA"
        hint = "use RDMA, or set `networkPolicy.enabled: false` in `values` and write a policy of your own"
        problems.warning("KG0382", message, path, hint)


def check_shared_cache(spec: TopologySpec, weights: Weights, folders: Folders, problems: Problems) -> None:
    """Warn of a KV cache that several engines share, which identifies models by the path of their weights.

    Args:
        spec: the spec.
        weights: the weights of the model.
        folders: folders in the container.
        problems: collects the warning.
    """
    if weights.reference != folders.model or not any(_is_shared(name, more, spec) for name, more in _connectors(spec)):
        return
    problems.warning(
        "KG0383",
        f"the shared KV cache identifies models by their path, and that of every Model is `{folders.model}`",
        ("spec", "engineArgs"),
        "set `model.mountPath` to a path with the name and the revision of the model, such as `/model/NAME-REVISION`",
    )


def _is_shared(name: str, more: Mapping[str, Any], spec: TopologySpec) -> bool:
    """Return whether a connector stores KV caches outside of the pod."""
    if "MooncakeStore" in name or name == "LMCacheMPConnector":
        return True
    return "LMCache" in name and (
        any(_REMOTE.fullmatch(variable) for variable in spec.env) or any("remote" in key for key in more)
    )


def _connectors(spec: TopologySpec) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield name and further configuration of each connector, also of those in a MultiConnector."""
    pending = [json_flag(flag_values(spec), "kv-transfer-config")]
    while pending:
        config = pending.pop()
        more = config.get("kv_connector_extra_config")
        more = more if isinstance(more, dict) else {}
        yield str(config.get("kv_connector", "")), more
        inner = more.get("connectors")
        pending += [each for each in inner if isinstance(each, dict)] if isinstance(inner, list) else []


def _port(value: object) -> int | None:
    """Return the port at the end of an endpoint such as `tcp://*:5557`; None for one without."""
    text = str(value).rpartition(":")[2]
    return int(text) if text.isdigit() and 0 < int(text) < 65536 else None
