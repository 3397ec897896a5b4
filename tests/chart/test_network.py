"""A network and a mirror of kaigen.yaml reach every pod, in manifests and charts alike."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

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


def pods(objects: list[dict[str, Any]]) -> Iterator[tuple[str, dict[str, Any]]]:
    for body in objects:
        for template in pod_templates(body):
            yield f"{body['kind']} {body['metadata']['name']}", template.spec


@pytest.mark.parametrize("name", NAMES_OF_CASES)
def test_every_container_has_the_variables_the_bundle_and_an_image_of_the_mirror(name: str) -> None:
    seen = 0
    for item in compiled(name):
        bodies = [each.body for each in item.app.render(item.values, tests=True)]
        for body in bodies:
            for template in pod_templates(body):
                if item.app.objects[0].verbatim:
                    continue
                pod: Any = template.spec
                volumes = {volume["name"] for volume in pod["volumes"]}
                assert VOLUME in volumes
                for container in containers(template):
                    seen += 1
                    found: Any = container.body
                    where = f"{name} {body['kind']} {body['metadata']['name']} {container.name}"
                    env = {each["name"]: each.get("value") for each in found["env"]}
                    assert len(env) == len(found["env"]), where
                    assert {name.upper() for name in env} >= {name.upper() for name in NAMES}, where
                    own = env["HTTPS_PROXY"] != NETWORK.https_proxy  # The spec of that container sets it.
                    assert own or env.keys() >= NAMES, where
                    assert env["SSL_CERT_FILE"] == FILE
                    assert f",.{body['metadata']['namespace']},.corp.example,10.0.0.0/8" in env["no_proxy"]
                    # An image that the app builds is in no mirror before.
                    mirrored = found["image"].startswith("registry.corp.example/")
                    assert mirrored != (found["image"] in item.app.built), where
                    assert VOLUME in {mount["name"] for mount in found["volumeMounts"]}, where
    assert seen or not any(pods([each.body for each in item.objects]) for item in compiled(name))


@pytest.mark.parametrize("name", NAMES_OF_CASES)
def test_charts_equal_the_manifests(name: str, tmp_path: Path) -> None:
    for index, item in enumerate(compiled(name)):
        if item.app.objects[0].verbatim:
            continue
        chart = write_chart(tmp_path / str(index), item)
        found = helm.template(chart, item.app.name, item.app.namespace, None, fast=True)
        expected = written(item.app.render(item.values))
        assert_same(ordered(expected), without_tests(found))
