"""No URL of a spec opens the pod's own address, link-local ones, a cloud's metadata, or Services of other tenants."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from kaigen.kubernetes.server_hosts import host_of, is_private, is_reserved, namespace_of
from tests.unit.security.hostile import CONFIG, Repository

RESERVED = (
    "169.254.169.254",
    "169.254.169.254.",
    "169.254.170.2",
    "2852039166",
    "0xA9FEA9FE",
    "0xa9.0xfe.0xa9.0xfe",
    "0251.0376.0251.0376",
    "0xa9.254.43518",
    "169.254.43518",
    "169.16689662",
    "[::ffff:169.254.169.254]",
    "[::FFFF:a9fe:a9fe]",
    "[::169.254.169.254]",
    "[64:ff9b::169.254.169.254]",
    "[2002:a9fe:a9fe::]",
    "[fe80::1]",
    "[fe80::1%25eth0]",
    "[fd00:ec2::254]",
    "[FD00:EC2:0::254]",
    "[fd20:ce::254]",
    "[fd00:100::100:200]",
    "[fd00:c1::a9fe:a9fe]",
    "[fd00:42::42]",
    "[fd00:a9fe:a9fe::1]",
    "192.0.0.192",
    "[::ffff:192.0.0.192]",
    "metadata.google.internal",
    "METADATA.Google.Internal.",
    "metadata.goog",
    "metadata",
    "instance-data.ec2.internal",
    "100.100.100.200",
    "168.63.129.16",
    "127.0.0.1",
    "127.1",
    "localhost",
    "LOCALHOST.",
    "x.localhost",
    "[::1]",
    "[::]",
    "0",
    "0.0.0.0",
    "224.0.0.1",
    "255.255.255.255",
    "[ff02::1]",
    "\uff11\uff16\uff19.254.169.254",
    "169\u3002254\u3002169\u3002254",
    "\uff4c\uff4f\uff43\uff41\uff4c\uff48\uff4f\uff53\uff54",
    "169.254.169.254%2f",
    "x\\\\169.254.169.254",
)
"""Hosts that no spec may name, in a URL."""

OTHERS = (
    "models.example.com",
    "MODELS.example.com",
    "10.1.2.3",
    "8.8.8.8",
    "[2001:4860:4860::8888]",
    "minio.storage.svc",
    "minio",
    "b\u00fccher.example",
    "metadata.example.com",
    "169.254.169.254.example.com",
    "localhost.example.com",
)


@pytest.mark.parametrize("host", [*RESERVED, "user@169.254.169.254", "a:b@localhost"])
def test_an_address_is_known_in_every_spelling(host: str) -> None:
    assert is_reserved(host_of(f"http://{host}:80/x"))


@pytest.mark.parametrize("host", OTHERS)
def test_other_hosts_are_not_reserved(host: str) -> None:
    assert not is_reserved(host_of(f"http://{host}:80/x"))


@pytest.mark.parametrize(
    ("host", "namespace"),
    [
        ("minio.storage.svc", "storage"),
        ("minio.storage.svc.cluster.local", "storage"),
        ("MINIO.Storage.SVC.cluster.local.", "storage"),
        ("minio.storage.svc.corp.example", "storage"),
        ("minio-0.minio.storage.svc", "storage"),
        ("10-0-0-5.storage.pod.cluster.local", "storage"),
        ("minio.storage", ""),
        ("svc.example.com", ""),
        ("10.0.0.5", ""),
    ],
)
def test_a_service_is_known_by_its_name(host: str, namespace: str) -> None:
    assert namespace_of(host_of(f"http://{host}")) == namespace


def test_private_addresses_are_known() -> None:
    assert [is_private(host) for host in ("10.0.0.1", "fd00::1", "::ffff:10.0.0.1", "8.8.8.8", "a.example")] == [
        True,
        True,
        True,
        False,
        False,
    ]


EGRESS = "network: {downloadEgress: {apiServer: [{ipBlock: {cidr: 10.96.0.1/32}}]}}\n"
HEAD = "apiVersion: kaigen.dev/v1alpha1\nkind: %s\nmetadata: {name: x}\nspec:\n"
VOLUME = "  store: {volume: {size: 5Gi}}\n"
SHA = "a" * 64
COMMIT = "0123456789abcdef0123456789abcdef01234567"
KEYS = "credentials: {secret: {name: keys}}"
HUB = f"huggingFace: {{repo: org/qwen, revision: {COMMIT}}}"
JOB = "  image: example.com/x:1\n  command: [x]\n  resources: {cpu: 1, memory: 1Gi}\n"
RAG = "apiVersion: kaito.sh/v1beta1\nkind: RAGEngine\nmetadata: {name: x}\nspec:\n"
FIELDS = {
    "traces of a Topology": HEAD % "Topology"
    + '  preset: phi-4\n  router: {}\n  resources: {gpus: 1, gpuType: L4}\n  monitoring: {traces: {endpoint: "URL"}}\n',
    "file of a Model": HEAD % "Model"
    + f'  source: {{http: {{files: [{{url: "URL/a.json", sha256: {SHA}, path: a.json}}]}}}}\n{VOLUME}',
    "file of a Dataset": HEAD % "Dataset"
    + f'  source: {{http: {{files: [{{url: "URL/a.json", sha256: {SHA}, path: a.json}}]}}}}\n{VOLUME}',
    "mirror of the Hub": HEAD % "Model"
    + f'  source: {{huggingFace: {{repo: org/qwen, revision: {COMMIT}, endpoint: "URL"}}}}\n{VOLUME}',
    "server of a bucket": HEAD % "Model"
    + f'  source: {{s3: {{uri: "s3://models/a", endpoint: "URL", {KEYS}}}}}\n{VOLUME}',
    "server of a store": HEAD % "Model"
    + f'  source: {{{HUB}}}\n  store: {{bucket: {{uri: "s3://models/a", endpoint: "URL", {KEYS}}}}}\n',
    "proxy": HEAD % "Model" + f'  source: {{{HUB}}}\n{VOLUME}  transfer: {{proxy: "URL"}}\n',
    "input of a Job": HEAD % "Job" + f'{JOB}  inputs: [{{url: "URL/a", path: a}}]\n',
    "output of a Job": HEAD % "Job"
    + f'{JOB}  output: {{volume: {{size: 1Gi}}, bucket: {{uri: "s3://models/a", endpoint: "URL", {KEYS}}}}}\n',
    "repository of a build": HEAD % "Job"
    + "  command: [x]\n  resources: {cpu: 1, memory: 1Gi}\n"
    + f'  build: {{git: {{url: "URL/a.git", commit: {COMMIT}}}, repository: example.com/a}}\n',
    "source of Koldun": "apiVersion: koldun.gorizond.io/v1\nkind: Model\n"
    f"metadata: {{name: x, annotations: {{kaigen.dev/sha256: {SHA}}}}}\nspec:\n"
    '  sourceUrl: "URL/a/model.safetensors"\n  localPath: hf-models/x\n'
    '  objectStorage: {endpoint: "http://minio.example.com:9000", bucketForSource: models, bucketForConvert: c, '
    "secretRef: {name: s3}}\n",
    "mirror of the Hub of Koldun": "apiVersion: koldun.gorizond.io/v1\nkind: Model\nmetadata: {name: x}\nspec:\n"
    f'  sourceUrl: "URL/org/model/tree/{COMMIT}"\n  localPath: hf-models/x\n'
    '  objectStorage: {endpoint: "https://minio.example.com:9000", bucketForSource: models, bucketForConvert: c, '
    "secretRef: {name: s3}}\n",
    "object storage of Koldun": "apiVersion: koldun.gorizond.io/v1\nkind: Model\nmetadata: {name: x}\nspec:\n"
    f'  sourceUrl: "org/model/tree/{COMMIT}"\n  localPath: hf-models/x\n'
    '  objectStorage: {endpoint: "URL", bucketForSource: models, bucketForConvert: c, secretRef: {name: s3}}\n',
    "repository of Substratus": "apiVersion: substratus.ai/v1\nkind: Notebook\nmetadata: {name: x}\nspec:\n"
    '  build: {git: {url: "URL/a"}}\n',
    **{
        f"{name} of a RAGEngine": RAG + fields
        for name, fields in {
            "embedding": '  embedding: {remote: {url: "URL/embed"}}\n',
            "inference": "  embedding: {local: {modelID: org/x}}\n"
            '  inferenceService: {url: "URL/v1", contextWindowSize: 512}\n',
            "database": '  embedding: {local: {modelID: org/x}}\n  storage: {vectorDB: {engine: qdrant, url: "URL"}}\n',
        }.items()
    },
}
"""Specs with a URL, by the field that has it."""


@pytest.mark.parametrize("field", FIELDS)
def test_no_field_of_a_spec_names_such_a_url(repository: Repository, field: str) -> None:
    repository.write({"kaigen.yaml": CONFIG + EGRESS + "dialects: {substratus: {registry: example.com/x}}\n"})
    for host in ("169.254.169.254", "0xA9FEA9FE", "METADATA.google.internal.", "[::ffff:169.254.169.254]", "[:::]"):
        spec = FIELDS[field].replace("URL", f"http://{host}")
        repository.write({"specs/evaluate.yaml": spec})
        done = repository.kaigen("render")
        line = spec[: spec.index("http://")].count("\n") + 1
        assert (done.code, f"specs/evaluate.yaml:{line}:" in done.err) == (2, True), done.text
        # Koldun's sources are taken apart when they are read.
        codes = ("error[KG0421]", "error[KG0412]") if host == "[:::]" else ("error[KG0421]",)
        assert any(code in done.err for code in codes), done.text
    assert not (repository.folder / "rendered").exists()


TUNING = """apiVersion: kaito.sh/v1beta1
kind: Workspace
metadata: {name: x, annotations: {kaigen.dev/compat: "true"}}
resource: {instanceType: Standard_NC24ads_A100_v4, labelSelector: {matchLabels: {app: x}}}
tuning:
  preset: {name: phi-3-mini-128k-instruct}
  method: qlora
  input: {urls: ["http://HOST/a.parquet"]}
  output: {volumeSource: {persistentVolumeClaim: {claimName: data}}}
