"""NetworkPolicies of pods that download: what kaigen.yaml allows, and what the sources of a spec need."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from kaigen.compile.builders.egress import bucket_servers
from kaigen.config.load import load_config
from kaigen.diagnostics.errors import InputError
from kaigen.kinds.block import read_block
from kaigen.kinds.sources import S3
from kaigen.pipeline.run import compile_specs, render
from tests import plain_yaml
from tests.unit.compile.peers import ANYWHERE

API = {"ipBlock": {"cidr": "10.96.0.1/32"}}
DNS = {
    "to": [
        {
            "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "kube-system"}},
            "podSelector": {"matchLabels": {"k8s-app": "kube-dns"}},
        }
    ],
    "ports": [{"port": 53, "protocol": "UDP"}, {"port": 53, "protocol": "TCP"}],
}
SERVER = {"to": [API], "ports": [{"port": 443, "protocol": "TCP"}, {"port": 6443, "protocol": "TCP"}]}
IDENTITY = {
    "to": [{"ipBlock": {"cidr": "169.254.169.254/32"}}, {"ipBlock": {"cidr": "169.254.170.23/32"}}],
    "ports": [{"port": 80, "protocol": "TCP"}],
}
STORE = "store: {volume: {size: 1Gi}}"
HUB = "huggingFace: {repo: org/qwen, revision: 0123456789abcdef0123456789abcdef01234567}"


def model(source: str, store: str = STORE, more: str = "") -> str:
    return f"""\
apiVersion: kaigen.dev/v1alpha1
kind: Model
metadata: {{name: qwen}}
spec:
  source: {{{source}}}
  {store}
  {more}
"""


def job(spec: str) -> str:
    return f"""\
