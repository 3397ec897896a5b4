"""The admission policies of a tenant refuse what kaigen refuses of its specs, and nothing else."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from kaigen.config.load import load_config
from kaigen.gitops.cel import rules_of
from kaigen.gitops.policies import policies
from kaigen.pipeline.run import start_run
from tests.cluster.client import ApiError, Client, Object
from tests.cluster.plane import Plane
from tests.tenants import ALLOWED, DENIED, OTHER, TENANT

OBJECTS = {**{f"allowed: {case}": body for case, body in ALLOWED.items()}} | {
    case: body for case, (body, _) in DENIED.items()
}
CONFIG: dict[str, Any] = {
    "apiVersion": "kaigen.dev/v1alpha1",
    "kind": "Config",
    "namespace": "team-a",
    "passthrough": True,
    "tenants": {"a": TENANT, "b": OTHER},
}


def refused_by_kaigen(root: Path) -> dict[str, bool]:
    """Return whether kaigen refuses each object in a file of the tenant's folder."""
    (root / "specs/a").mkdir(parents=True)
    (root / "kaigen.yaml").write_text(yaml.safe_dump(CONFIG), encoding="utf-8")
    for number, body in enumerate(OBJECTS.values()):
        (root / f"specs/a/{number}.yaml").write_text(yaml.safe_dump(body), encoding="utf-8")
    refused = {
        int(Path(each.mark.file).stem)
        for each in start_run((), load_config(root)).diagnostics
        if each.code == "KG0582" and each.mark is not None
    }
    return {case: number in refused for number, case in enumerate(OBJECTS)}


def refusal(client: Client, body: Object) -> str:
    """Return what a policy says against an object; empty if it may be created.

    Raises:
        ApiError: something else refuses it.
    """
    try:
        client.create(body, "team-a", dry_run=True)
    except ApiError as error:
        if "ValidatingAdmissionPolicy" not in str(error):
            raise
        return str(error)
    return ""


@pytest.fixture
def deployer(plane: Plane, tmp_path: Path) -> Iterator[Client]:
    """A service account of the tenant to which RBAC allows everything, in a cluster with the tenants' policies."""
    (tmp_path / "kaigen.yaml").write_text(yaml.safe_dump(CONFIG), encoding="utf-8")
    binding: Object = {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": "tenants-test"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"},
        "subjects": [{"kind": "ServiceAccount", "name": "deployer", "namespace": "team-a"}],
    }
    for name in ("team-a", "team-b"):
        plane.make_namespace(name, pod_security="privileged")
    account: Object = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "deployer"}}
    made = [binding, *policies(load_config(tmp_path).tenants, "kubernetes")]
    plane.client.create(account, "team-a")
    for body in made:
        plane.client.apply(body)
    yield plane.as_service_account("team-a", "deployer")
    for body in made:
        plane.client.delete(f"{body['apiVersion']}/{body['kind']}", body["metadata"]["name"])
    for name in ("team-a", "team-b"):
        plane.client.delete("v1/Namespace", name)


@pytest.mark.accepted("ValidatingPolicy")
@pytest.mark.ran("ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding", by="kube-apiserver")
def test_the_policies_refuse_what_kaigen_refuses(deployer: Client, plane: Plane, tmp_path: Path) -> None:
    tenants = load_config(tmp_path).tenants
    for body in policies(tenants, "kyverno"):
        plane.client.create(body)
        plane.client.delete("policies.kyverno.io/v1/ValidatingPolicy", body["metadata"]["name"])
    first = next(iter(DENIED.values()))[0]
    end = time.monotonic() + 30
    while not refusal(deployer, first):
        assert time.monotonic() < end, "the API server does not use the policies"
        time.sleep(0.2)
    said = {case: refusal(deployer, body) for case, body in OBJECTS.items()}
    assert {case: bool(text) for case, text in said.items()} == refused_by_kaigen(tmp_path / "repository")
    assert len(said) >= 40
    # Objects show every rule but one: the API server accepts no volume of another type that has a driver too.
    shown = {found[1] for text in said.values() if (found := re.search(r"denied request: ([a-z-]+):", text))}
    assert shown == {rule.name for rule in rules_of(tenants[0])} - {"volume"}
    # The rules are those of the namespace too, for everyone but controllers.
    assert refusal(plane.client, DENIED["image"][0])
    # Other namespaces are not limited.
    plane.client.create(DENIED["image"][0], "default", dry_run=True)
