"""Settings of a run come out of the cache as they went in, and pins are part of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from kaigen.catalog.images import default_images
from kaigen.config.block_settings import ExternalSecretsSettings, PublishSettings
from kaigen.config.gitops_settings import ArgoCDSettings, ClusterSettings, FluxSettings, TenancySettings
from kaigen.config.images import Images
from kaigen.config.load import load_config
from kaigen.config.pins import pins_text
from kaigen.config.settings import Config
from kaigen.diagnostics.errors import InputError
from kaigen.kinds.block_schema import block_schema

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
    assert first.patch == {
        "metadata": {"labels": {"tier": None}},
        "spec": {"retries": 1, "deadline": None},
    }
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
    gitops: {branch: dev, autoSync: false, tenancy: {namespaces: true}}
"""


def test_every_block_comes_out_of_the_cache_as_it_went_in(root: Path) -> None:
    (root / "kaigen.yaml").write_text(EVERY_BLOCK, encoding="utf-8")
    config = both(root, "dev")
    assert config.patch_files == ("patches/qwen.yaml",)
    assert config.patches[0].kind == "Deployment"
    assert config.publish == PublishSettings(charts="oci://registry.example/charts", sign=True)
    assert config.external_secrets == ExternalSecretsSettings("vault", "SecretStore", "5m")
    gitops = config.gitops
    assert gitops is not None
    assert (gitops.branch, gitops.path) == ("dev", "rendered/dev")
    assert gitops.argocd == ArgoCDSettings(applications="set", auto_sync=False)
    assert gitops.flux == FluxSettings(interval="1m", decrypt=True, decryption_secret="age")
    assert gitops.clusters == {
        "near": ClusterSettings(server="https://near.example"),
        "far": ClusterSettings(selector={"region": "far"}),
    }


def test_an_environment_replaces_tenancy_as_a_whole(root: Path) -> None:
    (root / "kaigen.yaml").write_text(EVERY_BLOCK, encoding="utf-8")
    dev, shared = both(root, "dev").gitops, both(root, "").gitops
    assert dev is not None
    assert dev.tenancy == TenancySettings(namespaces=True)
    assert shared is not None
    assert shared.tenancy is not None
    assert shared.tenancy.quota == {"pods": "10", "requests.cpu": "4"}


def test_a_damaged_cache_is_read_again_from_the_file(root: Path) -> None:
    first = load_config(root, "prod")
    (stored,) = (root.parent / "cache").glob("config/*")
    for text in ("{}", "[]", "{", '{"overrides": [1]}'):
        stored.write_text(text, encoding="utf-8")
        assert load_config(root, "prod") == first


def test_every_image_of_the_catalogue_can_be_overridden() -> None:
    assert set(block_schema(Images)["properties"]) == set(default_images())
