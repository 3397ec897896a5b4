"""Settings of a run come out of the cache as they went in, and pins are part of them."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from kaigen.catalog.images import default_images
from kaigen.config.block_settings import ExternalSecretsSettings
from kaigen.config.gitops import ArgoCD, Cluster, Decryption, Flux, Tenancy
from kaigen.config.images import Images
from kaigen.config.load import load_config
from kaigen.config.pins import pins_text
from kaigen.config.publish import Publish
from kaigen.config.settings import Config
from kaigen.diagnostics.errors import InputError
from kaigen.kinds.block_schema import block_schema
from tests.unit.output.trees import unprivileged

CONFIG = """\
namespace: ml
promotion: [staging, prod]
overrides:
  - match: {app: [a, "ml/b*"], kind: Model, labels: {team: x}}
    spec: {retries: 1, deadline: null}
    metadata: {labels: {tier: null}}
environments:
  staging: {registry: mirror.example}
  prod:
    images: {kubectl: "own.example/kubectl:1"}
    overrides:
      - spec: {placement: {tolerations: [{key: a}]}}
"""


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("KAIGEN_CACHE_DIR", str(tmp_path / "cache"))
    folder = tmp_path / "repository"
    folder.mkdir()
    (folder / "kaigen.yaml").write_text(CONFIG, encoding="utf-8")
    return folder


def pin(root: Path, environment: str, commit: str) -> None:
    path = root / "pins" / f"{environment}.yaml"
    path.parent.mkdir(exist_ok=True)
    text = pins_text({"a": {"spec.source.huggingFace.revision": commit}}, {"downloader": "d@sha256:1"})
    path.write_text(text, encoding="utf-8")


def both(root: Path, environment: str) -> Config:
    """The settings as they are read, which must be those that the cache gives."""
    first = load_config(root, environment)
    again = load_config(root, environment)
    assert again is not first
    assert again == first
    assert repr(again) == repr(first)
    return first


def test_overrides_come_out_of_the_cache_as_they_went_in(root: Path) -> None:
    assert list((root.parent / "cache").glob("config/*")) == []
    config = both(root, "prod")
    assert len(list((root.parent / "cache").glob("config/*"))) == 1
    first, second = config.overrides
    assert first.apps == ("a", "ml/b*")
    assert first.kinds == ("Model",)
    assert first.labels == {"team": "x"}
    assert first.patch == {"metadata": {"labels": {"tier": None}}, "spec": {"retries": 1, "deadline": None}}
    assert (first.at, first.environment) == (("overrides", 0), "")
    assert second.at == ("environments", "prod", "overrides", 0)
    assert second.environment == "prod"
    assert config.promotion == ("staging", "prod")
    assert config.named_images == ("kubectl",)


def test_the_file_comes_before_the_environment_and_another_environment_has_no_part_in_it(root: Path) -> None:
    assert [item.environment for item in load_config(root, "prod").overrides] == ["", "prod"]
    assert [item.environment for item in load_config(root, "staging").overrides] == [""]


def test_pins_are_part_of_the_settings_and_of_their_cache(root: Path) -> None:
    assert both(root, "staging").pins == {}
    pin(root, "staging", "1" * 40)
    config = both(root, "staging")
    assert config.pins == {"a": {"spec.source.huggingFace.revision": "1" * 40}}
    assert config.images["downloader"] == "d@sha256:1"
    pin(root, "staging", "2" * 40)
    after = both(root, "staging")
    assert after.pins == {"a": {"spec.source.huggingFace.revision": "2" * 40}}
    assert after.origin != config.origin
    assert both(root, "prod").pins == {}
    (root / "pins" / "staging.yaml").unlink()
    assert both(root, "staging").pins == {}


def test_a_pinned_version_of_an_own_image_is_pulled_from_the_mirror(root: Path) -> None:
    from kaigen.catalog.images import default_images

    plain = default_images()["downloader"].rpartition(":")[0]
    path = root / "pins" / "staging.yaml"
    path.parent.mkdir()
    path.write_text(pins_text({}, {"downloader": f"{plain}@sha256:{'a' * 64}"}), encoding="utf-8")
    image = both(root, "staging").images["downloader"]
    assert image == f"mirror.example/{plain.partition('/')[2]}@sha256:{'a' * 64}"


def test_a_cached_environment_still_refuses_an_unknown_one(root: Path) -> None:
    load_config(root, "prod")
    with pytest.raises(InputError, match=r"no environment `\.\./prod`"):
        load_config(root, "../prod")


EVERY_BLOCK = """\
values: {qwen: {storage: {size: 1Gi}}}
kinds: [kinds]
patches:
  - target: {app: qwen, kind: Deployment}
    patch: [{op: remove, path: /spec/replicas}]
  - target: {app: qwen}
    patch: patches/qwen.yaml
