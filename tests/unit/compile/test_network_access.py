"""Networks and image mirrors of kaigen.yaml: their layers, what specs set themselves, names of images."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from kaigen.compile.network_access import egress_rules
from kaigen.compile.pod_images import mirror_image
from kaigen.config.load import load_config
from kaigen.config.network import Network
from kaigen.config.registry import RegistryBlock, Rule
from kaigen.diagnostics.errors import InputError
from kaigen.pipeline.run import render
from tests import plain_yaml
from tests.unit.compile.peers import ANYWHERE

SHARED = ("HF_ENDPOINT", "PIP_INDEX_URL", "UV_DEFAULT_INDEX")
DIGEST = "sha256:" + "a" * 64
JOB = """\
apiVersion: kaigen.dev/v1alpha1
kind: Job
metadata: {name: train}
spec:
  image: busybox
  env: {HTTP_PROXY: "http://own.example:1", SSL_CERT_FILE: /own/ca.pem}
  sidecars: {side: {image: "quay.io/acme/side:1"}}
"""


def pod(root: Path, environment: str, config: str, spec: str = JOB) -> dict[str, Any]:
    """Return the pod of a Job, rendered with a kaigen.yaml. Its containers have the variables of its ConfigMap."""
    (root / "specs").mkdir(exist_ok=True)
    (root / "specs" / "job.yaml").write_text(spec, encoding="utf-8")
    (root / "kaigen.yaml").write_text(config, encoding="utf-8")
    files = render((), load_config(root, environment))
    objects = [plain_yaml.load(bytes(data)) for path, data in files.items() if path.endswith(".yaml")]
    (job,) = [each for each in objects if each["kind"] == "Job"]
    found: dict[str, Any] = job["spec"]["template"]["spec"]
    data = {each["metadata"]["name"]: each["data"] for each in objects if each["kind"] == "ConfigMap"}
    for container in found["containers"]:
        for source in (each for each in container.get("envFrom", ()) if "configMapRef" in each):
            own = {each["name"] for each in container.get("env", ())}
            given = data[source["configMapRef"]["name"]].items()
            more = [{"name": name, "value": value} for name, value in given if name not in own]
            container["env"] = [*more, *container.get("env", ())]
    return found


def variables(container: dict[str, Any]) -> dict[str, str]:
    found = {each["name"]: each["value"] for each in container.get("env", ())}
    assert len(found) == len(container.get("env", ()))
    return found


def test_an_environment_overrides_single_fields_of_the_network(tmp_path: Path) -> None:
    config = """\
network:
  hubEndpoint: https://hub.example
  httpProxy: http://proxy.example:3128
  noProxy: [.example]
environments:
  dev: {}
  prod: {network: {hubEndpoint: "https://hub.prod.example", packageIndex: "https://packages.example/simple"}}
"""
    pods = [pod(tmp_path, name, config) for name in ("dev", "prod")]
    # A sidecar is a setting, which cannot contain the name of the ConfigMap: it has the variables one by one.
    dev, prod = (variables(each["initContainers"][0]) for each in pods)
    for own, main in zip((dev, prod), (variables(each["containers"][0]) for each in pods), strict=True):
        assert [own.get(name) for name in SHARED] == [main.get(name) for name in SHARED]
        assert own["no_proxy"] == f"{main['no_proxy']},$(KUBERNETES_SERVICE_HOST)"
    assert dev["HF_ENDPOINT"] == "https://hub.example"
    assert "PIP_INDEX_URL" not in dev
    assert prod["HF_ENDPOINT"] == "https://hub.prod.example"
    assert prod["PIP_INDEX_URL"] == prod["UV_DEFAULT_INDEX"] == "https://packages.example/simple"
    assert dev["http_proxy"] == prod["HTTP_PROXY"] == "http://proxy.example:3128"
    assert "https_proxy" not in dev
    exceptions = prod["no_proxy"].split(",")
    assert {".svc", "$(KUBERNETES_SERVICE_HOST)", "169.254.169.254", ".default", ".example"} <= set(exceptions)


def test_variables_of_a_spec_take_precedence_in_both_cases(tmp_path: Path) -> None:
    config = """\
network:
  httpProxy: http://proxy.example:3128
  httpsProxy: http://proxy.example:3128
  caBundle: {configMap: corporate-ca}
