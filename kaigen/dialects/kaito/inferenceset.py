"""`InferenceSet`: several copies of a model that is served, as one Topology."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import Field

from kaigen.dialects.draft import Draft
from kaigen.dialects.kaito.blocks import Foreign, Inference, LabelSelector, Partition, Text
from kaigen.dialects.kaito.compat import SET, serving_names
from kaigen.dialects.kaito.nodes import Asked
from kaigen.dialects.kaito.reading import DIRECTIVES, Reading, Wishes
from kaigen.dialects.kaito.serving import Serving, put_inference
from kaigen.kinds.base import ADDRESS, Block, Object
from kaigen.kinds.lowering import Lowered, LoweringContext, LoweringResult
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
"""Metrics of vLLM that a Topology is scaled by."""


class MemberResourceV1Alpha1(Block):
    """Nodes of each copy."""

    instance_type: Text | None = Field(None, description="Instance type of the nodes.")


class MemberResource(MemberResourceV1Alpha1):
    """Nodes of each copy, and which part of them."""

    partition: Partition | None = Field(None, description="A part of a node's GPUs for each pod.")


class MemberV1Alpha1(Block):
    """What each copy is."""

    metadata: Object = Field({}, description="Labels and annotations of each copy.")
    resource: MemberResourceV1Alpha1 = Field(
        default_factory=dict, validate_default=True, description="Nodes of each copy."
    )
    inference: Inference = Field(description="What is served.")


class Member(MemberV1Alpha1):
    """What each copy is."""

    resource: MemberResource = Field(
        default_factory=dict, validate_default=True, description="Nodes of each copy."
    )


class MaintenanceWindow(Block):
    """When KAITO may replace images."""

    schedule: Text = Field(description="When it begins, as in cron.")
    duration: Text = Field("4h", description="How long it lasts.")


class AutoUpgrade(Block):
    """Whether KAITO replaces images by newer ones."""

    enabled: bool = Field(False, description="Whether it does.")
    strategy: Literal["InPlace", "Surge"] = Field("InPlace", description="How it does.")
    maintenance_window: MaintenanceWindow | None = Field(None, description="When it may.")


class InferenceSetSpecV1Alpha1(Block):
    """Copies of a model that is served."""

    replicas: Annotated[int, Field(ge=0, le=1000)] = Field(1, description="How many copies.")
    node_count_limit: Annotated[int, Field(ge=1, le=10000)] | None = Field(
        None, description="Most nodes of all copies."
    )
    label_selector: LabelSelector = Field(description="Labels of the nodes.")
    template: MemberV1Alpha1 = Field(description="What each copy is.")
    update_strategy: Object = Field({}, description="How a change reaches the copies.")
    auto_upgrade: AutoUpgrade | None = Field(None, description="Whether KAITO replaces images by newer ones.")


class InferenceSetSpec(InferenceSetSpecV1Alpha1):
    """Copies of a model that is served."""

    template: Member = Field(description="What each copy is.")


class InferenceSetV1Alpha1(Foreign):
    """KAITO's `InferenceSet` of `kaito.sh/v1alpha1`."""

    api_version: Literal["kaito.sh/v1alpha1"] = Field(description="Version of KAITO's API.")
    kind: Literal["InferenceSet"] = Field(description="The kind.")
    spec: InferenceSetSpecV1Alpha1 = Field(description="What is wanted.")


class InferenceSet(Foreign):
    """KAITO's `InferenceSet` of `kaito.sh/v1beta1`."""

    api_version: Literal["kaito.sh/v1beta1"] = Field(description="Version of KAITO's API.")
    kind: Literal["InferenceSet"] = Field(description="The kind.")
    spec: InferenceSetSpec = Field(description="What is wanted.")


def lower(
    resource: InferenceSet | InferenceSetV1Alpha1, document: Positioned, context: LoweringContext
) -> LoweringResult:
    """An InferenceSet as a Topology with replicas.

    Args:
        resource: the validated document.
        document: the document with positions.
        context: what else the lowering may read.
    """
    reading = Reading(resource.metadata, document, context, *DIRECTIVES, "prometheus")
    spec = resource.spec
    at: Path = ("spec", "template")
    reading.take_template(spec.template.metadata, (*at, "metadata"))
    wishes = reading.wishes()
    own = spec.template.resource
    asked = Asked(
        at=(*at, "resource"),
        instance_type=own.instance_type or "",
        selector=spec.label_selector,
        selector_at=("spec", "labelSelector"),
        partition=own.partition if isinstance(own, MemberResource) else None,
        gpus_needed=spec.template.inference.preset is not None,
    )
    draft = reading.draft("Topology")
    draft.origins["spec",] = at
    scaled = _autoscale(draft, spec, reading)
    serving = Serving(
        inference=spec.template.inference,
        at=(*at, "inference"),
        nodes=asked,
        served_name=resource.metadata.name,
        copies=None if scaled else spec.replicas,
        copies_at=("spec", "replicas"),
    )
    put_inference(draft, serving, wishes, reading)
    _update(draft, spec, reading)
    _limit(draft, spec, wishes, reading)
    topology = draft.finish(Topology, reading) if not reading.failed else None
    naming = serving_names(SET) if wishes.compat else None
    if topology is None:
        return reading.result()
    return reading.result(Lowered(topology, draft.origins, naming, draft.hints))


