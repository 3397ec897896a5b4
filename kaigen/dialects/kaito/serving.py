"""`inference` of KAITO's as a Topology: a preset with its engine, or a pod of the user's own."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from kaigen.dialects.draft import Draft
from kaigen.dialects.kaito import presets
from kaigen.dialects.kaito.blocks import InferenceV1Alpha1, PresetV1Alpha1
from kaigen.dialects.kaito.catalog import kaito_preset
from kaigen.dialects.kaito.engine_config import put_config
from kaigen.dialects.kaito.images import put_private
from kaigen.dialects.kaito.nodes import TAINT, Asked, Nodes, place
from kaigen.dialects.kaito.reading import Reading, Wishes
from kaigen.kinds.spec import Path

if TYPE_CHECKING:
    from kaigen.catalog.presets import Preset

PORT = 5000
"""Port on which every server of KAITO's listens; its Service has 80."""


_TURING, _AMPERE = 7.5, 8.0
"""Compute capabilities: the least that vLLM runs on, and the first with bfloat16."""


@dataclass(frozen=True, slots=True)
class Serving:
    """What is to be served, and where.

    Attributes:
        inference: the block.
        at: where it stands.
        nodes: what the resource says of nodes.
        served_name: name by which requests ask for the model; empty for the preset's.
        copies: how often the model is served, each time on its own nodes; None where the resource cannot say.
        copies_at: where that stands.
        preset_at: where the preset stands; empty for its place in the block.
        config_at: where the name of the ConfigMap stands; empty likewise.
    """

    inference: InferenceV1Alpha1
    at: Path
    nodes: Asked
    served_name: str = ""
    copies: int | None = None
    copies_at: Path = ()
    preset_at: Path = ()
    config_at: Path = ()


def put_inference(draft: Draft, serving: Serving, wishes: Wishes, reading: Reading) -> None:
    """Put what serves into a Topology.

    Args:
        draft: the Topology.
        serving: what is to be served.
        wishes: what annotations ask for.
        reading: takes what is wrong.
    """
    put_service(draft, wishes, reading, key=serving.inference.preset is not None)
    nodes = place(draft, serving.nodes, wishes, reading)
    if serving.copies is not None:
        draft.put(("spec", "shape", "replicas"), serving.copies, serving.copies_at)
    inference = serving.inference
    if inference.preset is None:
        _template(draft, serving, nodes, reading)
    else:
        _preset(draft, serving, inference.preset, nodes, wishes, reading)


def put_service(draft: Draft, wishes: Wishes, reading: Reading, *, key: bool = True) -> None:
    """Put port, Service and API key into a Topology.

    Args:
        draft: the Topology.
        wishes: what annotations ask for.
        reading: takes what is wrong.
        key: the server can ask for an API key.
    """
    draft.put(("spec", "port"), PORT)
    if wishes.api_key_secret and not key:
        at = reading.annotation_at("kaigen.dev/api-key-secret")
        reading.unused(at, "this server asks for no key")
    elif wishes.api_key_secret:
        at = reading.annotation_at("kaigen.dev/api-key-secret")
        draft.put(("spec", "auth", "secret"), wishes.api_key_secret, at)
    if wishes.load_balancer:
        at = reading.annotation_at("kaito.sh/enablelb")
        draft.put(("spec", "service", "type"), "LoadBalancer", at)
        draft.hints["KG0352"] = (
            "ask for a key with the annotation `kaigen.dev/api-key-secret`"
            if key
            else "delete it, since this server asks for no key"
        )