"""


@pytest.mark.parametrize(
    ("host", "code"), [("0xA9FEA9FE", "KG0421"), ("metadata.google.internal", "KG0421"), ("files.b.svc", "")]
)
def test_data_that_a_script_of_kaito_downloads_is_checked(repository: Repository, host: str, code: str) -> None:
    (repository.folder / "specs/evaluate.yaml").unlink()
    repository.write({"specs/x.yaml": TUNING.replace("HOST", host)})
    done = repository.kaigen("validate")
    assert (f"specs/x.yaml:8:18: error[{code}" in done.err) is bool(code), done.text
    repository.write({"kaigen.yaml": CONFIG + TENANTS})
    assert "specs/x.yaml:8:18: error[KG0" in repository.kaigen("validate").err


@pytest.mark.parametrize("server", ["qdrant.team-b.svc:6333", "http://qdrant.team-b.svc:6333", "10.9.9.8:6333"])
def test_a_server_of_another_tenant_needs_a_grant(repository: Repository, server: str) -> None:
    (repository.folder / "specs/evaluate.yaml").unlink()
    spec = FIELDS["database of a RAGEngine"].replace("URL", server)
    repository.write({"kaigen.yaml": CONFIG + TENANTS, "specs/a/x.yaml": spec, "specs/b/.keep": ""})
    assert "is not granted the server" in repository.kaigen("validate").err
    repository.write({"specs/a/x.yaml": spec.replace(server, "qdrant:6333")})
    assert "is not granted the server" not in repository.kaigen("validate").err


def test_an_artifact_of_such_a_registry_is_refused(repository: Repository) -> None:
    spec = HEAD % "Model" + f"  source: {{oci: {{ref: '169.254.169.254/a/b:1', plainHttp: true}}}}\n{VOLUME}"
    repository.write({"specs/evaluate.yaml": spec})
    assert "error[KG0421]" in repository.kaigen("validate").err


def test_kaigen_yaml_allows_hosts(repository: Repository) -> None:
    spec = FIELDS["proxy"].replace("URL", "http://localhost:3128")
    repository.write({"specs/evaluate.yaml": spec})
    assert "KG0421" in repository.kaigen("validate").err
    for allowed in ("allow: {servers: [localhost]}\n", "network: {httpProxy: 'http://localhost:3128'}\n"):
        repository.write({"kaigen.yaml": CONFIG + allowed})
        assert "KG0421" not in repository.kaigen("validate").err


def test_allowing_a_host_is_a_danger(repository: Repository) -> None:
    repository.rendered()
    repository.write({"kaigen.yaml": CONFIG + "allow: {servers: [localhost]}\n"})
    assert "the server localhost" in repository.kaigen("diff", "--base", "HEAD").out


@pytest.mark.parametrize("url", ["https://models.example.com", "http://models.example.com"])
def test_the_policy_of_another_host_leaves_out_the_metadata(repository: Repository, url: str) -> None:
    repository.write({"kaigen.yaml": CONFIG + EGRESS})
    repository.write({"specs/evaluate.yaml": FIELDS["file of a Model"].replace("URL", url)})
    assert repository.kaigen("render").code == 0
    (policy,) = repository.folder.glob("rendered/**/networkpolicy-egress.yaml")
    opened = yaml.safe_load(policy.read_text())["spec"]["egress"][2:]
    assert opened
    assert all(excludes_metadata(peer) for rule in opened for peer in rule["to"])


def excludes_metadata(peer: dict[str, Any]) -> bool:
    block = peer["ipBlock"]
    return {"169.254.0.0/16", "fe80::/10"} & {*block["except"]} != set()


TENANTS = """tenants:
  a: {folders: [specs/a], namespaces: [ml], storageClasses: ["*"], servers: [10.9.9.9, minio.storage.svc]}
  b: {folders: [specs/b], namespaces: [team-b], images: ["*"]}
