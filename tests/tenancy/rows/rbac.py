"""Rights of Roles, and who gets them by bindings."""

from __future__ import annotations

from tests.tenancy.objects import object_of
from tests.tenancy.tenants import Body

GROUP = "rbac.authorization.k8s.io"


def role(resource: str, *verbs: str, group: str = "", names: tuple[str, ...] = (), kind: str = "Role") -> Body:
    """Return a Role with one rule."""
    rule: Body = {"apiGroups": [group], "resources": [resource], "verbs": [*verbs]}
    if names:
        rule["resourceNames"] = [*names]
    return object_of(f"{GROUP}/v1", kind, "team-a-x" if kind == "ClusterRole" else "x", rules=[rule])


def binding(
    subject: Body, role_kind: str = "Role", role_name: str = "x", *, kind: str = "RoleBinding", name: str = "x"
) -> Body:
    """Return a binding of a subject to a role."""
    reference = {"apiGroup": GROUP, "kind": role_kind, "name": role_name}
    return object_of(f"{GROUP}/v1", kind, name, roleRef=reference, subjects=[subject])


def account(name: str = "runner", namespace: str = "team-a") -> Body:
    """Return a ServiceAccount as a subject."""
    return {"kind": "ServiceAccount", "name": name, "namespace": namespace}


def person(kind: str, name: str) -> Body:
    """Return a User or a Group as a subject."""
    return {"apiGroup": GROUP, "kind": kind, "name": name}


