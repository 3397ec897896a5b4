"""What accounts of a tenant may delete, connect to and write to subresources, and what applies a namespace."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from kaigen.tenancy.violations import violations
from tests.cluster.client import ApiError, Client, Object
from tests.cluster.plane import Plane
from tests.cluster.tenants import Request, deployer, outcome, refusal, tenants, tree
from tests.tenancy.objects import ingress, pod
from tests.tenancy.rows.network_policies import policy
from tests.tenancy.rows.rbac import account, binding, person, role

_CORE = "/api/v1/namespaces/team-a"
_OTHER = "/api/v1/namespaces/team-b"
_RBAC = "/apis/rbac.authorization.k8s.io/v1/namespaces/team-a"
_NETWORK = "/apis/networking.k8s.io/v1/namespaces/team-a"
_APPS = "/apis/apps/v1/namespaces/team-a"
_MERGE = "application/merge-patch+json"
_SNIPPET = {"metadata": {"annotations": {"nginx.ingress.kubernetes.io/configuration-snippet": "x"}}}
_LEVEL = {"metadata": {"labels": {"pod-security.kubernetes.io/enforce": "privileged"}}}
_TOKEN: Object = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}
_EVICTION: Object = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "x"}}


_LEASES = "/apis/coordination.k8s.io/v1/namespaces"
_LEASE: Object = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": "x"}}
_DATA: Object = {
    "apiVersion": "v1",
    "kind": "PersistentVolume",
    "metadata": {"name": "platform-data"},
    "spec": {
        "capacity": {"storage": "1Gi"},
        "accessModes": ["ReadOnlyMany"],
        "csi": {"driver": "example.com", "volumeHandle": "x"},
    },
}


def _binding(node: str) -> Object:
    target = {"apiVersion": "v1", "kind": "Node", "name": node}
    return {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": "x"}, "target": target}


def _scale(name: str) -> Object:
    metadata = {"name": name, "namespace": "team-a"}
    return {"apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": metadata, "spec": {"replicas": 1}}


_LIMITS: Object = {
    "apiVersion": "v1",
    "kind": "LimitRange",
    "metadata": {"name": "x"},
    "spec": {"limits": [{"type": "PersistentVolumeClaim", "max": {"storage": "1Ti"}}]},
}

REQUESTS: dict[str, Request] = {
    "namespace by its status": Request("PATCH", f"{_CORE}/status", "kind|status", _LEVEL, _MERGE),
    "namespace": Request("PATCH", _CORE, "kind", _LEVEL, _MERGE),
    "another namespace": Request("PATCH", f"{_OTHER}/status", "kind|namespace", _LEVEL, _MERGE),
    "Ingress by its status": Request("PATCH", f"{_NETWORK}/ingresses/x/status", "snippet|status", _SNIPPET, _MERGE),
    "Ingress": Request("PATCH", f"{_NETWORK}/ingresses/x", "snippet", _SNIPPET, _MERGE),
    "status without a change": Request("PATCH", f"{_NETWORK}/ingresses/x/status", "status", {}, _MERGE),
    "end of a pod by its status": Request(
        "PATCH", f"{_CORE}/pods/x/status", "status", {"status": {"phase": "Succeeded"}}, _MERGE
    ),
    "lease": Request("POST", f"{_LEASES}/team-a/leases", "", _LEASE),
    "lease of another namespace": Request("POST", f"{_LEASES}/team-b/leases", "kind", _LEASE),
    "lease of a controller": Request("POST", f"{_LEASES}/kube-system/leases", "kind", _LEASE),
    "deletion of a key of Flux": Request("DELETE", f"{_CORE}/secrets/sops-age", "reserved"),
    "deletion of all Secrets": Request("DELETE", f"{_CORE}/secrets", "reserved"),
    "deletion of a volume of the platform": Request(
        "DELETE", "/api/v1/persistentvolumes/platform-data", "deleted-persistentvolume"
    ),
    "deletion of a ClusterRole": Request(
        "DELETE", "/apis/rbac.authorization.k8s.io/v1/clusterroles/view", "deleted-clusterrole"
    ),
    "quota by its status": Request("PATCH", f"{_CORE}/resourcequotas/kaigen/status", "kind|status", _LEVEL, _MERGE),
    "binding of a pod": Request("POST", f"{_CORE}/pods/x/binding", "binding", _binding("gpu-1")),
    "binding": Request("POST", f"{_CORE}/bindings", "kind", _binding("gpu-1")),
    "eviction": Request("POST", f"{_CORE}/pods/x/eviction", "", _EVICTION),
    "eviction in another namespace": Request("POST", f"{_OTHER}/pods/x/eviction", "namespace", _EVICTION),
    "token of the deployer": Request("POST", f"{_CORE}/serviceaccounts/deployer/token", "token", _TOKEN),
    "token of its own": Request("POST", f"{_CORE}/serviceaccounts/runner/token", "", _TOKEN),
    "token of another namespace": Request("POST", f"{_OTHER}/serviceaccounts/default/token", "namespace", _TOKEN),
    "scale": Request("PUT", f"{_APPS}/deployments/x/scale", "", _scale("x")),
    "ephemeral container": Request(
        "PATCH",
        f"{_CORE}/pods/x/ephemeralcontainers",
        "image",
        {
            "spec": {
                "ephemeralContainers": [{**pod()["spec"]["containers"][0], "name": "e", "image": "example.org/x:1"}]
            }
        },
        "application/strategic-merge-patch+json",
    ),
    "resize": Request("PATCH", f"{_CORE}/pods/x/resize", "", {}, "application/strategic-merge-patch+json"),
    "exec in another namespace": Request("POST", f"{_OTHER}/pods/x/exec?command=a", "namespace"),
    "attach in another namespace": Request("POST", f"{_OTHER}/pods/x/attach", "namespace"),
    "port of another namespace": Request("POST", f"{_OTHER}/pods/x/portforward", "namespace"),
    "proxy of a pod": Request("POST", f"{_CORE}/pods/x/proxy", "proxy"),
    "proxy of a Service": Request("POST", f"{_CORE}/services/x/proxy", "proxy"),
    "proxy of a node": Request("POST", "/api/v1/nodes/gpu-1/proxy/exec", "namespace"),
    "deletion of the quota": Request("DELETE", f"{_CORE}/resourcequotas/kaigen", "deletion"),
    "deletion of limits": Request("DELETE", f"{_CORE}/limitranges/x", "deletion"),
    "deletion of the namespace": Request("DELETE", _CORE, "deletion"),
    "deletion of another namespace": Request("DELETE", _OTHER, "namespace"),
    "deletion of the nodes": Request("DELETE", "/api/v1/nodes", "deletion"),
    "deletion in another namespace": Request("DELETE", f"{_OTHER}/configmaps/kube-root-ca.crt", "namespace"),
    "deletion of its own": Request("DELETE", f"{_CORE}/configmaps/x"),
    "deletion of its own policy": Request("DELETE", f"{_NETWORK}/networkpolicies/x"),
    "deletion of its own Role": Request("DELETE", f"{_RBAC}/roles/x"),
    **{
        f"deletion of {kind} {name}": Request("DELETE", f"{base}/{kind}/{name}", "reserved")
        for base, kind, name in (
            (_NETWORK, "networkpolicies", "default-deny"),
            (_NETWORK, "networkpolicies", "allow-dns"),
            (_CORE, "serviceaccounts", "deployer"),
            (_RBAC, "roles", "deployer"),
            (_RBAC, "rolebindings", "deployer"),
        )
    },
    **{
        f"deletion of all {kind}": Request("DELETE", f"{base}/{kind}", rule)
        for base, kind, rule in (
            (_NETWORK, "networkpolicies", "reserved"),
            (_CORE, "serviceaccounts", "reserved"),
            (_RBAC, "roles", "reserved"),
            (_CORE, "resourcequotas", "deletion"),
            (_CORE, "limitranges", "deletion"),
            (_CORE, "configmaps", ""),
        )
    },
    "policy of the namespace": Request(
        "PATCH", f"{_NETWORK}/networkpolicies/default-deny", "reserved", {"spec": {"ingress": [{}]}}, _MERGE
    ),
    "rights of the deployer": Request("PATCH", f"{_RBAC}/roles/deployer", "reserved", {"rules": []}, _MERGE),
    "account of the deployer": Request(
        "PATCH", f"{_CORE}/serviceaccounts/deployer", "reserved", {"metadata": {"labels": {"a": "b"}}}, _MERGE
    ),
}
"""Requests of an account of the tenant to which RBAC allows everything."""


@pytest.fixture(scope="module")
def rendered(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Object]:
    """What is rendered for the tenant."""
    return tree(tmp_path_factory.mktemp("tree"))


@pytest.fixture(scope="module")
def tenant(plane: Plane, tmp_path_factory: pytest.TempPathFactory, rendered: dict[str, Object]) -> Iterator[Client]:
    """An account of the tenant to which RBAC allows everything; its namespace has kaigen's objects, and its own."""
    with deployer(plane, tmp_path_factory.mktemp("cluster"), "kubernetes") as client:
        for path, body in rendered.items():
            if "/_tenant/" in path:
                plane.client.apply(body, force=True)
        plane.as_admin("system:kube-test").create(_LIMITS, "team-a")
        plane.client.create({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "sops-age"}}, "team-a")
        plane.client.create(_DATA)
        runner = plane.as_service_account("team-a", "runner")
        template = {"metadata": {"labels": {"app": "x"}}, "spec": pod()["spec"]}
        deployment = {"selector": {"matchLabels": {"app": "x"}}, "replicas": 0, "template": template}
        for body in (
            pod(),
            ingress(),
            policy("x"),
            role("pods", "get"),
            {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x"}},
            {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "x"}, "spec": deployment},
        ):
            runner.create(body, "team-a")
        yield client
        plane.client.delete("v1/PersistentVolume", "platform-data")


