"""Objects that the specs of a tenant may and may not have: rights, reserved names, and what NetworkPolicies open."""

from __future__ import annotations

from typing import Any

from tests.tenants import Body, pod

GITOPS: Body = {
    "repository": "https://git.example.com/ml/deploy.git",
    "flux": {"secret": "git-password", "decryption": {"secret": "sops-age"}},
    "tenancy": {
        "namespaces": True,
        "serviceAccount": "deployer",
        "quota": {"requests.nvidia.com/gpu": 8},
        "defaultDeny": ["Ingress", "Egress"],
        "adminServiceAccount": "ops:admin",
    },
}
"""How the repository of the tenants is synced."""

GRANTS: Body = {
    "roles": ["jobs.batch=create", "secrets", "pytorchjobs.kubeflow.org", "*=delete"],
    "networks": ["monitoring", "10.20.0.0/16"],
}
"""What the tenant is granted of rights and connections."""

GROUP = "rbac.authorization.k8s.io"
_NAMESPACE = "kubernetes.io/metadata.name"


def _object(api: str, kind: str, name: str = "x", /, **fields: object) -> Body:
    return {"apiVersion": api, "kind": kind, "metadata": {"name": name}, **fields}


def role(resource: str, *verbs: str, group: str = "", names: tuple[str, ...] = (), kind: str = "Role") -> Body:
    """Return a Role with one rule."""
    rule: Body = {"apiGroups": [group], "resources": [resource], "verbs": [*verbs]}
    if names:
        rule["resourceNames"] = [*names]
    return _object(f"{GROUP}/v1", kind, "team-a-x" if kind == "ClusterRole" else "x", rules=[rule])


def binding(
    subject: Body, role_kind: str = "Role", role_name: str = "x", *, kind: str = "RoleBinding", name: str = "x"
) -> Body:
    """Return a binding of a subject to a role."""
    reference = {"apiGroup": GROUP, "kind": role_kind, "name": role_name}
    return _object(f"{GROUP}/v1", kind, name, roleRef=reference, subjects=[subject])


def account(name: str = "runner", namespace: str = "team-a") -> Body:
    """Return a ServiceAccount as a subject."""
    return {"kind": "ServiceAccount", "name": name, "namespace": namespace}


def person(kind: str, name: str) -> Body:
    """Return a User or a Group as a subject."""
    return {"apiGroup": GROUP, "kind": kind, "name": name}


def policy(name: str = "x", selected: Body | None = None, **directions: list[Any]) -> Body:
    """Return a NetworkPolicy with rules."""
    selector = {"matchLabels": {"app": "x"}} if selected is None else selected
    types = [direction.capitalize() for direction in directions]
    spec = {"podSelector": selector, "policyTypes": types, **directions}
    return _object("networking.k8s.io/v1", "NetworkPolicy", name, spec=spec)


def namespace_of(name: str, **more: object) -> Body:
    """Return the peer of all pods of a namespace."""
    return {"namespaceSelector": {"matchLabels": {_NAMESPACE: name}}, **more}


def port(number: int, **more: object) -> list[Body]:
    """Return one port of a rule."""
    return [{"port": number, "protocol": "TCP", **more}]


def address(cidr: str) -> Body:
    """Return the peer of a range of addresses."""
    return {"ipBlock": {"cidr": cidr}}


METADATA = (
    "100.100.100.200/32",
    "168.63.129.16/32",
    "169.254.170.2/32",
    "192.0.0.192/32",
    "fd00:ec2::254/128",
    "fd20:ce::254/128",
    "fd00:100::100:200/128",
    "fd00:c1::a9fe:a9fe/128",
    "fd00:42::42/128",
    "fd00:a9fe:a9fe::1/128",
    "64:ff9b::a9fe:a9fe/128",
    "2002:a9fe:a9fe::/128",
    "fe80::a9fe:a9fe/128",
)
"""Addresses of services of clouds with credentials of nodes."""


def _selected_by(operator: str, *values: str) -> Body:
    expression = {"key": _NAMESPACE, "operator": operator, "values": [*values]}
    return {"namespaceSelector": {"matchExpressions": [expression]}}


def _dns() -> Body:
    return namespace_of("kube-system", podSelector={"matchLabels": {"k8s-app": "kube-dns"}})


def _with_env(**source: object) -> Body:
    body = pod()
    (container,) = body["spec"]["containers"]
    return pod(containers=[{**container, **source}])


