"""Changes of kaigen.yaml: what weakens a protection is a danger, whatever it does to the objects."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from msgspec.structs import replace

from kaigen.config.load import load_config
from kaigen.config.settings import Config
from kaigen.pipeline.grant_changes import new_grants, replaced_images
from kaigen.pipeline.setting_changes import DECISIONS, dangerous_settings, leaves

Data = dict[str, Any]

BASE: Data = {
    "apiVersion": "kaigen.dev/v1alpha1",
    "kind": "Config",
    "profile": "k3s",
    "namespace": "team-a",
    "labels": {"team": "a"},
    "promotion": ["dev", "prod"],
    "clusters": {"cloud": {"server": "https://10.0.0.1"}},
    "environments": {"dev": {"clusters": ["cloud"]}, "prod": {"clusters": ["cloud"]}},
    "secrets": {"externalSecrets": {"store": {"name": "vault"}}},
    "network": {
        "httpsProxy": "http://proxy.example.com:3128",
        "downloadEgress": {"apiServer": [{"ipBlock": {"cidr": "10.96.0.1/32"}}], "jobs": True},
    },
    "publish": {"branch": "deploy", "pullRequest": True, "sign": True},
    "builds": {"registry": "registry.example.com/ml"},
    "licenses": {"allow": ["apache-2.0"]},
    "gitops": {
        "repository": "https://git.example.com/ml/deploy.git",
        "argocd": {"signatureKeys": ["4AEE18F83AFDEB23"], "autoSync": False},
        "flux": {
            "oci": "oci://registry.example.com/ml/{env}",
            "verifySecret": "cosign",
            "decryption": {"secret": "sops"},
        },
        "tenancy": {
            "namespaces": True,
            "serviceAccount": "deployer",
            "adminServiceAccount": "argocd:admin",
            "quota": {"requests.nvidia.com/gpu": 8},
            "defaultDeny": ["Ingress", "Egress"],
        },
    },
    "tenants": {
        "team-a": {
            "folders": ["specs/team-a"],
            "namespaces": ["team-a"],
            "images": ["registry.example.com/team-a/*"],
            "gpus": 8,
        }
    },
}

GITOPS, TENANCY = "gitops", "gitops/tenancy"
REMOVED = object()

DANGERS: dict[str, tuple[str, object]] = {
    "specs": ("specs", ["specs", "more"]),
    "kinds": ("kinds", ["kinds"]),
    "passthrough": ("passthrough", True),
    "labels": ("labels", {"team": "b"}),
    "annotations": ("annotations", {"eks.amazonaws.com/role-arn": "arn:aws:iam::1:role/admin"}),
    "registry": ("registry", {"mirror": "evil.example.com/{host}"}),
    "registry as a text": ("registry", "evil.example.com/kaigen"),
    "registry as a text of one environment": ("environments/prod/registry", "evil.example.com/kaigen"),
    "images": ("images", {"downloader": "evil.example.com/downloader"}),
    "promotion": ("promotion", REMOVED),
    "promotion in another order": ("promotion", ["prod", "dev"]),
    "clusters": ("clusters/cloud/server", "https://10.9.9.9"),
    "store": ("secrets/externalSecrets/store/name", "other"),
    "kind of the store": ("secrets/externalSecrets/store/kind", "SecretStore"),
    "keys of the store": ("secrets/externalSecrets/keyTemplate", "other/{namespace}/{name}"),
    "httpProxy": ("network/httpProxy", "http://evil.example.com:3128"),
    "httpsProxy": ("network/httpsProxy", "http://evil.example.com:3128"),
    "httpsProxy removed": ("network/httpsProxy", REMOVED),
    "noProxy": ("network/noProxy", [".evil.example.com"]),
    "packageIndex": ("network/packageIndex", "https://evil.example.com/simple"),
    "hubEndpoint": ("network/hubEndpoint", "https://evil.example.com"),
    "caBundle": ("network/caBundle", {"configMap": "evil"}),
    "downloadEgress removed": ("network/downloadEgress", REMOVED),
    "jobs of downloadEgress": ("network/downloadEgress/jobs", False),
    "ports of downloadEgress": ("network/downloadEgress/ports", [22]),
    "DNS of downloadEgress": ("network/downloadEgress/dns", [{"ipBlock": {"cidr": "1.2.3.4/32"}}]),
    "API server of downloadEgress": ("network/downloadEgress/apiServer", [{"ipBlock": {"cidr": "0.0.0.0/0"}}]),
    "branch to publish": ("publish/branch", "main"),
    "remote to publish": ("publish/remote", "evil"),
    "no pull request": ("publish/pullRequest", REMOVED),
    "unsigned commits": ("publish/sign", REMOVED),
    "registry of manifests": ("publish/manifests", "oci://evil.example.com/ml"),
    "registry of charts": ("publish/charts", "oci://evil.example.com/ml"),
    "registry of builds": ("builds/registry", "evil.example.com"),
    "licenses removed": ("licenses", REMOVED),
    "repository": (f"{GITOPS}/repository", "https://evil.example.com/x.git"),
    "branch": (f"{GITOPS}/branch", "evil"),
    "path": (f"{GITOPS}/path", "evil"),
    "project": (f"{GITOPS}/project", "default"),
    "charts of syncers": (f"{GITOPS}/charts", "oci://evil.example.com/charts"),
    "labels of syncers": (f"{GITOPS}/labels", {"a": "b"}),
    "signatureKeys removed": (f"{GITOPS}/argocd/signatureKeys", REMOVED),
    "signatureKeys of another person": (f"{GITOPS}/argocd/signatureKeys", ["0000000000000000"]),
    "signatureKeys of one more person": (f"{GITOPS}/argocd/signatureKeys", ["4AEE18F83AFDEB23", "0000000000000000"]),
    "autoSync": (f"{GITOPS}/argocd/autoSync", True),
    "applications": (f"{GITOPS}/argocd/applications", "set"),
    "namespace of Argo CD": (f"{GITOPS}/argocd/namespace", "kube-system"),
    "verifySecret removed": (f"{GITOPS}/flux/verifySecret", REMOVED),
    "verifySecret replaced": (f"{GITOPS}/flux/verifySecret", "evil"),
    "serviceAccount of Flux": (f"{GITOPS}/flux/serviceAccount", "cluster-admin"),
    "OCI repository": (f"{GITOPS}/flux/oci", "oci://evil.example.com/x"),
    "tag": (f"{GITOPS}/flux/tag", "evil"),
    "Secret of Flux": (f"{GITOPS}/flux/secret", "other"),
    "Secret of charts": (f"{GITOPS}/flux/chartsSecret", "other"),
    "key of SOPS": (f"{GITOPS}/flux/decryption/secret", "other"),
    "namespace of Flux": (f"{GITOPS}/flux/namespace", "kube-system"),
    "defaultDeny removed": (f"{TENANCY}/defaultDeny", REMOVED),
    "defaultDeny of one direction": (f"{TENANCY}/defaultDeny", ["Ingress"]),
    "quota removed": (f"{TENANCY}/quota", REMOVED),
    "quota raised": (f"{TENANCY}/quota", {"requests.nvidia.com/gpu": 800}),
    "quota of something else": (f"{TENANCY}/quota", {"pods": 8}),
    "namespaces": (f"{TENANCY}/namespaces", REMOVED),
    "account of the tenancy replaced": (f"{TENANCY}/serviceAccount", "admin"),
    "admin account": (f"{TENANCY}/adminServiceAccount", "kube-system:admin"),
    "tenancy removed": (TENANCY, REMOVED),
    "files of others": ("allow", {"files": ["*"]}),
    "system namespaces": ("allow", {"namespaces": ["kube-system"]}),
    "volumes": ("allow", {"volumes": [{"drivers": ["*"]}]}),
    "tenants removed": ("tenants", REMOVED),
    "namespace of a tenant": ("tenants/team-a/namespaces", ["team-b"]),
    "namespaces of a tenant": ("tenants/team-a/namespaces", ["team-a", "team-b"]),
    "kinds of a tenant": ("tenants/team-a/kinds", ["*"]),
    "GPUs of a tenant": ("tenants/team-a/gpus", 800),
    "Pod Security of a tenant": ("tenants/team-a/podSecurity", "privileged"),
    "drivers of a tenant": ("tenants/team-a/drivers", ["*"]),
    "settings of one environment": ("environments/prod/gitops", {"branch": "evil"}),
    "a new environment elsewhere": (
        "environments/qa",
        {"clusters": ["cloud"], "gitops": {"repository": "https://evil.example.com"}},
    ),
}

HARMLESS: dict[str, tuple[str, object]] = {
    "kubernetes": ("kubernetes", "1.35"),
    "profile": ("profile", "generic"),
    "namespace": ("namespace", "ml"),
    "values": ("values", {"chat": {"replicas": 2}}),
    "overrides": ("overrides", [{"match": {"app": "chat"}, "spec": {"deadline": "1h"}}]),
    "external": ("external", [{"kind": "Secret", "name": "hf-token"}]),
    "labels removed": ("labels", REMOVED),
    "a stage of the promotion": ("promotion", ["dev", "staging", "prod"]),
    "how often the store is read": ("secrets/externalSecrets/refreshInterval", "2h"),
    "no ExternalSecrets": ("secrets", REMOVED),
    "interval": (f"{GITOPS}/flux/interval", "5m"),
    "timeout": (f"{GITOPS}/flux/timeout", "2h"),
    "no Argo CD": (f"{GITOPS}/argocd", REMOVED),
    "a lower quota": (f"{TENANCY}/quota", {"requests.nvidia.com/gpu": 4}),
    "a further quota": (f"{TENANCY}/quota", {"requests.nvidia.com/gpu": 8, "pods": 10}),
    "the same quota in another spelling": (f"{TENANCY}/quota", {"requests.nvidia.com/gpu": "8000m"}),
    "a removed grant": ("tenants/team-a/images", []),
    "fewer GPUs of a tenant": ("tenants/team-a/gpus", 4),
    "versions of charts": ("publish/versionSuffix", True),
    "stricter licences": ("licenses/deny", ["*-nc-*"]),
}


def changed(way: str, new: object) -> Data:
    """Return the settings with another value at a path."""
    data = copy.deepcopy(BASE)
    *above, last = way.split("/")
    here = data
    for step in above:
        here = here.setdefault(step, {})
    if new is REMOVED:
        del here[last]
    else:
        here[last] = new
    if (way, new) == ("promotion", ["dev", "staging", "prod"]):
        data["environments"]["staging"] = {"clusters": ["cloud"]}
    return data


def configs(folder: Path, data: Data) -> dict[str, Config]:
    """Return the settings of each environment of a kaigen.yaml."""
    folder.mkdir()
    (folder / "kaigen.yaml").write_text(yaml.safe_dump(data), encoding="utf-8")
    return {name: load_config(folder, name) for name in load_config(folder).environments or ("",)}


def dangers(folder: Path, before: Data, now: Data) -> list[str]:
    """Return what the diff shows as dangers of a change of kaigen.yaml."""
    old, new = configs(folder / "old", before), configs(folder / "new", now)
    grants: Iterator[str] = (
        grant for name, config in new.items() for grant in new_grants(old.get(name, old["dev"]), config)
    )
    return [*dangerous_settings(old, [*new.values()]), *grants, *replaced_images(old, [*new.values()])]


@pytest.mark.parametrize("what", DANGERS)
def test_a_setting_that_weakens_a_protection_is_a_danger(what: str, tmp_path: Path) -> None:
    assert dangers(tmp_path, BASE, changed(*DANGERS[what]))


@pytest.mark.parametrize("what", HARMLESS)
def test_a_harmless_setting_is_no_danger(what: str, tmp_path: Path) -> None:
    found = dangers(tmp_path, BASE, changed(*HARMLESS[what]))
    assert [text for text in found if "environment staging" not in text] == []


def test_the_text_has_both_values(tmp_path: Path) -> None:
    now = changed(f"{TENANCY}/quota", {"requests.nvidia.com/gpu": 800})
    assert dangers(tmp_path, BASE, now) == ['gitops.tenancy.quota.requests.nvidia.com/gpu is "800" instead of "8"']


def test_a_setting_of_one_environment_names_it(tmp_path: Path) -> None:
    now = changed("environments/prod/gitops", {"branch": "evil"})
    assert dangers(tmp_path, BASE, now) == ["gitops.branch is evil instead of main (environment prod)"]


def test_credentials_are_not_shown(tmp_path: Path) -> None:
    secret = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
    old, new = configs(tmp_path / "old", BASE), configs(tmp_path / "new", BASE)
    written = {name: replace(config, annotations={"example.com/key": secret}) for name, config in new.items()}
    (text,) = dangerous_settings(old, [*written.values()])
    assert secret not in text
    assert "…" in text


def test_a_block_that_restricts_may_be_added(tmp_path: Path) -> None:
    before = changed(TENANCY, REMOVED)
    now = changed(TENANCY, {"namespaces": True, "defaultDeny": ["Ingress"], "quota": {"pods": 1}})
    assert dangers(tmp_path, before, now) == []


def test_charts_alone_are_a_danger(tmp_path: Path) -> None:
    before = changed(f"{GITOPS}/flux", REMOVED)
    assert dangers(tmp_path, before, {**before, "format": "chart"}) == ["format is chart instead of manifests"]


@pytest.mark.parametrize("tool", ["argocd", "flux"])
def test_a_new_syncer_is_a_danger(tool: str, tmp_path: Path) -> None:
    assert dangers(tmp_path, changed(f"{GITOPS}/{tool}", REMOVED), BASE)


def test_every_setting_has_a_decision() -> None:
    assert set(leaves(Config)) == set(DECISIONS)


@pytest.mark.parametrize("path", DECISIONS)
def test_a_decision_is_a_danger_or_has_a_reason(path: str) -> None:
    decision = DECISIONS[path]
    weak = [*decision.judge(True, False), *decision.judge(None, True), *decision.judge(("a",), ("b",))]
    weak += [*decision.judge({"a": "1"}, {"a": "2"}), *decision.judge(("a",), None), *decision.judge("a", "b")]
    weak += decision.judge("manifests", "chart")
    assert bool(decision.reason) != bool(weak)
