"""`inference_config.yaml`: the flags of vLLM in a ConfigMap, as fields and flags of a Topology."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kaigen.catalog import vllm_flags
from kaigen.core.json_types import FieldPath
from kaigen.dialects.draft import Draft
from kaigen.dialects.kaito.config_file import ConfigFile, read_config_file
from kaigen.dialects.kaito.nodes import Nodes
from kaigen.dialects.kaito.resource import ResourceLowering, Runtime

SECTION = "vllm"
"""Key of vLLM's flags in the file."""

KEY = "inference_config.yaml"

_FIELDS: Mapping[str, tuple[FieldPath, type]] = {
    "max-model-len": (("contextLength",), int),
    "max-num-seqs": (("concurrency",), int),
    "quantization": (("quantization",), str),
    "tensor-parallel-size": (("shape", "tensorParallel"), int),
    "pipeline-parallel-size": (("shape", "pipelineParallel"), int),
    "data-parallel-size": (("shape", "dataParallel"), int),
    "trust-remote-code": (("trustRemoteCode",), bool),
}
"""Flags that are fields of a Topology, with the type of each."""

_MANAGED_FLAGS = ("model", "port", "host", "revision", "api-key", "download-dir", "lora-modules", "nnodes", "node-rank")
"""Flags that kaigen sets itself."""

_NO_EFFECT: Mapping[str, str] = {
    "kv_cache_cpu_memory_utilization": "kaigen does not move the cache to the node's memory; set flags of vLLM for it",
    "max_probe_steps": "KAITO no longer reads it either",
}
"""Keys next to `vllm` that KAITO knows and kaigen does not use, and why."""


def put_config(
    draft: Draft, name: str, at: FieldPath, runtime: Runtime, nodes: Nodes, lowering: ResourceLowering
) -> None:
    """Put the flags of a ConfigMap into a Topology.

    Args:
        draft: the Topology.
        name: of the ConfigMap.
        at: the field that names it.
        runtime: of the model.
        nodes: what is known about the nodes.
        lowering: collects problems.
    """
    document = lowering.find_object("v1", "ConfigMap", name)
    if document is None:
        lowering.error(
            "KG0418",
            f"ConfigMap `{name}` is not among the specs of namespace `{lowering.namespace}`, "
            "so kaigen cannot read the flags in it",
            at,
            "add the ConfigMap to this file or to another spec file",
        )
        return
    config = read_config_file(document, KEY, name, at, lowering)
    if config is None:
        return
    for key, value in config.mapping.items():
        if key in _NO_EFFECT:
            config.warning("KG0405", f"`{key}` has no effect: {_NO_EFFECT[key]}", (key,), "delete it")
        elif key != SECTION:
            config.error("KG0418", f"unknown key `{key}`", (key,), "put flags of vLLM under `vllm`")
        elif not isinstance(value, dict):
            config.error("KG0418", "`vllm` must be a mapping", (key,))
        elif runtime is not Runtime.VLLM:
            lowering.unused(at, "vLLM does not serve this model")
        else:
            for flag, flag_value in value.items():
                _put_flag(draft, flag, flag_value, config, at, nodes)


def _put_flag(draft: Draft, written: str, value: Any, config: ConfigFile, at: FieldPath, nodes: Nodes) -> None:
    here = (SECTION, written)
    flag = written.strip("-").replace("_", "-")
    if isinstance(value, str) and value in {"True", "true", "False", "false"}:
        value = value in {"True", "true"}
    if isinstance(value, dict | list) or value is None:
        config.error("KG0418", f"`{written}` must be one value", here, "KAITO accepts scalars only")
    elif vllm_flags.is_removed(flag):
        config.warning("KG0418", f"`{written}` is left out: vLLM removed it and would not start", here, "delete it")
    elif flag in _MANAGED_FLAGS:
        config.error("KG0418", f"`{written}` is managed by kaigen", here, "delete it")
    elif flag == "served-model-name":
        draft.put(("spec", "servedNames"), [str(value)], at, config.source(here))
    elif flag == "tensor-parallel-size" and nodes.mig and value not in {1, "1"}:
        message = "MIG slices cannot share a model by tensor parallelism"
        config.error("KG0412", message, here, "request whole GPUs")
    elif flag in _FIELDS:
        _put_field(draft, flag, value, config, here, at, nodes)
    else:
        draft.put(("spec", "engineArgs", flag), value, at, config.source(here))


def _put_field(
    draft: Draft, flag: str, value: Any, config: ConfigFile, here: FieldPath, at: FieldPath, nodes: Nodes
) -> None:
    field, kind = _FIELDS[flag]
    if kind is int and isinstance(value, str) and value.isascii() and value.isdigit():
        value = int(value)
    if flag == "max-model-len" and value in {"auto", -1}:
        return
    if flag == "tensor-parallel-size" and nodes.gpus is not None and isinstance(value, int):
        available = nodes.gpus * (nodes.count or 1)
        if value > available:
            config.error(
                "KG0416",
                f"`{here[-1]}` requires {value} GPUs, and the nodes have {available}",
                here,
                "delete it, and kaigen derives it",
            )
            return
    draft.put(("spec", *field), value, at, config.source(here))