def _preset(
    draft: Draft, serving: Serving, preset: PresetV1Alpha1, nodes: Nodes, wishes: Wishes, reading: Reading
) -> None:
    at = serving.preset_at or (*serving.at, "preset")
    meant = presets.find(preset, at, reading)
    if meant is None:
        return
    engine = presets.engine_of(meant, nodes, wishes)
    private = put_private(draft, at, preset, meant, engine, nodes, (*serving.nodes.at, "count"), reading)
    if not private:
        if (
            meant.preset is not None
            and kaito_preset(meant.preset).removed_in
            and not wishes.runtime
            and engine == "vllm"
        ):
            reading.warning(
                "KG0414",
                f"`{meant.name}` needs more than one GPU, so vLLM serves it: there is no `POST /chat`",
                (*at, "name"),
                "ask `POST /v1/completions`",
            )
        told = reading.annotation_at("kaito.sh/runtime") if wishes.runtime else (*at, "name")
        draft.put(("spec", "engine"), engine, told)
        draft.put(("spec", "servedNames"), [serving.served_name or meant.name], (*at, "name"))
        if wishes.model:
            draft.put(("spec", "model"), wishes.model, reading.annotation_at("kaigen.dev/model"))
        else:
            presets.put_weights(draft, meant, preset, at, reading)
        presets.put_facts(draft, meant, wishes, (*at, "name"), reading)
    _count(draft, serving, nodes, engine, private, reading)
    _performance(draft, wishes, engine, reading)
    if not private:
        _dtype(draft, meant, nodes, engine, serving, reading)
    _adapters(draft, serving, engine, reading)
    if engine == "transformers" and not private and nodes.gpus and not nodes.mig:
        # kaigen's server computes on one GPU; KAITO's did with most of its presets, and took the node's others too.
        draft.put(("spec", "resources", "gpus"), 1)
    if serving.inference.config is not None:
        put_config(
            draft,
            serving.inference.config,
            serving.config_at or (*serving.at, "config"),
            engine,
            nodes,
            reading,
        )
    if engine == "vllm" and not private and meant.preset is not None:
        _warn_of_idle_nodes(draft, meant.preset, nodes, (*serving.nodes.at, "count"), reading)


def _count(
    draft: Draft, serving: Serving, nodes: Nodes, engine: str, private: bool, reading: Reading
) -> None:
    """One copy over all nodes with vLLM, as KAITO's; a copy a node with the engines that cannot spread."""
    if nodes.count is None:
        return
    at = (*serving.nodes.at, "count")
    if engine == "vllm" and not private:
        draft.put(("spec", "shape", "nodes"), nodes.count, at)
        if nodes.mig and nodes.count > 1:
            reading.error(
                "KG0412",
                f"slices of MIG cannot share a model by tensor or pipeline parallel, and {nodes.count} would have to",
                at,
                "delete `count`, or ask for whole GPUs",
            )
    elif serving.copies is None:
        draft.put(("spec", "shape", "replicas"), nodes.count, at)


def _warn_of_idle_nodes(draft: Draft, preset: Preset, nodes: Nodes, at: Path, reading: Reading) -> None:
    """Warn that KAITO would use fewer nodes: it replaces `count` by its own estimate, and kaigen uses `count`."""
    if (nodes.count or 1) == 1 or nodes.instance is None or nodes.mig:
        return
    from kaigen.dialects.kaito.estimate import KaitoNode, estimate_preset, node_of
    from kaigen.sizing.problem import PlanError

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
        reading.warning(
            "KG0414",
            f"one replica of `{preset.name}` uses {nodes.count} nodes; KAITO would use {needed}",
            at,
            "delete `count`, and kaigen derives it; for several replicas use an InferenceSet",
        )


def _performance(draft: Draft, wishes: Wishes, engine: str, reading: Reading) -> None:
    if not wishes.performance:
        return
    at = reading.annotation_at("kaito.sh/performance-mode")
    if engine == "vllm":
        draft.put(("spec", "engineArgs", "performance-mode"), wishes.performance, at)
    else:
        reading.unused(at, "it is a flag of vLLM's")