@pytest.mark.parametrize("case", REQUESTS)
def test_requests_of_a_tenant(plane: Plane, tenant: Client, case: str) -> None:
    client = plane.as_service_account("team-a", "runner")
    # Both policies refuse some requests, and the API server answers with one of them.
    assert outcome(client, REQUESTS[case]) in REQUESTS[case].rule.split("|")


def test_an_object_that_is_being_deleted_is_not_changed(plane: Plane, tenant: Client) -> None:
    """A finalizer may keep it for as long as somebody wants."""
    held = {**policy("held"), "metadata": {"name": "held", "finalizers": ["example.com/hold"]}}
    plane.client.create(held, "team-a")
    plane.client.delete("networking.k8s.io/v1/NetworkPolicy", "held", "team-a")
    opened: Object = {"spec": {"ingress": [{}], "egress": [{}]}}
    with pytest.raises(ApiError, match="network: "):
        plane.client.patch("networking.k8s.io/v1/NetworkPolicy", "held", "team-a", opened)
    plane.client.patch("networking.k8s.io/v1/NetworkPolicy", "held", "team-a", {"metadata": {"finalizers": None}})


_APPLIERS = (("argocd", "argocd-application-controller"), ("flux-system", "kustomize-controller"), ("ops", "admin"))


@pytest.mark.parametrize(("namespace", "name"), _APPLIERS)
def test_the_accounts_of_the_platform_apply_a_namespace(
    plane: Plane, tenant: Client, rendered: dict[str, Object], namespace: str, name: str
) -> None:
    client = plane.as_service_account(namespace, name)
    own = {path: body for path, body in rendered.items() if "/_tenant/" in path or path.startswith("_flux/apps/")}
    assert len(own) >= 9
    for body in own.values():
        client.apply(body, force=True)
    for body in own.values():
        if body["kind"] != "Namespace":
            kind = f"{body['apiVersion']}/{body['kind']}"
            metadata = body["metadata"]
            client.delete(kind, metadata["name"], metadata["namespace"])
            client.apply(body, force=True)


