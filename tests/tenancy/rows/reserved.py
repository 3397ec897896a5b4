"""Accounts, Secrets and names that kaigen.yaml takes for itself."""

from __future__ import annotations

from tests.tenancy.objects import object_of, pod
from tests.tenancy.rows.network_policies import policy
from tests.tenancy.rows.rbac import account, binding, role
from tests.tenancy.tenants import Body


def _with_env(**source: object) -> Body:
    body = pod()
    (container,) = body["spec"]["containers"]
    return pod(containers=[{**container, **source}])


def _template(kind: str, api: str, **spec: object) -> Body:
    """Return a workload whose pods have changes of their `spec`."""
    template = {"metadata": {"labels": {"app": "x"}}, "spec": {**pod(**spec)["spec"]}}
    return object_of(api, kind, spec={"selector": {"matchLabels": {"app": "x"}}, "template": template})


def _job(**spec: object) -> Body:
    return object_of("batch/v1", "Job", spec={"template": {"spec": {**pod(**spec)["spec"], "restartPolicy": "Never"}}})


def _cron_job(**spec: object) -> Body:
    return object_of("batch/v1", "CronJob", spec={"schedule": "@daily", "jobTemplate": {"spec": _job(**spec)["spec"]}})


def _stateful(**spec: object) -> Body:
    body = _template("StatefulSet", "apps/v1", **spec)
    return {**body, "spec": {**body["spec"], "serviceName": "x"}}


def _group(**spec: object) -> Body:
    return object_of(
        "leaderworkerset.x-k8s.io/v1",
        "LeaderWorkerSet",
        spec={"leaderWorkerTemplate": {"workerTemplate": {"spec": pod(**spec)["spec"]}}},
    )


def _job_set(**spec: object) -> Body:
    job = {"spec": {"template": {"spec": {**pod(**spec)["spec"], "restartPolicy": "Never"}}}}
    return object_of("jobset.x-k8s.io/v1alpha2", "JobSet", spec={"replicatedJobs": [{"name": "a", "template": job}]})


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

_INLINE: Body = {
    "driver": "gcsfuse.csi.storage.gke.io",
    "volumeAttributes": {"bucketName": "shared", "mountOptions": "only-dir=a"},
}

_PATH: Body = {"path": "/", "pathType": "Prefix", "backend": {"service": {"name": "x", "port": {"number": 80}}}}


def _external(**spec: object) -> Body:
    known = {"secretStoreRef": {"name": "vault", "kind": "SecretStore"}, "data": []}
    return object_of("external-secrets.io/v1", "ExternalSecret", spec={**known, **spec})


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
        "login of an account": object_of("v1", "ServiceAccount", imagePullSecrets=[{"name": name}]),
        "Secret of an account": object_of("v1", "ServiceAccount", secrets=[{"name": name}]),
        "certificate of an Ingress": object_of(
            "networking.k8s.io/v1", "Ingress", spec={"rules": [rule], "tls": [{"secretName": name}]}
        ),
        "certificate of a Gateway": object_of(
            "gateway.networking.k8s.io/v1",
            "Gateway",
            spec={"gatewayClassName": "x", "listeners": [{**listener, "tls": {"certificateRefs": [{"name": name}]}}]},
        ),
        "target of an ExternalSecret": _external(target={"name": name}),
        "name of an ExternalSecret": {**_external(), "metadata": {"name": name}},
        "template of an ExternalSecret": _external(
            target={"template": {"templateFrom": [{"secret": {"name": name, "items": [{"key": "k"}]}}]}}
        ),
        "SealedSecret": object_of("bitnami.com/v1alpha1", "SealedSecret", name, spec={"encryptedData": {}}),
        "Secret": object_of("v1", "Secret", name),
        "monitor": object_of(
            "monitoring.coreos.com/v1",
            "PodMonitor",
            spec={"selector": {}, "podMetricsEndpoints": [{"port": "web", "basicAuth": {"password": reference}}]},
        ),
        "token of a monitor": object_of(
            "monitoring.coreos.com/v1",
            "PodMonitor",
            spec={"selector": {}, "podMetricsEndpoints": [{"port": "web", "bearerTokenSecret": reference}]},
        ),
        "scaler": object_of(
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


_TOKEN = "kubernetes.io/service-account.name"


def _token(account_name: str) -> Body:
    body = object_of("v1", "Secret", type="kubernetes.io/service-account-token")
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
        object_of(
            "keda.sh/v1alpha1",
            "TriggerAuthentication",
            spec={"boundServiceAccountToken": [{"parameter": "p", "serviceAccountName": "deployer"}]},
        ),
        "a token of the ServiceAccount `deployer`",
    ),
    "account of a source": (
        object_of(
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
            object_of("v1", "ServiceAccount", "deployer"),
            {**role("pods", "get"), "metadata": {"name": "deployer"}},
            binding(account(), name="deployer"),
            object_of("v1", "ResourceQuota", "kaigen", spec={"hard": {}}),
            policy("default-deny"),
            policy("allow-dns"),
            policy("allow-network"),
            object_of("v1", "Namespace", "team-a"),
            object_of(
                "source.toolkit.fluxcd.io/v1",
                "GitRepository",
                "kaigen",
                spec={"interval": "1m", "url": "https://x.example.com"},
            ),
            object_of(
                "kustomize.toolkit.fluxcd.io/v1",
                "Kustomization",
                "team-a.qwen",
                spec={"interval": "1m", "prune": True, "sourceRef": {"kind": "GitRepository", "name": "x"}},
            ),
        )
    },
}
"""Objects with what the finding names, by what is wrong with them."""

ALLOWED: dict[str, Body] = {
    "account": pod(serviceAccountName="runner"),
    "token of its own": _token("runner"),
    **{f"Secret in a pod: {case}": body for case, body in secret_volumes("own").items()},
    **{f"Secret: {case}": body for case, body in secret_places("own").items() if case != "right to all Secrets"},
}
"""Objects that the tenant may have."""