def _template(kind: str, api: str, **spec: object) -> Body:
    """Return a workload whose pods have changes of their `spec`."""
    template = {"metadata": {"labels": {"app": "x"}}, "spec": {**pod(**spec)["spec"]}}
    return _object(api, kind, spec={"selector": {"matchLabels": {"app": "x"}}, "template": template})


def _job(**spec: object) -> Body:
    return _object("batch/v1", "Job", spec={"template": {"spec": {**pod(**spec)["spec"], "restartPolicy": "Never"}}})


def _cron_job(**spec: object) -> Body:
    return _object("batch/v1", "CronJob", spec={"schedule": "@daily", "jobTemplate": {"spec": _job(**spec)["spec"]}})


def _stateful(**spec: object) -> Body:
    body = _template("StatefulSet", "apps/v1", **spec)
    return {**body, "spec": {**body["spec"], "serviceName": "x"}}


def _group(**spec: object) -> Body:
    return _object(
        "leaderworkerset.x-k8s.io/v1",
        "LeaderWorkerSet",
        spec={"leaderWorkerTemplate": {"workerTemplate": {"spec": pod(**spec)["spec"]}}},
    )


def _job_set(**spec: object) -> Body:
    job = {"spec": {"template": {"spec": {**pod(**spec)["spec"], "restartPolicy": "Never"}}}}
    return _object("jobset.x-k8s.io/v1alpha2", "JobSet", spec={"replicatedJobs": [{"name": "a", "template": job}]})


WORKLOADS = {
    "Pod": pod,
    "Deployment": lambda **spec: _template("Deployment", "apps/v1", **spec),
    "DaemonSet": lambda **spec: _template("DaemonSet", "apps/v1", **spec),
    "StatefulSet": _stateful,
    "Job": _job,
    "CronJob": _cron_job,
    "LeaderWorkerSet": _group,
    "JobSet": _job_set,
}
"""Workloads by kind, with changes of the `spec` of their pods."""


def secret_volumes(name: str) -> dict[str, Body]:
    """Return pods that read a Secret, by how they do."""
    reference = {"name": name, "key": "k"}
    pods = {
        "variable": _with_env(env=[{"name": "A", "valueFrom": {"secretKeyRef": reference}}]),
        "variables": _with_env(envFrom=[{"secretRef": {"name": name}}]),
        "volume": pod(volumes=[{"name": "v", "secret": {"secretName": name}}]),
        "projected volume": pod(volumes=[{"name": "v", "projected": {"sources": [{"secret": {"name": name}}]}}]),
        "pull": pod(imagePullSecrets=[{"name": name}]),
        "optional variables": _with_env(envFrom=[{"secretRef": {"name": name, "optional": True}}]),
        "CSI volume": pod(volumes=[{"name": "v", "csi": {**_INLINE, "nodePublishSecretRef": {"name": name}}}]),
    }
    first = pods["variables"]["spec"]["containers"]
    pods["init container"] = pod(initContainers=[{**first[0], "name": "i"}])
    return pods


