"""The objects that a tenant may and may not have, and what kaigen and a cluster with its policies refuse of them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml

from kaigen.config.load import load_config
from kaigen.config.tenant_settings import Tenant
from kaigen.pipeline.run import start_run
from kaigen.tenancy.policies import Engine, policies
from kaigen.tenancy.rules import rules_of
from tests.cluster.client import ApiError, Client, Object
from tests.cluster.plane import Plane
from tests.cluster.processes import wait_until
from tests.tenants import ALLOWED, DENIED, OTHER, TENANT

_OBJECTS: Mapping[str, Object] = {f"allowed: {case}": body for case, body in ALLOWED.items()} | {
    case: body for case, (body, _) in DENIED.items()
}
_PODS_OF_OTHER: Mapping[str, Object] = {
    case: {**body, "metadata": {**body["metadata"], "namespace": "team-b"}}
    for case, body in _OBJECTS.items()
    if body["kind"] in ("Deployment", "Pod")
}
_FOREIGN_IMAGE: Object = DENIED["image"][0]
"""A Pod with an image that the tenant is not granted."""

_NAMESPACES = ("team-a", "team-b")
_CONFIG: dict[str, Any] = {
    "apiVersion": "kaigen.dev/v1alpha1",
    "kind": "Config",
    "namespace": "team-a",
    "passthrough": True,
    "tenants": {"a": TENANT, "b": OTHER},
}
_BINDING: Object = {
    "apiVersion": "rbac.authorization.k8s.io/v1",
    "kind": "ClusterRoleBinding",
    "metadata": {"name": "tenants-test"},
    "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"},
    "subjects": [{"kind": "ServiceAccount", "name": "deployer", "namespace": "team-a"}],
}
_REFUSES = {
    "kubernetes": re.compile(r"ValidatingAdmissionPolicy '.*' denied request: ([a-z-]+): "),
    "kyverno": re.compile(r'webhook "vpol\..*" denied the request: Policy \S+ failed: ([a-z-]+): '),
}
"""What a policy of each engine says, with the name of the rule."""


def tenants(root: Path) -> Sequence[Tenant]:
    """Return the tenants, of a kaigen.yaml that is written into a folder."""
    root.mkdir(parents=True, exist_ok=True)
    (root / "kaigen.yaml").write_text(yaml.safe_dump(_CONFIG), encoding="utf-8")
    return load_config(root).tenants


def check_policies(plane: Plane, root: Path, engine: Engine) -> None:
    """Check that the policies of tenants refuse exactly the objects that kaigen refuses.

    Args:
        plane: where.
        root: an empty folder.
        engine: what runs the policies.
    """
    with deployer(plane, root / "cluster", engine) as client:
        rules = {case: refusal(client, body, engine) for case, body in _OBJECTS.items()}
        refused = _refused_by_kaigen(root / "repository", "specs/a", _OBJECTS)
        different = [case for case, rule in rules.items() if bool(rule) != refused[case]]
        assert not different, f"kaigen and the policies judge these differently: {different}"
        # The other tenant has a looser Pod Security level, and may name nodes.
        looser = {case: refusal(plane.client, body, engine) for case, body in _PODS_OF_OTHER.items()}
        refused = _refused_by_kaigen(root / "other", "specs/b", _PODS_OF_OTHER)
        different = [case for case, rule in looser.items() if bool(rule) != refused[case]]
        assert not different, f"kaigen and the policies judge these differently: {different}"
        granted = {case for case, rule in looser.items() if rules[case] and not rule}
        assert {"capability of baseline", "label of a node", "root", "unmasked proc"} <= granted, granted
        assert len(rules) >= 40
        # Objects show every rule but one: the API server accepts no volume of another type that has a driver too.
        known = {rule.name for rule in rules_of(tenants(root)[0])}
        shown = {*rules.values(), *looser.values()} - {""}
        assert shown == known - {"volume"}, f"of the rules {known}, objects show {shown}"
        # The rules are those of the namespace too, for everyone but controllers.
        assert refusal(plane.client, _FOREIGN_IMAGE, engine) == "image"
        _check_updates(plane, client, engine)
        # Other namespaces are not limited.
        plane.client.create(_FOREIGN_IMAGE, "default", dry_run=True)


def _check_updates(plane: Plane, client: Client, engine: Engine) -> None:
    """Check that an update may keep what a controller set, and not change it."""
    key = "metallb.io/ip-allocated-from-pool"
    service: Object = {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": "kept", "annotations": {key: "public"}},
        "spec": {"ports": [{"port": 80}], "selector": {"app": "x"}},
    }
    claim: Object = ALLOWED["claim"]
    bound: Object = {"spec": {**claim["spec"], "volumeName": "pvc-1"}, "metadata": {"name": "kept"}}
    controller = plane.as_admin("system:kube-test")
    controller.create(service, "team-a")
    controller.create({**claim, **bound}, "team-a")
    client.patch("v1/PersistentVolumeClaim", "kept", "team-a", {"metadata": {"labels": {"a": "b"}}})
    client.patch("v1/Service", "kept", "team-a", {"spec": {"selector": {"app": "y"}}})
    with pytest.raises(ApiError) as refused:
        client.patch("v1/Service", "kept", "team-a", {"metadata": {"annotations": {key: "private"}}})
    found = _REFUSES[engine].search(refused.value.message)
    assert found is not None, refused.value
    assert found[1] == "annotation"


@contextmanager
def deployer(plane: Plane, root: Path, engine: Engine) -> Iterator[Client]:
    """A service account of the tenant to which RBAC allows everything, in a cluster with the tenants' policies.

    Args:
        plane: where.
        root: an empty folder.
        engine: what runs the policies.
    """
    for name in _NAMESPACES:
        plane.make_namespace(name, pod_security="privileged")
        # Without this label the API server itself refuses access to the devices of others.
        labels = {"resource.kubernetes.io/admin-access": "true"}
        plane.client.patch("v1/Namespace", name, "", {"metadata": {"labels": labels}})
    account: Object = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "deployer"}}
    made = [_BINDING, *policies(tenants(root), engine)]
    plane.client.create(account, "team-a")
    for body in made:
        plane.client.apply(body)
    client = plane.as_service_account("team-a", "deployer")
    try:
        wait_until(lambda: bool(refusal(client, _FOREIGN_IMAGE, engine)), "the policies are used")
        yield client
    finally:
        for body in made:
            plane.client.delete(f"{body['apiVersion']}/{body['kind']}", body["metadata"]["name"])
        for name in _NAMESPACES:
            plane.client.delete("v1/Namespace", name)
        for name in _NAMESPACES:
            plane.client.wait_gone("v1/Namespace", name)


def refusal(client: Client, body: Object, engine: Engine) -> str:
    """Return the name of the rule by which a policy refuses an object; empty if it may be created.

    Raises:
        ApiError: something else refuses it.
    """
    try:
        client.create(body, "team-a", dry_run=True)
    except ApiError as error:
        if found := _REFUSES[engine].search(error.message):
            return found[1]
        raise
    return ""


def _refused_by_kaigen(root: Path, folder: str, objects: Mapping[str, Object]) -> dict[str, bool]:
    """Return whether kaigen refuses each object in a file of a tenant's folder."""
    tenants(root)
    (root / folder).mkdir(parents=True)
    for number, body in enumerate(objects.values()):
        (root / f"{folder}/{number}.yaml").write_text(yaml.safe_dump(body), encoding="utf-8")
    refused = {
        int(Path(each.mark.file).stem)
        for each in start_run((), load_config(root)).diagnostics
        if each.code == "KG0582" and each.mark is not None
    }
    return {case: number in refused for number, case in enumerate(objects)}