"""


@pytest.mark.parametrize(
    ("host", "granted"),
    [
        ("models.example.com", True),
        ("8.8.8.8", True),
        ("files.ml.svc", True),
        ("files.ml.svc.cluster.local", True),
        ("files", True),
        ("10.9.9.9", True),
        ("minio.storage.svc", True),
        ("files.team-b.svc", False),
        ("files.team-b.svc.cluster.local.", False),
        ("FILES.team-b.SVC", False),
        ("files.team-b", False),
        ("files-0.files.team-b", False),
        ("files.kube-system", False),
        ("10-0-0-5.team-b.pod.cluster.local", False),
        ("kubernetes.default.svc", False),
        ("10.96.0.1", False),
        ("[::ffff:10.96.0.1]", False),
        ("[fd00::1]", False),
    ],
)
def test_a_tenant_downloads_from_no_service_of_another(repository: Repository, host: str, granted: bool) -> None:
    (repository.folder / "specs/evaluate.yaml").unlink()
    repository.write({"kaigen.yaml": CONFIG + EGRESS + TENANTS})
    repository.write({"specs/a/x.yaml": FIELDS["file of a Model"].replace("URL", f"http://{host}")})
    repository.write({"specs/b/.keep": ""})
    done = repository.kaigen("validate")
    assert ("is not granted the server" not in done.err) == granted, done.text
    assert ("specs/a/x.yaml:5:" in done.err) != granted, done.text