secrets: {externalSecrets: {store: {name: vault}, refreshInterval: 5m}}
publish: {charts: "oci://registry.example/charts", sign: true}
licenses: {ask: [mit], known: {"acme/*": mit}}
registry: {mirror: m.example, rules: [{from: quay.io, to: q.example}]}
external: [{kind: Secret, name: token}]
network:
  caBundle: {configMap: ca}
  downloadEgress: {apiServer: [{ipBlock: {cidr: 10.0.0.0/16, except: [10.0.1.0/24]}}]}
tenants: {a: {folders: [specs/a], namespaces: [a]}}
clusters:
  near: {server: "https://near.example"}
  far: {selector: {region: far}}
gitops:
  repository: https://git.example/deploy.git
  argocd: {applications: set}
  flux: {interval: 1m, decryption: {secret: age}}
  tenancy: {quota: {pods: 10, requests.cpu: "4"}, defaultDeny: [Egress]}
environments:
  dev:
    clusters: [near, far]
    secrets: {externalSecrets: {store: {kind: SecretStore}}}
    gitops: {branch: dev, argocd: {autoSync: false}, flux: {}, tenancy: {namespaces: true}}
"""


def test_every_block_comes_out_of_the_cache_as_it_went_in(root: Path) -> None:
    (root / "kaigen.yaml").write_text(EVERY_BLOCK, encoding="utf-8")
    config = both(root, "dev")
    assert config.patch_files == ("patches/qwen.yaml",)
    assert config.patches[0].kind == "Deployment"
    assert config.publish == Publish(charts="oci://registry.example/charts", sign=True)
    assert config.external_secrets == ExternalSecretsSettings("vault", "SecretStore", "5m")
    gitops = config.gitops
    assert gitops is not None
    assert (gitops.branch, gitops.path) == ("dev", "rendered/dev")
    assert gitops.argocd == ArgoCD(applications="set", auto_sync=False)
    assert gitops.flux == Flux(interval="1m", decryption=Decryption(secret="age"))
    assert config.clusters == {
        "near": Cluster(server="https://near.example"),
        "far": Cluster(selector={"region": "far"}),
    }


def test_an_environment_merges_its_gitops_over_that_of_the_file(root: Path) -> None:
    (root / "kaigen.yaml").write_text(EVERY_BLOCK, encoding="utf-8")
    dev = both(root, "dev").gitops
    assert dev is not None
    quota = {"pods": "10", "requests.cpu": "4"}
    assert dev.tenancy == Tenancy(namespaces=True, quota=quota, default_deny=["Egress"])
    assert dev.repository == "https://git.example/deploy.git"


SYNCERS = """\
gitops:
  project: team
  labels: {team: ml}
  flux: {interval: 1m, secret: git}
  tenancy: {serviceAccount: deployer}