def secret_places(name: str) -> dict[str, Body]:
    """Return objects that name a Secret outside of pods, by how they do."""
    rule = {"http": {"paths": [_PATH]}, "host": "x.a.example.com"}
    listener = {"name": "web", "port": 443, "protocol": "HTTPS", "hostname": "x.a.example.com"}
    reference = {"name": name, "key": "k"}
    return {
        "login of an account": _object("v1", "ServiceAccount", imagePullSecrets=[{"name": name}]),
        "Secret of an account": _object("v1", "ServiceAccount", secrets=[{"name": name}]),
        "certificate of an Ingress": _object(
            "networking.k8s.io/v1", "Ingress", spec={"rules": [rule], "tls": [{"secretName": name}]}
        ),
        "certificate of a Gateway": _object(
            "gateway.networking.k8s.io/v1",
            "Gateway",
            spec={"gatewayClassName": "x", "listeners": [{**listener, "tls": {"certificateRefs": [{"name": name}]}}]},
        ),
        "target of an ExternalSecret": _external(target={"name": name}),
        "name of an ExternalSecret": {**_external(), "metadata": {"name": name}},
        "template of an ExternalSecret": _external(
            target={"template": {"templateFrom": [{"secret": {"name": name, "items": [{"key": "k"}]}}]}}
        ),
        "SealedSecret": _object("bitnami.com/v1alpha1", "SealedSecret", name, spec={"encryptedData": {}}),
        "Secret": _object("v1", "Secret", name),
        "monitor": _object(
            "monitoring.coreos.com/v1",
            "PodMonitor",
            spec={"selector": {}, "podMetricsEndpoints": [{"port": "web", "basicAuth": {"password": reference}}]},
        ),
        "token of a monitor": _object(
            "monitoring.coreos.com/v1",
            "PodMonitor",
            spec={"selector": {}, "podMetricsEndpoints": [{"port": "web", "bearerTokenSecret": reference}]},
        ),
        "scaler": _object(
            "keda.sh/v1alpha1", "TriggerAuthentication", spec={"secretTargetRef": [{"parameter": "p", **reference}]}
        ),
        "Secret of a volume": {
            "apiVersion": "v1",
            "kind": "PersistentVolume",
            "metadata": {"name": "team-a-x"},
            "spec": {
                "capacity": {"storage": "1Gi"},
                "accessModes": ["ReadOnlyMany"],
                "claimRef": {"namespace": "team-a", "name": "c"},
                "csi": {
                    "driver": "ru.yandex.s3.csi",
                    "volumeHandle": "shared/a",
                    "nodePublishSecretRef": {"name": name, "namespace": "team-a"},
                },
            },
        },
        "right to it": role("secrets", "get", names=(name,)),
        "right to all Secrets": role("secrets", "get"),
        "right to several Secrets": role("secrets", "list", "watch", names=("own", name)),
    }


_INLINE: Body = {
    "driver": "gcsfuse.csi.storage.gke.io",
    "volumeAttributes": {"bucketName": "shared", "mountOptions": "only-dir=a"},
}
_PATH: Body = {"path": "/", "pathType": "Prefix", "backend": {"service": {"name": "x", "port": {"number": 80}}}}


def _external(**spec: object) -> Body:
    known = {"secretStoreRef": {"name": "vault", "kind": "SecretStore"}, "data": []}
    return _object("external-secrets.io/v1", "ExternalSecret", spec={**known, **spec})


_TOKEN = "kubernetes.io/service-account.name"


def _token(account_name: str) -> Body:
    body = _object("v1", "Secret", type="kubernetes.io/service-account-token")
    return {**body, "metadata": {"name": "x", "annotations": {_TOKEN: account_name}}}


