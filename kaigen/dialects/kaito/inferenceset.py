"""`InferenceSet`: replicas of a served model, as one Topology."""

import re
from collections.abc import Mapping
from typing import Annotated, Any, Literal

from msgspec import Meta, field

from kaigen.core.json_types import FieldPath, JsonObject
from kaigen.dialects.draft import Draft
from kaigen.dialects.kaito.blocks import Foreign, Inference, LabelSelector, Partition, Text
from kaigen.dialects.kaito.compat import SET, serving_names
from kaigen.dialects.kaito.nodes import NodeRequest
from kaigen.dialects.kaito.resource import DIRECTIVES, Options, ResourceLowering
from kaigen.dialects.kaito.serving import Serving, put_inference
from kaigen.kinds.base import ADDRESS
from kaigen.kinds.block import Block
from kaigen.kinds.lowering import LoweringContext, LoweringResult
from kaigen.kinds.positioned import Positioned
from kaigen.kinds.topology import Topology

SCALING = "scaledobject.kaito.sh/"
PROMETHEUS = "kaigen.dev/prometheus"

_METRICS: Mapping[str, str] = {
    "vllm:num_requests_waiting": "waiting",
    "vllm:num_requests_running": "running",
    "vllm:kv_cache_usage_perc": "cache",
    "vllm:gpu_cache_usage_perc": "cache",
}
"""Metrics of vLLM, and the metric of a Topology for each."""


class MemberResourceV1Alpha1(Block):
    """Nodes of each replica."""

    instance_type: Annotated[Text | None, Meta(description="Instance type of the nodes.")] = None


class MemberResource(MemberResourceV1Alpha1):
    """Nodes of each replica, and the GPUs of each pod."""

    partition: Annotated[Partition | None, Meta(description="GPUs of each pod.")] = None


class MemberV1Alpha1(Block):
    """Template of each replica."""

    metadata: Annotated[JsonObject, Meta(description="Labels and annotations of each replica.")] = field(
        default_factory=dict
    )
    resource: Annotated[MemberResourceV1Alpha1, Meta(description="Nodes of each replica.")] = field(
        default_factory=MemberResourceV1Alpha1
    )
    inference: Annotated[Inference, Meta(description="What each replica serves.")]


class Member(MemberV1Alpha1):
    """Template of each replica."""

    resource: Annotated[MemberResource, Meta(description="Nodes of each replica.")] = field(
        default_factory=MemberResource
    )


class MaintenanceWindow(Block):
    """When KAITO may replace images."""

    schedule: Annotated[Text, Meta(description="Start of the window, as a cron expression.")]
    duration: Annotated[Text, Meta(description="Length of the window.")] = "4h"


class AutoUpgrade(Block):
    """Automatic upgrades of images by KAITO."""

    enabled: Annotated[bool, Meta(description="Whether KAITO upgrades images.")] = False
    strategy: Annotated[Literal["InPlace", "Surge"], Meta(description="How KAITO upgrades images.")] = "InPlace"
    maintenance_window: Annotated[MaintenanceWindow | None, Meta(description="When KAITO may upgrade images.")] = None


class InferenceSetSpecV1Alpha1(Block):
    """Replicas of a served model."""

    replicas: Annotated[int, Meta(ge=0, le=1000, description="Number of replicas.")] = 1
    node_count_limit: Annotated[
        Annotated[int, Meta(ge=1, le=10000)] | None, Meta(description="Maximum number of nodes of all replicas.")
    ] = None
    label_selector: Annotated[LabelSelector, Meta(description="Labels of the nodes.")]
    template: Annotated[MemberV1Alpha1, Meta(description="Template of each replica.")]
    update_strategy: Annotated[JsonObject, Meta(description="How a change is rolled out.")] = field(
        default_factory=dict
    )
    auto_upgrade: Annotated[AutoUpgrade | None, Meta(description="Automatic upgrades of images by KAITO.")] = None