DENIED: dict[str, tuple[Body, str]] = {
    "right: patch namespaces": (role("namespaces", "get", "patch"), "to get, patch `namespaces`"),
    "right: create pods": (role("pods", "create"), "to create `pods`"),
    "right: everything": (role("*", "*", group="*"), "to * `*.*`"),
    "right: every verb": (role("configmaps", "*"), "to * `configmaps`"),
    "right: every group": (role("jobs", "get", group="*"), "to get `jobs.*`"),
    "right: every resource": (role("*", "get"), "to get `*`"),
    "right: every subresource": (role("pods/*", "get"), "to get `pods/*`"),
    "right: scale everything": (role("*/scale", "update", group="*"), "to update `*/scale.*`"),
    "right: exec": (role("pods/exec", "create"), "to create `pods/exec`"),
    "right: proxy": (role("services/proxy", "get"), "to get `services/proxy`"),
    "right: token": (role("serviceaccounts/token", "create"), "to create `serviceaccounts/token`"),
    "right: status": (role("namespaces/status", "patch"), "to patch `namespaces/status`"),
    "right: bindings": (role("pods/binding", "create"), "to create `pods/binding`"),
    "right: impersonate": (role("serviceaccounts", "impersonate"), "to impersonate `serviceaccounts`"),
    "right: users": (role("users", "impersonate"), "to impersonate `users`"),
    "right: escalate": (role("roles", "escalate", group=GROUP), f"to escalate `roles.{GROUP}`"),
    "right: bind": (role("clusterroles", "bind", group=GROUP), f"to bind `clusterroles.{GROUP}`"),
    "right: delete roles": (role("roles", "delete", group=GROUP), f"to delete `roles.{GROUP}`"),
    "right: read bindings": (role("rolebindings", "get", group=GROUP), f"to get `rolebindings.{GROUP}`"),
    "right: delete quotas": (role("resourcequotas", "delete"), "to delete `resourcequotas`"),
    "right: delete limits": (role("limitranges", "delete"), "to delete `limitranges`"),
    "right: delete network policies": (
        role("networkpolicies", "delete", group="networking.k8s.io"),
        "to delete `networkpolicies.networking.k8s.io`",
    ),
    "right: webhooks": (
        role("validatingwebhookconfigurations", "delete", group="admissionregistration.k8s.io"),
        "to delete `validatingwebhookconfigurations.admissionregistration.k8s.io`",
    ),
    "right: certificates": (
        role("certificatesigningrequests", "create", group="certificates.k8s.io"),
        "to create `certificatesigningrequests.certificates.k8s.io`",
    ),
    "right: token reviews": (
        role("tokenreviews", "create", group="authentication.k8s.io"),
        "to create `tokenreviews.authentication.k8s.io`",
    ),
    "right: custom resources of others": (
        role("applications", "create", group="argoproj.io"),
        "to create `applications.argoproj.io`",
    ),
    "right: one name": (role("namespaces", "patch", names=("team-a",)), "to patch `namespaces`"),
    "right: second rule": (
        {
            **role("pods", "get"),
            "rules": [*role("pods", "get")["rules"], *role("pods/attach", "get", "create")["rules"]],
        },
        "to get, create `pods/attach`",
    ),
    "right of a ClusterRole": (role("nodes/proxy", "get", kind="ClusterRole"), "to get `nodes/proxy`"),
    "URLs": (
        {**role("pods", "get", kind="ClusterRole"), "rules": [{"nonResourceURLs": ["/metrics"], "verbs": ["get"]}]},
        "a right to URLs of the API server",
    ),
    "rules of other roles": (
        {
            **role("pods", "get", kind="ClusterRole"),
            "aggregationRule": {"clusterRoleSelectors": [{"matchLabels": {"a": "b"}}]},
        },
        "rules of other ClusterRoles",
    ),
    "rules for other roles": (
        {
            **role("pods", "get", kind="ClusterRole"),
            "metadata": {"name": "team-a-x", "labels": {f"{GROUP}/aggregate-to-edit": "true"}},
        },
        f"the label `{GROUP}/aggregate-to-edit`",
    ),
    "name of a ClusterRole": (
        {**role("pods", "get", kind="ClusterRole"), "metadata": {"name": "team-b-x"}},
        "the ClusterRole `team-b-x`",
    ),
    **{
        f"binding to {kind} {name} of {subject['kind']} {subject['name']}": (
            binding(subject, kind, name, kind=bound),
            what,
        )
        for bound, kind, name, subject, what in (
            ("RoleBinding", "ClusterRole", "cluster-admin", account(), "a role of kind `ClusterRole`"),
            ("RoleBinding", "ClusterRole", "view", account(), "a role of kind `ClusterRole`"),
            ("RoleBinding", "ClusterRole", "x", person("User", "ada"), "a role of kind `ClusterRole`"),
            ("RoleBinding", "Role", "x", person("User", "ada"), "the subject User `ada`"),
            (
                "RoleBinding",
                "Role",
                "x",
                person("User", "system:serviceaccount:team-a:x"),
                "the subject User `system:serviceaccount:team-a:x`",
            ),
            (
                "RoleBinding",
                "Role",
                "x",
                person("Group", "system:authenticated"),
                "the subject Group `system:authenticated`",
            ),
            (
                "RoleBinding",
                "Role",
                "x",
                person("Group", "system:serviceaccounts"),
                "the subject Group `system:serviceaccounts`",
            ),
            ("RoleBinding", "Role", "x", account("x", "team-b"), "the subject ServiceAccount `team-b/x`"),
            ("RoleBinding", "Role", "x", account("deployer"), "the subject ServiceAccount `team-a/deployer`"),
            ("RoleBinding", "Role", "deployer", account(), "a binding to kaigen's own Role `deployer`"),
            ("ClusterRoleBinding", "ClusterRole", "view", account(), "rights in every namespace"),
            (
                "ClusterRoleBinding",
                "ClusterRole",
                "view",
                person("Group", "system:authenticated"),
                "rights in every namespace",
            ),
        )
    },
}
"""Objects with what the finding names, by what is wrong with them."""

ALLOWED: dict[str, Body] = {
    "right: reads": role("pods", "get", "list", "watch"),
    "right: logs": role("pods/log", "get"),
    "right: measurements": role("configmaps", "create", "get", "patch"),
    "right: volumes": role("persistentvolumeclaims", "create", "get", "list", "patch", "delete"),
    "right: a Job by its name": role("jobs", "get", group="batch", names=("x",)),
    "right: leases": role("leases", "create", "update", group="coordination.k8s.io"),
    "right: granted": role("jobs", "create", group="batch"),
    "right: granted by a glob": role("statefulsets", "delete", group="apps"),
    "right: a custom resource": role("pytorchjobs", "create", "delete", group="kubeflow.org"),
    "right: a Secret of its own": role("secrets", "get", names=("own",)),
    "ClusterRole": role("pods", "get", kind="ClusterRole"),
    "empty Role": {**role("pods", "get"), "rules": []},
}
"""Objects that the tenant may have."""

BOUND: tuple[Body, ...] = (role("pods", "get"), binding(account()))
"""A Role, and its binding, which belong to one app."""
