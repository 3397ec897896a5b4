"""Probes of kaigen's own servers have a port that no client reaches, if the image is known to have it."""

from __future__ import annotations

from typing import Any

import pytest

from kaigen.compile.engines.lifecycle import PROBE_PORT
from tests.unit.compile.specs import configured, objects, pod, topology
from tests.unit.compile.test_rings import ring
from tests.unit.compile.topologies import CONTEXT, FOLDER

KINDS = ("startupProbe", "readinessProbe", "livenessProbe")
OLDER = "ghcr.io/kaigen-dev/{}:0.0.9"
NEWER = "registry.example/kaigen/{}:v1.2.3"
DIGEST = f"registry.example/kaigen/{{}}@sha256:{'0' * 64}"
BOTH = f"registry.example/kaigen/{{}}:0.1.0@sha256:{'0' * 64}"


def server(name: str, own: str | None = None, **fields: Any) -> dict[str, Any]:
    """Return the container of the chat server, or of the proxy of a ring.

    Args:
        name: name of the image.
        own: the image in kaigen.yaml; None for the default.
        fields: further fields of the spec.
    """
    where = CONTEXT if own is None else configured(CONTEXT, images={**CONTEXT.config.images, name: own.format(name)})
    if name == "chat":
        found = pod(topology(engine="transformers", model=FOLDER, **fields), where)
    else:
        made = objects(ring(**fields, shape={"nodes": 4, "groups": "leaderWorkerSet"}), where)
        found = made["LeaderWorkerSet"]["spec"]["leaderWorkerTemplate"]["leaderTemplate"]["spec"]
    [container] = [each for each in found["containers"] if ports(each)]
    assert isinstance(container, dict)
    return container


def ports(container: dict[str, Any]) -> set[Any]:
    """Return the ports that HTTP probes ask."""
    return {container[kind]["httpGet"]["port"] for kind in KINDS if "httpGet" in container.get(kind, {})}


def flag(container: dict[str, Any]) -> list[str]:
    """Return the flag that opens the port for probes."""
    return [each for each in container["args"] if str(each).startswith("--probe-port")]


@pytest.mark.parametrize("name", ["chat", "ringproxy"])
@pytest.mark.parametrize(
    ("image", "has_port"),
    [
        (None, True),
        (NEWER, True),
        (BOTH, True),
        (OLDER, False),
        (DIGEST, False),
        ("registry.example/{}:latest", False),
        ("registry.example/{}", False),
        ("registry.example:5000/{}", False),
    ],
)
def test_the_port_is_used_only_where_the_image_is_known_to_have_it(
    name: str, image: str | None, has_port: bool
) -> None:
    container = server(name, image)
    assert flag(container) == ([f"--probe-port={PROBE_PORT}"] if has_port else [])
    assert ports(container) == {PROBE_PORT if has_port else "http"}


@pytest.mark.parametrize("name", ["chat", "ringproxy"])
def test_the_port_is_none_that_something_else_in_the_pod_uses(name: str) -> None:
    sidecar = {"log": {"image": "i", "ports": {"log": PROBE_PORT + 1}}}
    container = server(name, port=PROBE_PORT, sidecars=sidecar)
    assert flag(container) == [f"--probe-port={PROBE_PORT + 2}"]
    assert ports(container) == {PROBE_PORT + 2}


@pytest.mark.parametrize("name", ["chat", "ringproxy"])
def test_paths_of_the_spec_are_asked_at_the_port_of_requests(name: str) -> None:
    container = server(name, probes={"ready": "/v1/models"})
    assert container["readinessProbe"]["httpGet"] == {"path": "/v1/models", "port": "http"}
    container = server(name, probes={"live": "/metrics"})
    assert container["livenessProbe"]["httpGet"] == {"path": "/metrics", "port": "http"}
    assert container["readinessProbe"]["httpGet"]["port"] == PROBE_PORT


def test_an_image_of_the_spec_is_not_known_to_have_the_port() -> None:
    container = server("chat", image="registry.example/own:1.2.3")
    assert (flag(container), ports(container)) == ([], {"http"})


@pytest.mark.parametrize("name", ["chat", "ringproxy"])
def test_no_service_and_no_policy_opens_the_port(name: str) -> None:
    block = topology(engine="transformers", model=FOLDER) if name == "chat" else ring()
    found = objects(block, CONTEXT)
    [rule] = [rule for rule in found["NetworkPolicy"]["spec"]["ingress"] if "ports" in rule]
    assert rule["ports"] == [{"port": 8000, "protocol": "TCP"}]
    assert str(PROBE_PORT) not in str(found["Service"])


@pytest.mark.parametrize("engine", ["vllm", "container"])
def test_other_engines_have_no_such_port(engine: str) -> None:
    block = topology(engine=engine, model=FOLDER, image="registry.example/x:1.2.3")
    found = pod(block, CONTEXT)["containers"][0]
    assert "--probe-port" not in str(found)
    assert ports(found) <= {"http"}
