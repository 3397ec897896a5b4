"""`InferenceSet`: replicas of a served model, as one Topology."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import Field

from kaigen.dialects.draft import Draft
from kaigen.dialects.kaito.blocks import Foreign, Inference, LabelSelector, Partition, Text
from kaigen.dialects.kaito.compat import SET, serving_names
from kaigen.dialects.kaito.nodes import NodeRequest
from kaigen.dialects.kaito.resource import DIRECTIVES, Options, ResourceLowering
from kaigen.dialects.kaito.serving import Serving, put_inference
from kaigen.kinds.base import ADDRESS, Block, Object
from kaigen.kinds.lowering import LoweringContext, LoweringResult
from kaigen.kinds.positioned import Positioned
from kaigen.kinds.spec import Path
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

    instance_type: Text | None = Field(None, description="Instance type of the nodes.")


class MemberResource(MemberResourceV1Alpha1):
    """Nodes of each replica, and the GPUs of each pod."""

    partition: Partition | None = Field(None, description="GPUs of each pod.")


class MemberV1Alpha1(Block):
    """Template of each replica."""

    metadata: Object = Field({}, description="Labels and annotations of each replica.")
    resource: MemberResourceV1Alpha1 = Field(
        default_factory=dict, validate_default=True, description="Nodes of each replica."
    )
    inference: Inference = Field(description="What each replica serves.")


class Member(MemberV1Alpha1):
    """Template of each replica."""

    resource: MemberResource = Field(
        default_factory=dict, validate_default=True, description="Nodes of each replica."
    )


class MaintenanceWindow(Block):
    """When KAITO may replace images."""

    schedule: Text = Field(description="Start of the window, as a cron expression.")
    duration: Text = Field("4h", description="Length of the window.")


class AutoUpgrade(Block):
    """Automatic upgrades of images by KAITO."""

    enabled: bool = Field(False, description="Whether KAITO upgrades images.")
    strategy: Literal["InPlace", "Surge"] = Field("InPlace", description="How KAITO upgrades images.")
    maintenance_window: MaintenanceWindow | None = Field(None, description="When KAITO may upgrade images.")


class InferenceSetSpecV1Alpha1(Block):
    """Replicas of a served model."""

    replicas: Annotated[int, Field(ge=0, le=1000)] = Field(1, description="Number of replicas.")
    node_count_limit: Annotated[int, Field(ge=1, le=10000)] | None = Field(
        None, description="Maximum number of nodes of all replicas."
    )
    label_selector: LabelSelector = Field(description="Labels of the nodes.")
    template: MemberV1Alpha1 = Field(description="Template of each replica.")
    update_strategy: Object = Field({}, description="How a change is rolled out.")
    auto_upgrade: AutoUpgrade | None = Field(None, description="Automatic upgrades of images by KAITO.")


class InferenceSetSpec(InferenceSetSpecV1Alpha1):
    """Replicas of a served model."""

    template: Member = Field(description="Template of each replica.")


class InferenceSetV1Alpha1(Foreign):
    """KAITO's `InferenceSet` of `kaito.sh/v1alpha1`."""

    api_version: Literal["kaito.sh/v1alpha1"] = Field(description="Version of KAITO's API.")
    kind: Literal["InferenceSet"] = Field(description="Kind of the document.")
    spec: InferenceSetSpecV1Alpha1 = Field(description="Desired state.")


class InferenceSet(Foreign):
    """KAITO's `InferenceSet` of `kaito.sh/v1beta1`."""

    api_version: Literal["kaito.sh/v1beta1"] = Field(description="Version of KAITO's API.")
    kind: Literal["InferenceSet"] = Field(description="Kind of the document.")
    spec: InferenceSetSpec = Field(description="Desired state.")


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
    at: Path = ("spec", "template")
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
    put_inference(draft, serving, options, lowering)
    _update(draft, spec, lowering)
    _limit(draft, spec, options, lowering)
    topology = draft.finish(Topology, lowering) if not lowering.failed else None
    naming = serving_names(SET) if options.compat else None
    if topology is None:
        return lowering.result()
    return lowering.result(draft.lowered(topology, naming))


def _autoscale(draft: Draft, spec: InferenceSetSpecV1Alpha1, lowering: ResourceLowering) -> bool:
    """Scaling as the annotations of KAITO's KEDA scaler ask for it; whether they do."""
    given = {
        key.removeprefix(SCALING): value
        for key, value in lowering.annotations.items()
        if key.startswith(SCALING)
    }
    if not given:
        return False
    if given.pop("auto-provision", "") != "true":
        for name in given:
            lowering.unused(
                lowering.annotation_at(SCALING + name), f'`{SCALING}auto-provision` is not "true"'
            )
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
    numbers = {
        key: _number(given.pop(key, ""), key, lowering)
        for key in ("max-replicas", "min-replicas", "threshold")
    }
    most = numbers["max-replicas"] or spec.node_count_limit
    if most is None:
        lowering.error(
            "KG0413",
            "the maximum number of replicas is not set",
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


def _scaler(block: dict[str, Any], at: Path, lowering: ResourceLowering) -> None:
    address = lowering.annotations.get(PROMETHEUS)
    if address:
        if not re.match(ADDRESS, address):
            lowering.error(
                "KG0406", f"`{PROMETHEUS}` must be a URL", lowering.annotation_at(PROMETHEUS), "http://…"
            )
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
    lowering.error(
        "KG0412", f"`{SCALING}{key}` must be a whole number", lowering.annotation_at(SCALING + key)
    )
    return None


def _update(draft: Draft, spec: InferenceSetSpecV1Alpha1, lowering: ResourceLowering) -> None:
    at: Path = ("spec", "updateStrategy")
    strategy = spec.update_strategy
    kind = strategy.get("type", "RollingUpdate")
    if kind != "RollingUpdate":
        lowering.unused((*at, "type"), f"kaigen has no update strategy `{kind}`")
    rolling = strategy.get("rollingUpdate", {})
    if not isinstance(rolling, dict):
        lowering.error("KG0412", "`rollingUpdate` must be a mapping", (*at, "rollingUpdate"))
        return
    for field, value in rolling.items():
        if field in {"maxUnavailable", "maxSurge"}:
            draft.put(("spec", "rollout", field), value, (*at, "rollingUpdate", field))
        else:
            lowering.unused((*at, "rollingUpdate", field), "kaigen's rollout has no such setting")
    for field in strategy.keys() - {"type", "rollingUpdate"}:
        lowering.unused((*at, field), "an update strategy has no such field")
    if spec.auto_upgrade is not None and spec.auto_upgrade.enabled:
        lowering.unused(("spec", "autoUpgrade"), "images change only with a commit")


def _limit(
    draft: Draft, spec: InferenceSetSpecV1Alpha1, options: Options, lowering: ResourceLowering
) -> None:
    """Limit the nodes that Karpenter creates; KAITO does not read the limit."""
    limit = spec.node_count_limit
    if limit is None:
        return
    at: Path = ("spec", "nodeCountLimit")
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
