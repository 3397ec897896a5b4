"""`inference_config.yaml`, the flags of vLLM that a ConfigMap holds, as fields and flags of a Topology."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kaigen.dialects.draft import Draft
from kaigen.dialects.kaito.nodes import Nodes
from kaigen.dialects.kaito.reading import Reading
from kaigen.kinds.positioned import Positioned
from kaigen.kinds.spec import Path

KEY = "inference_config.yaml"

_FIELDS: Mapping[str, tuple[Path, type]] = {
    "max-model-len": (("contextLength",), int),
    "max-num-seqs": (("concurrency",), int),
    "quantization": (("quantization",), str),
    "tensor-parallel-size": (("shape", "tensorParallel"), int),
    "pipeline-parallel-size": (("shape", "pipelineParallel"), int),
    "data-parallel-size": (("shape", "dataParallel"), int),
    "trust-remote-code": (("trustRemoteCode",), bool),
}
"""Flags that fields of a Topology stand for."""

_OURS = (
    "model",
    "port",
    "host",
    "revision",
    "api-key",
    "download-dir",
    "lora-modules",
    "nnodes",
    "node-rank",
)
"""Flags that kaigen sets by what the resource says."""

_GONE: Mapping[str, str] = {
    "swap-space": "0.18",
}
"""Flags by the version of vLLM that no longer takes them; its parser is strict, so the server would not start.

Source: issue 1210 of unslothai/unsloth-zoo, which lists the flags of every release.
"""

_BESIDE: Mapping[str, str] = {
    "kv_cache_cpu_memory_utilization": "kaigen moves no cache to the node's memory: say it in vLLM's own flags",
    "max_probe_steps": "KAITO does not read it any more either",
}


def read_map(
    document: Positioned, key: str, at: Path, name: str, reading: Reading
) -> Mapping[str, Any] | None:
    """The YAML mapping under a key of a ConfigMap; None, and told, when there is none."""
    data = document.data.get("data")
    text = data.get(key) if isinstance(data, dict) else None
    if not isinstance(text, str):
        reading.error("KG0418", f"ConfigMap `{name}` has no key `{key}`", at, f"add `{key}` to it")
        return None
    import yaml

    try:
        found = yaml.load(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = f", line {mark.line + 1}" if mark is not None else ""
        reading.error("KG0418", f"`{key}` of ConfigMap `{name}`{where} is no YAML", at)
        return None
    if not isinstance(found, dict) or not all(isinstance(key, str) for key in found):
        reading.error("KG0418", f"`{key}` of ConfigMap `{name}` is no mapping", at)
        return None
    return found


def put_config(draft: Draft, name: str, at: Path, engine: str, nodes: Nodes, reading: Reading) -> None:
    """Put a ConfigMap's flags into a Topology.

    Args:
        draft: the Topology.
        name: of the ConfigMap.
        at: where the resource names it.
        engine: of the Topology.
        nodes: what is known of the nodes.
        reading: takes what is wrong.
    """
    document = reading.find_object("v1", "ConfigMap", name, reading.metadata.namespace)
    if document is None:
        reading.error(
            "KG0418",
            f"ConfigMap `{name}` is not in this file, so kaigen cannot read the flags in it",
            at,
            "put it behind a line `---` of this file: kaigen makes flags of it and checks them",
        )
        return
    reading.consume(document)
    config = read_map(document, KEY, at, name, reading)
    if config is None:
        return
    for key, value in config.items():
        if key in _BESIDE:
            reading.warning("KG0405", f"`{key}` of ConfigMap `{name}` has no effect: {_BESIDE[key]}", at)
        elif key != "vllm":
            reading.error(
                "KG0418", f"`{key}` of ConfigMap `{name}` is unknown", at, "vLLM's flags stand under `vllm`"
            )
        elif not isinstance(value, dict):
            reading.error("KG0418", f"`vllm` of ConfigMap `{name}` is no mapping", at)
        elif engine != "vllm":
            reading.unused(at, "another engine than vLLM serves this model")
        else:
            for flag, wanted in value.items():
                _flag(draft, str(flag), wanted, name, at, nodes, reading)


def _flag(
    draft: Draft, written: str, value: Any, name: str, at: Path, nodes: Nodes, reading: Reading
) -> None:
    flag = written.strip("-").replace("_", "-")
    if isinstance(value, str) and value in {"True", "true", "False", "false"}:
        value = value in {"True", "true"}
    if isinstance(value, dict | list) or value is None:
        reading.error(
            "KG0418", f"`{written}` of ConfigMap `{name}` needs one value", at, "KAITO takes no other either"
        )
        return
    if flag in _GONE:
        reading.warning(
            "KG0418",
            f"`{written}` of ConfigMap `{name}` is left out: vLLM does not take it since {_GONE[flag]}, and would not "
            "start",
            at,
            "delete it there",
        )
        return
    if flag in _OURS:
        reading.error(
            "KG0418",
            f"`{written}` of ConfigMap `{name}` is set by what the resource says",
            at,
            "delete it there",
        )
        return
    if flag == "served-model-name":
        draft.put(("spec", "servedNames"), [str(value)], at)
        return
    if flag == "tensor-parallel-size" and nodes.mig and value not in {1, "1"}:
        reading.error(
            "KG0412", "slices of MIG cannot share a model by tensor parallel", at, "ask for whole GPUs"
        )
        return
    if flag in _FIELDS:
        field, kind = _FIELDS[flag]
        if kind is int and isinstance(value, str) and value.isascii() and value.isdigit():
            value = int(value)
        if flag == "max-model-len" and value in {"auto", -1}:
            return
        if flag == "tensor-parallel-size" and nodes.gpus is not None and isinstance(value, int):
            has = nodes.gpus * (nodes.count or 1)
            if value > has:
                reading.error(
                    "KG0416",
                    f"`{written}` of ConfigMap `{name}` shares each layer by {value} GPUs, and there "
                    f"{'is 1' if has == 1 else f'are {has}'}",
                    at,
                    "delete it there: kaigen derives it",
                )
                return
        draft.put(("spec", *field), value, at)
        return
    draft.put(("spec", "engineArgs", flag), value, at)