environments:
  edge: {gitops: {repository: https://git.example/edge.git}}
  prod:
    format: chart
    gitops:
      repository: https://git.example/prod.git
      project: prod
      labels: {tier: gold}
      argocd: {namespace: argo}
      tenancy: {adminServiceAccount: "argo:admin"}
  both: {gitops: {repository: https://git.example/both.git, argocd: {}, flux: {tag: v1},
    tenancy: {adminServiceAccount: "argocd:admin"}}}
"""


def test_each_environment_selects_argo_cd_or_flux(root: Path) -> None:
    (root / "kaigen.yaml").write_text(SYNCERS, encoding="utf-8")
    edge, prod, every = (both(root, name) for name in ("edge", "prod", "both"))
    assert edge.gitops is not None
    assert prod.gitops is not None
    assert every.gitops is not None
    assert (edge.format, prod.format) == ("manifests", "chart")
    assert (edge.gitops.argocd, edge.gitops.flux) == (None, Flux(interval="1m", secret="git"))
    assert (prod.gitops.argocd, prod.gitops.flux) == (ArgoCD(namespace="argo"), None)
    assert every.gitops.argocd == ArgoCD()
    assert every.gitops.flux == Flux(interval="1m", secret="git", tag="v1")
    assert (edge.gitops.project, prod.gitops.project) == ("team", "prod")
    assert prod.gitops.labels == {"team": "ml", "tier": "gold"}
    assert prod.gitops.tenancy == Tenancy(service_account="deployer", admin_service_account="argo:admin")
    assert both(root, "").environments == ("edge", "prod", "both")


@pytest.mark.parametrize(
    ("environment", "code", "line"),
    [
        ("edge: {}", "KG0724", 1),
        ("edge: {gitops: {project: a}}", "KG0724", 6),
        ("edge: {gitops: {repository: r, argocd: {}}}", "KG0721", 4),
        ("edge: {gitops: {repository: r, argocd: {}, tenancy: {serviceAccount: b}}}", "KG0721", 6),
        ("edge: {format: chart, gitops: {repository: r}}", "KG0723", 3),
        ("edge: {format: chart, gitops: {repository: r, flux: {oci: 'oci://r/b'}}}", "KG0723", 6),
    ],
)
def test_an_impossible_gitops_is_reported_where_it_is_set(root: Path, environment: str, code: str, line: int) -> None:
    text = f"""\
gitops:
  project: team
  flux: {{oci: 'oci://r/a'}}
  tenancy: {{serviceAccount: a}}
environments:
  {environment}
"""
    (root / "kaigen.yaml").write_text(text, encoding="utf-8")
    with pytest.raises(InputError) as raised:
        load_config(root, "edge")
    assert [(item.code, item.mark.line) for item in raised.value.diagnostics if item.mark] == [(code, line)]


def test_keys_for_artifacts_need_an_artifact(root: Path) -> None:
    (root / "kaigen.yaml").write_text("gitops:\n  repository: ssh://r\n  flux:\n    verifySecret: k\n", "utf-8")
    with pytest.raises(InputError) as raised:
        load_config(root, "")
    assert [(item.code, item.mark.line) for item in raised.value.diagnostics if item.mark] == [("KG0725", 4)]


def test_a_damaged_cache_is_read_again_from_the_file(root: Path) -> None:
    first = load_config(root, "prod")
    (stored,) = (root.parent / "cache").glob("config/*")
    for text in ("{}", "[]", "{", '{"overrides": [1]}'):
        stored.write_text(text, encoding="utf-8")
        assert load_config(root, "prod") == first


def test_every_image_of_the_catalogue_can_be_overridden() -> None:
    without_default = {"distributedLlama"}
    assert set(block_schema(Images)["properties"]) == set(default_images()) | without_default


@pytest.mark.parametrize("name", ["kaigen.yaml", "pins/prod.yaml"])
def test_a_file_that_cannot_be_read_is_reported_with_its_name(name: str) -> None:
    def work() -> None:
        with pytest.raises(InputError) as caught:
            load_config(folder, "prod")
        (found,) = caught.value.diagnostics
        assert (found.code, Path(str(found.mark)).name) == ("KG0102", Path(name).name)
        assert "permission denied" in found.message

    with TemporaryDirectory() as made:  # Unlike pytest's folders, other users can read it.
        folder = Path(made)
        folder.chmod(0o755)
        (folder / "kaigen.yaml").write_text(CONFIG, encoding="utf-8")
        pin(folder, "prod", "1" * 40)
        (folder / name).chmod(0)
        assert unprivileged(work) == 0
