"""The user's image for a preset; for KAITO's first version it contains the server and the weights."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from kaigen.core.json_types import FieldPath
from kaigen.dialects.draft import Draft
from kaigen.dialects.kaito.blocks import PresetV1Alpha1
from kaigen.dialects.kaito.catalog import kaito_preset
from kaigen.dialects.kaito.nodes import Nodes
from kaigen.dialects.kaito.resource import ResourceLowering, Runtime
from kaigen.programs.files import program

if TYPE_CHECKING:
    from kaigen.dialects.kaito.presets import NamedModel

RENDEZVOUS = 29500
"""Rendezvous port of torchrun."""


_FALCON = [
    *("accelerate", "launch", "--use_deepspeed", "--config_file=config.yaml", "--gpu_ids=all"),
    *("--machine_rank=0", "--num_machines=1", "--num_processes=1", "inference-api.py"),
]


def _llama(processes: int, params: Mapping[str, Any]) -> list[str]:
    """Return the command of the server in images of Llama 2."""
    return [
        *("/bin/sh", program("in_folder.sh"), "/workspace/llama/llama-2"),
        *("torchrun", "--nnodes=1", f"--nproc_per_node={processes}", "--node_rank=0"),
        *("--master_addr=127.0.0.1", f"--master_port={RENDEZVOUS}", "inference-api.py"),
        *(f"--max_seq_len={params['max_seq_len']}", f"--max_batch_size={params['max_batch_size']}"),
    ]


def put_private(
    draft: Draft,
    at: FieldPath,
    preset: PresetV1Alpha1,
    model: NamedModel,
    runtime: Runtime,
    nodes: Nodes,
    count_at: FieldPath,
    lowering: ResourceLowering,
) -> bool:
    """Put the user's image into a Topology.

    Args:
        draft: the Topology.
        at: path of the preset.
        preset: the block.
        model: the model.
        runtime: serves the model without the image.
        nodes: what is known about the nodes.
        count_at: path of the number of nodes.
        lowering: collects problems.

    Returns:
        Whether the image contains the server and the weights.
    """
    preset_options, where = preset.preset_options, (*at, "presetOptions", "image")
    if preset_options.image is None:
        if preset.access_mode == "private" and model.preset is not None and kaito_preset(model.preset).seed:
            lowering.error(
                "KG0412",
                "`accessMode: private` requires `presetOptions.image`",
                (*at, "accessMode"),
                "set `presetOptions.image`, or delete `accessMode` to download the weights from the Hub",
            )
            return True
        if preset.access_mode == "private":
            lowering.unused((*at, "accessMode"), "`presetOptions.image` is not set")
        if preset_options.image_pull_secrets:
            lowering.unused((*at, "presetOptions", "imagePullSecrets"), "`presetOptions.image` is not set")
        return False
    if lowering.is_placeholder(preset_options.image, where, "an image"):
        return True
    image: dict[str, Any] = {"ref": preset_options.image}
    if preset_options.image_pull_secrets:
        image["pullSecrets"] = list(preset_options.image_pull_secrets)
    draft.put(("spec", "image"), image, where)
    seed = kaito_preset(model.preset).seed if model.preset is not None else {}
    if not seed:
        lowering.warning(
            "KG0414",
            f"the image must contain the engine `{runtime.engine}`; weights in it are not used",
            where,
            "use `template` if the image has its own server",
        )
        return False
    world = seed.get("worldSize", 0)
    gpus = world or seed["gpusPerPod"]
    several = nodes.count or 1
    if world and several > 1:
        lowering.error(
            "KG0413",
            f"kaigen cannot run the {world} processes of this server on {several} nodes",
            count_at,
            f"use nodes with {world} GPUs and delete `count`, or delete `presetOptions` to use vLLM",
        )
        return True
    if nodes.gpus is not None and nodes.gpus < gpus:
        lowering.error(
            "KG0416",
            f"the server of `{model.name}` requires {gpus} GPUs, and a node has {nodes.gpus}",
            where,
            f"use an instance type with {gpus} GPUs",
        )
    draft.put(("spec", "engine"), "container", where)
    draft.put(("spec", "resources", "gpus"), gpus)
    command = _llama(gpus, seed.get("modelParams", {})) if world else _FALCON
    draft.put(("spec", "command"), command, where)
    draft.put(("spec", "probes"), {"ready": "/healthz", "startup": f"{seed['readinessSeconds'] // 60}m"}, where)
    draft.put(("spec", "security", "podSecurity"), "baseline", where)
    return True