RESERVED_SECRETS: dict[str, Body] = {
    **{f"Secret in a pod: {case}": body for case, body in secret_volumes("git-password").items()},
    **{f"Secret of Flux: {case}": body for case, body in secret_places("sops-age").items()},
    **{
        f"Secret in a {kind}": make(volumes=[{"name": "v", "secret": {"secretName": "sops-age"}}])
        for kind, make in WORKLOADS.items()
    },
}
"""Objects that name a Secret which Flux reads."""

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
    **{
        f"account of a {kind}": (make(serviceAccountName="deployer"), "the ServiceAccount `deployer`")
        for kind, make in WORKLOADS.items()
    },
    "account by the older field": (pod(serviceAccount="deployer"), "the ServiceAccount `deployer`"),
    "token of an account": (_token("deployer"), "a token of the ServiceAccount `deployer`"),
    "token of an ExternalSecret": (
        _external(target={"template": {"metadata": {"annotations": {_TOKEN: "deployer"}}}}),
        "a token of the ServiceAccount `deployer`",
    ),
    "token of a scaler": (
        _object(
            "keda.sh/v1alpha1",
            "TriggerAuthentication",
            spec={"boundServiceAccountToken": [{"parameter": "p", "serviceAccountName": "deployer"}]},
        ),
        "a token of the ServiceAccount `deployer`",
    ),
    "account of a source": (
        _object(
            "source.toolkit.fluxcd.io/v1",
            "OCIRepository",
            spec={"interval": "1m", "url": "oci://example.com/x", "serviceAccountName": "deployer"},
        ),
        "the ServiceAccount `deployer`",
    ),
    **{
        f"reserved {body['kind']} {body['metadata']['name']}": (
            body,
            f"kaigen's own {body['kind']} `{body['metadata']['name']}`",
        )
        for body in (
            _object("v1", "ServiceAccount", "deployer"),
            {**role("pods", "get"), "metadata": {"name": "deployer"}},
            binding(account(), name="deployer"),
            _object("v1", "ResourceQuota", "kaigen", spec={"hard": {}}),
            policy("default-deny"),
            policy("allow-dns"),
            policy("allow-network"),
            _object("v1", "Namespace", "team-a"),
            _object(
                "source.toolkit.fluxcd.io/v1",
                "GitRepository",
                "kaigen",
                spec={"interval": "1m", "url": "https://x.example.com"},
            ),
            _object(
                "kustomize.toolkit.fluxcd.io/v1",
                "Kustomization",
                "team-a.qwen",
                spec={"interval": "1m", "prune": True, "sourceRef": {"kind": "GitRepository", "name": "x"}},
            ),
        )
    },
    **{
        f"network: {case}": (policy(**directions), what)
        for case, directions, what in (
            ("everything in", {"ingress": [{}]}, "from everywhere"),
            ("everything out", {"egress": [{}]}, "to everywhere"),
            ("a port anywhere", {"egress": [{"ports": port(443)}]}, "to everywhere"),
            ("all ports of a protocol in", {"ingress": [{"ports": [{"protocol": "TCP"}]}]}, "from everywhere"),
            ("a range of ports in", {"ingress": [{"ports": port(1, endPort=65535)}]}, "from everywhere"),
            ("another namespace in", {"ingress": [{"from": [namespace_of("team-b")]}]}, "namespace `team-b`"),
            ("another namespace out", {"egress": [{"to": [namespace_of("team-b")]}]}, "namespace `team-b`"),
            ("all namespaces", {"egress": [{"to": [{"namespaceSelector": {}}]}]}, "other namespaces"),
            (
                "namespaces by a label",
                {"egress": [{"to": [{"namespaceSelector": {"matchLabels": {"team": "a"}}}]}]},
                "other namespaces",
            ),
            ("all but a namespace", {"egress": [{"to": [_selected_by("NotIn", "team-b")]}]}, "other namespaces"),
            ("two namespaces", {"egress": [{"to": [_selected_by("In", "team-a", "team-b")]}]}, "other namespaces"),
            ("all addresses", {"egress": [{"to": [address("0.0.0.0/0")]}]}, "`0.0.0.0/0`"),
            ("all addresses of IPv6", {"egress": [{"to": [address("::/0")]}]}, "`::/0`"),
            (
                "metadata",
                {"egress": [{"to": [address("169.254.169.254/32")], "ports": port(80)}]},
                "`169.254.169.254/32`",
            ),
            ("a wider range", {"egress": [{"to": [address("10.0.0.0/8")]}]}, "`10.0.0.0/8`"),
            (
                "another peer of a rule",
                {"egress": [{"to": [namespace_of("team-a"), address("192.0.2.1/32")]}]},
                "`192.0.2.1/32`",
            ),
            ("DNS on every port", {"egress": [{"to": [_dns()]}]}, "namespace `kube-system`"),
            ("another port of DNS", {"egress": [{"to": [_dns()], "ports": port(443)}]}, "namespace `kube-system`"),
        )
    },
    "network: a port of all pods": (policy(selected={}, ingress=[{"ports": port(80)}]), "from everywhere"),
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
    "account": pod(serviceAccountName="runner"),
    "token of its own": _token("runner"),
    **{f"Secret in a pod: {case}": body for case, body in secret_volumes("own").items()},
    **{f"Secret: {case}": body for case, body in secret_places("own").items() if case != "right to all Secrets"},
    **{
        f"network: {case}": policy(**directions)
        for case, directions in (
            ("nothing", {"ingress": [], "egress": []}),
            ("a port", {"ingress": [{"ports": port(8000)}]}),
            ("a port for a namespace", {"ingress": [{"ports": port(80), "from": [namespace_of("team-b")]}]}),
            ("its own pods", {"egress": [{"to": [{"podSelector": {}}]}]}),
            ("its own namespace", {"egress": [{"to": [namespace_of("team-a")]}]}),
            ("its own namespaces", {"ingress": [{"from": [_selected_by("In", "team-a")]}]}),
            ("DNS", {"egress": [{"to": [_dns()], "ports": port(53)}]}),
            ("a namespace", {"egress": [{"to": [namespace_of("monitoring")]}]}),
            ("a range", {"egress": [{"to": [address("10.20.1.0/24")]}]}),
            ("an address", {"egress": [{"to": [address("10.20.1.1/32")], "ports": port(5432)}]}),
        )
    },
}
"""Objects that the tenant may have."""

BOUND: tuple[Body, ...] = (role("pods", "get"), binding(account()))
"""A Role, and its binding, which belong to one app."""
