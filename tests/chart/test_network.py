"""A network and a mirror of kaigen.yaml reach every pod, in manifests and charts alike."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from kaigen.compile.builders.access import TOKEN_FOLDER
from kaigen.compile.network_access import FILE, VOLUME
from kaigen.config.network import AddressBlock, CaBundle, EgressBlock, Network, Peer
from kaigen.config.registry import RegistryBlock, Rule
from kaigen.kubernetes.pods import containers, pod_templates
from kaigen.pipeline.result import Compiled
from kaigen.pipeline.run import compile_specs
from tests import helm
from tests.cases import cases, write_chart
from tests.chart.test_equal import ordered, without_tests, written
from tests.differences import assert_same

NETWORK = Network(
    hub_endpoint="https://hub.corp.example",
    http_proxy="http://proxy.corp.example:3128",
    https_proxy="http://proxy.corp.example:3128",
    no_proxy=[".corp.example", "10.0.0.0/8"],
    ca_bundle=CaBundle(config_map="corporate-ca"),
    package_index="https://packages.corp.example/simple",
    download_egress=EgressBlock(api_server=[Peer(ip_block=AddressBlock(cidr="10.96.0.1/32"))], jobs=True),
)
MIRROR = RegistryBlock(
    mirror="registry.corp.example/{host}",
    rules=[
        Rule(from_="quay.io", to="registry.corp.example/q"),
        Rule(from_="registry.example.com:5000", to="registry.corp.example/tools"),
    ],
)
NAMES = {"HTTPS_PROXY", "https_proxy", "NO_PROXY", "no_proxy", "SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "PIP_INDEX_URL"}


@cache
def compiled(name: str) -> tuple[Compiled, ...]:
    case = cases()[name]
    config = replace(case.config, network=NETWORK, mirror=MIRROR)
    return compile_specs(case.paths, config).apps


NAMES_OF_CASES = sorted(cases())


WAITS = {"wait", "wait-job", "wait-files", "verify"}
LOCAL = {"chat", "convert", "envoy", "epp", "kubectl", "pyarrow", "reaper", "ringproxy"}
"""Images of programs that connect to the API server, to pods of their app, or to nothing."""


def connects(container: Any) -> bool:
    """Whether a container may connect to servers outside the cluster."""
    image = container["image"].rpartition("/")[2].partition(":")[0].partition("@")[0]
    words = [*container.get("command", ()), *container.get("args", ())]
    if image in LOCAL or (image == "downloader" and words[0] in WAITS):
        return False
    if "/etc/kaigen-programs/gate.py" in words:
        return False
    offline = {"name": "HF_HUB_OFFLINE", "value": "1"} in container.get("env", ())
    is_worker = "/etc/kaigen-programs/group.py" in words and "ports" not in container
    return not (is_worker and offline) and not any("/ring_" in word for word in words[:2])


def variables(container: Any, maps: dict[str, dict[str, str]]) -> dict[str, str | None]:
    """Return the variables of a container, those of ConfigMaps of its app included."""
    found: dict[str, str | None] = {}
    for source in container.get("envFrom", ()):
        found |= maps.get(source.get("configMapRef", {}).get("name"), {})
    own = {each["name"]: each.get("value") for each in container.get("env", ())}
    assert len(own) == len(container.get("env", ()))
    return {**found, **own}


@pytest.mark.parametrize("name", NAMES_OF_CASES)
def test_containers_that_connect_have_the_variables_and_the_bundle_and_all_an_image_of_the_mirror(name: str) -> None:
    for item in compiled(name):
        if item.app.objects[0].verbatim:
            continue
        bodies: list[Any] = [each.body for each in item.app.render(item.values, tests=True)]
        maps = {body["metadata"]["name"]: body.get("data", {}) for body in bodies if body["kind"] == "ConfigMap"}
        for body in bodies:
            for template in pod_templates(body):
                pod: Any = template.spec
                each: list[Any] = [container.body for container in containers(template)]
                volumes = {volume["name"] for volume in pod.get("volumes", ())}
                assert (VOLUME in volumes) == any(map(connects, each)), f"{name} {body['kind']}"
                for found in each:
                    where = f"{name} {body['kind']} {body['metadata']['name']} {found['name']}"
                    env = variables(found, maps)
                    if connects(found):
                        assert env.keys() >= NAMES, where
                        assert env["SSL_CERT_FILE"] == FILE
                        assert f",.{body['metadata']['namespace']},.corp.example,10.0.0.0/8" in str(env["no_proxy"])
                    else:
                        assert not env.keys() & (NAMES - {"HF_ENDPOINT"}), where
                    assert connects(found) == (VOLUME in {at["name"] for at in found.get("volumeMounts", ())}), where
                    # An image that the app builds is in no mirror before.
                    mirrored = found["image"].startswith("registry.corp.example/")
                    assert mirrored != (found["image"] in item.app.built), where


@pytest.mark.parametrize("name", NAMES_OF_CASES)
def test_only_containers_that_call_the_api_server_name_its_address(name: str) -> None:
    """Kubernetes fills the address in, but not in a ConfigMap."""
    for item in compiled(name):
        for body in [each.body for each in item.app.render(item.values)]:
            for template in pod_templates(body):
                pod: Any = template.spec
                for container in containers(template):
                    found: Any = container.body
                    maps = [each for each in found.get("envFrom", ()) if "-network-" in str(each.get("configMapRef"))]
                    if not maps:
                        continue
                    mounts = {each["mountPath"] for each in found.get("volumeMounts", ())}
                    calls = pod.get("automountServiceAccountToken") is not False or TOKEN_FOLDER in mounts
                    named = "$(KUBERNETES_SERVICE_HOST)" in str(variables(found, {}).get("NO_PROXY"))
                    assert calls == named, f"{name} {found['name']}"


@pytest.mark.parametrize("name", NAMES_OF_CASES)
def test_charts_equal_the_manifests(name: str, tmp_path: Path) -> None:
    for index, item in enumerate(compiled(name)):
        if item.app.objects[0].verbatim:
            continue
        chart = write_chart(tmp_path / str(index), item)
        found = helm.template(chart, item.app.name, item.app.namespace, None, fast=True)
        expected = written(item.app.render(item.values))
        assert_same(ordered(expected), without_tests(found))
