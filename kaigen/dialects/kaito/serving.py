"""`inference` as a Topology: a preset with its engine, or the user's pod template."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from msgspec import Struct

from kaigen.catalog.engines import engine_facts
from kaigen.core.json_types import FieldPath
from kaigen.dialects.draft import Draft
from kaigen.dialects.kaito import presets
from kaigen.dialects.kaito.blocks import InferenceV1Alpha1, PresetV1Alpha1
from kaigen.dialects.kaito.catalog import kaito_preset
from kaigen.dialects.kaito.compat import CHAT_MIDDLEWARE
from kaigen.dialects.kaito.engine_config import put_config
from kaigen.dialects.kaito.estimate import KaitoNode, estimate_preset, node_of
from kaigen.dialects.kaito.images import put_private
from kaigen.dialects.kaito.nodes import NodeRequest, Nodes, put_placement
from kaigen.dialects.kaito.pod_template import first_port, runs_as_non_root, with_placement
from kaigen.dialects.kaito.resource import Options, ResourceLowering, Runtime
from kaigen.dialects.kaito.weights import check_claim, put_weights, report_unused
from kaigen.sizing.problem import PlanError

if TYPE_CHECKING:
    from kaigen.catalog.presets import Preset

PORT = 5000
"""Port of every KAITO server; the Service has port 80."""


_TURING, _AMPERE = 7.5, 8.0
"""Compute capabilities: the lowest that vLLM supports, and the first with bfloat16."""


class Serving(Struct, frozen=True):
    """What is served, and on which nodes.

    Attributes:
        inference: the block.
        at: its path.
        nodes: the requested nodes.
        served_name: model name in requests; empty for that of the preset.
        replicas: number of replicas, each on its own nodes; None when the resource has no such field.
        replicas_at: path of the number of replicas.
        preset_at: path of the preset; empty for its path in the block.
        config_at: path of the name of the ConfigMap; empty for its path in the block.
    """

    inference: InferenceV1Alpha1
    at: FieldPath
    nodes: NodeRequest
    served_name: str = ""
    replicas: int | None = None
    replicas_at: FieldPath = ()
    preset_at: FieldPath = ()
    config_at: FieldPath = ()


def put_inference(draft: Draft, serving: Serving, options: Options, lowering: ResourceLowering) -> str:
    """Put the served model or the pod template into a Topology; return what answers KAITO's routes in front of vLLM.

    Args:
        draft: the Topology.
        serving: what is served.
        options: of the resource.
        lowering: collects problems.
    """
    put_service(draft, options, lowering, key=serving.inference.preset is not None)
    nodes = put_placement(draft, serving.nodes, options, lowering)
    if serving.replicas is not None:
        draft.put(("spec", "shape", "replicas"), serving.replicas, serving.replicas_at)
    inference = serving.inference
    if inference.preset is None:
        _template(draft, serving, nodes, lowering)
        return ""
    return _preset(draft, serving, inference.preset, nodes, options, lowering)


def put_service(draft: Draft, options: Options, lowering: ResourceLowering, *, key: bool = True) -> None:
    """Put port, Service and API key into a Topology.

    Args:
        draft: the Topology.
        options: of the resource.
        lowering: collects problems.
        key: the server supports an API key.
    """
    draft.put(("spec", "port"), PORT)
    at = lowering.annotation_at("kaigen.dev/api-key-secret")
    if key:
        draft.origins["spec", "auth"] = at
    if options.api_key_secret and not key:
        lowering.unused(at, "this server does not support API keys")
    elif options.api_key_secret:
        draft.put(("spec", "auth", "secret", "name"), options.api_key_secret, at)
    if options.load_balancer:
        at = lowering.annotation_at("kaito.sh/enablelb")
        draft.put(("spec", "service", "type"), "LoadBalancer", at)
        draft.hints["KG0352"] = (
            "set the annotation `kaigen.dev/api-key-secret`"
            if key
            else "delete it, since this server does not support API keys"
        )


def _preset(
    draft: Draft, serving: Serving, preset: PresetV1Alpha1, nodes: Nodes, options: Options, lowering: ResourceLowering
) -> str:
    at = serving.preset_at or (*serving.at, "preset")
    model = presets.find_model(preset, at, lowering)
    if model is None:
        return ""
    check_claim(preset, at, lowering)
    runtime = presets.runtime_for(model, nodes, options)
    private = put_private(draft, at, preset, model, runtime, nodes, (*serving.nodes.at, "count"), lowering)
    if not private:
        engine_at = lowering.annotation_at("kaito.sh/runtime") if options.runtime else (*at, "name")
        draft.put(("spec", "engine"), runtime.engine, engine_at)
        names = presets.served_names(model, serving.served_name)
        # kaigen's own server answers to one name.
        names = names if runtime is Runtime.VLLM else names[:1]
        draft.put(("spec", "servedNames"), names, (*at, "name"))
        pods = max(serving.replicas or 1, draft.get(("spec", "autoscale", "max")) or 1, nodes.count or 1)
        put_weights(draft, model, preset, at, options, pods, lowering)
        presets.put_preset(draft, model, runtime, options, (*at, "name"), lowering)
    else:
        report_unused(preset, at, options, "the image contains the weights", lowering)
    _count(draft, serving, nodes, runtime, private, lowering)
    _performance(draft, options, runtime, lowering)
    if not private:
        _dtype(draft, model, nodes, runtime, serving, lowering)
    _adapters(draft, serving, runtime, lowering)
    if runtime is Runtime.TRANSFORMERS and not private and nodes.gpus and not nodes.mig:
        # kaigen's server uses one GPU. So did KAITO's for most presets, although it requested all GPUs of the node.
        draft.put(("spec", "resources", "gpus"), 1)
    if serving.inference.config is not None:
        put_config(
            draft, serving.inference.config, serving.config_at or (*serving.at, "config"), runtime, nodes, lowering
        )
    if runtime is Runtime.VLLM and not private and model.preset is not None:
        _warn_of_idle_nodes(draft, model.preset, nodes, (*serving.nodes.at, "count"), lowering)
    chats = not private and not options.runtime and model.preset is not None and kaito_preset(model.preset).removed_in
    return CHAT_MIDDLEWARE if chats and runtime is Runtime.VLLM else ""


def _count(
    draft: Draft, serving: Serving, nodes: Nodes, runtime: Runtime, private: bool, lowering: ResourceLowering
) -> None:
    """Use all nodes for one replica with vLLM, as KAITO does, and one replica per node with other engines."""
    if nodes.count is None:
        return
    at = (*serving.nodes.at, "count")
    if runtime is Runtime.VLLM and not private:
        draft.put(("spec", "shape", "nodes"), nodes.count, at)
        if nodes.mig and nodes.count > 1:
            lowering.error(
                "KG0412",
                f"`count` is {nodes.count}, and MIG slices cannot share a model",
                at,
                "delete `count`, or request whole GPUs",
            )
    elif serving.replicas is None:
        draft.put(("spec", "shape", "replicas"), nodes.count, at)


def _warn_of_idle_nodes(draft: Draft, preset: Preset, nodes: Nodes, at: FieldPath, lowering: ResourceLowering) -> None:
    """Warn that KAITO would use fewer nodes: it replaces `count` by its own estimate, and kaigen uses `count`."""
    if (nodes.count or 1) == 1 or nodes.instance is None or nodes.mig:
        return
    whole = node_of(nodes.instance)
    if whole is None:
        return
    gpus = nodes.gpus or whole.gpus
    node = KaitoNode(whole.memory * gpus / whole.gpus, gpus, whole.gpu)
    length = draft.get(("spec", "contextLength"))
    try:
        needed = estimate_preset(preset, node, context=length if isinstance(length, int) else None).nodes
    except PlanError:
        return
    if needed < (nodes.count or 1):
        lowering.warning(
            "KG0414",
            f"one replica of `{preset.name}` uses {nodes.count} nodes; KAITO would use {needed}",
            at,
            "delete `count`, and kaigen derives it; for several replicas use an InferenceSet",
        )


def _performance(draft: Draft, options: Options, runtime: Runtime, lowering: ResourceLowering) -> None:
    if not options.performance:
        return
    at = lowering.annotation_at("kaito.sh/performance-mode")
    if runtime is Runtime.VLLM:
        draft.put(("spec", "engineArgs", "performance-mode"), options.performance, at)
    else:
        lowering.unused(at, "it is a flag of vLLM")


def _dtype(
    draft: Draft,
    model: presets.NamedModel,
    nodes: Nodes,
    runtime: Runtime,
    serving: Serving,
    lowering: ResourceLowering,
) -> None:
    """Use float16 on GPUs before Ampere, which are slow in bfloat16 or lack it; KAITO always uses bfloat16."""
    capability = nodes.instance.gpu.compute_capability if nodes.instance else None
    if capability is None or capability >= _AMPERE or model.preset is None or model.preset.dtype != "bfloat16":
        return
    if runtime is Runtime.VLLM and (capability < _TURING or model.preset.min_compute_capability):
        return  # The plan reports that it cannot run there at all.
    assert nodes.instance is not None
    draft.put(("spec", "engineArgs", "dtype"), "float16", (*serving.nodes.at, "instanceType"))
    # The engine's check reports the models that vLLM refuses to run in float16.
    if runtime is Runtime.VLLM and model.preset.architecture not in engine_facts("vllm").not_float16:
        lowering.warning(
            "KG0414",
            f"{nodes.instance.gpu.name} does not support bfloat16, so `{model.name}` is served in float16",
            (*serving.nodes.at, "instanceType"),
            "use a GPU of compute capability 8.0 or higher for bfloat16",
        )


def _adapters(draft: Draft, serving: Serving, runtime: Runtime, lowering: ResourceLowering) -> None:
    at: FieldPath = (*serving.at, "adapters")
    for index, adapter in enumerate(serving.inference.adapters):
        here = (*at, index)
        source = adapter.source
        found: dict[str, Any] = {"name": source.name or f"adapter-{index}"}
        if source.name is None:
            lowering.error("KG0412", "`name` is missing", (*here, "source"), "add `name`")
            continue
        if source.image is not None:
            if lowering.is_placeholder(source.image, (*here, "source", "image"), "an image"):
                continue
            secrets = {"pullSecrets": list(source.image_pull_secrets)} if source.image_pull_secrets else {}
            found["image"] = {"ref": source.image, **secrets}
        elif source.volume_source is not None:
            claim = claim_name(source.volume_source, (*here, "source", "volumeSource"), lowering)
            if claim is None:
                continue
            found["volume"] = {"claimName": claim}
        else:
            lowering.error(
                "KG0412",
                "an adapter must be in an image or a volume",
                (*here, "source", "urls"),
                "use `image` or `volumeSource`",
            )
            continue
        if adapter.strength is not None and runtime is not Runtime.VLLM:
            found["strength"] = float(adapter.strength)
        elif adapter.strength is not None and float(adapter.strength) != 1:
            lowering.unused(
                (*here, "strength"), "vLLM serves adapters at full strength, and KAITO rejects it with vLLM"
            )
        count = len(draft.get(("spec", "adapters")) or [])
        draft.add(("spec", "adapters"), [found], (*here, "source"))
        draft.origins["spec", "adapters", count, "name"] = (*here, "source", "name")
        draft.origins["spec", "adapters", count, "strength"] = (*here, "strength")


def claim_name(volume: dict[str, Any], at: FieldPath, lowering: ResourceLowering) -> str | None:
    """Return the name of the PersistentVolumeClaim of a volume; None after an error for other volumes."""
    claim = volume.get("persistentVolumeClaim")
    name = claim.get("claimName") if isinstance(claim, dict) else None
    if isinstance(name, str) and name and len(volume) == 1:
        if lowering.is_placeholder(name, at, "the name of a PersistentVolumeClaim"):
            return None
        lowering.find_claim(name)
        return name
    sources = ", ".join(f"`{key}`" for key in volume) or "nothing"
    lowering.error(
        "KG0413",
        f"the volume must be a `persistentVolumeClaim` with `claimName`, not {sources}",
        at,
        "use a PersistentVolumeClaim",
    )
    return None


def _template(draft: Draft, serving: Serving, nodes: Nodes, lowering: ResourceLowering) -> None:
    template = serving.inference.template
    assert template is not None
    at = (*serving.at, "template")
    draft.put(("spec", "template"), with_placement(template, draft, nodes, at, lowering), at)
    if nodes.count is not None and serving.replicas is None:
        draft.put(("spec", "shape", "replicas"), nodes.count, (*serving.nodes.at, "count"))
    port = first_port(template)
    if port is not None:
        draft.put(("spec", "port"), port, at)
    if not runs_as_non_root(template):
        # Images for KAITO choose their own user.
        draft.put(("spec", "security", "podSecurity"), "baseline", at)
    why = "a template has its own server"
    for field in ("config", "adapters"):
        if getattr(serving.inference, field):
            lowering.unused((*serving.at, field), why)
    lowering.unused_weights(why)