"""
    found = pod(tmp_path, "", config)
    own = variables(found["containers"][0])
    assert own["HTTP_PROXY"] == "http://own.example:1"
    assert own["http_proxy"] == own["HTTP_PROXY"]
    assert own["HTTPS_PROXY"] == own["https_proxy"] == "http://proxy.example:3128"
    assert own["SSL_CERT_FILE"] == "/own/ca.pem"
    assert own["REQUESTS_CA_BUNDLE"] == own["AWS_CA_BUNDLE"] == "/etc/kaigen/ca/ca.crt"
    volumes = {each["name"]: each for each in found["volumes"]}
    bundle = {"name": "corporate-ca", "items": [{"key": "ca.crt", "path": "ca.crt"}]}
    assert volumes["kaigen-ca-bundle"]["configMap"] == bundle


def test_a_changed_network_makes_a_new_run(tmp_path: Path) -> None:
    def name(proxy: str) -> str:
        found = pod(tmp_path, "", f"network: {{httpsProxy: '{proxy}'}}\n")["containers"][0]["envFrom"]
        return str(found[0]["configMapRef"]["name"])

    assert name("http://a.example:1") == name("http://a.example:1") != name("http://b.example:1")


def test_variables_of_a_secret_take_precedence(tmp_path: Path) -> None:
    spec = JOB.replace("  sidecars:", "  envFrom: [{secret: proxy}]\n  sidecars:")
    found = pod(tmp_path, "", "network: {httpsProxy: 'http://a.example:1'}\n", spec)["containers"][0]["envFrom"]
    assert found[1] == {"secretRef": {"name": "proxy"}}


def test_without_a_network_nothing_changes(tmp_path: Path) -> None:
    assert pod(tmp_path, "", "network: {}\n") == pod(tmp_path, "", "namespace: default\n")


@pytest.mark.parametrize("url", ["proxy.example:3128", "http://user:password@proxy.example:3128"])
def test_a_proxy_is_a_url_without_a_password(tmp_path: Path, url: str) -> None:
    (tmp_path / "kaigen.yaml").write_text(f"network: {{httpProxy: '{url}'}}\n", encoding="utf-8")
    with pytest.raises(InputError) as caught:
        load_config(tmp_path)
    assert caught.value.diagnostics[0].mark is not None
    assert caught.value.diagnostics[0].mark.line == 1


MIRROR = RegistryBlock(
    mirror="registry.corp.example:5000/all",
    rules=[
        Rule(from_="quay.io", to="registry.corp.example:5000/quay"),
        Rule(from_="quay.io/acme/", to="registry.corp.example:5000/ours/"),
        Rule(from_="docker.io/library/busybox", to="registry.corp.example:5000/tools/busybox"),
    ],
)


@pytest.mark.parametrize(
    ("image", "expected"),
    [
        ("vllm/vllm-openai:v0.25.1", "registry.corp.example:5000/all/vllm/vllm-openai:v0.25.1"),
        (f"ghcr.io/a/b:1@{DIGEST}", f"registry.corp.example:5000/all/a/b:1@{DIGEST}"),
        (f"python@{DIGEST}", f"registry.corp.example:5000/all/library/python@{DIGEST}"),
        ("quay.io/other/x:1", "registry.corp.example:5000/quay/other/x:1"),
        ("quay.io/acme/x:1", "registry.corp.example:5000/ours/x:1"),
        ("quay.iother.example/x:1", "registry.corp.example:5000/all/x:1"),
        ("busybox", "registry.corp.example:5000/tools/busybox"),
        ("index.docker.io/busybox:1.36", "registry.corp.example:5000/tools/busybox:1.36"),
        ("localhost:5000/a:1", "registry.corp.example:5000/all/a:1"),
        ("registry.corp.example:5000/all/a:1", "registry.corp.example:5000/all/a:1"),
        ("registry.corp.example:5000/ml/batch:2.1", "registry.corp.example:5000/ml/batch:2.1"),
    ],
)
def test_images_are_pulled_from_the_mirror(image: str, expected: str) -> None:
    assert mirror_image(image, MIRROR) == expected
    assert mirror_image(expected, MIRROR) == expected


def test_the_mirror_may_have_the_registry_in_its_names() -> None:
    assert mirror_image("busybox", RegistryBlock(mirror="m.example/{host}")) == "m.example/docker.io/library/busybox"
    rules = [Rule(from_="a.example:5000", to="m.example/a")]  # A name of an image has a port only in its registry.
    assert mirror_image("a.example:5000/b", RegistryBlock(mirror="m.example/{host}", rules=rules)) == "m.example/a/b"
    assert mirror_image("busybox", RegistryBlock(rules=[Rule(from_="quay.io", to="m.example")])) == "busybox"


def test_images_in_the_registry_of_the_mirror_stay_unless_a_rule_moves_them() -> None:
    proxy = "harbor.example/proxy/{host}"
    assert mirror_image("harbor.example/ml/batch:2.1", RegistryBlock(mirror=proxy)) == "harbor.example/ml/batch:2.1"
    rules = [Rule(from_="harbor.example/old", to="harbor.example/new")]
    assert mirror_image("harbor.example/old/a:1", RegistryBlock(mirror=proxy, rules=rules)) == "harbor.example/new/a:1"


def test_every_image_of_a_job_is_that_of_the_mirror(tmp_path: Path) -> None:
    config = "registry: {mirror: m.example, rules: [{from: quay.io, to: m.example/quay}]}\n"
    found = pod(tmp_path, "", config)
    images = {each["name"]: each["image"] for each in (*found["initContainers"], *found["containers"])}
    assert images == {"side": "m.example/quay/acme/side:1", "run": "m.example/library/busybox"}


def test_policies_admit_proxies_and_mirrors() -> None:
    network = Network(
        hub_endpoint="https://hub.example",
        http_proxy="http://10.1.2.3:3128",
        https_proxy="http://10.1.2.3:3128",
        package_index="http://packages.tools.svc/simple",
    )
    namespace = {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "tools"}}}
    assert egress_rules(network) == [
        {"ports": [{"port": 3128, "protocol": "TCP"}], "to": [{"ipBlock": {"cidr": "10.1.2.3/32"}}]},
        {"to": ANYWHERE, "ports": [{"port": 443, "protocol": "TCP"}]},
        {"to": [namespace]},
    ]


def test_a_tenant_without_egress_reaches_the_proxy(tmp_path: Path) -> None:
    config = """\
network: {httpsProxy: "http://10.1.2.3:3128"}
gitops:
  repository: https://git.example/ml.git
  argocd: {}
  tenancy: {defaultDeny: [Egress]}
"""
    pod(tmp_path, "", config)
    files = render((), load_config(tmp_path))
    text = "".join(bytes(data).decode() for path, data in files.items() if path.endswith(".yaml"))
    policies = [each for each in plain_yaml.load_all(text.replace("apiVersion: ", "---\napiVersion: ")) if each]
    (found,) = [each for each in policies if each.get("metadata", {}).get("name") == "allow-network"]
    assert found["spec"]["egress"][0]["to"] == [{"ipBlock": {"cidr": "10.1.2.3/32"}}]