apiVersion: kaigen.dev/v1alpha1
kind: Job
metadata: {{name: train}}
spec:
  image: busybox:1.36
{spec}
"""


def written(root: Path, spec: str, network: str) -> None:
    (root / "specs").mkdir(exist_ok=True)
    (root / "specs" / "spec.yaml").write_text(spec, encoding="utf-8")
    (root / "kaigen.yaml").write_text(network, encoding="utf-8")


def policies(root: Path, spec: str, egress: str, network: str = "") -> list[dict[str, Any]]:
    """Return the egress policies of a spec."""
    written(root, spec, f"network: {{downloadEgress: {egress}{network}}}\n")
    files = render((), load_config(root))
    objects = [plain_yaml.load(bytes(data)) for path, data in files.items() if path.endswith(".yaml")]
    return [each for each in objects if each["kind"] == "NetworkPolicy" and each["spec"]["policyTypes"] == ["Egress"]]


def rules(root: Path, spec: str, egress: str, network: str = "") -> list[dict[str, Any]]:
    (found,) = policies(root, spec, egress, network)
    return list(found["spec"]["egress"])


def ports(*numbers: int) -> list[dict[str, Any]]:
    return [{"port": number, "protocol": "TCP"} for number in numbers]


ONLY_API = "{apiServer: [{ipBlock: {cidr: 10.96.0.1/32}}]}"


def test_without_the_setting_nothing_is_restricted(tmp_path: Path) -> None:
    written(tmp_path, model(HUB), "network: {httpProxy: 'http://proxy.example:3128'}\n")
    files = render((), load_config(tmp_path))
    assert not any(b"Egress" in bytes(data) for data in files.values())


def test_the_pods_of_a_model_reach_dns_the_api_server_and_the_port_of_the_hub(tmp_path: Path) -> None:
    (policy,) = policies(tmp_path, model(HUB), ONLY_API)
    assert policy["spec"]["podSelector"]["matchLabels"]["app.kubernetes.io/component"] == "download"
    assert policy["spec"]["egress"] == [DNS, SERVER, {"to": ANYWHERE, "ports": ports(443)}]


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ('huggingFace: {repo: a/b, endpoint: "http://10.1.2.3:8080"}', [("10.1.2.3/32", 8080)]),
        ("s3: {uri: 's3://models/qwen', credentials: {secret: {name: keys}}}", [("", 443)]),
        ("s3: {uri: 'gs://models/qwen', credentials: {secret: {name: keys}}}", [("", 443)]),
        ("oci: {ref: 'registry.example:5000/a/b:1', plainHttp: true}", [("", 5000)]),
        ("oci: {ref: 'ghcr.io/a/b:1'}", [("", 443)]),
        ("oci: {ref: 'registry.example/a/b:1', plainHttp: true}", [("", 80)]),
    ],
)
def test_the_source_decides_address_and_port(tmp_path: Path, source: str, expected: list[tuple[str, int]]) -> None:
    own = [{"to": [{"ipBlock": {"cidr": cidr}}] if cidr else ANYWHERE, "ports": ports(port)} for cidr, port in expected]
    assert rules(tmp_path, model(source), ONLY_API) == [DNS, SERVER, *own]


def test_a_service_is_allowed_by_its_namespace_on_every_port(tmp_path: Path) -> None:
    source = "s3: {uri: 's3://models/qwen', endpoint: 'http://minio.storage.svc:80', credentials: {secret: {name: k}}}"
    storage = {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "storage"}}}
    assert rules(tmp_path, model(source), ONLY_API)[2:] == [{"to": [storage]}]


def test_a_bucket_without_keys_needs_the_identity_of_the_cloud(tmp_path: Path) -> None:
    found = rules(tmp_path, model(HUB, "store: {bucket: {uri: 's3://models/qwen'}}"), ONLY_API)
    assert found[2:] == [{"to": ANYWHERE, "ports": ports(443)}, IDENTITY]


def test_a_bucket_of_google_without_keys_needs_the_metadata_server(tmp_path: Path) -> None:
    found = rules(tmp_path, model(HUB, "store: {bucket: {uri: 'gs://models/qwen'}}"), ONLY_API)
    assert found[3:] == [
        {"to": [{"ipBlock": {"cidr": "169.254.169.254/32"}}], "ports": ports(80, 8080)},
        {"to": [{"ipBlock": {"cidr": "169.254.169.252/32"}}], "ports": ports(987, 988)},
    ]


def test_a_container_of_azure_without_keys_needs_the_server_of_tokens(tmp_path: Path) -> None:
    found = bucket_servers(read_block(S3, {"uri": "az://acme/models/qwen"}), ("spec",))
    assert [server.url for server in found] == [
        "https://acme.blob.core.windows.net",
        "https://login.microsoftonline.com",
    ]
    with_key = read_block(S3, {"uri": "az://acme/models/qwen", "credentials": {"secret": {"name": "keys"}}})
    assert len(bucket_servers(with_key, ("spec",))) == 1
    source = "s3: {uri: 'az://acme/models/qwen'}"
    assert rules(tmp_path, model(source), ONLY_API) == [DNS, SERVER, {"to": ANYWHERE, "ports": ports(443)}]


def test_the_peers_of_the_setting_limit_every_source(tmp_path: Path) -> None:
    egress = """{apiServer: [{ipBlock: {cidr: 10.96.0.1/32}}],
      to: [{ipBlock: {cidr: 10.20.0.0/16, except: [10.20.1.0/24]}}], ports: [9000],
      dns: [{ipBlock: {cidr: 169.254.20.10/32}}]}"""
    source = "s3: {uri: 's3://models/qwen', endpoint: 'http://10.20.2.3:80', credentials: {secret: {name: k}}}"
    found = rules(tmp_path, model(source), egress)
    block = {"ipBlock": {"cidr": "10.20.0.0/16", "except": ["10.20.1.0/24"]}}
    assert found[0]["to"] == [{"ipBlock": {"cidr": "169.254.20.10/32"}}]
    assert found[1:] == [SERVER, {"to": [block], "ports": ports(80, 9000)}]


def test_a_proxy_replaces_the_servers_that_it_is_used_for(tmp_path: Path) -> None:
    network = ", httpsProxy: 'http://10.9.9.9:3128', noProxy: [.corp.example, 10.30.0.0/16]"
    assert rules(tmp_path, model(HUB), ONLY_API, network)[2:] == [
        {"to": [{"ipBlock": {"cidr": "10.9.9.9/32"}}], "ports": ports(3128)}
    ]
    for host, at in (
        ("hub.corp.example:8443", {"to": ANYWHERE}),
        ("10.30.1.1:8443", {"to": [{"ipBlock": {"cidr": "10.30.1.1/32"}}]}),
    ):
        source = f"huggingFace: {{repo: a/b, endpoint: 'https://{host}'}}"
        found = rules(tmp_path, model(source), ONLY_API, network)
        assert {**at, "ports": ports(8443)} in found


def test_a_converted_model_reaches_both_buckets(tmp_path: Path) -> None:
    keys = "credentials: {secret: {name: k}}"
    store = f"store: {{bucket: {{uri: 's3://acme/models', endpoint: 'http://10.1.1.1:9000', {keys}}}}}"
    more = (
        "convert: {distributedLlama: {weights: q40, store: {bucket: "
        f"{{uri: 's3://acme/converted', endpoint: 'http://10.1.1.2:9000', {keys}}}}}}}}}"
    )
    found = rules(tmp_path, model(HUB, store, more), ONLY_API)
    assert [each["to"][0]["ipBlock"]["cidr"] for each in found[3:]] == ["10.1.1.1/32", "10.1.1.2/32"]


def test_jobs_are_restricted_only_if_the_setting_says_so(tmp_path: Path) -> None:
    spec = job('  inputs: [{url: "https://data.example/train.parquet"}]')
    assert policies(tmp_path, spec, ONLY_API) == []
    found = rules(tmp_path, spec, ONLY_API.replace("{api", "{jobs: true, api"))
    assert found == [DNS, {"to": ANYWHERE, "ports": ports(443)}]
    assert policies(tmp_path, job("  args: [a]"), ONLY_API.replace("{api", "{jobs: true, api")) == []


def test_a_run_that_looks_for_its_results_reaches_their_bucket(tmp_path: Path) -> None:
    keys = "credentials: {secret: {name: k}}"
    bucket = f"{{uri: s3://acme/b, endpoint: 'http://10.1.2.3:9000', {keys}, skipIfComplete: true}}"
    spec = job(f"  command: [a]\n  output: {{volume: {{size: 1Gi}}, bucket: {bucket}}}")
    found = policies(tmp_path, spec, ONLY_API.replace("{api", "{jobs: true, api"))
    run = [each for each in found if not each["metadata"]["name"].endswith("-upload-egress")]
    assert any("9000" in str(each["spec"]["egress"]) for each in run), found
    spec = spec.replace(", skipIfComplete: true", "")
    left = policies(tmp_path, spec, ONLY_API.replace("{api", "{jobs: true, api"))
    assert len(left) == len(found) - 1


def test_a_url_in_a_secret_may_be_on_any_host_with_https(tmp_path: Path) -> None:
    spec = job("  inputs: [{secret: {name: signed, key: url}, path: a.bin}]")
    assert rules(tmp_path, spec, ONLY_API.replace("{api", "{jobs: true, api"))[1:] == [
        {"to": ANYWHERE, "ports": ports(443)}
    ]


def test_pods_of_one_run_still_reach_each_other(tmp_path: Path) -> None:
    spec = job('  nodes: 2\n  inputs: [{url: "https://data.example/train.parquet"}]')
    (policy,) = policies(tmp_path, spec, ONLY_API.replace("{api", "{jobs: true, api"))
    first = policy["spec"]["egress"][0]
    assert first == {"to": [{"podSelector": policy["spec"]["podSelector"]}]}


@pytest.mark.parametrize(
    ("endpoint", "to", "is_warned"),
    [
        ("http://10.20.1.1:9000", "{ipBlock: {cidr: 10.20.0.0/16}}", False),
        ("http://10.20.1.1:9000", "{ipBlock: {cidr: 10.20.0.0/16, except: [10.20.1.0/24]}}", True),
        ("http://10.21.1.1:9000", "{ipBlock: {cidr: 10.20.0.0/16}}", True),
        ("http://minio.storage.svc:9000", "{ipBlock: {cidr: 10.20.0.0/16}}", True),
        (
            "http://minio.storage.svc:9000",
            "{namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: storage}}}",
            False,
        ),
        (
            "http://minio.storage.svc:9000",
            "{namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: other}}}",
            True,
        ),
        ("http://minio.storage.svc:9000", "{namespaceSelector: {matchLabels: {team: data}}}", False),
        ("https://minio.example", "{ipBlock: {cidr: 10.20.0.0/16}}", False),
        ("https://minio.example", "{namespaceSelector: {}}", True),
    ],
)
def test_a_server_that_the_setting_denies_is_a_warning(tmp_path: Path, endpoint: str, to: str, is_warned: bool) -> None:
    source = f"s3: {{uri: 's3://acme/models', endpoint: '{endpoint}', credentials: {{secret: {{name: k}}}}}}"
    egress = f"{{apiServer: [{{ipBlock: {{cidr: 10.96.0.1/32}}}}], to: [{to}]}}"
    written(tmp_path, model(source), f"network: {{downloadEgress: {egress}}}\n")
    config = load_config(tmp_path)
    problems = compile_specs((), config).diagnostics
    assert [each.code for each in problems if each.code == "KG0399"] == ["KG0399"] * is_warned


@pytest.mark.parametrize(
    ("egress", "message"),
    [
        ("{}", "apiServer"),
        ("{apiServer: [{}]}", "ipBlock"),
        ("{apiServer: [{ipBlock: {cidr: 10.0.0.1/8}}]}", "host bits"),
        ("{apiServer: [{ipBlock: {cidr: 10.0.0.0/8, except: [11.0.0.0/16]}}]}", "is not in"),
        ("{apiServer: [{ipBlock: {cidr: 10.0.0.0/8}, podSelector: {}}]}", "either"),
        ("{apiServer: [{ipblock: {cidr: 10.0.0.0/8}}]}", "ipBlock"),
    ],
)
def test_a_wrong_setting_is_an_error_of_kaigen_yaml(tmp_path: Path, egress: str, message: str) -> None:
    written(tmp_path, model(HUB), f"network: {{downloadEgress: {egress}}}\n")
    with pytest.raises(InputError) as caught:
        load_config(tmp_path)
    found = caught.value.diagnostics[0]
    assert message in found.message + found.hint
    assert found.mark is not None
    assert found.mark.line == 1
