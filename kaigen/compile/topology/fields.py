"""Which fields of a Topology mean something to which engine; what means nothing is told, never left out in silence."""

from __future__ import annotations

from collections.abc import Mapping

from pydantic.alias_generators import to_camel

from kaigen.compile.expressions import SpecPath
from kaigen.compile.problems import Problems
from kaigen.kinds.topology import TopologySpec

_OF_A_SERVER = (
    "engine_version",
    "served_names",
    "engine_args",
    "context_length",
    "concurrency",
    "trust_remote_code",
)
_WITHOUT_EFFECT: Mapping[str, Mapping[str, str]] = {
    "vllm": dict.fromkeys(("command", "args"), "say more in `engineArgs`, or use `engine: container`"),
    "transformers": {
        **dict.fromkeys(("command", "args"), "say more in `engineArgs`, or use `engine: container`"),
        **dict.fromkeys(("quantization", "adapters", "engine_version"), "vLLM can do that"),
    },
    "container": dict.fromkeys(
        (*_OF_A_SERVER, "preset", "token_secret", "quantization", "adapters", "auth"),
        "say it in `command`, `args` and `env`, as the container wants it",
    ),
    "template": dict.fromkeys(
        (
            *(
                *_OF_A_SERVER,
                "model",
                "preset",
                "engine",
                "image",
                "command",
                "args",
                "quantization",
                "adapters",
            ),
            *(
                "token_secret",
                "auth",
                "env",
                "resources",
                "provisioning",
                "storage",
                "probes",
                "drain",
                "transfer",
            ),
        ),
        "say it in the template, which is taken as it is",
    ),
}
_SHAPE_WITHOUT_EFFECT: Mapping[str, tuple[str, ...]] = {
    "vllm": (),
    "transformers": ("tensor_parallel", "pipeline_parallel", "data_parallel", "executor", "groups"),
    "container": ("tensor_parallel", "pipeline_parallel", "data_parallel", "executor", "groups"),
    "template": ("nodes", "tensor_parallel", "pipeline_parallel", "data_parallel", "executor", "groups"),
}


def without_effect(problems: Problems, field: str, path: SpecPath, on: str, hint: str) -> None:
    """Tell of a field that means nothing where it stands."""
    problems.error("KG0340", f"`{field}` has no effect {on}", path, hint)


def check_fields(spec: TopologySpec, mode: str, problems: Problems) -> None:
    """Tell of every field that means nothing to what serves.

    Args:
        spec: the spec.
        mode: name of the engine, or `template`.
        problems: takes what is told.
    """
    on = "on a pod template" if mode == "template" else f"on engine `{mode}`"
    for field, hint in _WITHOUT_EFFECT[mode].items():
        if field in spec.model_fields_set:
            name = to_camel(field)
            without_effect(problems, name, ("spec", name), on, hint)
    for field in _SHAPE_WITHOUT_EFFECT[mode]:
        if field in spec.shape.model_fields_set and getattr(spec.shape, field) != 1:
            name = to_camel(field)
            hint = "leave it out" if mode == "template" else "vLLM can do that"
            without_effect(problems, name, ("spec", "shape", name), on, hint)
    if mode == "template":
        for field in sorted(spec.placement.model_fields_set - {"queue"}):
            name = to_camel(field)
            without_effect(problems, name, ("spec", "placement", name), on, "say it in the template")
        for field in sorted(spec.security.model_fields_set - {"pod_security"}):
            name = to_camel(field)
            without_effect(problems, name, ("spec", "security", name), on, "say it in the template")
    if mode == "transformers" and len(spec.served_names) > 1:
        without_effect(problems, "servedNames[1]", ("spec", "servedNames", 1), on, "it serves under one name")
    _check_service(spec, problems, key="auth" not in _WITHOUT_EFFECT[mode])
    _check_route(spec, problems)


def _check_service(spec: TopologySpec, problems: Problems, *, key: bool) -> None:
    service = spec.service
    if service.type != "LoadBalancer":
        for field in ("load_balancer_class", "load_balancer_source_ranges"):
            if field in service.model_fields_set:
                name = to_camel(field)
                on = f"on a Service of type {service.type}"
                without_effect(problems, name, ("spec", "service", name), on, "set `type: LoadBalancer`")
    elif spec.auth is None and not service.load_balancer_source_ranges:
        problems.warning(
            "KG0352",
            "whoever reaches the load balancer may use the model",
            ("spec", "service", "type"),
            ("ask for a key with `auth`, or " if key else "")
            + "name the networks in `loadBalancerSourceRanges`",
        )


def _check_route(spec: TopologySpec, problems: Problems) -> None:
    route = spec.route
    gateway = route.gateway if route else None
    if route is None or gateway is None:
        if spec.inference_pool is not None and route is not None:
            without_effect(
                problems,
                "inferencePool",
                ("spec", "inferencePool"),
                "on an Ingress",
                "use `route.gateway`, or leave the pool out",
            )
        return
    at: SpecPath = ("spec", "route", "gateway")
    if gateway.name is not None and route.tls is not None:
        without_effect(
            problems,
            "tls",
            ("spec", "route", "tls"),
            f"on the Gateway `{gateway.name}`",
            "its listener holds the certificate; leave `tls` out",
        )
    if gateway.class_name is not None:
        for field in ("namespace", "section_name"):
            if field in gateway.model_fields_set:
                name = to_camel(field)
                without_effect(problems, name, (*at, name), "on a Gateway of the app's own", "leave it out")