def _autoscale(draft: Draft, spec: InferenceSetSpecV1Alpha1, reading: Reading) -> bool:
    """Scaling as the annotations of KAITO's KEDA scaler ask for it; whether they do."""
    given = {
        key.removeprefix(SCALING): value
        for key, value in reading.annotations.items()
        if key.startswith(SCALING)
    }
    if not given:
        return False
    if given.pop("auto-provision", "") != "true":
        for name in given:
            reading.unused(reading.annotation_at(SCALING + name), f'`{SCALING}auto-provision` is not "true"')
        return False
    at = reading.annotation_at(f"{SCALING}auto-provision")
    name = given.pop("metricName", "vllm:num_requests_waiting")
    metric = _METRICS.get(name)
    if metric is None:
        known = ", ".join(_METRICS)
        reading.error(
            "KG0413",
            f"kaigen knows no scaling by `{name}`",
            reading.annotation_at(f"{SCALING}metricName"),
            f"known: {known}; or delete these annotations and write a ScaledObject of your own",
        )
        return False
    numbers = {
        key: _number(given.pop(key, ""), key, reading)
        for key in ("max-replicas", "min-replicas", "threshold")
    }
    most = numbers["max-replicas"] or spec.node_count_limit
    if most is None:
        reading.error(
            "KG0413",
            "it is not said how many copies there may be at most",
            at,
            f"add `{SCALING}max-replicas`, or `nodeCountLimit`",
        )
        return False
    for key in given:
        reading.unused(reading.annotation_at(SCALING + key), "kaigen's scaling has nothing like it")
    block: dict[str, Any] = {"min": numbers["min-replicas"] or 1, "max": max(most, 1), "metric": metric}
    if numbers["threshold"]:
        block["target"] = numbers["threshold"]
    _scaler(block, at, reading)
    draft.put(("spec", "autoscale"), block, at)
    return True


def _scaler(block: dict[str, Any], at: Path, reading: Reading) -> None:
    address = reading.annotations.get(PROMETHEUS)
    if address:
        import re

        if not re.match(ADDRESS, address):
            reading.error(
                "KG0406", f"`{PROMETHEUS}` must be an address", reading.annotation_at(PROMETHEUS), "http://…"
            )
            return
        block["prometheus"] = {"address": address}
        return
    reading.warning(
        "KG0414",
        "an autoscaler of Kubernetes' own scales it, by the custom metrics API; KAITO's scaler asks the pods itself",
        at,
        f"name a Prometheus in `{PROMETHEUS}` to have it done by KEDA",
    )


def _number(text: str, key: str, reading: Reading) -> int | None:
    if not text:
        return None
    if text.isascii() and text.isdigit() and len(text) < 7:
        return int(text)
    reading.error("KG0412", f"`{SCALING}{key}` must be a whole number", reading.annotation_at(SCALING + key))
    return None


def _update(draft: Draft, spec: InferenceSetSpecV1Alpha1, reading: Reading) -> None:
    at: Path = ("spec", "updateStrategy")
    strategy = spec.update_strategy
    kind = strategy.get("type", "RollingUpdate")
    if kind != "RollingUpdate":
        reading.unused((*at, "type"), f"kaigen knows no update by `{kind}`")
    rolling = strategy.get("rollingUpdate", {})
    if not isinstance(rolling, dict):
        reading.error("KG0412", "`rollingUpdate` must be a mapping", (*at, "rollingUpdate"))
        return
    for field, value in rolling.items():
        if field in {"maxUnavailable", "maxSurge"}:
            draft.put(("spec", "rollout", field), value, (*at, "rollingUpdate", field))
        else:
            reading.unused((*at, "rollingUpdate", field), "kaigen's rollout has nothing like it")
    for field in strategy.keys() - {"type", "rollingUpdate"}:
        reading.unused((*at, field), "an update strategy has no such field")
    if spec.auto_upgrade is not None and spec.auto_upgrade.enabled:
        reading.unused(("spec", "autoUpgrade"), "images change with a commit, never by themselves")


def _limit(draft: Draft, spec: InferenceSetSpecV1Alpha1, wishes: Wishes, reading: Reading) -> None:
    """KAITO declares the limit and does not read it; here it bounds the nodes that are made."""
    limit = spec.node_count_limit
    if limit is None:
        return
    at: Path = ("spec", "nodeCountLimit")
    pool = draft.get(("spec", "provisioning"))
    if pool is not None and pool != "none":
        if pool == "karpenter":
            name = wishes.node_class or "default"
            draft.put(("spec", "provisioning"), {"karpenter": {"nodeClass": {"name": name}}})
        draft.put(("spec", "provisioning", "karpenter", "maxNodes"), limit, at)
    elif spec.replicas > limit:
        reading.error(
            "KG0416",
            f"{spec.replicas} copies need as many nodes or more, and `nodeCountLimit` is {limit}",
            at,
            "raise it, or take fewer replicas",
        )
