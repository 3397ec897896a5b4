"""Checks of a resolved Endpoint: its tests, and whether it and only it reaches its Topologies."""

from __future__ import annotations

from functools import partial

from kaigen.compile.builders.network import client_peers
from kaigen.compile.builders.pod_options import check_pod_options
from kaigen.compile.builders.routes import check_route
from kaigen.compile.endpoint.objects import ENDPOINT, own_pod
from kaigen.compile.endpoint.resolution import Backend, EndpointResolution
from kaigen.compile.problems import Problems
from kaigen.core.json_types import FieldPath, JsonObject
from kaigen.diagnostics.problem import ProblemError
from kaigen.kubernetes.manifest import mapping

_NAMES = ("app.kubernetes.io/name", "app.kubernetes.io/instance")
"""Labels of pods with the name of their app."""


def check_endpoint(resolution: EndpointResolution, problems: Problems) -> None:
    """Report every problem of an Endpoint that its resolution did not."""
    spec = resolution.spec
    if spec.route is not None:
        check_route(spec.route, problems)
    check_pod_options(partial(own_pod, resolution), spec, resolution.metadata.name, resolution.context, problems)
    if not problems.failed:
        _check_tests(resolution, problems)
    for backend in resolution.backends:
        _check_backend(resolution, backend, problems)
    if spec.replicas == 1:
        message = "no request is answered while the only pod of the Endpoint is replaced or its node is drained"
        problems.warning("KG0492", message, ("spec", "replicas"), "set 2 or more replicas")


def _check_tests(resolution: EndpointResolution, problems: Problems) -> None:
    """Report tests with other answers than those that the Endpoint gives."""
    for index, test in enumerate(resolution.spec.tests):
        path: FieldPath = ("spec", "tests", index)
        if test.client is not None and test.client not in resolution.access.clients:
            known = resolution.access.clients
            problems.add(ProblemError.unknown("KG0486", "client", test.client, known, (*path, "client")).problem)
            continue
        answer = resolution.access.answer(test.client, test.model)
        if answer != test.expect:
            who = f"with the key of `{test.client}`" if test.client else "without a key"
            message = f"a request for `{test.model}` {who} gets {_shown(answer)}, not {_shown(test.expect)}"
            problems.error("KG0487", message, (*path, "expect"), "correct `models` or `clients`, or the test")


def _shown(answer: str | int) -> str:
    return str(answer) if isinstance(answer, int) else f"`{answer}`"


def _check_backend(resolution: EndpointResolution, backend: Backend, problems: Problems) -> None:
    """Report a Topology that the Endpoint cannot use, and one that others reach although it must be exclusive."""
    spec, name = backend.topology.spec, backend.name
    if spec.auth is not None and spec.auth.secret is None:
        message = f"`{name}` requires a key of which only the checksum is known, so the Endpoint cannot ask it"
        problems.error("KG0491", message, backend.path, "set `auth.secret` there, or leave `auth` out")
    peers = client_peers(spec.service, resolution.context, routed=spec.route is not None)
    labels = f"{{app.kubernetes.io/name: {resolution.metadata.name}}}"
    wanted = f"`service: {{allowFrom: [{{podSelector: {{matchLabels: {labels}}}}}]}}`"
    if peers and not any(_admits(peer, resolution) for peer in peers):
        message = f"`service.allowFrom` of `{name}` does not admit the pods of this Endpoint"
        problems.warning("KG0490", message, backend.path, f"add them in `{name}`: {wanted}")
    if not resolution.spec.exclusive:
        return
    if not peers or any(not _is_own(peer, resolution) for peer in peers):
        message = f"others than this Endpoint may connect to `{name}`"
        problems.error("KG0489", message, backend.path, f"set in `{name}`: {wanted}")
    outside = {"route": spec.route is not None, "service.type": spec.service.type != "ClusterIP"}
    for field in (field for field, given in outside.items() if given):
        message = f"requests from outside the cluster reach `{name}` by its `{field}`, past this Endpoint"
        problems.error("KG0489", message, backend.path, f"leave `{field}` out there, or `exclusive` here")


def _admits(peer: JsonObject, resolution: EndpointResolution) -> bool:
    """Return whether a peer of a NetworkPolicy may be a pod of the Endpoint."""
    selector = peer.get("podSelector")
    if not isinstance(selector, dict):
        return True
    own = {**resolution.metadata.labels, **resolution.spec.pod_labels, **_own_labels(resolution)}
    return all(own.get(key) == value for key, value in mapping(selector.get("matchLabels")).items())


def _is_own(peer: JsonObject, resolution: EndpointResolution) -> bool:
    """Return whether a peer is only pods of the Endpoint."""
    selector = peer.get("podSelector")
    if not isinstance(selector, dict) or peer.keys() != {"podSelector"}:
        return False
    given = mapping(selector.get("matchLabels"))
    return any(given.get(key) == value for key, value in _own_labels(resolution).items() if key in _NAMES)


def _own_labels(resolution: EndpointResolution) -> dict[str, str]:
    return {**dict.fromkeys(_NAMES, resolution.metadata.name), "app.kubernetes.io/component": ENDPOINT}
