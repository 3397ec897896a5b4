"""Tenancy objects of a namespace: the Namespace, a quota, a policy, and the account that syncs its apps."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from kaigen.config.reserved import ALLOW_DNS, ALLOW_NETWORK, DEFAULT_DENY, QUOTA
from kaigen.gitops.delivery import Delivery
from kaigen.gitops.facts import AppFacts
from kaigen.gitops.layout import TENANT_FOLDER
from kaigen.kubernetes.kind_table import OWN_KINDS
from kaigen.kubernetes.manifest import resource_of

if TYPE_CHECKING:
    from kaigen.config.gitops import Tenancy

_LEVELS = ("privileged", "baseline", "restricted")
_WRITE = ["get", "list", "watch", "create", "patch", "update", "delete"]
_REMOVE = ["get", "list", "watch", "delete"]
_READ = ["get", "list", "watch"]
_RELEASES = ("", "Secret")
"""What Helm stores its releases in."""
_MADE = {("apps", "Deployment"): (("apps", "ReplicaSet"), ("", "Pod")), ("apps", "StatefulSet"): (("", "Pod"),)}
"""The objects that Flux reads to know the health of a kind (source: kstatus)."""


class Tenant(Struct, frozen=True):
    """One namespace, and the objects that kaigen writes for it.

    Attributes:
        namespace: its name.
        objects: what it gets.
    """

    namespace: str
    objects: tuple[dict[str, Any], ...]

    def files(self) -> dict[str, dict[str, Any]]:
        """Return the objects by path in the tree, with their kustomization."""
        folder = f"{self.namespace}/{TENANT_FOLDER}/manifests"
        names = [f"{body['kind'].lower()}-{body['metadata']['name']}.yaml" for body in self.objects]
        files = {f"{folder}/{name}": body for name, body in zip(names, self.objects, strict=True)}
        files[f"{folder}/kustomization.yaml"] = {
            "apiVersion": "kustomize.config.k8s.io/v1beta1",
            "kind": "Kustomization",
            "resources": names,
        }
        return files


def tenants_of(delivery: Delivery) -> list[Tenant]:
    """Return the namespaces with tenancy objects; none without the block `tenancy`."""
    tenancy = delivery.settings.tenancy
    if tenancy is None:
        return []
    found = []
    for namespace in delivery.namespaces:
        apps = [app for app in delivery.apps if namespace in app.namespaces]
        objects = _objects(delivery, tenancy, namespace, apps)
        if objects:
            found.append(Tenant(namespace, tuple(objects)))
    return found


def _objects(delivery: Delivery, tenancy: Tenancy, namespace: str, apps: list[AppFacts]) -> list[dict[str, Any]]:
    def metadata(name: str) -> dict[str, Any]:
        return {"name": name, "namespace": namespace, "labels": dict(delivery.labels)}

    objects: list[dict[str, Any]] = []
    if tenancy.namespaces:
        objects.append(_namespace(delivery, namespace, apps))
    quota = {**tenancy.quota, **delivery.quotas.get(namespace, {})}
    if quota:
        objects.append(
            {
                "apiVersion": "v1",
                "kind": "ResourceQuota",
                "metadata": metadata(QUOTA),
                "spec": {"hard": dict(sorted(quota.items()))},
            }
        )
    if tenancy.default_deny:
        objects += _policies(tenancy.default_deny, delivery.egress, metadata)
    account = tenancy.service_account
    if account:
        objects += [
            {
                "apiVersion": "v1",
                "kind": "ServiceAccount",
                "metadata": metadata(account),
                "automountServiceAccountToken": False,
            },
            {
                "apiVersion": "rbac.authorization.k8s.io/v1",
                "kind": "Role",
                "metadata": metadata(account),
                "rules": _rules(delivery, namespace, apps),
            },
            {
                "apiVersion": "rbac.authorization.k8s.io/v1",
                "kind": "RoleBinding",
                "metadata": metadata(account),
                "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": account},
                "subjects": [{"kind": "ServiceAccount", "name": account, "namespace": namespace}],
            },
        ]
    return objects


_KEPT = "Prune=false,Delete=false"


def _namespace(delivery: Delivery, name: str, apps: list[AppFacts]) -> dict[str, Any]:
    """Enforces the strictest level that all of its apps satisfy; it and what it holds outlive its spec."""
    level = min((app.pod_security for app in apps), key=_LEVELS.index, default="restricted")
    return {
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": {
            "name": name,
            "labels": {
                **delivery.labels,
                "pod-security.kubernetes.io/enforce": level,
                "pod-security.kubernetes.io/warn": "restricted",
            },
            "annotations": {
                **({} if delivery.settings.argocd is None else {"argocd.argoproj.io/sync-options": _KEPT}),
                "kustomize.toolkit.fluxcd.io/prune": "disabled",
            },
        },
    }


def _policies(directions: Sequence[str], egress: Sequence[Mapping[str, Any]], metadata: Any) -> list[dict[str, Any]]:
    api = "networking.k8s.io/v1"
    policies = [
        {
            "apiVersion": api,
            "kind": "NetworkPolicy",
            "metadata": metadata(DEFAULT_DENY),
            "spec": {"podSelector": {}, "policyTypes": sorted(set(directions), reverse=True)},
        }
    ]
    policies[0]["spec"]["policyTypes"] = [each for each in ("Ingress", "Egress") if each in directions]
    if "Egress" in directions:
        ports = [{"port": 53, "protocol": protocol} for protocol in ("UDP", "TCP")]
        to = [
            {
                "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "kube-system"}},
                "podSelector": {"matchLabels": {"k8s-app": "kube-dns"}},
            }
        ]
        policies.append(
            {
                "apiVersion": api,
                "kind": "NetworkPolicy",
                "metadata": metadata(ALLOW_DNS),
                "spec": {"podSelector": {}, "policyTypes": ["Egress"], "egress": [{"to": to, "ports": ports}]},
            }
        )
        if egress:
            policies.append(
                {
                    "apiVersion": api,
                    "kind": "NetworkPolicy",
                    "metadata": metadata(ALLOW_NETWORK),
                    "spec": {"podSelector": {}, "policyTypes": ["Egress"], "egress": list(egress)},
                }
            )
    return policies


def _rules(delivery: Delivery, namespace: str, apps: list[AppFacts]) -> list[dict[str, Any]]:
    """Rights to keep the kinds that the apps hold, to remove those that they held before, and the rights that their
    Roles in this namespace give, without which the API server would not let the account make those (source: Kubernetes,
    privilege escalation prevention). Those of other namespaces and of the cluster give no right here.

    `bind` is named for the roles that are bound: a binding is tried before its role is there.
    """
    held = {pair for app in apps for pair in app.kinds_in(namespace)}
    if delivery.settings.flux is not None and any(delivery.as_chart(app) for app in apps if app.namespace == namespace):
        held.add(_RELEASES)
    rules = [*_grants(held, _WRITE), *_grants({*OWN_KINDS} - held, _REMOVE)]
    if delivery.settings.flux is not None:
        rules += _grants({made for pair in held for made in _MADE.get(pair, ())} - held, _READ)
    own = {json.dumps(rule, sort_keys=True) for app in apps for place, rule in app.rules if place == namespace}
    bound = {(kind, name) for app in apps for place, kind, name in app.binds if place == namespace}
    for kind in ("Role", "ClusterRole"):
        names = sorted(name for of_kind, name in bound if of_kind == kind)
        if names:
            rules.append(
                {
                    "apiGroups": ["rbac.authorization.k8s.io"],
                    "resources": [resource_of(kind)],
                    "resourceNames": names,
                    "verbs": ["bind"],
                }
            )
    return [*rules, *(json.loads(rule) for rule in sorted(own))]


def _grants(kinds: Iterable[tuple[str, str]], verbs: list[str]) -> list[dict[str, Any]]:
    groups: dict[str, set[str]] = {}
    for group, kind in kinds:
        groups.setdefault(group, set()).add(resource_of(kind))
    return [
        {"apiGroups": [group], "resources": sorted(resources), "verbs": verbs}
        for group, resources in sorted(groups.items())
    ]