@pytest.mark.parametrize("who", ["tenant", "operator"])
def test_others_do_not_change_the_objects_of_a_namespace(
    plane: Plane, tenant: Client, rendered: dict[str, Object], who: str
) -> None:
    # Applying a namespace made its account anew, so the token of before is no longer valid.
    place = ("team-a", "deployer") if who == "tenant" else ("ops", "operator")
    client = plane.as_service_account(*place)
    for path, body in rendered.items():
        if "/_tenant/" in path:
            changed = {**body, "metadata": {**body["metadata"], "labels": {"a": who}}}
            with pytest.raises(ApiError, match=r"denied request: [a-z-]+: "):
                client.apply(changed, force=True)


@pytest.mark.parametrize(("namespace", "name"), _APPLIERS)
def test_the_accounts_of_the_platform_apply_nothing_else_that_is_not_granted(
    plane: Plane, tenant: Client, namespace: str, name: str
) -> None:
    client = plane.as_service_account(namespace, name)
    assert refusal(client, role("namespaces", "patch"), "kubernetes") == "right"
    assert (
        refusal(client, {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "x"}}, "kubernetes")
        == "kind"
    )


_QUOTA: Object = {
    "apiVersion": "v1",
    "kind": "ResourceQuota",
    "metadata": {"name": "x"},
    "spec": {"hard": {"pods": "9"}},
}