class InferenceSetSpec(InferenceSetSpecV1Alpha1):
    """Replicas of a served model."""

    template: Annotated[Member, Meta(description="Template of each replica.")]


class InferenceSetV1Alpha1(Foreign):
    """KAITO's `InferenceSet` of `kaito.sh/v1alpha1`."""

    api_version: Annotated[Literal["kaito.sh/v1alpha1"], Meta(description="Version of KAITO's API.")]
    kind: Annotated[Literal["InferenceSet"], Meta(description="Kind of the document.")]
    spec: Annotated[InferenceSetSpecV1Alpha1, Meta(description="Desired state.")]


class InferenceSet(Foreign):
    """KAITO's `InferenceSet` of `kaito.sh/v1beta1`."""

    api_version: Annotated[Literal["kaito.sh/v1beta1"], Meta(description="Version of KAITO's API.")]
    kind: Annotated[Literal["InferenceSet"], Meta(description="Kind of the document.")]
    spec: Annotated[InferenceSetSpec, Meta(description="Desired state.")]


def lower(
    resource: InferenceSet | InferenceSetV1Alpha1, document: Positioned, context: LoweringContext
) -> LoweringResult:
    """Return an InferenceSet as a Topology with replicas.

    Args:
        resource: the validated document.
        document: the document with positions.
        context: what else the lowering may read.
    """
    lowering = ResourceLowering(resource.metadata, document, context, *DIRECTIVES, "prometheus")
    spec = resource.spec
    at: FieldPath = ("spec", "template")
    lowering.read_template_metadata(spec.template.metadata, (*at, "metadata"))
    options = lowering.options()
    own = spec.template.resource
    request = NodeRequest(
        at=(*at, "resource"),
        instance_type=own.instance_type or "",
        selector=spec.label_selector,
        selector_at=("spec", "labelSelector"),
        partition=own.partition if isinstance(own, MemberResource) else None,
        gpus_needed=spec.template.inference.preset is not None,
    )
    draft = lowering.draft("Topology")
    draft.origins["spec",] = at
    scaled = _autoscale(draft, spec, lowering)
    serving = Serving(
        inference=spec.template.inference,
        at=(*at, "inference"),
        nodes=request,
        served_name=resource.metadata.name,
        replicas=None if scaled else spec.replicas,
        replicas_at=("spec", "replicas"),
    )
    middleware = put_inference(draft, serving, options, lowering)
    _update(draft, spec, lowering)
    _limit(draft, spec, options, lowering)
    topology = draft.finish(Topology, lowering) if not lowering.failed else None
    naming = serving_names(SET, compat=options.compat, middleware=middleware)
    if topology is None:
        return lowering.result()
    return lowering.result(draft.lowered(topology, naming))


def _autoscale(draft: Draft, spec: InferenceSetSpecV1Alpha1, lowering: ResourceLowering) -> bool:
    """Scaling as the annotations of KAITO's KEDA scaler ask for it; whether they do."""
    given = {key.removeprefix(SCALING): value for key, value in lowering.annotations.items() if key.startswith(SCALING)}
    if not given:
        return False
    if given.pop("auto-provision", "") != "true":
        for name in given:
            lowering.unused(lowering.annotation_at(SCALING + name), f'`{SCALING}auto-provision` is not "true"')
        return False
    at = lowering.annotation_at(f"{SCALING}auto-provision")
    name = given.pop("metricName", "vllm:num_requests_waiting")
    metric = _METRICS.get(name)
    if metric is None:
        known = ", ".join(_METRICS)
        lowering.error(
            "KG0413",
            f"kaigen cannot scale by `{name}`",
            lowering.annotation_at(f"{SCALING}metricName"),
            f"known: {known}; or delete these annotations and write a ScaledObject",
        )
        return False
    numbers = {key: _number(given.pop(key, ""), key, lowering) for key in ("max-replicas", "min-replicas", "threshold")}
    most = numbers["max-replicas"] or spec.node_count_limit
    if most is None:
        lowering.warning(
            "KG0414",
            "it is not scaled, because the maximum number of replicas is not set",
            at,
            f"add `{SCALING}max-replicas`, or `nodeCountLimit`",
        )
        return False
    for key in given:
        lowering.unused(lowering.annotation_at(SCALING + key), "kaigen's scaling has no such setting")
    block: dict[str, Any] = {"min": numbers["min-replicas"] or 1, "max": max(most, 1), "metric": metric}
    if numbers["threshold"]:
        block["target"] = numbers["threshold"]
    _scaler(block, at, lowering)
    draft.put(("spec", "autoscale"), block, at)
    return True


