"""Images of a user's own in place of a preset's; for KAITO's first version they hold the server and the weights."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kaigen.dialects.draft import Draft
from kaigen.dialects.kaito.blocks import PresetV1Alpha1
from kaigen.dialects.kaito.catalog import kaito_preset
from kaigen.dialects.kaito.nodes import Nodes
from kaigen.dialects.kaito.reading import Reading
from kaigen.kinds.spec import Path

if TYPE_CHECKING:
    from kaigen.dialects.kaito.presets import Meant

RENDEZVOUS = 29500
"""Port on which the processes of torchrun meet."""

_LLAMA = (
    "cd /workspace/llama/llama-2 && torchrun --nnodes=1 --nproc_per_node={processes} --node_rank=0 "
    f"--master_addr=127.0.0.1 --master_port={RENDEZVOUS} inference-api.py --max_seq_len={{length}} "
    "--max_batch_size={batch}"
)
_FALCON = (
    "accelerate launch --use_deepspeed --config_file=config.yaml --gpu_ids=all --machine_rank=0 --num_machines=1 "
    "--num_processes=1 inference-api.py"
)


def put_private(
    draft: Draft,
    at: Path,
    preset: PresetV1Alpha1,
    meant: Meant,
    engine: str,
    nodes: Nodes,
    count_at: Path,
    reading: Reading,
) -> bool:
    """Put an image of the user's own into a Topology.

    Args:
        draft: the Topology.
        at: where the preset stands.
        preset: the block.
        meant: the model.
        engine: that would serve it otherwise.
        nodes: what is known of the nodes.
        count_at: where the number of nodes stands.
        reading: takes what is wrong.

    Returns:
        Whether the image brings server and weights, so that nothing else is to be said of them.
    """
    options, where = preset.preset_options, (*at, "presetOptions", "image")
    if options.image is None:
        if preset.access_mode == "private" and meant.preset is not None and kaito_preset(meant.preset).seed:
            reading.error(
                "KG0412",
                "`accessMode: private` means an image of your own, and none is named",
                (*at, "accessMode"),
                "name it in `presetOptions.image`, or delete `accessMode` to have the weights from the Hub",
            )
            return True
        if preset.access_mode == "private":
            reading.unused((*at, "accessMode"), "no image is named in `presetOptions.image`")
        if options.image_pull_secrets:
            reading.unused(
                (*at, "presetOptions", "imagePullSecrets"), "no image is named in `presetOptions.image`"
            )
        return False
    if reading.is_placeholder(options.image, where, "an image"):
        return True
    image: dict[str, Any] = {"ref": options.image}
    if options.image_pull_secrets:
        image["pullSecrets"] = list(options.image_pull_secrets)
    draft.put(("spec", "image"), image, where)
    seed = kaito_preset(meant.preset).seed if meant.preset is not None else {}
    if not seed:
        reading.warning(
            "KG0414",
            f"the image runs as the engine `{engine}`, and must hold it; the weights come from the Hub",
            where,
            "give a `template` instead, if it holds a server of its own",
        )
        return False
    world = seed.get("worldSize", 0)
    gpus = world or seed["gpusPerPod"]
    several = nodes.count or 1
    if world and several > 1:
        reading.error(
            "KG0413",
            f"this server's {world} processes would meet over {several} nodes, and kaigen has no engine for that",
            count_at,
            f"take nodes with {world} GPUs and delete `count`, or delete `presetOptions` so that vLLM serves it",
        )
        return True
    if nodes.gpus is not None and nodes.gpus < gpus:
        reading.error(
            "KG0416",
            f"the server of `{meant.name}` takes {gpus} GPUs, and a node has {nodes.gpus}",
            where,
            f"take an instance type with {gpus} GPUs",
        )
    draft.put(("spec", "engine"), "container", where)
    draft.put(("spec", "resources", "gpus"), gpus)
    params = seed.get("modelParams", {})
    script = (
        _LLAMA.format(processes=gpus, length=params["max_seq_len"], batch=params["max_batch_size"])
        if world
        else _FALCON
    )
    draft.put(("spec", "command"), ["/bin/sh", "-c", script], where)
    draft.put(
        ("spec", "probes"), {"ready": "/healthz", "startup": f"{seed['readinessSeconds'] // 60}m"}, where
    )
    draft.put(("spec", "security", "podSecurity"), "baseline", where)
    return True