@pytest.mark.parametrize(
    ("body", "rule"),
    [
        pytest.param(_LIMITS, "kind", id="limits"),
        pytest.param(_QUOTA, "kind", id="quota"),
        pytest.param(binding(person("User", "ada"), "ClusterRole", "view"), "bound-kind", id="person"),
        pytest.param(binding(person("Group", "team-a")), "subject", id="people"),
    ],
)
def test_only_an_administrator_limits_a_namespace_and_gives_people_rights(
    plane: Plane, tenant: Client, body: Object, rule: str
) -> None:
    body = {**body, "metadata": {"name": "y"}}
    assert not refusal(plane.client, body, "kubernetes")
    for place in (("team-a", "runner"), ("ops", "operator")):
        assert refusal(plane.as_service_account(*place), body, "kubernetes") == rule


@pytest.mark.parametrize(
    "subject",
    [
        account("deployer"),
        account("default", "team-b"),
        person("User", "system:serviceaccount:team-a:runner"),
        person("Group", "system:serviceaccounts:team-a"),
        person("Group", "system:authenticated"),
    ],
    ids=str,
)
def test_an_administrator_gives_accounts_no_rights_that_are_not_granted(
    plane: Plane, tenant: Client, subject: Object
) -> None:
    assert refusal(plane.client, binding(subject, "ClusterRole", "edit"), "kubernetes") == "bound-kind"
    two = binding(subject)
    two["subjects"] = [person("User", "ada"), subject]
    assert refusal(plane.client, two, "kubernetes") == "subject"


def test_an_operator_writes_the_status_of_objects_that_others_made(plane: Plane, tenant: Client) -> None:
    """A controller made an object of a kind that the tenant may not have; its driver in another namespace reports."""
    claim: Object = {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim", "metadata": {"name": "x"}, "spec": {}}
    plane.as_admin("system:kube-test").create(claim, "team-a")
    operator = plane.as_service_account("ops", "operator")
    operator.patch(
        "resource.k8s.io/v1/ResourceClaim", "x", "team-a", {"metadata": {"annotations": {"a": "b"}}}, "status"
    )
    load_balancer = {"status": {"loadBalancer": {"ingress": [{"ip": "192.0.2.1"}]}}}
    operator.patch("networking.k8s.io/v1/Ingress", "x", "team-a", load_balancer, "status")
    with pytest.raises(ApiError, match="denied request: snippet"):
        operator.patch("networking.k8s.io/v1/Ingress", "x", "team-a", _SNIPPET, "status")
    with pytest.raises(ApiError, match="denied request: kind"):
        operator.patch("v1/Namespace", "team-a", "", _LEVEL, "status")


def test_every_right_is_judged_as_kaigen_judges_it(plane: Plane, tenant: Client, tmp_path: Path) -> None:
    """A Role for each verb of each resource that the API server has, subresources included."""
    (owner, _) = tenants(tmp_path)
    runner = plane.as_service_account("team-a", "runner")
    judged = 0
    for group, resource in _resources(plane.client):
        for verb in ("get", "create", "patch", "delete", "deletecollection", "bind", "impersonate", "*"):
            body = {**role(resource, verb, group=group), "metadata": {"name": "y"}}
            refused = bool([*violations(body, "team-a", owner)])
            refused |= resource == "secrets"  # All of them, and so those of Flux.
            assert bool(refusal(runner, body, "kubernetes")) is refused, (group, resource, verb)
            judged += 1
    assert judged > 1000


def _resources(client: Client) -> Iterator[tuple[str, str]]:
    """Yield group and name of every resource that the API server has."""
    groups = client.request("GET", "/apis").body["groups"]
    places = {
        ("", "/api/v1"),
        *((each["name"], f"/apis/{each['preferredVersion']['groupVersion']}") for each in groups),
    }
    for group, path in sorted(places):
        yield from ((group, each["name"]) for each in client.request("GET", path).body["resources"])