def _scaler(block: dict[str, Any], at: FieldPath, lowering: ResourceLowering) -> None:
    address = lowering.annotations.get(PROMETHEUS)
    if address:
        if not re.match(ADDRESS, address):
            lowering.error("KG0406", f"`{PROMETHEUS}` must be a URL", lowering.annotation_at(PROMETHEUS), "http://…")
            return
        block["prometheus"] = {"address": address}
        return
    lowering.warning(
        "KG0414",
        "a HorizontalPodAutoscaler scales it with the custom metrics API; KAITO's scaler queries the pods",
        at,
        f"set `{PROMETHEUS}` to the URL of a Prometheus to use KEDA",
    )


def _number(text: str, key: str, lowering: ResourceLowering) -> int | None:
    if not text:
        return None
    if text.isascii() and text.isdigit() and len(text) < 7:
        return int(text)
    lowering.error("KG0412", f"`{SCALING}{key}` must be a whole number", lowering.annotation_at(SCALING + key))
    return None


def _update(draft: Draft, spec: InferenceSetSpecV1Alpha1, lowering: ResourceLowering) -> None:
    at: FieldPath = ("spec", "updateStrategy")
    strategy = spec.update_strategy
    kind = strategy.get("type", "RollingUpdate")
    if kind != "RollingUpdate":
        lowering.unused((*at, "type"), f"kaigen has no update strategy `{kind}`")
    rolling = strategy.get("rollingUpdate", {})
    if not isinstance(rolling, dict):
        lowering.error("KG0412", "`rollingUpdate` must be a mapping", (*at, "rollingUpdate"))
        return
    for name, value in rolling.items():
        if name in {"maxUnavailable", "maxSurge"}:
            draft.put(("spec", "rollout", name), value, (*at, "rollingUpdate", name))
        else:
            lowering.unused((*at, "rollingUpdate", name), "kaigen's rollout has no such setting")
    for name in strategy.keys() - {"type", "rollingUpdate"}:
        lowering.unused((*at, name), "an update strategy has no such field")
    if spec.auto_upgrade is not None and spec.auto_upgrade.enabled:
        lowering.unused(("spec", "autoUpgrade"), "images change only with a commit")


def _limit(draft: Draft, spec: InferenceSetSpecV1Alpha1, options: Options, lowering: ResourceLowering) -> None:
    """Limit the nodes that Karpenter creates; KAITO does not read the limit."""
    limit = spec.node_count_limit
    if limit is None:
        return
    at: FieldPath = ("spec", "nodeCountLimit")
    pool = draft.get(("spec", "provisioning"))
    if pool is not None and pool != "none":
        if pool == "karpenter":
            name = options.node_class or "default"
            draft.put(("spec", "provisioning"), {"karpenter": {"nodeClass": {"name": name}}})
        draft.put(("spec", "provisioning", "karpenter", "maxNodes"), limit, at)
    elif spec.replicas > limit:
        lowering.error(
            "KG0416",
            f"{spec.replicas} replicas need at least {spec.replicas} nodes, and `nodeCountLimit` is {limit}",
            at,
            "raise it, or reduce `replicas`",
        )
