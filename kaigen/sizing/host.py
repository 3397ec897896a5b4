"""Memory of the node that flags of vLLM reserve in each pod, in addition to what every engine needs."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from math import ceil

from msgspec import Struct

from kaigen.core.json_types import Json
from kaigen.sizing.constants import GIB

_SHARED = "OffloadingConnector"
"""The connector that keeps its cache in a file in /dev/shm, which all processes of an engine map.

Source: vllm/v1/kv_offload/cpu/shared_offload_region.py, since 0.21. It creates the file in its full size. Since 0.28 it
first calls `check_shm_free_space`, which refuses a size above the free space of /dev/shm.
"""

_SIMPLE = "SimpleCPUOffloadConnector"
"""The connector that keeps it in memory of its processes (source: vllm/v1/simple_kv_offload/worker.py)."""

_SIMPLE_DEFAULT = 8 * GIB
"""What it takes without a size (source: simple_cpu_offload_connector.py, DEFAULT_CPU_CAPACITY_BYTES)."""


class HostPart(Struct, frozen=True):
    """Memory of the node that one flag reserves in each pod.

    Attributes:
        name: what it is for.
        gib: its size.
        shared: whether it is in /dev/shm, which counts as the pod's memory.
        flag: the flag or variable.
    """

    name: str
    gib: float
    shared: bool
    flag: str


def host_parts(flags: Mapping[str, Json], gpus: int, engines: int) -> tuple[HostPart, ...]:
    """Return what the flags of an engine reserve in each pod.

    `swap-space` is not among them: nothing of 0.11 allocates it, and 0.18 no longer has it.

    Args:
        flags: by name without dashes in front.
        gpus: GPUs of the pod.
        engines: copies of the model in the pod, of which each has a cache of its own.
    """
    parts = [_offloaded_cache(flags, engines), *_connectors(json_flag(flags, "kv-transfer-config"), engines)]
    weights = _number(flags.get("cpu-offload-gb")) * gpus
    parts.append(HostPart("offloaded weights", weights, shared=False, flag="cpu-offload-gb"))
    return tuple(part for part in parts if part.gib > 0)


def in_gib(parts: Iterable[HostPart]) -> int:
    """Return the size of parts together, in whole GiB."""
    return ceil(sum(part.gib for part in parts))


def _offloaded_cache(flags: Mapping[str, Json], engines: int) -> HostPart:
    """Return the cache of `kv-offloading-size`, which is of all GPUs of an engine (source: vllm/config/cache.py)."""
    shared = flags.get("kv-offloading-backend", "native") == "native"
    size = _number(flags.get("kv-offloading-size")) * engines
    return HostPart("offloaded KV cache", size, shared=shared, flag="kv-offloading-size")


def _connectors(config: Mapping[str, Json], engines: int) -> Iterable[HostPart]:
    """Yield the caches of connectors, also of those in a MultiConnector."""
    extra = config.get("kv_connector_extra_config")
    extra = extra if isinstance(extra, dict) else {}
    name = config.get("kv_connector")
    if name in {_SHARED, _SIMPLE}:
        default = _SIMPLE_DEFAULT if name == _SIMPLE else 0
        size = (_number(extra.get("cpu_bytes_to_use")) or default) / GIB * engines
        yield HostPart("offloaded KV cache", size, shared=name == _SHARED, flag="kv-transfer-config")
    inner = extra.get("connectors")
    for each in inner if isinstance(inner, list) else []:
        if isinstance(each, dict):
            yield from _connectors(each, engines)


def json_flag(flags: Mapping[str, Json], name: str) -> Mapping[str, Json]:
    """Return the value of a flag that is an object: as an object, as JSON, or as flags such as `NAME.kv_connector`.

    Args:
        flags: by name without dashes in front.
        name: of the flag.
    """
    value = flags.get(name)
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except ValueError:
            value = None
    found: dict[str, Json] = dict(value) if isinstance(value, dict) else {}
    for written, inner in flags.items():
        first, *path = written.split(".")
        if first == name and path:
            place = found
            for key in path[:-1]:
                below = place.get(key.replace("-", "_"))
                place[key.replace("-", "_")] = place = dict(below) if isinstance(below, dict) else {}
            place[path[-1].replace("-", "_")] = inner
    return found


def _number(value: Json) -> float:
    try:
        return max(0.0, float(value)) if isinstance(value, int | float | str) and not isinstance(value, bool) else 0.0
    except ValueError:
        return 0.0
