"""Lowers Koldun's `Ingress`, a kind of its later versions, to a Topology that scales with the number of requests."""

from __future__ import annotations

from kaigen.core.json_types import FieldPath
from kaigen.dialects.draft import Draft
from kaigen.dialects.koldun import API_VERSION
from kaigen.dialects.koldun.kinds import Ingress, SessionScaling
from kaigen.dialects.koldun.resource import KoldunLowering
from kaigen.dialects.koldun.ring import DIRECTIVES, ModelUse, Ring, find_model, lower_ring, number_of_workers
from kaigen.dialects.koldun.root import check_images
from kaigen.kinds.lowering import LoweringContext, LoweringResult
from kaigen.kinds.positioned import Positioned

_BACKEND: FieldPath = ("spec", "backend")
_ROUTE: FieldPath = ("spec", "route")
_UNUSED = {
    "image": "a Service reaches the rings, and no session of the operator does",
    "dispatcherImage": "a Service reaches the rings, and no dispatcher does",
    "dispatcherMetricsListen": "a Service reaches the rings, and no dispatcher does",
    "nats": "requests reach the rings directly, and wait in the proxy of a ring",
    "conversationTTL": "a ring serves all conversations",
}


def lower(ingress: Ingress, document: Positioned, context: LoweringContext) -> LoweringResult:
    """Return an `Ingress` as a Topology of the same name.

    Args:
        ingress: the validated document.
        document: the document with positions.
        context: what else the lowering may read.
    """
    lowering = KoldunLowering(ingress.metadata, document, context, (*DIRECTIVES, "model"))
    backend = ingress.spec.backend
    for name, reason in _UNUSED.items():
        if name in lowering.block("spec", "backend"):
            lowering.without_effect((*_BACKEND, name), reason)
    check_images(backend.root_image, backend.worker_image, (*_BACKEND, "workerImage"), lowering)
    model = _model(lowering)
    if model is None:
        return lowering.result()
    power = (*_BACKEND, "replicaPower")
    ring = Ring(
        model=model,
        image=backend.root_image,
        image_at=(*_BACKEND, "rootImage"),
        workers=number_of_workers(backend.replica_power, power, lowering),
        workers_at=power,
    )
    draft = lowering.draft()
    draft.put(("spec", "service"), {"port": ingress.spec.service.port, "type": ingress.spec.service.type})
    draft.origins["spec", "service"] = ("spec", "service")
    _put_route(draft, ingress, lowering)
    if backend.session_scaling is not None:
        _put_scaling(draft, backend.session_scaling, lowering)
    return lower_ring(draft, ring, lowering)


def _model(lowering: KoldunLowering) -> ModelUse | None:
    """Return the Model of an Ingress: the one that its annotation names, or the only one, or None after an error."""
    name = lowering.given.get("model")
    if name is not None:
        return find_model(name, None, lowering.directive_at("model"), lowering)
    at: FieldPath = ("metadata", "name")
    names = [found.name or "" for found in lowering.find_objects(API_VERSION, "Model")]
    if len(names) == 1:
        return find_model(names[0], None, at, lowering)
    listed = f", one of {', '.join(sorted(names))}" if names else ""
    lowering.error(
        "KG0413",
        "the resource names no Model: the operator takes the name of each request, and a ring serves one Model",
        at,
        f"set the annotation `kaigen.dev/model` to the name of a Model{listed}",
    )
    return None


def _put_route(draft: Draft, ingress: Ingress, lowering: KoldunLowering) -> None:
    """Put the host and path of requests, and their time limit."""
    route, timeout = ingress.spec.route, ingress.spec.backend.response_timeout
    if route is not None:
        draft.put(("spec", "route", "host"), route.host, (*_ROUTE, "host"))
        if route.path:
            draft.put(("spec", "route", "path"), route.path, (*_ROUTE, "path"))
        block = {"className": route.ingress_class_name} if route.ingress_class_name else {}
        draft.put(("spec", "route", "ingress"), block, (*_ROUTE, "ingressClassName"))
        draft.origins["spec", "route"] = _ROUTE
    if timeout is not None:
        reason = "the API of Ingresses has no time limit; controllers have annotations for it"
        lowering.without_effect((*_BACKEND, "responseTimeout"), reason)


def _put_scaling(draft: Draft, scaling: SessionScaling, lowering: KoldunLowering) -> None:
    """Put the number of rings, and the load at which another one starts."""
    at = (*_BACKEND, "sessionScaling")
    if "query" not in lowering.given:
        _put_number(draft, scaling, at, lowering)
        return
    autoscale: FieldPath = ("spec", "autoscale")
    draft.put((*autoscale, "min"), scaling.min_dllamas, (*at, "minDllamas"))
    draft.put((*autoscale, "max"), scaling.max_dllamas, (*at, "maxDllamas"))
    if scaling.scale_up_backlog is not None:
        draft.put((*autoscale, "target"), scaling.scale_up_backlog, (*at, "scaleUpBacklog"))
    idle = scaling.scale_down_idle_seconds
    if idle is not None and "idle-after" in lowering.given:
        reason = "the annotation `kaigen.dev/idle-after` decides"
        lowering.without_effect((*at, "scaleDownIdleSeconds"), reason, "delete one of the two")
    elif idle is not None:
        draft.put((*autoscale, "idleAfter"), f"{idle}s", (*at, "scaleDownIdleSeconds"))
    draft.origins[autoscale] = at


def _put_number(draft: Draft, scaling: SessionScaling, at: FieldPath, lowering: KoldunLowering) -> None:
    """Put a fixed number of rings, and report what only an autoscaler could do."""
    if "replicas" in lowering.given:
        reason = "the annotation `kaigen.dev/replicas` decides the number of rings"
        lowering.without_effect(at, reason, "delete one of the two")
        return
    number = max(scaling.min_dllamas, 1)
    draft.put(("spec", "shape", "replicas"), number, (*at, "minDllamas"))
    fixed = SessionScaling(min_dllamas=number, max_dllamas=number)
    if scaling != fixed:
        lowering.warning(
            "KG0414",
            f"the number of rings is {number}: an autoscaler needs a measure of the load",
            at,
            "set the annotations `kaigen.dev/prometheus` and `kaigen.dev/query`",
            key=True,
        )
