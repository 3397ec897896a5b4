"""Lowers Koldun's `Ingress`, a kind of its later versions, to a Topology that scales with the number of requests."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from kaigen.core.json_types import FieldPath
from kaigen.dialects.draft import Draft
from kaigen.dialects.koldun import API_VERSION
from kaigen.dialects.koldun.ingress_kinds import Backend, Ingress, IngressRoute, Session, SessionScaling, Token
from kaigen.dialects.koldun.resource import NO_QUEUE, KoldunLowering
from kaigen.dialects.koldun.ring import DIRECTIVES, ModelUse, Ring, find_model, lower_ring, number_of_workers
from kaigen.dialects.koldun.root import check_images
from kaigen.kinds.base import SHA256, matches
from kaigen.kinds.lowering import PREFIX, LoweringContext, LoweringResult
from kaigen.kinds.positioned import Positioned, SourceField
from kaigen.yaml.document import Document

_BACKEND: FieldPath = ("spec", "backend")
_ROUTE: FieldPath = ("spec", "route")
_NO_BACKEND = "a Service reaches the rings, and no backend of the operator does"
_NO_DISPATCHER = "a Service reaches the rings, and no dispatcher does"
_UNUSED = {
    **dict.fromkeys(("image", "imagePullPolicy"), _NO_BACKEND),
    **dict.fromkeys(("dispatcherImage", "dispatcherMetricsListen"), _NO_DISPATCHER),
    "extraArgs": f"{_NO_BACKEND}; answers arrive as the engine writes them",
    "nats": NO_QUEUE,
    **dict.fromkeys(("conversationTTL", "hashSecret"), "a ring serves all conversations"),
}
_UNUSED_WITH_HINT = {
    "resources": (_NO_BACKEND, "set the annotations `kaigen.dev/cpu` and `kaigen.dev/memory` for the pods of a ring"),
    "rootMemory": (
        "kaigen computes the memory of each pod from the model",
        "delete it, or set the annotation `kaigen.dev/memory`",
    ),
    "responseTimeout": (
        "the API of Ingresses has no time limit; controllers have annotations for it",
        "set that of your controller in `route.annotations`",
    ),
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
    given = lowering.block("spec", "backend")
    for name, reason in _UNUSED.items():
        if name in given:
            lowering.without_effect((*_BACKEND, name), reason)
    for name, (reason, hint) in _UNUSED_WITH_HINT.items():
        if name in given:
            lowering.without_effect((*_BACKEND, name), reason, hint)
    check_images(backend.root_image, backend.worker_image, (*_BACKEND, "workerImage"), lowering)
    tokens = lowering.find_objects(API_VERSION, "Token")
    _check_key(backend, lowering, has_tokens=bool(tokens))
    model = _model(lowering)
    if model is None:
        return lowering.result()
    draft = lowering.draft()
    draft.put(("spec", "service"), {"port": ingress.spec.service.port, "type": ingress.spec.service.type})
    draft.origins["spec", "service"] = ("spec", "service")
    if tokens and _reads_tokens(document.data):
        _put_tokens(draft, tokens, lowering)
    if ingress.spec.route is not None:
        _put_route(draft, ingress.spec.route, lowering)
    if backend.session_scaling is not None:
        _put_scaling(draft, backend.session_scaling, lowering)
    return lower_ring(draft, _ring(backend, model, lowering), lowering)


def lower_session(session: Session, document: Positioned, context: LoweringContext) -> LoweringResult:
    """Return no spec: a `Session` is what the operator's backend creates while a conversation lasts.

    Args:
        session: the validated document.
        document: the document with positions.
        context: what else the lowering may read.
    """
    lowering = KoldunLowering(session.metadata, document, context, ())
    lowering.error(
        "KG0413",
        "the operator's backend creates a Session for one conversation and deletes it; rings of kaigen serve all",
        ("kind",),
        "delete it; for a ring, write a Dllama with its `modelRef`, `replicaPower` and images",
    )
    return lowering.result()


def lower_token(token: Token, document: Positioned, context: LoweringContext) -> LoweringResult:
    """Return no spec: the rings of the Ingresses in its namespace accept the token.

    Args:
        token: the validated document.
        document: the document with positions.
        context: what else the lowering may read.
    """
    lowering = KoldunLowering(token.metadata, document, context, ())
    if _checksum(token.spec.hash) is None:
        message = "`hash` is no SHA-256 checksum of a token, so no request would have it"
        lowering.error("KG0412", message, ("spec", "hash"), "write 64 hex digits, as `sha256sum` prints them", key=True)
    elif not any(_reads_tokens(found.data) for found in lowering.find_objects(API_VERSION, "Ingress")):
        lowering.warning(
            "KG0405",
            "the token has no effect: no Ingress of its namespace asks for tokens",
            ("spec", "hash"),
            "delete it, or the `allowAnonymous` or `kaigen.dev/api-key-secret` of an Ingress",
            key=True,
        )
    return lowering.result(joined=True)


def _checksum(text: object) -> str | None:
    """Return the checksum of a token as the operator reads it; None if it is none."""
    found = text.strip().lower() if isinstance(text, str) else ""
    return found if matches(SHA256, found) else None


def _reads_tokens(ingress: Any) -> bool:
    """Return whether requests to an Ingress need one of the tokens of its namespace."""
    spec, metadata = ingress.get("spec") or {}, ingress.get("metadata") or {}
    anonymous = (spec.get("backend") or {}).get("allowAnonymous") is True
    return not anonymous and f"{PREFIX}api-key-secret" not in (metadata.get("annotations") or {})


def _put_tokens(draft: Draft, tokens: Sequence[Document], lowering: KoldunLowering) -> None:
    """Put the checksums of the tokens, one of which requests need."""
    documents: list[Any] = [token.data for token in tokens]
    specs = [document.get("spec") or {} for document in documents]
    enabled = [_checksum(spec.get("hash")) for spec in specs if spec.get("disabled") is not True]
    if enabled:
        draft.put(("spec", "auth", "sha256"), sorted({found for found in enabled if found is not None}), _BACKEND)
        return
    message = "every Token of the namespace is disabled, so no request is accepted"
    hint = "enable one, or set `allowAnonymous: true` or the annotation `kaigen.dev/api-key-secret`"
    lowering.error("KG0413", message, _BACKEND, hint, key=True)


def _check_key(backend: Backend, lowering: KoldunLowering, *, has_tokens: bool) -> None:
    """Report requests without a key that the operator would reject, and a key that `allowAnonymous` contradicts."""
    has_key = "api-key-secret" in lowering.given
    if backend.allow_anonymous and has_key:
        reason = "the annotation `kaigen.dev/api-key-secret` requires a key"
        lowering.without_effect((*_BACKEND, "allowAnonymous"), reason, "delete one of the two")
    elif not (backend.allow_anonymous or has_key or has_tokens):
        lowering.warning(
            "KG0414",
            "requests need no key: the operator rejects those without a token, and its namespace has no `Token`",
            _BACKEND,
            "write a `Token`, set the annotation `kaigen.dev/api-key-secret` to the Secret with a key, or "
            "`allowAnonymous: true`",
            key=True,
        )


def _ring(backend: Backend, model: ModelUse, lowering: KoldunLowering) -> Ring:
    """Return the ring of an Ingress, with the number of workers of its Model where it states none.

    Without either, it is that of a power of 1 (source: `replicaPowerOrDefault` at commit 1ec22412).
    """
    at: FieldPath = (*_BACKEND, "replicaPower") if backend.replica_power else _BACKEND
    power, source = backend.replica_power, None
    if not power and model.document is not None and isinstance(model.spec.get("replicaPower"), int):
        power = model.spec["replicaPower"]
        source = SourceField(model.document.mark(("spec", "replicaPower")), "spec.replicaPower")
    return Ring(
        model=model,
        image=backend.root_image,
        image_at=(*_BACKEND, "rootImage"),
        workers=number_of_workers(power if power > 0 else 1, at, lowering),
        workers_at=at,
        workers_source=source,
    )


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


def _put_route(draft: Draft, route: IngressRoute, lowering: KoldunLowering) -> None:
    """Put the host and path of requests, and the class, annotations and certificate of the Ingress."""
    draft.put(("spec", "route", "host"), route.host, (*_ROUTE, "host"))
    if route.path:
        draft.put(("spec", "route", "path"), route.path, (*_ROUTE, "path"))
    if route.path_type and route.path_type.lower() != "prefix":
        message = f"`{route.path_type}` becomes `Prefix`: paths below `{route.path or '/'}` reach the rings too"
        lowering.warning("KG0414", message, (*_ROUTE, "pathType"), "write `Prefix`")
    block = {"className": route.ingress_class_name} if route.ingress_class_name else {}
    draft.put(("spec", "route", "ingress"), block, (*_ROUTE, "ingressClassName"))
    if route.annotations:
        draft.put(("spec", "route", "ingress", "annotations"), dict(route.annotations), (*_ROUTE, "annotations"))
    draft.origins["spec", "route"] = _ROUTE
    _put_certificate(draft, route, lowering)


def _put_certificate(draft: Draft, route: IngressRoute, lowering: KoldunLowering) -> None:
    """Put the first certificate of the host, and report the others: a route of kaigen has one host."""
    names = {route.host, f"*.{route.host.partition('.')[2]}"}
    path: FieldPath = ("spec", "route", "tls", "secret", "name")
    for index, tls in enumerate(route.tls):
        at = (*_ROUTE, "tls", index)
        if draft.get(path) is not None or (tls.hosts and names.isdisjoint(tls.hosts)):
            message = (
                f"`tls[{index}]` has no effect: the only host of the route is `{route.host}`, with one certificate"
            )
            lowering.warning("KG0405", message, at, "delete it")
        elif tls.secret_name is None:
            message = "the certificate has no name: without one, controllers use a certificate of their own"
            lowering.error("KG0413", message, at, "set `secretName` to the Secret with the certificate of the host")
        else:
            draft.put(path, tls.secret_name, (*at, "secretName"))
            for number, host in enumerate(tls.hosts):
                if host not in names:
                    message = f"`{host}` has no effect: the only host of the route is `{route.host}`"
                    lowering.warning("KG0405", message, (*at, "hosts", number), "delete it")


def _put_scaling(draft: Draft, scaling: SessionScaling, lowering: KoldunLowering) -> None:
    """Put the number of rings, and the load at which another one starts."""
    at = (*_BACKEND, "sessionScaling")
    if not {"query", "idle-after"} & set(lowering.given):
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
            "set the annotation `kaigen.dev/idle-after`, with which a router counts the requests, or "
            "`kaigen.dev/prometheus` and `kaigen.dev/query`",
            key=True,
        )
