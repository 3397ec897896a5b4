"""Two tenants, and objects that the specs of one may and may not have."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kaigen.kubernetes.rights import USUAL_KINDS
from tests.places import PATHS, URIS

Body = dict[str, Any]

TENANT: Body = {
    "folders": ["specs/a"],
    "namespaces": ["team-a"],
    "images": ["example.com/*"],
    "hosts": ["*.a.example.com"],
    "buckets": ["s3://shared/a", "https://ours.s3.amazonaws.com/a", "az://ours/shared/a"],
    "drivers": ["s3.csi.aws.com", "ru.yandex.s3.csi", "gcsfuse.csi.storage.gke.io", "blob.csi.azure.com"],
    "storageClasses": ["standard"],
    "priorityClasses": ["a-*"],
    "references": ["gateways/public"],
    "kinds": [
        *USUAL_KINDS,
        "LocalQueue.kueue.x-k8s.io",
        "RayCluster.ray.io",
        "RayJob.ray.io",
        "RayService.ray.io",
        "ResourceClaim.resource.k8s.io",
        "Runner.example.com",
        "SealedSecret.bitnami.com",
        "OCIRepository.source.toolkit.fluxcd.io",
        "ClusterRole.rbac.authorization.k8s.io",
        "ControllerRevision.apps",
        "ClusterRoleBinding.rbac.authorization.k8s.io",
        "EndpointSlice.discovery.k8s.io",
        "Endpoints",
        "ScaledJob.keda.sh",
        "ServiceMonitor.monitoring.coreos.com",
        "TriggerAuthentication.keda.sh",
    ],
    "triggers": ["aws-*", "postgresql"],
    "addresses": ["192.0.2.*"],
    "services": ["ExternalName", "LoadBalancer"],
    "servers": ["prometheus.monitoring", "*.metrics.example.com"],
    "volumes": ["shared-*"],
    "classes": [
        "ClusterGenerator/a-*",
        "ClusterQueue/a",
        "DeviceClass/gpu.example.com",
        "GatewayClass/x",
        "IngressClass/a*",
        "IngressClass/gce",
        "IngressClass/nginx",
        "LoadBalancerClass/example.com/a",
        "RuntimeClass/sandbox",
        "Scheduler/a-*",
        "ScrapeClass/a",
        "VolumeAttributesClass/a",
    ],
    "domains": ["example.com", "a-team.example.org"],
    "annotations": [
        "alb.ingress.kubernetes.io/scheme",
        "haproxy.org/*",
        "eks.amazonaws.com/role-arn=arn:aws:iam::111122223333:role/a-*",
    ],
}
OTHER: Body = {
    "folders": ["specs/b"],
    "namespaces": ["team-b", "team-a-dev"],
    "images": ["*"],
    "nodes": ["kubernetes.io/hostname", "node-role.kubernetes.io/*"],
    "podSecurity": "baseline",
}


def _object(api: str, kind: str, /, **fields: object) -> Body:
    return {"apiVersion": api, "kind": kind, "metadata": {"name": "x"}, **fields}


def _at(body: Body, **metadata: object) -> Body:
    return {**body, "metadata": {**body["metadata"], **metadata}}


def _container(**fields: object) -> Body:
    return {"name": "main", "image": "example.com/main:1", "securityContext": _context(), **fields}


def _context(**fields: object) -> Body:
    context = {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}, **fields}
    return {key: value for key, value in context.items() if value is not None}


def pod(**spec: object) -> Body:
    """Return a Pod that the tenant may have, with changes of its `spec`."""
    context = {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}}
    return _object("v1", "Pod", spec={"securityContext": context, "containers": [_container()], **spec})


def _secure(**fields: object) -> Body:
    """Return the same with changes of its container's security context; None removes a field."""
    return pod(containers=[_container(securityContext=_context(**fields))])


def _pod_context(**fields: object) -> Body:
    """Return the same with changes of its own security context; None removes a field."""
    context = {**pod()["spec"]["securityContext"], **fields}
    return pod(securityContext={key: value for key, value in context.items() if value is not None})


RUNNER: Body = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "runners.example.com"},
    "spec": {
        "group": "example.com",
        "scope": "Namespaced",
        "names": {"kind": "Runner", "plural": "runners", "singular": "runner", "listKind": "RunnerList"},
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "schema": {
                    "openAPIV3Schema": {
                        "type": "object",
                        "properties": {"spec": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}},
                    }
                },
            }
        ],
    },
}
"""A kind with any fields, of which kaigen has no schema."""


def runner(**spec: object) -> Body:
    """Return an object of this kind."""
    return _object("example.com/v1", "Runner", spec=spec)


def ray_cluster(head: Body | None = None, **cluster: object) -> Body:
    """Return a RayCluster that the tenant may have, with changes of its head and its `spec`."""
    return _object("ray.io/v1", "RayCluster", spec=_ray(head, **cluster))


def _ray(head: Body | None = None, **cluster: object) -> Body:
    template = {"spec": pod()["spec"]}
    return {"headGroupSpec": {"rayStartParams": {}, "template": template, **(head or {})}, **cluster}


def _ray_service(head: Body | None = None, **spec: object) -> Body:
    return _object("ray.io/v1", "RayService", spec={"rayClusterConfig": _ray(head), **spec})


def _affinity(**requirement: object) -> Body:
    term = {"nodeSelectorTerms": [{"matchExpressions": [requirement]}]}
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": term}}


def _preferred(**requirement: object) -> Body:
    term = {"weight": 1, "preference": {"matchFields": [requirement]}}
    return {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [term]}}


def _deployment(**spec: object) -> Body:
    template = {"metadata": {"labels": {"app": "x"}}, "spec": pod(**spec)["spec"]}
    return _object("apps/v1", "Deployment", spec={"selector": {"matchLabels": {"app": "x"}}, "template": template})


def _stateful(storage: str, **more: object) -> Body:
    body = _deployment()
    template = {"metadata": {"name": "data"}, "spec": _claim(storage, **more)["spec"]}
    return {**body, "kind": "StatefulSet", "spec": {**body["spec"], "volumeClaimTemplates": [template]}}


def _group(storage: str) -> Body:
    template = {"metadata": {"name": "data"}, "spec": _claim(storage)["spec"]}
    spec = {"workerTemplate": {"spec": pod()["spec"]}, "volumeClaimTemplates": [template]}
    return _object("leaderworkerset.x-k8s.io/v1", "LeaderWorkerSet", spec={"leaderWorkerTemplate": spec})


def _claim(storage: str | None, **more: object) -> Body:
    spec: Body = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    if storage is not None:
        spec["storageClassName"] = storage
    return _object("v1", "PersistentVolumeClaim", spec={**spec, **more})