def _dtype(
    draft: Draft, meant: presets.Meant, nodes: Nodes, engine: str, serving: Serving, reading: Reading
) -> None:
    """GPUs before Ampere compute in bfloat16 slowly or not at all, and KAITO asks for nothing else."""
    capability = nodes.instance.gpu.compute_capability if nodes.instance else None
    if (
        capability is None
        or capability >= _AMPERE
        or meant.preset is None
        or meant.preset.dtype != "bfloat16"
    ):
        return
    if engine == "vllm" and (capability < _TURING or meant.preset.min_compute_capability):
        return  # It cannot run there whatever the numbers are, which the plan says.
    assert nodes.instance is not None
    draft.put(("spec", "engineArgs", "dtype"), "float16", (*serving.nodes.at, "instanceType"))
    if engine == "vllm":
        reading.warning(
            "KG0414",
            f"{nodes.instance.gpu.name} cannot compute in bfloat16, so `{meant.name}` is served in float16",
            (*serving.nodes.at, "instanceType"),
            "take a GPU of compute capability 8.0 or more to have the model's own numbers",
        )


def _adapters(draft: Draft, serving: Serving, engine: str, reading: Reading) -> None:
    at: Path = (*serving.at, "adapters")
    if serving.inference.adapters and engine != "vllm":
        reading.error(
            "KG0413",
            "kaigen's own server serves no adapters",
            at,
            "take the runtime vllm, which serves each under its name",
        )
        return
    for index, adapter in enumerate(serving.inference.adapters):
        here = (*at, index)
        source = adapter.source
        found: dict[str, Any] = {"name": source.name or f"adapter-{index}"}
        if source.name is None:
            reading.error("KG0412", "an adapter needs a `name`", (*here, "source"), "add `name`")
            continue
        if source.image is not None:
            if reading.is_placeholder(source.image, (*here, "source", "image"), "an image"):
                continue
            secrets = {"pullSecrets": list(source.image_pull_secrets)} if source.image_pull_secrets else {}
            found["image"] = {"ref": source.image, **secrets}
        elif source.volume_source is not None:
            claim = claim_of(source.volume_source, (*here, "source", "volumeSource"), reading)
            if claim is None:
                continue
            found["volume"] = {"claimName": claim}
        else:
            reading.error(
                "KG0412",
                "an adapter comes from an image or a volume",
                (*here, "source", "urls"),
                "put its files into one of them",
            )
            continue
        if adapter.strength is not None and float(adapter.strength) != 1:
            reading.unused(
                (*here, "strength"),
                "vLLM serves an adapter beside the model, at full strength; KAITO refuses it there",
            )
        count = len(draft.get(("spec", "adapters")) or [])
        draft.add(("spec", "adapters"), [found], (*here, "source"))
        draft.origins["spec", "adapters", count, "name"] = (*here, "source", "name")


def claim_of(volume: dict[str, Any], at: Path, reading: Reading) -> str | None:
    """Name of the PersistentVolumeClaim that a volume is; None, and told, for another sort of volume."""
    claim = volume.get("persistentVolumeClaim")
    name = claim.get("claimName") if isinstance(claim, dict) else None
    if isinstance(name, str) and name and len(volume) == 1:
        return None if reading.is_placeholder(name, at, "the name of a PersistentVolumeClaim") else name
    sorts = ", ".join(f"`{key}`" for key in volume) or "nothing"
    reading.error(
        "KG0413",
        f"a volume is a `persistentVolumeClaim` with its `claimName`, not {sorts}",
        at,
        "make a PersistentVolumeClaim for it",
    )
    return None


def _template(draft: Draft, serving: Serving, nodes: Nodes, reading: Reading) -> None:
    template = serving.inference.template
    assert template is not None
    at = (*serving.at, "template")
    draft.put(("spec", "template"), placed(template, draft, nodes, at, reading), at)
    if nodes.count is not None and serving.copies is None:
        draft.put(("spec", "shape", "replicas"), nodes.count, (*serving.nodes.at, "count"))
    port = _first_port(template)
    if port is not None:
        draft.put(("spec", "port"), port, at)
    if not _says_who_runs(template):
        # Images made for KAITO run as whom they like.
        draft.put(("spec", "security", "podSecurity"), "baseline", at)
    for field, why in (
        ("config", "a template runs a server of its own"),
        ("adapters", "a template runs a server of its own"),
    ):
        if getattr(serving.inference, field):
            reading.unused((*serving.at, field), why)


