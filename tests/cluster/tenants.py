"""The objects that a tenant may and may not have, and what kaigen and a cluster with its policies refuse of them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import yaml

from kaigen.config.load import load_config
from kaigen.config.tenant_settings import Tenant
from kaigen.output.contents import data_of
from kaigen.pipeline.run import Run
from kaigen.tenancy.policies import Engine, policies
from kaigen.tenancy.rules import rules_of
from tests.cluster.client import ApiError, Client, Object, is_true
from tests.cluster.plane import Plane
from tests.cluster.processes import wait_until
from tests.tenancy import references
from tests.tenancy.objects import pod
from tests.tenancy.rows.kinds import RUNNER
from tests.tenancy.rows.rbac import BOUND
from tests.tenancy.rows.reserved import RESERVED_SECRETS
from tests.tenancy.table import ALLOWED, ALLOWED_RIGHTS, DENIED, DENIED_RIGHTS
from tests.tenancy.tenants import GITOPS, GRANTS, OTHER

_OBJECTS: Mapping[str, Object] = {
    **{f"allowed: {case}": body for case, body in (*ALLOWED.items(), *ALLOWED_RIGHTS.items())},
    **{f"allowed name: {case}": body for case, body in references.ALLOWED.items()},
    **{case: body for case, (body, _) in (*DENIED.items(), *DENIED_RIGHTS.items())},
    **{f"name: {case}": body for case, (body, _) in references.DENIED.items()},
    **{f"Secret {case}": body for case, body in references.secret_places("sops-age").items()},
    **RESERVED_SECRETS,
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
    "tenants": {"a": {**references.GRANTED, **GRANTS}, "b": OTHER},
    "gitops": GITOPS,
}
ACCOUNTS = {
    "team-a": ("deployer", "runner"),
    "team-b": ("deployer", "runner"),
    "argocd": ("argocd-application-controller",),
    "flux-system": ("kustomize-controller",),
    "ops": ("admin", "operator"),
}
"""Accounts to which RBAC allows everything, by namespace."""

_BINDING: Object = {
    "apiVersion": "rbac.authorization.k8s.io/v1",
    "kind": "ClusterRoleBinding",
    "metadata": {"name": "tenants-test"},
    "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"},
    "subjects": [
        {"kind": "ServiceAccount", "name": name, "namespace": namespace}
        for namespace, names in ACCOUNTS.items()
        for name in names
    ],
}
_REFUSES = {
    "kubernetes": re.compile(r"ValidatingAdmissionPolicy '.*' denied request: ([a-z-]+): "),
    "kyverno": re.compile(r'webhook "vpol\..*" denied the request: Policy \S+ failed: ([a-z-]+): '),
}
"""What a policy of each engine says, with the name of the rule."""

_UNSEEN: Mapping[Engine, frozenset[str]] = {"kubernetes": frozenset(), "kyverno": frozenset({"kind: a webhook"})}
"""Objects that the API server shows to no policy of the engine: it calls no webhook for configurations of webhooks."""


def tenants(root: Path, **changes: object) -> Sequence[Tenant]:
    """Return the tenants, of a kaigen.yaml that is written into a folder, with changes of its fields."""
    root.mkdir(parents=True, exist_ok=True)
    (root / "kaigen.yaml").write_text(yaml.safe_dump({**_CONFIG, **changes}), encoding="utf-8")
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
        different = {case for case, rule in rules.items() if bool(rule) != refused[case]}
        assert different == _UNSEEN[engine], f"kaigen and the policies judge these differently: {different}"
        # The other tenant has a looser Pod Security level, and may name nodes.
        looser = {case: refusal(plane.client, body, engine) for case, body in _PODS_OF_OTHER.items()}
        refused = _refused_by_kaigen(root / "other", "specs/b", _PODS_OF_OTHER)
        different = {case for case, rule in looser.items() if bool(rule) != refused[case]}
        assert not different, f"kaigen and the policies judge these differently: {different}"
        granted = {case for case, rule in looser.items() if rules[case] and not rule}
        assert {"capability of baseline", "label of a node", "root", "unmasked proc"} <= granted, granted
        assert len(rules) >= 40
        # Objects show every rule but one: the API server accepts no volume of another type that has a driver too.
        rules_of_a = {rule.name for rule in rules_of(tenants(root)[0])}
        # Of Secrets of Flux, there is a rule for each kind that names Secrets.
        known = {name for name in rules_of_a if not name.startswith("syncer-secret-")}
        assert rules_of_a - known & {*rules.values()}
        shown = {*rules.values(), *looser.values()} & known
        # The API server drops the field of PodCertificateRequest, which is off, and those of Gateway API's experimental
        # channel before policies read them. The rule of labels refuses those of aggregated ClusterRoles first.
        hidden = {"volume", "pod-certificate", "route-default", "aggregated"}
        assert shown == known - hidden, f"objects do not show {known - hidden - shown}, and show {shown - known}"
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
def deployer(plane: Plane, root: Path, engine: Engine, **changes: object) -> Iterator[Client]:
    """A service account of the tenant to which RBAC allows everything, in a cluster with the tenants' policies.

    Args:
        plane: where.
        root: an empty folder.
        engine: what runs the policies.
        changes: of fields of kaigen.yaml.
    """
    for name in _NAMESPACES:
        plane.make_namespace(name, pod_security="privileged")
        # Without this label the API server itself refuses access to the devices of others.
        labels = {"resource.kubernetes.io/admin-access": "true"}
        plane.client.patch("v1/Namespace", name, "", {"metadata": {"labels": labels}})
    # Other tests of the process may have those of Argo CD and Flux.
    others = [name for name in ACCOUNTS if name not in _NAMESPACES and plane.client.find("v1/Namespace", name) is None]
    for name in others:
        plane.make_namespace(name)
    made = [RUNNER, _BINDING, *policies(tenants(root, **changes), engine)]
    for namespace, names in ACCOUNTS.items():
        for name in names:
            account: Object = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": name}}
            if plane.client.find("v1/ServiceAccount", name, namespace) is None:
                plane.client.create(account, namespace)
    for body in made:
        plane.client.apply(body)
    established = partial(is_true, condition="Established")
    definition = "apiextensions.k8s.io/v1/CustomResourceDefinition"
    plane.client.wait(definition, RUNNER["metadata"]["name"], "", established, "established")
    client = plane.as_service_account("team-a", "deployer")
    try:
        for name in _NAMESPACES:
            _wait_for_policies(plane.as_service_account(name, "deployer"), name, engine)
        yield client
    finally:
        for body in made:
            plane.client.delete(f"{body['apiVersion']}/{body['kind']}", body["metadata"]["name"])
        for name in (*_NAMESPACES, *others):
            plane.client.delete("v1/Namespace", name)
        for name in (*_NAMESPACES, *others):
            plane.client.wait_gone("v1/Namespace", name)


def _wait_for_policies(client: Client, namespace: str, engine: Engine) -> None:
    """Wait until both policies of a tenant refuse: the API server starts to use each on its own.

    Args:
        client: an account of the tenant.
        namespace: of the tenant.
        engine: what runs the policies.
    """
    path = f"/api/v1/namespaces/{namespace}"
    quota: Object = {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "x"}, "spec": {}}
    for request in (Request("POST", f"{path}/resourcequotas", body=quota), Request("DELETE", path)):
        refused = partial(_is_refused, client, request, engine)
        wait_until(refused, f"a policy refuses to {request.method} in {namespace}")


def _is_refused(client: Client, request: Request, engine: Engine) -> bool:
    return bool(outcome(client, request, engine))


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
        for each in Run.load((), load_config(root)).diagnostics
        if each.code in ("KG0582", "KG0583") and each.mark is not None
    }
    return {case: number in refused for number, case in enumerate(objects)}


def tree(root: Path) -> dict[str, Object]:
    """Return the rendered objects of a repository with one app of the tenant, by path."""
    tenants(root)
    (root / "specs/a").mkdir(parents=True)
    (root / "specs/a/x.yaml").write_text(yaml.safe_dump_all([pod(), *BOUND]), encoding="utf-8")
    config = load_config(root)
    files = Run.load((), config).tree(root / config.output, inside=root).files
    found = {path: yaml.safe_load(data_of(content)) for path, content in files.items()}
    return {path: body for path, body in found.items() if "metadata" in body}


def outcome(client: Client, request: Request, engine: Engine = "kubernetes") -> str:
    """Return the name of the rule by which a policy refuses a request; empty if it is none that a policy refuses."""
    try:
        client.request(request.method, request.path, request.body, request.params, request.type)
    except ApiError as error:
        if found := _REFUSES[engine].search(error.message):
            return found[1]
        if error.code not in (404, 409, 422, 429, 500, 502, 503):
            raise
    return ""


class Request(NamedTuple):
    """A request of an account of the tenant that is only tried.

    Attributes:
        method: of HTTP.
        path: on the API server.
        rule: by which a policy refuses it; empty if it is allowed.
        body: its object.
        type: of the body.
    """

    method: str
    path: str
    rule: str = ""
    body: Object | None = None
    type: str = "application/json"

    @property
    def params(self) -> Mapping[str, str]:
        """The query, by which nothing is stored; there is nothing to store for a connection."""
        connects = any(f"/{way}" in self.path for way in ("attach", "exec", "portforward", "proxy"))
        return {} if connects else {"dryRun": "All"}