def _volume(spec: Body | None = None, name: str = "team-a-x", **csi: object) -> Body:
    body = _object(
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
    return _at(body, name=name)


def _route(**spec: object) -> Body:
    return _object("gateway.networking.k8s.io/v1", "HTTPRoute", spec={"hostnames": ["x.a.example.com"], **spec})


def _gateway(**listener: object) -> Body:
    known = {"name": "web", "port": 80, "protocol": "HTTP", "hostname": "x.a.example.com", **listener}
    listed = {key: value for key, value in known.items() if value is not None}
    return _object("gateway.networking.k8s.io/v1", "Gateway", spec={"gatewayClassName": "x", "listeners": [listed]})


def ingress(host: str | None = "x.a.example.com", **spec: object) -> Body:
    """Return an Ingress of a host; None for any."""
    backend = {"service": {"name": "x", "port": {"number": 80}}}
    rule: Body = {"http": {"paths": [{"path": "/", "pathType": "Prefix", "backend": backend}]}}
    if host is not None:
        rule["host"] = host
    return _object("networking.k8s.io/v1", "Ingress", spec={"rules": [rule], **spec})


def _service(**spec: object) -> Body:
    return _object("v1", "Service", spec={"ports": [{"port": 80}], "selector": {"app": "x"}, **spec})


def _monitor(endpoint: Body | None = None, **namespaces: object) -> Body:
    endpoints = [{"port": "web", **(endpoint or {})}]
    spec = {"selector": {}, "podMetricsEndpoints": endpoints, "namespaceSelector": namespaces}
    return _object("monitoring.coreos.com/v1", "PodMonitor", spec=spec)


def _relabelled(**rule: object) -> Body:
    return _monitor({"relabelings": [{"sourceLabels": ["pod"], **rule}]})


def _authentication(**spec: object) -> Body:
    return _object("keda.sh/v1alpha1", "TriggerAuthentication", spec=spec)


def _scaler(kind: str = "TriggerAuthentication", **metadata: str) -> Body:
    known = {"query": "x", "threshold": "1", "serverAddress": "http://p.team-a.svc:9090"}
    trigger = {
        "type": "prometheus",
        "metadata": {**known, **metadata},
        "authenticationRef": {"name": "x", "kind": kind},
    }
    spec = {"scaleTargetRef": {"name": "x"}, "triggers": [trigger]}
    return _object("keda.sh/v1alpha1", "ScaledObject", spec=spec)


def _role(kind: str) -> Body:
    return _object("rbac.authorization.k8s.io/v1", kind, rules=[])


def _with_volume(**source: object) -> Body:
    return pod(volumes=[{"name": "v", **source}])


def _ephemeral(storage: str, **more: object) -> Body:
    return _with_volume(ephemeral={"volumeClaimTemplate": {"spec": _claim(storage, **more)["spec"]}})


def _secret_of(namespace: str) -> Body:
    certificate = {"certificateRefs": [{"name": "c", "namespace": namespace}]}
    return _gateway(port=443, protocol="HTTPS", tls=certificate)


def restored_claim(namespace: str) -> Body:
    """Return a claim with the data of a claim in a namespace."""
    return _claim("standard", **_restored(namespace))


def _restored(namespace: str) -> Body:
    """Return the source of a claim's data in a namespace."""
    # The webhook of JobSet writes a missing group as null, which the API server refuses.
    source = {"apiGroup": "", "kind": "PersistentVolumeClaim", "name": "x", "namespace": namespace}
    return {"dataSourceRef": source}


def _build(where: str) -> Body:
    """Return a Pod that builds an image with a cache in a repository."""
    options = [f"--{way}-cache=type=registry,ref={where}:buildcache" for way in ("import", "export")]
    output = "--output=type=image,name=example.com/a:1,push=true"
    return pod(containers=[_container(args=["build", output, *options])])


_MOUNTPOINT: Body = {"driver": "s3.csi.aws.com", "volumeAttributes": {"bucketName": "shared"}}


def _inline(options: str, **attributes: str) -> Body:
    known = {"bucketName": "shared", "mountOptions": options}
    return {"driver": "gcsfuse.csi.storage.gke.io", "volumeAttributes": {**known, **attributes}}


def _annotated(body: Body, key: str, value: str = "x") -> Body:
    return _at(body, annotations={key: value})


def _labelled(body: Body, key: str) -> Body:
    return _at(body, labels={key: "x"})


def _account(role: str) -> Body:
    return _annotated(_object("v1", "ServiceAccount"), "eks.amazonaws.com/role-arn", f"{_ROLES}{role}")


def _template(body: Body, key: str, value: str = "x", label: str = "a.example.com/b") -> Body:
    """Return a workload whose pods have an annotation, and a label with the value `c`."""
    known = body["spec"]["template"]
    labels = {**known.get("metadata", {}).get("labels", {}), label: "c"}
    template = {**known, "metadata": {"labels": labels, "annotations": {key: value}}}
    return {**body, "spec": {**body["spec"], "template": template}}


def _ephemeral_claim(key: str) -> Body:
    claim = {"metadata": {"annotations": {key: "x"}}, "spec": _claim("standard")["spec"]}
    return _with_volume(ephemeral={"volumeClaimTemplate": claim})


def _cron_job(key: str) -> Body:
    """Return a CronJob whose Jobs have a label."""
    spec = {**pod()["spec"], "restartPolicy": "Never"}
    job = {"metadata": {"labels": {key: "x"}}, "spec": {"template": {"spec": spec}}}
    return _object("batch/v1", "CronJob", spec={"schedule": "@daily", "jobTemplate": job})


def _stateful_claim(key: str) -> Body:
    """Return a StatefulSet whose claims have an annotation."""
    body = _stateful("standard")
    (template,) = body["spec"]["volumeClaimTemplates"]
    claim = {**template, "metadata": {**template["metadata"], "annotations": {key: "x"}}}
    return {**body, "spec": {**body["spec"], "volumeClaimTemplates": [claim]}}


def _infrastructure(key: str, value: str = "x") -> Body:
    """Return a Gateway whose objects have an annotation."""
    body = _gateway()
    return {**body, "spec": {**body["spec"], "infrastructure": {"annotations": {key: value}}}}


def _external(target: Body | None = None, **source: object) -> Body:
    """Return an ExternalSecret with changes of its target, and another source of data."""
    spec: Body = {
        "secretStoreRef": {"name": "vault"},
        "target": {"name": "e", **(target or {})},
        "data": [{"secretKey": "a", "remoteRef": {"key": "x"}}],
    }
    if source:
        spec["dataFrom"] = [source]
    return _object("external-secrets.io/v1", "ExternalSecret", spec=spec)


def _external_template(**template: object) -> Body:
    return _external({"template": template})


def _sealed(**template: object) -> Body:
    spec = {"encryptedData": {"a": "AgBx"}, "template": template}
    return _object("bitnami.com/v1alpha1", "SealedSecret", spec=spec)


def _generator(kind: str, name: str) -> Body:
    return _external(sourceRef={"generatorRef": {"kind": kind, "name": name}})


def _job_set(claim: Body | None = None, **metadata: object) -> Body:
    """Return a JobSet with a claim for its Jobs, or the claim's metadata."""
    # The webhook of JobSet refuses a claim that no container mounts.
    mounted = [_container(volumeMounts=[{"name": "data", "mountPath": "/data"}])]
    job = {"spec": {"template": {"spec": {**pod(containers=mounted)["spec"], "restartPolicy": "Never"}}}}
    template = {"metadata": {"name": "data", **metadata}, "spec": (claim or _claim("standard"))["spec"]}
    spec = {"replicatedJobs": [{"name": "main", "template": job}], "volumeClaimPolicies": [{"templates": [template]}]}
    return _object("jobset.x-k8s.io/v1alpha2", "JobSet", spec=spec)


def _training_runtime(job_set: Body) -> Body:
    """Return a TrainingRuntime with the spec of a JobSet."""
    return _object("trainer.kubeflow.org/v1alpha1", "TrainingRuntime", spec={"template": {"spec": job_set["spec"]}})


def _train_job(**fields: object) -> Body:
    """Return a TrainJob with further fields."""
    spec = {"runtimeRef": {"kind": "TrainingRuntime", "name": "a"}, **fields}
    return _object("trainer.kubeflow.org/v1alpha1", "TrainJob", spec=spec)


def _patched_train_job(**pod_fields: object) -> Body:
    """Return a TrainJob that changes the pods of its runtime."""
    job = {"name": "node", "template": {"spec": {"template": {"spec": pod_fields}}}}
    change = {"manager": "example.com/a", "trainingRuntimeSpec": {"template": {"spec": {"replicatedJobs": [job]}}}}
    return _train_job(runtimePatches=[change])


def _device_template(metadata: Body | None = None, **request: object) -> Body:
    known = {"deviceClassName": "gpu.example.com", **request}
    claim: Body = {"spec": {"devices": {"requests": [{"name": "gpu", "exactly": known}]}}}
    if metadata:
        claim["metadata"] = metadata
    return _object("resource.k8s.io/v1", "ResourceClaimTemplate", spec=claim)


def _device_claim(*classes: str) -> Body:
    """Return a claim of the first available of some devices."""
    listed = [{"name": f"d{number}", "deviceClassName": name} for number, name in enumerate(classes)]
    spec = {"devices": {"requests": [{"name": "gpu", "firstAvailable": listed}]}}
    return _object("resource.k8s.io/v1", "ResourceClaim", spec=spec)


def _external_generator(kind: str) -> Body:
    """Return an ExternalSecret with a value of a generator."""
    body = _external()
    source = {"secretKey": "a", "remoteRef": {"key": "x"}, "sourceRef": {"generatorRef": {"kind": kind, "name": "ecr"}}}
    return {**body, "spec": {**body["spec"], "data": [source]}}


def _gateway_of(name: str, **spec: object) -> Body:
    """Return a Gateway of a class."""
    body = _gateway()
    return {**body, "spec": {**body["spec"], "gatewayClassName": name, **spec}}


def _scraped(name: str) -> Body:
    """Return a monitor with a scrape class."""
    body = _monitor()
    return {**body, "spec": {**body["spec"], "scrapeClass": name}}


def _queue(name: str) -> Body:
    return _object("kueue.x-k8s.io/v1beta1", "LocalQueue", spec={"clusterQueue": name})


CONTROLLER_KEYS = (
    "1password.com/auto-restart",
    "admission.datadoghq.com/enabled",
    "alpha.kubernetes.io/provided-node-ip",
    "applicationId",
    "ambassador.getambassador.io/resync",
    "apisix.apache.org/plugin-config-name",
    "appgw.ingress.kubernetes.io/backend-hostname",
    "argocd.argoproj.io/managed-by",
    "argocd.argoproj.io/secret-type",
    "azure.workload.identity/client-id",
    "cert-manager.io/private-key-secret-name",
    "cilium.io/no-track-port",
    "co.elastic.logs/hosts",
    "co.elastic.metrics/hosts",
    "co.elastic.monitor/hosts",
    "coredns.io/hostname",
    "cpu-load-balancing.crio.io",
    "danm.k8s.io/interfaces",
    "dapr.io/config",
    "dev.gvisor.flag.host-uds",
    "dev.gvisor.spec.mount.data.source",
    "devices.nri.io/container.main",
    "eks.amazonaws.com/sts-regional-endpoints",
    "field.cattle.io/projectId",
    "fluentbit.io/parser",
    "gpu-fraction",
    "gpu-memory",
    "grafana_alert",
    "grafana_dashboard",
    "grafana_datasource",
    "hami.io/node-scheduler-policy",
    "iam.gke.io/gcp-service-account",
    "injector.tumblr.com/request",
    "instrumentation.opentelemetry.io/inject-python",
    "io.cilium/global-service",
    "io.containerd.rdt-class",
    "io.katacontainers.config.runtime.sandbox_bind_mounts",
    "io.kubernetes.cri-o.Devices",
    "istio.io/rev",
    "k8s.ovn.org/routing-external-gws",
    "k8s.v1.cni.galaxy.io/args",
    "k8tz.io/image",
    "kai.scheduler/queue",
    "konghq.com/plugins",
    "kube-router.io/service.hairpin",
    "kubernetes.io/elb.id",
    "kubernetes.io/egress-bandwidth",
    "kubernetes.io/tls-acme",
    "k8s-sidecar-target-directory",
    "kyverno.io/kubeRBAC",
    "linkerd.io/inject",
    "loki_rule",
    "mounts.nri.io/container.main",
    "mps",
    "netbird.io/setup-key",
    "nginx.org/mergeable-ingress-type",
    "nginx.ingress.kubernetes.io/auth-url",
    "nvidia.com/use-gpuuuid",
    "oci.oraclecloud.com/load-balancer-type",
    "openshift.io/required-scc",
    "operator.1password.io/item-name",
    "operator.1password.io/item-path",
    "org.systemd.property.DeviceAllow",
    "pod-security.kubernetes.io/enforce",
    "pod-group.scheduling.sigs.k8s.io",
    "queue",
    "replicator.v1.mittwald.de/replicate-to",
    "resource.kubernetes.io/admin-access",
    "run.oci.handler",
    "runai/queue",
    "scheduler.alpha.kubernetes.io/critical-pod",
    "scheduling.volcano.sh/queue-name",
    "sealedsecrets.bitnami.com/cluster-wide",
    "secret-store.csi.k8s.io/used",
    "service.kubernetes.io/qcloud-loadbalancer-internal-subnetid",
    "spotinst.io/restrict-scale-down",
    "tailscale.com/expose",
    "tke.cloud.tencent.com/networks",
    "topology.kubernetes.io/zone",
    "v1.multus-cni.io/default-network",
    "vault.hashicorp.com/role",
    "vault.security.bank-vaults.io/vault-image",
    "velero.io/exclude-from-backup",
    "volume.kubernetes.io/selected-node",
    "yunikorn.apache.org/queue",
)
"""Keys that controllers, webhooks, runtimes and plugins obey."""

ODD_KEYS = (
    "AADPodIdBinding",
    "GPU-SM-cores",
    "a.b",
    "app.kubernetes.io.evil.example/name",
    "appXkubernetes.io/name",
    "evil-kaigen.dev/app",
    "evilexample.com/x",
    "example.com.istio.io/rev",
    "exampleXcom/x",
    "sub.app.kubernetes.io/name",
    "sub.kaigen.dev/x",
    "xapp.kubernetes.io/name",
    "xprometheus.io/scrape",
    "x-a-team.example.org.evil/x",
)
"""Keys that resemble those that need no grant, and that the API server accepts."""

UPPER_KEYS = ("APP.kubernetes.io/name", "Example.com/x", "KAIGEN.dev/x", "NGINX.org/server-snippets")
"""Keys that the API server accepts of annotations alone."""

INVALID_KEYS = (
    "/x",
    "app.kubernetes.io",
    "app.kubernetes.io/",
    "app.kubernetes.io/a/b",
    "app.kubernetes.io/name.",
    "app.kubernetes.io//name",
    "example.com./x",
    "example.com/ x",
    "kaigen.dev/x\n",
    " app",
    "app-",
    "prometheus.io/sc\u0440ape",
    "",
)
"""Keys that no API server accepts."""


def _triggered(type_: str, /, kind: str = "ScaledObject", **metadata: str) -> Body:
    """Return a scaler with one trigger."""
    trigger = {"type": type_, "metadata": metadata}
    if kind == "ScaledJob":
        job = {"template": {"spec": {**pod()["spec"], "restartPolicy": "Never"}}}
        return _object("keda.sh/v1alpha1", kind, spec={"jobTargetRef": job, "triggers": [trigger]})
    return _object("keda.sh/v1alpha1", kind, spec={"scaleTargetRef": {"name": "x"}, "triggers": [trigger]})


def _parameter(source: str, name: str) -> Body:
    """Return a TriggerAuthentication with a parameter of a Secret, a ConfigMap, a variable or a token."""
    items: Body = {
        "secretTargetRef": {"name": "x", "key": "k"},
        "configMapTargetRef": {"name": "x", "key": "k"},
        "env": {"name": "X"},
        "boundServiceAccountToken": {"serviceAccountName": "x"},
    }
    return _authentication(**{source: [{**items[source], "parameter": name}]})


def _vault(**more: object) -> Body:
    known: Body = {
        "address": "http://vault.team-a.svc:8200",
        "authentication": "token",
        "credential": {"token": "x"},
        "secrets": [{"key": "k", "parameter": "password", "path": "s"}],
    }
    return _authentication(hashiCorpVault={**known, **more})


_AZURE_KEY: Body = {"valueFrom": {"secretKeyRef": {"name": "x", "key": "k"}}}
_AZURE: Body = {
    "vaultUri": "https://vault.metrics.example.com",
    "credentials": {"clientId": "x", "tenantId": "x", "clientSecret": _AZURE_KEY},
    "secrets": [{"name": "x", "parameter": "password"}],
}
_AWS: Body = {
    "region": "eu-central-1",
    "credentials": {"accessKey": _AZURE_KEY, "accessSecretKey": _AZURE_KEY},
    "secrets": [{"name": "x", "parameter": "password"}],
}
_OAUTH: Body = {"type": "clientCredentials", "clientId": "x", "clientSecret": _AZURE_KEY}

_AUTHORITY: Body = {"caCertificateRefs": [{"kind": "ConfigMap", "group": "", "name": "c", "namespace": "team-b"}]}
_MONITOR_LOGIN: Body = {"clientId": {"secret": {"name": "x", "key": "k"}}, "clientSecret": {"name": "x", "key": "k"}}


def _gateway_tls(**tls: object) -> Body:
    """Return a Gateway with TLS for all of its listeners."""
    body = _gateway(port=443, protocol="HTTPS", tls={"certificateRefs": [{"name": "c"}]})
    return {**body, "spec": {**body["spec"], "tls": tls}}


def _with_address(value: str, type_: str = "IPAddress") -> Body:
    body = _gateway()
    return {**body, "spec": {**body["spec"], "addresses": [{"type": type_, "value": value}]}}


def _endpoints(address: str) -> Body:
    subsets = [{"addresses": [{"ip": address}], "ports": [{"port": 80}]}]
    return _object("v1", "Endpoints", subsets=subsets)


def _slice(address: str, family: str = "IPv4") -> Body:
    return _object(
        "discovery.k8s.io/v1",
        "EndpointSlice",
        addressType=family,
        endpoints=[{"addresses": [address]}],
        ports=[{"port": 80}],
    )


def _service_monitor(**endpoint: object) -> Body:
    spec = {"selector": {}, "endpoints": [{"port": "web", **endpoint}]}
    return _object("monitoring.coreos.com/v1", "ServiceMonitor", spec=spec)


def _policy(storage: str, annotations: Body | None = None, **more: object) -> Body:
    """Return a JobSet that makes claims."""
    return _job_set(_claim(storage, **more), annotations=annotations or {})


SERVERS: dict[str, bool] = {
    "p.team-a.svc": True,
    "p.team-a.svc:9090": True,
    "p.team-a.svc.cluster.local:9090": True,
    "http://p.team-a.svc:9090": True,
    "tcp://p.team-a.svc:9090/x?y=z": True,
    "prometheus.monitoring:9090": True,
    "x.metrics.example.com": True,
    "p.team-a.svc:9090,q.team-a.svc:9090": True,
    "p.team-a.svc, q.team-a.svc ": True,
    "p.team-b.svc:9090": False,
    "http://p.team-b.svc:9090": False,
    "p.team-b": False,
    "p": False,
    "": False,
    "10.0.0.1:6379": False,
    "[fd00::1]:6379": False,
    "169.254.169.254": False,
    "p.team-a.svc,p.team-b.svc": False,
    "p.team-b.svc,p.team-a.svc": False,
    "p.team-b.svc:9090/p.team-a.svc": False,
    "p.team-b.svc#.team-a.svc": False,
    "p.team-b.svc?x.team-a.svc": False,
    "p.team-a.svc@p.team-b.svc": False,
    "user:pw@p.team-b.svc": False,
    "http://p.team-a.svc:80@p.team-b.svc": False,
    "http://p.team-a.svc%2fp.team-b.svc": False,
    "http://p.team-a.svc/x%2Chttp://p.team-b.svc": False,
    "p.team-a.svc\\p.team-b.svc": False,
    "p.team-a.svc p.team-b.svc": False,
    "p.team-a.svc\np.team-b.svc": False,
    "p.team-a.svc:": False,
    "p.team-a.svc:x": False,
    "//p.team-b.svc": False,
    "http:p.team-b.svc": False,
}
"""Values of fields of triggers with servers, and whether the tenant may have them."""

_TRIGGER_SERVERS = (
    ("external", "scalerAddress"),
    ("external-push", "scalerAddress"),
    ("redis", "address"),
    ("redis-cluster", "addresses"),
    ("redis-streams", "host"),
    ("redis-sentinel", "hosts"),
    ("postgresql", "host"),
    ("mysql", "host"),
    ("rabbitmq", "host"),
    ("kafka", "bootstrapServers"),
    ("apache-kafka", "bootstrapServers"),
    ("nats-jetstream", "natsServerMonitoringEndpoint"),
    ("metrics-api", "url"),
    ("loki", "serverAddress"),
    ("graphite", "serverAddress"),
    ("influxdb", "serverURL"),
    ("elasticsearch", "addresses"),
    ("temporal", "endpoint"),
    ("etcd", "endpoints"),
    ("prometheus", "serverAddress"),
)

_TRIGGER_URLS = (
    ("rabbitmq", "host"),
    ("nats-jetstream", "natsServerMonitoringEndpoint"),
    ("metrics-api", "url"),
    ("loki", "serverAddress"),
    ("graphite", "serverAddress"),
    ("influxdb", "serverURL"),
    ("elasticsearch", "addresses"),
    ("etcd", "endpoints"),
    ("prometheus", "serverAddress"),
)
"""Fields of triggers that may have a URL."""

_JOINED = (
    ("postgresql", "userName"),
    ("postgresql", "dbName"),
    ("postgresql", "port"),
    ("postgresql", "sslmode"),
    ("mysql", "username"),
    ("mysql", "dbName"),
    ("mysql", "port"),
)
"""Fields of triggers that KEDA joins with the host to one text."""

_SMUGGLING = (
    " host=db.team-b.svc",
    "x host=db.team-b.svc",
    "x\thost=db.team-b.svc",
    "x\nhost=db.team-b.svc",
    "x\rhost=db.team-b.svc",
    "x\vhost=db.team-b.svc",
    "x\fhost=db.team-b.svc",
    "x\u00a0host=db.team-b.svc",
    "x' host='db.team-b.svc",
    "'x",
    "x\\",
    "x\\' host=db.team-b.svc",
    'x" host="db.team-b.svc',
    "3306)@tcp(db.team-b.svc:3306)/x",
    "x@tcp(db.team-b.svc)/x",
    "x?allowAllFiles=true",
    "x/y",
    "x\n",
)
"""Texts by which a connection text would name another server, or another option."""

_ROLES = "arn:aws:iam::111122223333:role/"
_ALIAS = "nginx.ingress.kubernetes.io/server-alias"
_MIRROR: Body = {
    "type": "RequestMirror",
    "requestMirror": {"backendRef": {"name": "s", "namespace": "team-b", "port": 80}},
}
_CONTROL_PLANE = "node-role.kubernetes.io/control-plane"
_ON_NODE = {"key": "kubernetes.io/hostname", "operator": "In", "values": ["gpu-1"]}
_EVERY = {"drop": ["ALL"], "add": ["ALL"]}
_HOST_PROCESS: Body = pod(
    os={"name": "windows"},
    hostNetwork=True,
    securityContext={"runAsNonRoot": True, "windowsOptions": {"hostProcess": True}},
    containers=[{"name": "main", "image": "example.com/main:1"}],
)


def _pod_annotated(annotations: Body) -> Body:
    body = _deployment()
    body["spec"]["template"]["metadata"]["annotations"] = annotations
    return body


_SNIPPET = {"nginx.ingress.kubernetes.io/configuration-snippet": "x"}
_DNS = "external-dns.alpha.kubernetes.io/hostname"


def _s3_volume(path: str) -> Body:
    return _volume(volumeHandle=f"shared/{path}")


def _prefixed_volume(path: str) -> Body:
    return _volume({"mountOptions": ["read-only", f"prefix {path}"]}, **_MOUNTPOINT)


def _argument(text: str) -> Body:
    return pod(containers=[_container(args=["run", text])])


def _variable(text: str) -> Body:
    return pod(initContainers=[_container(name="i", env=[{"name": "A", "value": text}])])


def _gcs_volume(handle: str, *options: str, attribute: str = "") -> Body:
    attributes: Body = {"volumeAttributes": {"mountOptions": attribute}} if attribute else {}
    body: Body = {"driver": "gcsfuse.csi.storage.gke.io", "volumeHandle": handle, **attributes}
    return _volume({"mountOptions": list(options)}, **body)


def _azure_volume(account: str, *options: str, handle: str = "team-a-x", **more: str) -> Body:
    attributes = {"storageAccount": account, "containerName": "shared", "protocol": "fuse2", **more}
    body: Body = {"driver": "blob.csi.azure.com", "volumeHandle": handle, "volumeAttributes": attributes}
    return _volume({"mountOptions": ["-o allow_other", *options]}, **body)


IN_PLACES: dict[str, Callable[[str], Body]] = {
    "in an argument": lambda path: _argument(f"--to=s3://shared/{path}"),
    "in a variable": lambda path: _variable(f"gs://shared/{path}"),
    "of a volume": _s3_volume,
    "of a prefix": _prefixed_volume,
    "in a pod": lambda path: _with_volume(csi=_inline(f"implicit-dirs,only-dir={path}")),
    "of a volume of Google": lambda path: _gcs_volume("shared:x", f"only-dir={path}"),
    "of a volume of Azure": lambda path: _azure_volume("ours", f"--subdirectory={path}"),
}
"""Objects with a path in the bucket `shared`, by where they have it."""

_FOLDERS: dict[str, tuple[Body, bool]] = {
    "marked name": (_gcs_volume("shared:team-a-x", "only-dir=a"), True),
    "folder in an attribute": (_gcs_volume("shared", attribute="implicit-dirs,only-dir=a"), True),
    "folder in an attribute besides another": (_gcs_volume("shared", "only-dir=a", attribute="only-dir=b"), False),
    "folder of Azure": (_azure_volume("ours", "--subdirectory=a"), True),
    "another account of Azure": (_azure_volume("theirs", "--subdirectory=a"), False),
    "folder and container of Azure": (_azure_volume("ours", "--subdirectory=a --container-name=theirs"), False),
    "option of Azure in the handle": (
        _azure_volume("ours", "--subdirectory=a", handle="x --container-name=theirs"),
        False,
    ),
    "no folder of Azure": (_azure_volume("ours"), False),
    "no folder": (_gcs_volume("shared:x"), False),
    "two folders": (_gcs_volume("shared", "only-dir=a", "only-dir=b"), False),
    "folder twice": (_gcs_volume("shared", "only-dir=only-dir=a"), False),
    "folder of a configuration file": (_gcs_volume("shared", "only-dir:a"), False),
    "folder with an underscore": (_gcs_volume("shared", "only_dir=a"), False),
    "folder in capitals": (_gcs_volume("shared", "ONLY-DIR=a"), False),
    "folder after a comma": (_gcs_volume("shared", "implicit-dirs,only-dir=a"), False),
    "mark with a slash": (_gcs_volume("shared:/../theirs", "only-dir=a"), False),
    "mark with a line break": (_gcs_volume("shared:x\ny", "only-dir=a"), False),
    "colon in a name": (_volume(volumeHandle="shared:b/a"), False),
    "colon in a path": (_volume(volumeHandle="shared/a:b"), False),
    **{
        f"option {option}": (_volume({"mountOptions": [option]}, **_MOUNTPOINT), False)
        for option in (
            "prefix  a/",
            "prefix=a/",
            "--prefix a/",
            "--prefix=a/",
            "--prefix=b/",
            " prefix b/",
            "prefix a/ b/",
            "prefix prefix a/",
            "PREFIX b/",
            "-o prefix=b/",
        )
    },
}
"""Volumes, and whether the tenant may have them, by how they name the folder."""


_UNKNOWN = "pods in a kind, or in a field of it, that kaigen does not know: Runner.example.com"
_POD_SPEC = pod()["spec"]
_BALANCED: Body = {"type": "LoadBalancer", "ports": [{"port": 80}]}
DENIED: dict[str, tuple[Body, str]] = {
    "pods of a kind that is not known": (runner(template={"spec": _POD_SPEC}), _UNKNOWN),
    "inlined pods": (runner(predictor=_POD_SPEC), _UNKNOWN),
    "pods with a name only": (runner(containers=[{"name": "main"}]), _UNKNOWN),
    "init containers only": (runner(a={"b": [{"initContainers": [{"image": "example.com/x"}]}]}), _UNKNOWN),
    "pods in lists of lists": (runner(a=[[{"spec": _POD_SPEC}]]), _UNKNOWN),
    "pods far below": (runner(a={"b": {"c": {"d": {"e": {"f": [{"g": {"spec": _POD_SPEC}}]}}}}}), _UNKNOWN),
    "an odd item before the container": (runner(containers=[1, {}, {"image": "example.com/x"}]), _UNKNOWN),
    "a single container": (runner(model={"image": "example.com/x", "env": []}), _UNKNOWN),
    "a single container with rights": (runner(x={"image": "x:1", "securityContext": {}}), _UNKNOWN),
    "steps": (runner(steps=[{"name": "a", "image": "example.com/x", "command": ["a"]}]), _UNKNOWN),
    "image of Ray's autoscaler": (
        ray_cluster(autoscalerOptions={"image": "x:1", "securityContext": _context()}),
        "the image `x:1`",
    ),
    "rights of Ray's autoscaler": (
        ray_cluster(autoscalerOptions={"securityContext": _context(privileged=True)}),
        "a privileged container",
    ),
    "Ray's autoscaler without a security context": (
        ray_cluster(autoscalerOptions={"imagePullPolicy": "Always"}),
        "may gain privileges",
    ),
    "Ray's collector": (ray_cluster(historyServerOptions={"collectorOptions": {"image": "x:1"}}), "the image `x:1`"),
    "type of Ray's Service": (ray_cluster({"serviceType": "NodePort"}), "a Service of type `NodePort`"),
    "Ray's own Service": (
        ray_cluster({"headService": {"spec": {**_BALANCED, "type": "NodePort"}}}),
        "a Service of type `NodePort`",
    ),
    "another name of Ray's Service": (
        ray_cluster({"headService": {"spec": {**_BALANCED, "type": "ExternalName", "externalName": "x.team-b.svc"}}}),
        "the server `x.team-b.svc`",
    ),
    "address of Ray's balancer": (
        ray_cluster({"headService": {"spec": {**_BALANCED, "loadBalancerIP": "198.51.100.7"}}}),
        "the address `198.51.100.7`",
    ),
    "class of Ray's balancer": (
        ray_cluster({"headService": {"spec": {**_BALANCED, "loadBalancerClass": "example.com/b"}}}),
        "the class",
    ),
    "address of Ray's Service": (
        ray_cluster({"headService": {"spec": {"externalIPs": ["192.0.2.1"]}}}),
        "external addresses",
    ),
    "annotation of Ray's Service": (
        ray_cluster({"headService": {"metadata": {"annotations": {_DNS: "bank.example.com"}}}}),
        "the host `bank.example.com`",
    ),
    "Ingress of Ray": (ray_cluster({"enableIngress": True}), "all hosts by an Ingress"),
    "Service of a RayService": (
        _ray_service(serveService={"spec": {**_BALANCED, "type": "NodePort"}}),
        "a Service of type `NodePort`",
    ),
    "annotation of a RayService's Service": (
        _ray_service(serveService={"metadata": {"annotations": {_DNS: "bank.example.com"}}}),
        "the host `bank.example.com`",
    ),
    "head of a RayService": (_ray_service({"enableIngress": True}), "all hosts by an Ingress"),
    "head of a RayJob": (
        _object("ray.io/v1", "RayJob", spec={"rayClusterSpec": _ray({"enableIngress": True})}),
        "all hosts by an Ingress",
    ),
    **{
        f"path {number} {place}": (make(path), "the bucket `")
        for number, (path, granted) in enumerate(PATHS.items())
        for place, make in IN_PLACES.items()
        if not granted
    },
    **{
        f"URI {number} in {place}": (make(text), "the bucket `")
        for number, (text, granted) in enumerate(URIS.items())
        for place, make in (("an argument", _argument), ("a variable", _variable))
        if not granted
    },
    **{f"bucket, {case}": (body, "the bucket `") for case, (body, granted) in _FOLDERS.items() if not granted},
    "account of Azure in another spelling": (
        _azure_volume("ours", "--subdirectory=a", storageaccount="theirs"),
        "the volume attribute `storageaccount`",
    ),
    **{
        f"server {number} of redis": (_triggered("redis", address=server, listName="x"), "the server `")
        for number, (server, granted) in enumerate(SERVERS.items())
        if not granted
    },
    **{
        f"server {number} of loki": (_triggered("loki", serverAddress=server), "the server `")
        for number, (server, granted) in enumerate(SERVERS.items())
        if not granted
    },
    **{
        f"{key} of {type_}": (
            _triggered(type_, **{key: "internal.team-b.svc:9090"}),
            "the server `internal.team-b.svc:9090`",
        )
        for type_, key in _TRIGGER_SERVERS
    },
    **{
        f"{key} of {type_}": (_triggered(type_, **{key: "x"}), f"a trigger with the field `{key}`")
        for type_, key in (
            ("redis", "addressFromEnv"),
            ("redis", "hostFromEnv"),
            ("redis-sentinel", "hostsFromEnv"),
            ("rabbitmq", "hostFromEnv"),
            ("mysql", "connectionStringFromEnv"),
            ("kafka", "bootstrapServersFromEnv"),
            ("temporal", "endpointFromEnv"),
            ("elasticsearch", "cloudID"),
            ("cron", "address"),
            ("kubernetes-workload", "namespace"),
        )
    },
    **{
        f"trigger {type_}": (_triggered(type_, host="p.team-a.svc"), f"a trigger of type `{type_}`")
        for type_ in ("mongodb", "azure-queue", "gcp-pubsub", "artemis-queue", "Redis", "redis ", "new")
    },
    **{
        f"endpoints of {url}": (
            _triggered("metrics-api", url=url, aggregateFromKubeServiceEndpoints="true"),
            f"the {'server' if url.endswith('team-b.svc') else 'Service'} `{url}`",
        )
        for url in (
            "http://x.team-b.svc",
            "http://x.team-b.team-a.svc",
            "http://x.team-b.svc.team-a.svc",
            "x.team-a.svc",
        )
    },
    "trigger of a ScaledJob": (
        _triggered("redis", "ScaledJob", address="redis.team-b.svc:6379"),
        "the server `redis.team-b.svc:6379`",
    ),
    **{
        f"{key} of {type_} with {text!r}": (
            _triggered(type_, **{"host": "db.team-a.svc", key: text}),
            f"a trigger with the text `{text}`",
        )
        for type_, key in _JOINED
        for text in _SMUGGLING
    },
    **{
        f"host of {type_} with {text!r}": (
            _triggered(type_, host=f"db.team-a.svc{text}"),
            f"the server `db.team-a.svc{text}`",
        )
        for type_ in ("postgresql", "mysql")
        for text in (*_SMUGGLING, "/x)@tcp(db.team-b.svc")
    },
    **{
        f"{key} of {type_} at {server}": (_triggered(type_, **{key: server}), f"the server `{server}`")
        for type_, key in _TRIGGER_SERVERS
        for server in (
            "dns://p.team-a.svc/p.team-b.svc:80",
            "passthrough://p.team-a.svc/p.team-b.svc:80",
            "unix://p.team-a.svc/run/x.sock",
        )
    },
    **{
        f"URL of {type_}": (_triggered(type_, **{key: "http://p.team-a.svc/x"}), "the server `http://p.team")
        for type_, key in _TRIGGER_SERVERS
        if (type_, key) not in _TRIGGER_URLS
    },
    **{
        f"file {key} of {type_}": (
            _triggered(type_, **{key: "/var/run/secrets/x"}),
            f"a file of KEDA's own pod by `{key}`",
        )
        for type_, key in (
            ("external", "tlsCertFile"),
            ("external-push", "tlsCertFile"),
            ("aws-sqs-queue", "credentialsFromEnvFile"),
            ("redis", "caFile"),
        )
    },
    "URL of a granted trigger": (
        _triggered("aws-sqs-queue", queueURL="https://sqs.team-b.svc/x"),
        "the server `https://sqs.team-b.svc/x`",
    ),
    **{
        f"parameter {name} of {source}": (_parameter(source, name), f"the parameter of triggers `{name}`")
        for source in ("secretTargetRef", "configMapTargetRef", "env", "boundServiceAccountToken")
        for name in ("host", "address", "connection", "oauthTokenURI", "bootstrapServers", "port", "dbName")
    },
    "parameter of a vault": (
        _vault(secrets=[{"key": "k", "parameter": "host", "path": "s"}]),
        "the parameter of triggers `host`",
    ),
    "parameter of a vault of Azure": (
        _authentication(azureKeyVault={**_AZURE, "secrets": [{"name": "x", "parameter": "url"}]}),
        "the parameter of triggers `url`",
    ),
    "parameter of a vault of Amazon": (
        _authentication(awsSecretManager={**_AWS, "secrets": [{"name": "x", "parameter": "hosts"}]}),
        "the parameter of triggers `hosts`",
    ),
    "vault without a scheme": (_vault(address="vault.team-b.svc:8200"), "the server `vault.team-b.svc:8200`"),
    "vault with KEDA's token": (
        _vault(authentication="kubernetes", mount="k", role="r", credential={"serviceAccount": "/var/x"}),
        "the token of KEDA for a vault",
    ),
    "vault with KEDA's token by default": (
        _vault(authentication="kubernetes", mount="k", role="r", credential={}),
        "the token of KEDA for a vault",
    ),
    "vault of Azure": (
        _authentication(azureKeyVault={**_AZURE, "vaultUri": "vault.team-b.svc"}),
        "the server `vault.team-b.svc`",
    ),
    **{
        f"{field} of Azure": (
            _authentication(azureKeyVault={**_AZURE, "cloud": {"type": "Private", field: "x.team-b.svc"}}),
            "the server `x.team-b.svc`",
        )
        for field in ("activeDirectoryEndpoint", "keyVaultResourceURL")
    },
    "login of Azure": (
        _authentication(
            azureServicePrincipal={
                "clientId": "x",
                "tenantId": "x",
                "clientSecret": _AZURE_KEY,
                "cloud": "Private",
                "activeDirectoryEndpoint": "https://x.team-b.svc",
            }
        ),
        "the server `https://x.team-b.svc`",
    ),
    "login by OAuth": (
        _authentication(oauth2={**_OAUTH, "tokenUrl": "http://x.team-b.svc/token"}),
        "the server `http://x.team-b.svc/token`",
    ),
    "region with a server": (
        _authentication(awsSecretManager={**_AWS, "region": "x.team-b.svc/#"}),
        "the region `x.team-b.svc/#`",
    ),
    "file of KEDA": (_authentication(filePath="x"), "files of KEDA"),
    "credentials of Google": (
        _authentication(
            gcpSecretManager={
                "credentials": {"clientSecret": _AZURE_KEY},
                "secrets": [{"id": "x", "parameter": "password"}],
            }
        ),
        "files of KEDA",
    ),
    **{
        f"certificates of {place}": (body, "the certificates of `team-b/c`")
        for place, body in (
            ("clients", _gateway_tls(frontend={"default": {"validation": _AUTHORITY}})),
            (
                "clients of a port",
                _gateway_tls(frontend={"default": {}, "perPort": [{"port": 443, "tls": {"validation": _AUTHORITY}}]}),
            ),
            ("a Gateway itself", _gateway_tls(backend={"clientCertificateRef": {"name": "c", "namespace": "team-b"}})),
        )
    },
    "address of a Gateway": (_with_address("198.51.100.7"), "the address `198.51.100.7`"),
    "name as the address of a Gateway": (_with_address("x.team-b.svc", "Hostname"), "the address `x.team-b.svc`"),
    "address of a load balancer": (
        _service(type="LoadBalancer", loadBalancerIP="198.51.100.7"),
        "the address `198.51.100.7`",
    ),
    **{
        f"{name} as a Service": (_service(type="ExternalName", externalName=name), f"the server `{name}`")
        for name in ("x.team-b.svc.cluster.local", "kubernetes.default.svc", "metadata.google.internal", "x")
    },
    "address of endpoints": (_endpoints("10.0.0.1"), "the address `10.0.0.1`"),
    "address of an EndpointSlice": (_slice("10.0.0.1"), "the address `10.0.0.1`"),
    "name as endpoints": (_slice("x.team-b.svc", "FQDN"), "the address `x.team-b.svc`"),
    "proxy of a login of a monitor": (
        _monitor(
            {
                "oauth2": {
                    **_MONITOR_LOGIN,
                    "tokenUrl": "http://prometheus.monitoring/t",
                    "proxyUrl": "http://p.team-b.svc",
                }
            }
        ),
        "the server `http://p.team-b.svc`",
    ),
    "login of a monitor": (
        _monitor({"oauth2": {**_MONITOR_LOGIN, "tokenUrl": "p.team-b.svc/t"}}),
        "the server `p.team-b.svc/t`",
    ),
    "proxy of a monitor by SOCKS": (
        _monitor({"proxyUrl": "socks5://p.team-b.svc:1080"}),
        "the server `socks5://p.team-b.svc:1080`",
    ),
    **{
        f"{name} of a monitor": (body, "a file of Prometheus")
        for name, body in (
            ("token", _service_monitor(bearerTokenFile="/var/run/secrets/kubernetes.io/serviceaccount/token")),
            *((field, _service_monitor(tlsConfig={field: "/etc/x"})) for field in ("caFile", "certFile", "keyFile")),
        )
    },
    "annotation of the claims of a JobSet": (
        _policy("standard", {"k8s.io/CloneRequest": "x"}),
        "the annotation `k8s.io/CloneRequest`",
    ),
    "class of the claims of a JobSet": (_policy("gp3"), "the storage class `gp3`"),
    "annotation of the claims of a TrainingRuntime": (
        _training_runtime(_policy("standard", {"k8s.io/CloneRequest": "x"})),
        "the annotation `k8s.io/CloneRequest`",
    ),
    "class of the claims of a TrainingRuntime": (_training_runtime(_policy("gp3")), "the storage class `gp3`"),
    "patch of the pods of a TrainJob": (
        _patched_train_job(serviceAccountName="deployer"),
        "a change of the pods of a runtime, or an initializer",
    ),
    "node of a TrainJob": (
        _patched_train_job(nodeSelector={"kubernetes.io/hostname": "a"}),
        "nodes by the label `kubernetes.io/hostname`",
    ),
    "control plane of a TrainJob": (
        _patched_train_job(tolerations=[{"key": "node-role.kubernetes.io/control-plane", "operator": "Exists"}]),
        "the toleration `node-role.kubernetes.io/control-plane`",
    ),
    "all taints of a TrainJob": (
        _patched_train_job(tolerations=[{"operator": "Exists"}]),
        "the toleration of all taints",
    ),
    "image of a TrainJob": (_train_job(trainer={"image": "x:1"}), "the image `x:1`"),
    "bucket of a TrainJob": (_train_job(trainer={"args": ["s3://other/b"]}), "the bucket `s3://other/b`"),
    "bucket in a command of a TrainJob": (
        _train_job(trainer={"command": ["s3://other/x"]}),
        "the bucket `s3://other/x`",
    ),
    "bucket in a variable of a TrainJob": (
        _train_job(trainer={"env": [{"name": "A", "value": "s3://other/b"}]}),
        "the bucket `s3://other/b`",
    ),
    "built image of a TrainJob": (
        _train_job(trainer={"args": ["--output=type=image,name=other.example.com/x"]}),
        "the image `other.example.com/x`",
    ),
    "device of a TrainJob": (
        _train_job(trainer={"resourcesPerNode": {"limits": {"deviceclass.resource.kubernetes.io/a": "1"}}}),
        "devices by the resource `deviceclass.resource.kubernetes.io/a`",
    ),
    "volume of the claims of a JobSet": (_policy("standard", volumeName="team-b-x"), "the volume `team-b-x`"),
    "data of the claims of a JobSet": (_policy("standard", **_restored("team-b")), "the data of `team-b/x`"),
    "earlier revision": (
        _object("apps/v1", "ControllerRevision", revision=1, data={"spec": {}}),
        "pods of an earlier revision",
    ),
    "any volume": (_claim(""), "any volume that no claim has, by an empty storage class"),
    "any volume by an annotation": (
        _annotated(_claim(None), "volume.beta.kubernetes.io/storage-class", ""),
        "any volume that no claim has",
    ),
    "any volume of a StatefulSet": (_stateful(""), "any volume that no claim has"),
    "any volume of a pod": (_ephemeral(""), "any volume that no claim has"),
    "volume of a tenant with a longer name": (_claim("", volumeName="team-a-dev-x"), "the volume `team-a-dev-x`"),
    **{
        f"{kind} to {term}": (
            pod(affinity={kind: {"requiredDuringSchedulingIgnoredDuringExecution": [{"topologyKey": "a", **body}]}}),
            what,
        )
        for kind in ("podAffinity", "podAntiAffinity")
        for term, body, what in (
            ("another namespace", {"namespaces": ["team-b"]}, "pods of namespace `team-b`"),
            ("all namespaces", {"namespaceSelector": {}}, "pods of other namespaces"),
        )
    },
    "preferred pods of another namespace": (
        pod(
            affinity={
                "podAntiAffinity": {
                    "preferredDuringSchedulingIgnoredDuringExecution": [
                        {"weight": 1, "podAffinityTerm": {"topologyKey": "a", "namespaces": ["team-b"]}}
                    ]
                }
            }
        ),
        "pods of namespace `team-b`",
    ),
    **{
        f"devices by {field}": (
            pod(
                containers=[_container(resources={"limits": {}, field: {"deviceclass.resource.kubernetes.io/b": "1"}})]
            ),
            "devices by the resource `deviceclass.resource.kubernetes.io/b`",
        )
        for field in ("limits",)
    },
    "path that ends a directive": (
        _object(
            "networking.k8s.io/v1",
            "Ingress",
            spec={
                "ingressClassName": "nginx",
                "rules": [
                    {
                        "host": "x.a.example.com",
                        "http": {
                            "paths": [
                                {
                                    "path": "/x;}location / {",
                                    "pathType": "ImplementationSpecific",
                                    "backend": {"service": {"name": "x", "port": {"number": 80}}},
                                }
                            ]
                        },
                    }
                ],
            },
        ),
        "the path `/x;}location / {`",
    ),
    "kind: a quota": (_object("v1", "ResourceQuota", spec={}), "the kind ResourceQuota"),
    "kind: a webhook": (
        _object("admissionregistration.k8s.io/v1", "ValidatingWebhookConfiguration"),
        "the kind ValidatingWebhookConfiguration",
    ),
    "kind: a namespace": (_at(_object("v1", "Namespace"), name="team-c"), "the kind Namespace"),
    "namespace": (_at(pod(), namespace="team-b"), "the namespace team-b"),
    "namespace of a volume": (_volume({"claimRef": {"namespace": "team-b", "name": "c"}}), "the namespace team-b"),
    "image": (pod(containers=[_container(image="docker.io/x/y:1")]), "the image `docker.io/x/y:1`"),
    "image of a Deployment": (_deployment(containers=[_container(image="x:1")]), "the image `x:1`"),
    "image of an init container": (pod(initContainers=[_container(name="i", image="x:1")]), "the image `x:1`"),
    "image as a volume": (_with_volume(image={"reference": "x:1"}), "the image `x:1`"),
    "bucket in an argument": (
        pod(containers=[_container(args=["--to=s3://shared/ab"])]),
        "the bucket `s3://shared/ab`",
    ),
    "bucket in a variable": (
        pod(containers=[_container(env=[{"name": "A", "value": "gs://other"}])]),
        "the bucket `gs://other`",
    ),
    "priority class": (
        _deployment(priorityClassName="system-node-critical"),
        "the priority class `system-node-critical`",
    ),
    "node": (pod(nodeName="control-plane"), "a node by the field `nodeName`"),
    "label of a node": (
        pod(nodeSelector={"pool": "gpu", "kubernetes.io/hostname": "gpu-1"}),
        "nodes by the label `kubernetes.io/hostname`",
    ),
    "label of the control plane": (
        _deployment(nodeSelector={_CONTROL_PLANE: ""}),
        f"nodes by the label `{_CONTROL_PLANE}`",
    ),
    "name of a node in an affinity": (
        pod(affinity=_preferred(key="metadata.name", operator="In", values=["gpu-1"])),
        "nodes by the key `metadata.name`",
    ),
    "control plane in an affinity": (
        pod(affinity=_affinity(key=_CONTROL_PLANE, operator="Exists")),
        f"nodes by the key `{_CONTROL_PLANE}`",
    ),
    "node of a volume": (
        _volume({"nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [_ON_NODE]}]}}}),
        "nodes by the key `kubernetes.io/hostname`",
    ),
    "tolerations": (pod(tolerations=[{"operator": "Exists"}]), "the toleration of all taints"),
    "toleration of the control plane": (
        _deployment(tolerations=[{"key": "node-role.kubernetes.io/master", "effect": "NoSchedule"}]),
        "the toleration `node-role.kubernetes.io/master`",
    ),
    "host network": (pod(hostNetwork=True), "a namespace of the node"),
    "privileged": (_secure(privileged=True, allowPrivilegeEscalation=None), "a privileged container"),
    "port of a node": (
        pod(containers=[_container(ports=[{"containerPort": 10250, "hostPort": 10250}])]),
        "opens port 10250 of the node",
    ),
    "probe of another host": (
        pod(containers=[_container(livenessProbe={"httpGet": {"port": 80, "host": "10.0.0.1"}})]),
        "call another host (10.0.0.1)",
    ),
    "capability": (_secure(capabilities={"drop": ["ALL"], "add": ["SYS_ADMIN"]}), "adds the capability SYS_ADMIN"),
    "capability of baseline": (_secure(capabilities={"drop": ["ALL"], "add": ["CHOWN"]}), "adds the capability CHOWN"),
    "capability of an init container": (
        pod(initContainers=[_container(name="i", securityContext=_context(capabilities=_EVERY))]),
        "adds the capability ALL",
    ),
    "capabilities kept": (_secure(capabilities=None), "does not drop all capabilities"),
    "no security context": (_deployment(containers=[_container(securityContext=None)]), "may gain privileges"),
    "seccomp profile": (_secure(seccompProfile={"type": "Unconfined"}), "the seccomp profile Unconfined"),
    "no seccomp profile": (_pod_context(seccompProfile=None), "does not set a seccomp profile"),
    "AppArmor profile": (_secure(appArmorProfile={"type": "Unconfined"}), "the AppArmor profile Unconfined"),
    "AppArmor annotation": (
        _pod_annotated({"container.apparmor.security.beta.kubernetes.io/main": "unconfined"}),
        "the AppArmor profile unconfined",
    ),
    "SELinux": (_pod_context(seLinuxOptions={"type": "spc_t"}), "the SELinux type spc_t"),
    "Windows HostProcess": (_HOST_PROCESS, "runs as a Windows HostProcess"),
    "unmasked proc": (
        {**_secure(procMount="Unmasked"), "spec": {**_secure(procMount="Unmasked")["spec"], "hostUsers": False}},
        "unmasks /proc",
    ),
    "sysctl": (_pod_context(sysctls=[{"name": "kernel.msgmax", "value": "1"}]), "the unsafe sysctl kernel.msgmax"),
    "root": (_pod_context(runAsNonRoot=None), "may run as root"),
    "root by its id": (_secure(runAsUser=0, runAsNonRoot=True), "runs as root (runAsUser: 0)"),
    "Git as a volume": (
        _with_volume(gitRepo={"repository": "https://example.com/x.git"}),
        "a volume of type `gitRepo`",
    ),
    "driver in a pod": (_with_volume(csi={"driver": "nfs.csi.k8s.io"}), "the driver `nfs.csi.k8s.io`"),
    "bucket in a pod": (
        _with_volume(csi={"driver": "gcsfuse.csi.storage.gke.io", "volumeAttributes": {"bucketName": "theirs"}}),
        "the bucket `gs://theirs/`",
    ),
    "folder in a pod": (_with_volume(csi=_inline("implicit-dirs,only-dir=b")), "the bucket `gs://shared/b`"),
    "attribute in a pod": (_with_volume(csi=_inline("only-dir=a", server="10.0.0.1")), "the volume attribute `server`"),
    "option in a pod": (_with_volume(csi=_inline("only-dir=a,temp-dir=/etc")), "the mount options `temp-dir=/etc`"),
    "attribute of a volume": (_volume(volumeAttributes={"server": "x"}), "the volume attribute `server`"),
    "option of a volume": (
        _volume({"mountOptions": ["endpoint-url https://evil.example.org"]}),
        "the mount options `endpoint-url https://evil.example.org`",
    ),
    "host path": (_with_volume(hostPath={"path": "/"}), "a volume of type `hostPath`"),
    "class of an ephemeral volume": (_ephemeral("gp3"), "the storage class `gp3`"),
    "class of a claim": (_claim("gp3"), "the storage class `gp3`"),
    "class of a StatefulSet": (_stateful("gp3"), "the storage class `gp3`"),
    "class of a LeaderWorkerSet": (_group("gp3"), "the storage class `gp3`"),
    "class of a claim by its annotation": (
        _annotated(_claim("standard"), "volume.beta.kubernetes.io/storage-class", "gp3"),
        "the storage class `gp3`",
    ),
    # Of a claim itself, the API server drops the namespace unless CrossNamespaceVolumeDataSource is on.
    "data of the claims of a StatefulSet": (_stateful("standard", **_restored("team-b")), "the data of `team-b/x`"),
    "data of an ephemeral volume": (_ephemeral("standard", **_restored("team-b")), "the data of `team-b/x`"),
    "volume of another team": (_claim("standard", volumeName="team-b-x"), "the volume `team-b-x`"),
    "image of another team's cache": (
        _build("registry.corp/team-b/cache"),
        "the image `registry.corp/team-b/cache:buildcache`",
    ),
    "image in quotes": (
        pod(containers=[_container(args=['--export-cache=type=registry,"ref=x/y"'])]),
        'the image `x/y"`',
    ),
    "output of a build": (
        pod(containers=[_container(args=["--output=type=image,name=x/y:1,push=true"])]),
        "the image `x/y:1`",
    ),
    "volume for any claim": (_volume({"claimRef": None}), "a volume for a claim in namespace"),
    "driver of a volume": (_volume(driver="nfs.csi.k8s.io"), "the driver `nfs.csi.k8s.io`"),
    "Secret of a volume": (
        _volume(nodePublishSecretRef={"name": "vault", "namespace": "team-b"}),
        "the Secret `team-b/vault`",
    ),
    "bucket of a volume": (_volume(volumeHandle="shared/b"), "the bucket `s3://shared/b`"),
    "bucket without its prefix": (_volume(**_MOUNTPOINT), "the bucket `s3://shared/`"),
    "prefix twice": (
        _volume({"mountOptions": ["prefix a/", "prefix b/"]}, **_MOUNTPOINT),
        "the bucket `s3://shared/a/ b/`",
    ),
    "host": (ingress("b.example.com"), "the host `b.example.com`"),
    "any host": (ingress(None), "the host `*`"),
    "host of a certificate": (ingress(tls=[{"hosts": ["b.example.com"]}]), "the host `b.example.com`"),
    "default backend": (
        ingress(defaultBackend={"service": {"name": "x", "port": {"number": 80}}}),
        "all hosts by a default backend",
    ),
    "snippet": (_at(ingress(), annotations=_SNIPPET), "nginx.ingress.kubernetes.io/configuration-snippet"),
    "DNS record": (_at(_service(), annotations={_DNS: "b.example.com,x.a.example.com"}), "the host `b.example.com`"),
    "internal DNS record": (
        _annotated(_service(), "external-dns.alpha.kubernetes.io/internal-hostname", "b.example.com"),
        "the host `b.example.com`",
    ),
    "DNS record of a Gateway's Service": (_infrastructure(_DNS, "b.example.com"), "the host `b.example.com`"),
    "alias": (_annotated(ingress(), _ALIAS, "x.a.example.com, b.example.com"), "the host `b.example.com`"),
    "alias after a blank": (
        _annotated(ingress(), _ALIAS, "b.example.com x.a.example.com"),
        "the host `b.example.com x.a.example.com`",
    ),
    "alias as a pattern": (
        _annotated(ingress(), _ALIAS, "~^b[.]example[.]com$|x.a.example.com"),
        "the host `~^b[.]example[.]com$|x.a.example.com`",
    ),
    "name of a certificate": (
        _annotated(ingress(), "cert-manager.io/alt-names", "b.example.com"),
        "the host `b.example.com`",
    ),
    **{
        f"annotation {key.replace('/', ' ')}": (_annotated(ingress(), key), f"the annotation `{key}`")
        for key in (
            "nginx.ingress.kubernetes.io/auth-secret",
            "nginx.ingress.kubernetes.io/auth-tls-secret",
            "nginx.ingress.kubernetes.io/proxy-ssl-secret",
            "alb.ingress.kubernetes.io/group.name",
            "alb.ingress.kubernetes.io/load-balancer-attributes",
            "traefik.ingress.kubernetes.io/router.middlewares",
            "haproxy-ingress.github.io/auth-url",
            "kubernetes.io/ingress.global-static-ip-name",
        )
    },
    "configuration of HAProxy": (
        _annotated(ingress(), "haproxy.org/backend-config-snippet"),
        "the annotation `haproxy.org/backend-config-snippet`",
    ),
    "configuration of HAProxy Ingress": (
        _annotated(ingress(), "haproxy-ingress.github.io/config-backend"),
        "the annotation `haproxy-ingress.github.io/config-backend`",
    ),
    "annotation of a load balancer": (
        _annotated(_service(), "service.beta.kubernetes.io/aws-load-balancer-scheme"),
        "the annotation `service.beta.kubernetes.io/aws-load-balancer-scheme`",
    ),
    "annotation of a Gateway's Service": (
        _infrastructure("networking.gke.io/load-balancer-type"),
        "the annotation `networking.gke.io/load-balancer-type`",
    ),
    "role of another team": (_account("b-reader"), "the annotation `eks.amazonaws.com/role-arn`"),
    "label of a pod": (_labelled(pod(), "azure.workload.identity/use"), "the label `azure.workload.identity/use`"),
    **{
        f"annotation {key.replace('/', ' ')} of pods": (_template(_deployment(), key), f"the annotation `{key}`")
        for key in (
            "iam.amazonaws.com/role",
            "k8s.v1.cni.cncf.io/networks",
            "sidecar.istio.io/proxyImage",
            "cdi.k8s.io/device",
            "io.katacontainers.config.hypervisor.path",
        )
    },
    "label of the Jobs of a CronJob": (_cron_job("aadpodidbinding"), "the label `aadpodidbinding`"),
    "annotation of the claims of a StatefulSet": (
        _stateful_claim("cdi.kubevirt.io/storage.import.endpoint"),
        "the annotation `cdi.kubevirt.io/storage.import.endpoint`",
    ),
    "annotation of an ephemeral volume": (
        _ephemeral_claim("k8s.io/CloneRequest"),
        "the annotation `k8s.io/CloneRequest`",
    ),
    "Secret that is copied": (
        _annotated(_object("v1", "Secret"), "replicator.v1.mittwald.de/replicate-from", "team-b/x"),
        "the annotation `replicator.v1.mittwald.de/replicate-from`",
    ),
    "host of a route": (_route(hostnames=["b.example.com"]), "the host `b.example.com`"),
    "any host of a route": (_route(hostnames=[]), "the host `*`"),
    "Gateway of another namespace": (
        _route(parentRefs=[{"name": "g", "namespace": "team-b"}]),
        "the reference `team-b/g`",
    ),
    "backend of another namespace": (
        _route(rules=[{"backendRefs": [{"name": "s", "namespace": "team-b", "port": 80}]}]),
        "the reference `team-b/s`",
    ),
    **{
        f"mirror of {place}": (_route(rules=[rule]), "the reference `team-b/s`")
        for place, rule in (
            ("a route", {"filters": [_MIRROR]}),
            ("a backend", {"backendRefs": [{"name": "s", "port": 80, "filters": [_MIRROR]}]}),
        )
    },
    "any host of a Gateway": (_gateway(hostname=None), "the host `*`"),
    "certificate of another namespace": (_secret_of("team-b"), "the Secret `team-b/c`"),
    "type of a Service": (_service(type="NodePort"), "a Service of type `NodePort`"),
    "address": (_service(externalIPs=["192.0.2.1"]), "external addresses"),
    "monitor of everything": (_monitor(any=True), "Pods of every namespace"),
    "monitor of another namespace": (_monitor(matchNames=["team-b"]), "Pods of namespace `team-b`"),
    "proxy of a monitor": (_monitor({"proxyUrl": "http://p.team-b.svc:80"}), "the server `http://p.team-b.svc:80`"),
    "address of a monitor": (
        _relabelled(targetLabel="__address__", replacement="x.team-b:80"),
        "relabelling to `__address__`",
    ),
    "address of a monitor by a group": (_relabelled(targetLabel="__addre${1}"), "relabelling to `__addre${1}`"),
    "labels of a monitor": (_relabelled(action="LabelMap", regex="a(.*)"), "relabelling by `LabelMap`"),
    **{
        f"server {number} of a scaler": (_scaler(serverAddress=url), f"the server `{url}`")
        for number, url in enumerate(
            (
                "http://p.team-b.svc:9090",
                "http://p.team-a:9090",
                "http://p:9090",
                "http://p.team-a.svc@p.team-b.svc",
                "http://p.team-b#.team-a.svc",
                "http://evil.example.org/x.metrics.example.com",
            )
        )
    },
    "identity of a scaler": (_scaler(identityOwner="operator"), "the identity of `operator`"),
    "identity of KEDA": (
        _authentication(podIdentity={"provider": "gcp"}),
        "the identity of KEDA by the provider `gcp`",
    ),
    "identity of KEDA by its owner": (
        _authentication(podIdentity={"provider": "aws", "identityOwner": "keda"}),
        "the identity of KEDA by the provider `aws`",
    ),
    "server of an authentication": (
        _authentication(
            hashiCorpVault={
                "address": "http://vault.team-b.svc",
                "authentication": "token",
                "secrets": [{"key": "k", "parameter": "p", "path": "s"}],
            }
        ),
        "the server `http://vault.team-b.svc`",
    ),
    "priority in a queue": (
        _at(_deployment(), labels={"kueue.x-k8s.io/priority-class": "high"}),
        "the priority class `high`",
    ),
    "priority of pods in a queue": (
        _template(_deployment(), "a", label="kueue.x-k8s.io/priority-class"),
        "the priority class `c`",
    ),
    "authentication of the cluster": (
        _scaler("ClusterTriggerAuthentication"),
        "authentication of kind `ClusterTriggerAuthentication`",
    ),
    **{
        f"key {key.replace('/', ' ')}": (_annotated(_object("v1", "ConfigMap"), key), f"the annotation `{key}`")
        for key in (*CONTROLLER_KEYS, *ODD_KEYS, *UPPER_KEYS)
    },
    **{
        f"label {key.replace('/', ' ')} of pods": (_template(_deployment(), "a", label=key), f"the label `{key}`")
        for key in ("kai.scheduler/queue", "linkerd.io/inject", "gpu-memory", "dev.gvisor.flag.host-uds")
    },
    "label of a namespace's own": (_labelled(_object("v1", "ServiceAccount"), "istio-injection"), "istio-injection"),
    "import into the claims of a JobSet": (
        _job_set(annotations={"cdi.kubevirt.io/storage.import.endpoint": "x"}),
        "the annotation `cdi.kubevirt.io/storage.import.endpoint`",
    ),
    "address in an annotation of Ray's Service": (
        ray_cluster(
            {
                "headService": {
                    "metadata": {"annotations": {"metallb.io/loadBalancerIPs": "192.0.2.1"}},
                    "spec": {"ports": [{"port": 80}]},
                }
            }
        ),
        "the annotation `metallb.io/loadBalancerIPs`",
    ),
    "annotation of Ray's other Service": (
        _ray_service(
            serveService={"metadata": {"annotations": {"metallb.io/x": "x"}}, "spec": {"ports": [{"port": 80}]}}
        ),
        "the annotation `metallb.io/x`",
    ),
    "label of Ray's pods": (ray_cluster({"labels": {"kai.scheduler/queue": "b"}}), "the label `kai.scheduler/queue`"),
    "annotation of the claims of a template": (
        _device_template({"annotations": {"resource.kubernetes.io/x": "x"}}),
        "the annotation `resource.kubernetes.io/x`",
    ),
    "annotation of an ExternalSecret's Secret": (
        _external_template(metadata={"annotations": {"replicator.v1.mittwald.de/replicate-to": "team-b"}}),
        "the annotation `replicator.v1.mittwald.de/replicate-to`",
    ),
    "annotation of a SealedSecret's Secret": (
        _sealed(metadata={"annotations": {"reflector.v1.k8s.emberstack.com/reflects": "team-b/x"}}),
        "the annotation `reflector.v1.k8s.emberstack.com/reflects`",
    ),
    **{
        f"template for {target}": (
            _external_template(templateFrom=[{"target": "Data"}, {"target": target, "literal": "a: b"}]),
            f"by the target `{target}`",
        )
        for target in ("Annotations", "Labels", "spec.rules", "data", "Data.x")
    },
    "object of another kind": (
        _external({"manifest": {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding"}}),
        "objects other than Secrets",
    ),
    "ConfigMap of an ExternalSecret": (
        _external({"manifest": {"apiVersion": "v1", "kind": "ConfigMap"}}),
        "objects other than Secrets",
    ),
    "finalizer of a Secret": (_external_template(metadata={"finalizers": ["example.com/x"]}), "finalizers of a Secret"),
    **{
        f"type {type_.replace('/', ' ')} of {kind}": (body, f"a Secret of type `{type_}`")
        for type_ in ("kubernetes.io/service-account-token", "bootstrap.kubernetes.io/token", "helm.sh/release.v1")
        for kind, body in (
            ("an ExternalSecret", _external_template(type=type_)),
            ("a SealedSecret", _sealed(type=type_)),
        )
    },
    "generator of the cluster": (_generator("ClusterGenerator", "ecr"), "the generator `ClusterGenerator/ecr`"),
    "generator of a single value": (_external_generator("ClusterGenerator"), "the generator `ClusterGenerator/ecr`"),
    "runtime class": (_deployment(runtimeClassName="kata"), "the class `RuntimeClass/kata`"),
    "scheduler": (pod(schedulerName="kai-scheduler"), "the class `Scheduler/kai-scheduler`"),
    "class of a Gateway": (_gateway_of("y"), "the class `GatewayClass/y`"),
    "class of a load balancer": (
        _service(type="LoadBalancer", loadBalancerClass="example.com/b"),
        "the class `LoadBalancerClass/example.com/b`",
    ),
    **{
        f"attributes of {what}": (body, "the class `VolumeAttributesClass/gold`")
        for what, body in (
            ("a claim", _claim("standard", volumeAttributesClassName="gold")),
            ("a StatefulSet", _stateful("standard", volumeAttributesClassName="gold")),
            ("a JobSet", _job_set(_claim("standard", volumeAttributesClassName="gold"))),
            ("an ephemeral volume", _ephemeral("standard", volumeAttributesClassName="gold")),
        )
    },
    **{
        f"selector of {what}": (body, "volumes by their labels")
        for what, body in (
            ("a claim", _claim("standard", selector={"matchLabels": {"a": "b"}})),
            ("a StatefulSet", _stateful("standard", selector={"matchLabels": {"a": "b"}})),
            ("a JobSet", _job_set(_claim("standard", selector={"matchLabels": {"a": "b"}}))),
            ("an ephemeral volume", _ephemeral("standard", selector={"matchLabels": {"a": "b"}})),
        )
    },
    "volume of a JobSet": (_job_set(_claim("", volumeName="team-b-x")), "the volume `team-b-x`"),
    "class of a JobSet": (_job_set(_claim("gp3")), "the storage class `gp3`"),
    "volume of an ephemeral volume": (_ephemeral("", volumeName="team-b-x"), "the volume `team-b-x`"),
    "name of another team's volume": (_volume(name="team-b-weights"), "the name of a volume `team-b-weights`"),
    "devices": (_device_template(deviceClassName="gpu.nvidia.com"), "the class `DeviceClass/gpu.nvidia.com`"),
    "class of an Ingress": (ingress(ingressClassName="traefik"), "the class `IngressClass/traefik`"),
    "class of an Ingress by its annotation": (
        _annotated(ingress(), "kubernetes.io/ingress.class", "traefik"),
        "the class `IngressClass/traefik`",
    ),
    "class of a Service by its annotation": (
        _annotated(_service(), "kubernetes.io/ingress.class", "traefik"),
        "the class `IngressClass/traefik`",
    ),
    "devices of others": (_device_template(adminAccess=True), "devices that others use"),
    "devices of a claim": (_device_claim("gpu.example.com", "b.x"), "the class `DeviceClass/b.x`"),
    "scrape class": (_scraped("b"), "the class `ScrapeClass/b`"),
    "queue of another team": (_queue("b"), "the queue `ClusterQueue/b`"),
}
"""Objects with what the finding names, by what is wrong with them."""

GATED: dict[str, tuple[Body, str]] = {
    "certificate of the cluster": (
        _with_volume(
            projected={
                "sources": [{"podCertificate": {"signerName": "example.com/x", "keyType": "ED25519", "keyPath": "k"}}]
            }
        ),
        "a certificate of the cluster by `podCertificate`",
    )
}
"""The same, where the API server drops the field unless a feature gate is on: PodCertificateRequest."""

ALLOWED: dict[str, Body] = {
    "trainer of a TrainJob": _train_job(
        trainer={
            "image": "example.com/x",
            "args": ["s3://shared/a/b"],
            "numNodes": 2,
            "resourcesPerNode": {"limits": {"nvidia.com/gpu": "1"}},
        }
    ),
    "TrainJob that Kueue admits": _patched_train_job(
        nodeSelector={"zone": "a"}, tolerations=[{"key": "nvidia.com/gpu", "operator": "Exists"}]
    ),
    "a kind that is not known": runner(
        containers=3, initContainers=[], image="example.com/x", a={"image": "x", "env": "prod", "args": {}}
    ),
    "a list of names": runner(containers=["a", "b"], ephemeralContainers=[{"id": "x"}]),
    "labels like fields of containers": _at(
        runner(), labels={"image": "x", "env": "prod"}, annotations={"containers": "x"}
    ),
    "Ray": ray_cluster(
        {"serviceType": "ClusterIP", "enableIngress": False}, autoscalerOptions={"securityContext": _context()}
    ),
    "RayJob": _object("ray.io/v1", "RayJob", spec={"entrypoint": "python x.py", "rayClusterSpec": _ray()}),
    "RayService": _ray_service(
        {"headService": {"spec": {"type": "ClusterIP", "ports": [{"port": 8265}]}}},
        serveService={"metadata": {"annotations": {"example.com/a": "b"}}},
    ),
    "certificates of clients": _gateway_tls(
        frontend={"default": {"validation": {"caCertificateRefs": [{"kind": "ConfigMap", "group": "", "name": "c"}]}}}
    ),
    "address of a Gateway": _with_address("192.0.2.7"),
    "address of a load balancer": _service(type="LoadBalancer", loadBalancerIP="192.0.2.7"),
    "Service by another name": _service(type="ExternalName", externalName="x.team-a.svc.cluster.local"),
    "Service of a server": _service(type="ExternalName", externalName="x.metrics.example.com"),
    "endpoints": _endpoints("192.0.2.7"),
    "EndpointSlice": _slice("192.0.2.7"),
    "ServiceMonitor": _service_monitor(tlsConfig={"ca": {"configMap": {"name": "x", "key": "k"}}}),
    "JobSet": _policy("standard"),
    **{
        f"path {number} {place}": make(path)
        for number, (path, granted) in enumerate(PATHS.items())
        for place, make in IN_PLACES.items()
        if granted
    },
    **{f"URI {number}": _argument(text) for number, (text, granted) in enumerate(URIS.items()) if granted},
    **{
        f"server {number} of loki": _triggered("loki", serverAddress=server)
        for number, (server, granted) in enumerate(SERVERS.items())
        if granted
    },
    **{
        f"server {number} of redis": _triggered("redis", address=server, listName="x")
        for number, (server, granted) in enumerate(SERVERS.items())
        if granted and "://" not in server
    },
    **{f"{key} of {type_}": _triggered(type_, **{key: "internal.team-a.svc:9090"}) for type_, key in _TRIGGER_SERVERS},
    "trigger of the time": _triggered("cron", timezone="UTC", start="0 6 * * *", end="0 20 * * *", desiredReplicas="1"),
    "trigger of the load": _triggered("cpu", value="50"),
    "endpoints of a Service": _triggered(
        "metrics-api", url="http://router.team-a.svc:9901/stats?usedonly", aggregateFromKubeServiceEndpoints="true"
    ),
    "trigger of pods": _triggered("kubernetes-workload", podSelector="app=x", value="1"),
    "trigger of redis": _triggered(
        "redis-streams",
        host="a.team-a.svc,b.team-a.svc",
        port="6379,6380",
        passwordFromEnv="PASSWORD",
        stream="x",
        consumerGroup="x",
    ),
    "trigger of an own scaler": _triggered("external", scalerAddress="s.team-a.svc:80", anyKey="x"),
    "trigger of a ScaledJob": _triggered("redis", "ScaledJob", address="redis.team-a.svc:6379", listName="x"),
    "trigger of PostgreSQL": _triggered(
        "postgresql",
        host="db.team-a.svc",
        port="5432",
        userName="team-a@db",
        dbName="orders_2026",
        sslmode="verify-full",
        passwordFromEnv="PASSWORD",
        query="SELECT count(*) FROM \"orders\" WHERE state = 'new'",
        targetQueryValue="5",
    ),
    "trigger of MySQL": _triggered(
        "mysql",
        host="db.team-a.svc",
        port="3306",
        username="team-a",
        dbName="orders",
        passwordFromEnv="PASSWORD",
        query="SELECT count(*) FROM orders WHERE state = 'new'",
        queryValue="5",
    ),
    "trigger of a granted type": _triggered("aws-sqs-queue", queueURL="queue", awsRegion="eu-central-1"),
    "parameters": _parameter("secretTargetRef", "password"),
    "vault": _vault(),
    "vault with a service account": _vault(
        authentication="kubernetes", mount="k", role="r", credential={"serviceAccountName": "x"}
    ),
    "vault of Azure": _authentication(azureKeyVault=_AZURE),
    "vault of Amazon": _authentication(awsSecretManager=_AWS),
    "login by OAuth": _authentication(oauth2={**_OAUTH, "tokenUrl": "https://x.metrics.example.com/token"}),
    **{f"bucket, {case}": body for case, (body, granted) in _FOLDERS.items() if granted},
    "pod": pod(tolerations=[{"key": "gpu", "operator": "Exists"}], nodeSelector={"pool": "gpu"}),
    "affinity": pod(affinity=_affinity(key="pool", operator="In", values=["gpu"])),
    "affinity without the control plane": pod(affinity=_affinity(key=_CONTROL_PLANE, operator="DoesNotExist")),
    "capability": _secure(capabilities={"drop": ["ALL"], "add": ["NET_BIND_SERVICE"]}),
    "settings of each container": pod(
        securityContext={},
        containers=[
            _container(
                securityContext=_context(runAsNonRoot=True, seccompProfile={"type": "RuntimeDefault"}),
                ports=[{"containerPort": 80}],
                readinessProbe={"httpGet": {"port": 80}},
            )
        ],
    ),
    "root in a user namespace": pod(
        hostUsers=False, containers=[_container(securityContext=_context(runAsUser=0, runAsNonRoot=False))]
    ),
    "Windows": pod(
        os={"name": "windows"},
        securityContext={"runAsNonRoot": True},
        containers=[{"name": "main", "image": "example.com/main:1"}],
    ),
    "Deployment": _deployment(),
    "StatefulSet": _stateful("standard"),
    "bucket in an argument": pod(containers=[_container(args=["--to=s3://shared/a/x", "s3"])]),
    "claim": _claim("standard"),
    "affinity in its own namespace": pod(
        affinity={
            "podAntiAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": [
                    {"topologyKey": "a", "namespaces": ["team-a"], "labelSelector": {}}
                ]
            }
        }
    ),
    "claim of a volume": _claim("", volumeName="team-a-x", **_restored("team-a")),
    "claim of a shared volume": _claim("", volumeName="shared-x"),
    "build": _build("example.com/cache"),
    "claim of the default class": _claim(None),
    "volume": _volume(),
    "volume with its prefix": _volume({"mountOptions": ["prefix a/"]}, **_MOUNTPOINT),
    "bucket in a pod": _with_volume(csi=_inline("implicit-dirs,only-dir=a")),
    "Ingress": ingress(),
    "DNS record": _at(_service(), annotations={_DNS: "x.a.example.com"}),
    "alias": _annotated(ingress(), _ALIAS, "x.a.example.com, y.a.example.com"),
    "annotation of the tenant": _annotated(ingress(), "alb.ingress.kubernetes.io/scheme"),
    "annotation that kaigen sets": _at(
        ingress(),
        annotations={
            "nginx.ingress.kubernetes.io/proxy-read-timeout": "3600",
            "alb.ingress.kubernetes.io/load-balancer-attributes": "idle_timeout.timeout_seconds=3600",
            "cert-manager.io/cluster-issuer": "public",
        },
    ),
    "annotation that GKE sets": _annotated(_service(), "cloud.google.com/neg", '{"ingress":true}'),
    "own domain": _at(
        pod(),
        annotations={"example.com/ingress.kubernetes.io": "x", "a.b.example.com/x": "x"},
        labels={"a-team.example.org/x": "x", "x.example.com/y_z.A": "x"},
    ),
    "usual keys": _at(
        _template(_deployment(), "kubectl.kubernetes.io/default-container", "main", label="app.kubernetes.io/name"),
        annotations={
            "argocd.argoproj.io/sync-wave": "1",
            "cluster-autoscaler.kubernetes.io/safe-to-evict": "false",
            "kaigen.dev/reads": "x",
            "kubectl.kubernetes.io/last-applied-configuration": "x" * 100_000,
            "note": "x",
        },
        labels={
            "App_Name": "x",
            "app": "x",
            "app.kubernetes.io/part-of": "x",
            "helm.sh/chart": "x-1",
            "kueue.x-k8s.io/queue-name": "a",
            "release": "prometheus",
        },
    ),
    "StatefulSet in a queue": _at(_stateful("standard"), labels={"kueue.x-k8s.io/queue-name": "a"}),
    "LeaderWorkerSet in a queue": _at(_group("standard"), labels={"kueue.x-k8s.io/queue-name": "a"}),
    "Deployment as Kueue changes it": _template(_deployment(), "kueue.x-k8s.io/pod-suspending-parent", "deployment"),
    "Secret of a store": _external_template(
        type="kubernetes.io/dockerconfigjson",
        metadata={"labels": {"app": "x"}, "annotations": {"example.com/a": "b"}},
        templateFrom=[{"target": "Data", "literal": "a: b"}, {"literal": "c: d"}],
    ),
    "Secret of a generator": _generator("ECRAuthorizationToken", "ecr"),
    "Secret of the cluster's generator": _generator("ClusterGenerator", "a-ecr"),
    "sealed Secret": _sealed(type="Opaque", metadata={"labels": {"app": "x"}}),
    "runtime class": _deployment(runtimeClassName="sandbox", schedulerName="default-scheduler"),
    "scheduler": _deployment(schedulerName="a-scheduler"),
    "load balancer": _service(type="LoadBalancer"),
    "class of a load balancer": _service(type="LoadBalancer", loadBalancerClass="example.com/a"),
    "no address of a load balancer": _service(loadBalancerIP=""),
    "attributes of a claim": _claim("standard", volumeAttributesClassName="a"),
    "annotation of the claims of a JobSet": _job_set(annotations={"example.com/a": "x"}),
    "labels of Ray": ray_cluster({"labels": {"app": "x"}}),
    "devices": _device_template({"labels": {"app": "x"}}),
    "devices of a claim": _device_claim("gpu.example.com"),
    "scrape class": _scraped("a"),
    "queue": _queue("a"),
    "classes of an Ingress": _annotated(ingress(ingressClassName="nginx"), "prometheus.io/probe", "true"),
    "class of an Ingress by its annotation": _annotated(ingress(), "kubernetes.io/ingress.class", "nginx"),
    "role": _account("a-reader"),
    "annotation of pods": _template(_deployment(), "prometheus.io/scrape", "true"),
    "annotation of a Gateway's Service": _infrastructure(_DNS, "x.a.example.com"),
    "annotation of the claims of a StatefulSet": _stateful_claim("example.com/a"),
    "ephemeral volume": _ephemeral_claim("example.com/a"),
    "CronJob": _cron_job("example.com/a"),
    "route": _route(parentRefs=[{"name": "public", "namespace": "gateways"}]),
    "Gateway": _secret_of("team-a"),
    "Service": _service(),
    "monitor": _monitor(matchNames=["team-a"]),
    "scaler": _scaler(identityOwner="pod"),
    "scaler of a server": _scaler(serverAddress="https://a.metrics.example.com/x?y"),
    "relabelled monitor": _relabelled(targetLabel="zone", action="replace"),
    "proxied monitor": _monitor({"proxyUrl": "http://prometheus.monitoring:80"}),
    "authentication": _authentication(podIdentity={"provider": "aws", "identityOwner": "workload"}),
    "priority in a queue": _at(_deployment(), labels={"kueue.x-k8s.io/priority-class": "a-low"}),
    "Role": _role("Role"),
    "ConfigMap": _object("v1", "ConfigMap", data={"a": "b"}),
}
"""Objects that the tenant may have."""