def placed(
    template: dict[str, Any], draft: Draft, nodes: Nodes, at: Path, reading: Reading
) -> dict[str, Any]:
    """A pod template with what a resource says of nodes in it, which is taken out of the Topology.

    KAITO overwrites a template's affinity; here both must hold.

    Args:
        template: as the user wrote it.
        draft: the Topology.
        nodes: what is known of the nodes.
        at: where the template stands.
        reading: takes what is wrong.
    """
    spec = draft.data["spec"]
    placement = spec.pop("placement", {})
    resources = spec.pop("resources", {})
    if spec.pop("provisioning", None) is not None:
        reading.warning(
            "KG0414",
            "no nodes are made for a pod that is taken as it is; it waits for one that is there",
            (*nodes.at, "instanceType") if nodes.at else at,
            "keep a NodePool for them in the cluster",
        )
    pod = template.get("spec")
    if not isinstance(pod, dict):
        reading.error("KG0412", "a pod template needs a `spec`", at, "add `spec` with its containers")
        return template
    pod = dict(pod)
    labels = dict(placement.get("nodeSelector", {}))
    if "instanceType" in resources:
        labels["node.kubernetes.io/instance-type"] = resources["instanceType"]
    merged: dict[str, Any] = {}
    if labels:
        merged["nodeSelector"] = labels
    if "affinity" in placement:
        merged["affinity"] = placement["affinity"]
    for field, more in merged.items():
        own = pod.get(field, {})
        pod[field] = _merged(own, more) if isinstance(own, dict) else own
    tolerations = [dict(TAINT)] if nodes.named else []
    own = pod.get("tolerations", [])
    if tolerations and isinstance(own, list) and tolerations[0] not in own:
        pod["tolerations"] = [*own, *tolerations]
    return {**template, "spec": pod}


def _merged(own: dict[str, Any], more: dict[str, Any]) -> dict[str, Any]:
    """Two fragments of a pod in one, of which both must hold."""
    result = dict(own)
    for key, value in more.items():
        here = result.get(key)
        if isinstance(here, dict) and isinstance(value, dict):
            result[key] = _merged(here, value)
        elif isinstance(here, list) and isinstance(value, list):
            both = key == "nodeSelectorTerms" and here and value
            # Of several terms one must hold, so what must hold too goes into each.
            result[key] = [_joined(term, value[0]) for term in here] if both else [*here, *value]
        else:
            result[key] = value
    return result


def _joined(term: Any, other: dict[str, Any]) -> Any:
    if not isinstance(term, dict):
        return term
    own = term.get("matchExpressions", [])
    return {**term, "matchExpressions": [*(own if isinstance(own, list) else []), *other["matchExpressions"]]}


def _says_who_runs(template: dict[str, Any]) -> bool:
    """Whether a pod template, or a container of it, says that it runs as another user than root."""
    spec = template.get("spec")
    pod = spec if isinstance(spec, dict) else {}
    containers = pod.get("containers")
    parts = [pod, *(containers if isinstance(containers, list) else [])]
    contexts = [part.get("securityContext") for part in parts if isinstance(part, dict)]
    return any(isinstance(context, dict) and context.get("runAsNonRoot") is True for context in contexts)


def _first_port(template: dict[str, Any]) -> int | None:
    """The first port that a container of a pod template names; None when none does."""
    spec = template.get("spec")
    containers = spec.get("containers") if isinstance(spec, dict) else None
    for container in containers if isinstance(containers, list) else []:
        ports = container.get("ports") if isinstance(container, dict) else None
        for port in ports if isinstance(ports, list) else []:
            number = port.get("containerPort") if isinstance(port, dict) else None
            if isinstance(number, int) and not isinstance(number, bool):
                return number
    return None
