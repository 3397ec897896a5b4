"""Objects that the tenant may have, and their parts, with changes."""

from __future__ import annotations

from tests.tenancy.tenants import Body

DNS = "external-dns.alpha.kubernetes.io/hostname"
"""The annotation with the hosts for which ExternalDNS makes records."""


def object_of(api: str, kind: str, name: str = "x", /, **fields: object) -> Body:
    """Return an object of a kind."""
    return {"apiVersion": api, "kind": kind, "metadata": {"name": name}, **fields}


def with_metadata(body: Body, **metadata: object) -> Body:
    """Return an object with changes of its metadata."""
    return {**body, "metadata": {**body["metadata"], **metadata}}


def container(**fields: object) -> Body:
    """Return a container that the tenant may have, with changes of its fields."""
    return {"name": "main", "image": "example.com/main:1", "securityContext": security_context(), **fields}


def security_context(**fields: object) -> Body:
    """Return its security context with changes; None removes a field."""
    context = {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}, **fields}
    return {key: value for key, value in context.items() if value is not None}


def pod(**spec: object) -> Body:
    """Return a Pod that the tenant may have, with changes of its `spec`."""
    context = {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}}
    return object_of("v1", "Pod", spec={"securityContext": context, "containers": [container()], **spec})


def deployment(**spec: object) -> Body:
    """Return a Deployment of such a pod."""
    template = {"metadata": {"labels": {"app": "x"}}, "spec": pod(**spec)["spec"]}
    return object_of("apps/v1", "Deployment", spec={"selector": {"matchLabels": {"app": "x"}}, "template": template})


def stateful_set(storage: str, **more: object) -> Body:
    """Return a StatefulSet with claims of a storage class."""
    body = deployment()
    template = {"metadata": {"name": "data"}, "spec": claim_of(storage, **more)["spec"]}
    return {**body, "kind": "StatefulSet", "spec": {**body["spec"], "volumeClaimTemplates": [template]}}


def leader_worker_set(storage: str) -> Body:
    """Return a LeaderWorkerSet with claims of a storage class."""
    template = {"metadata": {"name": "data"}, "spec": claim_of(storage)["spec"]}
    spec = {"workerTemplate": {"spec": pod()["spec"]}, "volumeClaimTemplates": [template]}
    return object_of("leaderworkerset.x-k8s.io/v1", "LeaderWorkerSet", spec={"leaderWorkerTemplate": spec})


def claim_of(storage: str | None, **more: object) -> Body:
    """Return a claim of a storage class; None for the default one."""
    spec: Body = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    if storage is not None:
        spec["storageClassName"] = storage
    return object_of("v1", "PersistentVolumeClaim", spec={**spec, **more})


def persistent_volume(spec: Body | None = None, name: str = "team-a-x", **csi: object) -> Body:
    """Return a PersistentVolume of a bucket, with changes of its `spec` and of its driver."""
    body = object_of(
        "v1",
        "PersistentVolume",
        spec={
            "capacity": {"storage": "1Gi"},
            "accessModes": ["ReadOnlyMany"],
            "claimRef": {"namespace": "team-a", "name": "c"},
            **({"csi": {"driver": "ru.yandex.s3.csi", "volumeHandle": "shared/a", **csi}}),
            **(spec or {}),
        },
    )
    return with_metadata(body, name=name)


def gateway(**listener: object) -> Body:
    """Return a Gateway with changes of its listener; None removes a field."""
    known = {"name": "web", "port": 80, "protocol": "HTTP", "hostname": "x.a.example.com", **listener}
    listed = {key: value for key, value in known.items() if value is not None}
    return object_of("gateway.networking.k8s.io/v1", "Gateway", spec={"gatewayClassName": "x", "listeners": [listed]})


def ingress(host: str | None = "x.a.example.com", **spec: object) -> Body:
    """Return an Ingress of a host; None for any."""
    backend = {"service": {"name": "x", "port": {"number": 80}}}
    rule: Body = {"http": {"paths": [{"path": "/", "pathType": "Prefix", "backend": backend}]}}
    if host is not None:
        rule["host"] = host
    return object_of("networking.k8s.io/v1", "Ingress", spec={"rules": [rule], **spec})


def service(**spec: object) -> Body:
    """Return a Service."""
    return object_of("v1", "Service", spec={"ports": [{"port": 80}], "selector": {"app": "x"}, **spec})


def pod_monitor(endpoint: Body | None = None, **namespaces: object) -> Body:
    """Return a PodMonitor with changes of its endpoint, and the namespaces that it selects."""
    endpoints = [{"port": "web", **(endpoint or {})}]
    spec = {"selector": {}, "podMetricsEndpoints": endpoints, "namespaceSelector": namespaces}
    return object_of("monitoring.coreos.com/v1", "PodMonitor", spec=spec)


def pod_with_volume(**source: object) -> Body:
    """Return a pod with a volume."""
    return pod(volumes=[{"name": "v", **source}])


def pod_with_claim(storage: str, **more: object) -> Body:
    """Return a pod with an ephemeral volume of a storage class."""
    return pod_with_volume(ephemeral={"volumeClaimTemplate": {"spec": claim_of(storage, **more)["spec"]}})


def restored_from(namespace: str) -> Body:
    """Return the source of a claim's data in a namespace."""
    # The webhook of JobSet writes a missing group as null, which the API server refuses.
    source = {"apiGroup": "", "kind": "PersistentVolumeClaim", "name": "x", "namespace": namespace}
    return {"dataSourceRef": source}


def with_annotation(body: Body, key: str, value: str = "x") -> Body:
    """Return an object with an annotation."""
    return with_metadata(body, annotations={key: value})


def job_set(claim: Body | None = None, **metadata: object) -> Body:
    """Return a JobSet with a claim for its Jobs, or the claim's metadata."""
    # The webhook of JobSet refuses a claim that no container mounts.
    mounted = [container(volumeMounts=[{"name": "data", "mountPath": "/data"}])]
    job = {"spec": {"template": {"spec": {**pod(containers=mounted)["spec"], "restartPolicy": "Never"}}}}
    template = {"metadata": {"name": "data", **metadata}, "spec": (claim or claim_of("standard"))["spec"]}
    spec = {"replicatedJobs": [{"name": "main", "template": job}], "volumeClaimPolicies": [{"templates": [template]}]}
    return object_of("jobset.x-k8s.io/v1alpha2", "JobSet", spec=spec)


def device_template(metadata: Body | None = None, **request: object) -> Body:
    """Return a template of claims of devices, with changes of the request."""
    known = {"deviceClassName": "gpu.example.com", **request}
    claim: Body = {"spec": {"devices": {"requests": [{"name": "gpu", "exactly": known}]}}}
    if metadata:
        claim["metadata"] = metadata
    return object_of("resource.k8s.io/v1", "ResourceClaimTemplate", spec=claim)
