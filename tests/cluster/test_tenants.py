"""The admission policies of a tenant refuse what kaigen refuses of its specs, and nothing else."""

from __future__ import annotations

from pathlib import Path

import pytest

from kaigen.compile.builders.egress import ANYWHERE
from kaigen.config.reserved import ALLOW_DNS, ALLOW_NETWORK, DEFAULT_DENY
from kaigen.tenancy.policies import policies
from tests.cluster.client import ApiError
from tests.cluster.group_controllers import GroupControllers
from tests.cluster.plane import Plane
from tests.cluster.tenants import check_policies, deployer, refusal, tenants, tree
from tests.tenancy.rows.network_policies import METADATA, address, policy, port
from tests.tenancy.rows.rbac import role
from tests.unit.compile import test_connections as connections


@pytest.mark.ran("ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding", by="kube-apiserver")
def test_the_policies_refuse_what_kaigen_refuses(plane: Plane, groups: GroupControllers, tmp_path: Path) -> None:
    # Their webhooks complete objects before the policies judge them, and other tests of the process start them too.
    groups.start_leader_worker_set()
    groups.start_job_set()
    groups.start_kueue()
    check_policies(plane, tmp_path, "kubernetes")


@pytest.mark.accepted("ValidatingPolicy")
def test_the_api_server_accepts_the_policies_for_kyverno(plane: Plane, tmp_path: Path) -> None:
    for body in policies(tenants(tmp_path), "kyverno"):
        plane.client.create(body)
        plane.client.delete("policies.kyverno.io/v1/ValidatingPolicy", body["metadata"]["name"])


def test_an_open_port_reaches_no_metadata_of_a_cloud(plane: Plane, tmp_path: Path) -> None:
    network = {"downloadEgress": {"apiServer": [address("10.96.0.1/32")]}}
    with deployer(plane, tmp_path, "kubernetes", network=network) as client:
        judged = {
            cidr: refusal(client, policy(egress=[{"to": [address(cidr)], "ports": port(80)}]), "kubernetes")
            for cidr in (*METADATA, "192.0.2.1/32", "192.0.0.191/32", "2001:db8::1/128", "fd00:c1::1/128")
        }
    assert {cidr for cidr, rule in judged.items() if rule} == {*METADATA}


def test_a_tenant_may_apply_what_kaigen_writes_where_egress_is_denied(plane: Plane, tmp_path: Path) -> None:
    """The policies of routers, groups, gates, an Endpoint, a Notebook and downloads; a wider one is refused."""
    written = [
        body
        for body in connections.objects(tmp_path / "apps")
        if body["kind"] == "NetworkPolicy" and body["metadata"]["name"] not in (DEFAULT_DENY, ALLOW_DNS, ALLOW_NETWORK)
    ]
    for body in written:
        body["metadata"]["namespace"] = "team-a"
    inside = {"ipBlock": {"cidr": "10.96.0.0/16", "except": ["10.96.1.0/24"]}}
    network = {"downloadEgress": {"apiServer": [address("10.96.0.1/32"), inside]}}
    anywhere = [{"to": [*ANYWHERE]}]
    with deployer(plane, tmp_path / "tenant", "kubernetes", network=network) as client:
        judged = {body["metadata"]["name"]: refusal(client, body, "kubernetes") for body in written}
        wide = refusal(client, policy(egress=anywhere), "kubernetes")
        listed = refusal(client, policy(egress=[{"to": [inside]}]), "kubernetes")
    assert {name for name in judged if name.endswith(("-connections", "-api-server", "-egress"))} >= {
        *(f"{app}-connections" for app in ("routed", "wide", "train", "speed", "models", "lab")),
        *("routed-api-server", "speed-api-server", "qwen-egress", "fetching-egress"),
    }
    assert {name: rule for name, rule in judged.items() if rule} == {}
    assert (wide, listed) == ("network", "")


def test_an_account_cannot_take_its_namespace_over(plane: Plane, tmp_path: Path) -> None:
    """The first step to root on a node is refused: by RBAC to the account that syncs, by the policies to anyone."""
    rendered = tree(tmp_path / "repository")
    evil = role("namespaces", "get", "patch")
    evil["rules"] += role("pods", "create")["rules"]
    namespace = "team-a"
    plane.make_namespace(namespace)
    try:
        for path, body in rendered.items():
            if "/_tenant/" in path and body["kind"] != "Namespace":
                plane.client.apply(body, force=True)
        syncer = plane.as_service_account(namespace, "deployer")
        syncer.create(role("pods", "get"), namespace)
        with pytest.raises(ApiError, match="attempting to grant RBAC permissions not currently held"):
            syncer.create({**evil, "metadata": {"name": "evil"}}, namespace)
    finally:
        plane.client.delete("v1/Namespace", namespace)
        plane.client.wait_gone("v1/Namespace", namespace)
    with deployer(plane, tmp_path / "cluster", "kubernetes") as client:
        assert refusal(client, evil, "kubernetes") == "right"
        assert refusal(plane.client, evil, "kubernetes") == "right"
