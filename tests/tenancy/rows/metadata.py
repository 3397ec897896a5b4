"""Labels and annotations that controllers obey, and the hosts, roles and priorities in them."""

from __future__ import annotations

from tests.tenancy.keys import CONTROLLER_KEYS, ODD_KEYS, UPPER_KEYS
from tests.tenancy.objects import (
    DNS,
    claim_of,
    deployment,
    device_template,
    gateway,
    ingress,
    leader_worker_set,
    object_of,
    pod,
    pod_with_volume,
    service,
    stateful_set,
    with_annotation,
    with_metadata,
)
from tests.tenancy.tenants import Body


def _labelled(body: Body, key: str) -> Body:
    return with_metadata(body, labels={key: "x"})


def _account(role: str) -> Body:
    return with_annotation(object_of("v1", "ServiceAccount"), "eks.amazonaws.com/role-arn", f"{_ROLES}{role}")


def _template(body: Body, key: str, value: str = "x", label: str = "a.example.com/b") -> Body:
    """Return a workload whose pods have an annotation, and a label with the value `c`."""
    known = body["spec"]["template"]
    labels = {**known.get("metadata", {}).get("labels", {}), label: "c"}
    template = {**known, "metadata": {"labels": labels, "annotations": {key: value}}}
    return {**body, "spec": {**body["spec"], "template": template}}


def _ephemeral_claim(key: str) -> Body:
    claim = {"metadata": {"annotations": {key: "x"}}, "spec": claim_of("standard")["spec"]}
    return pod_with_volume(ephemeral={"volumeClaimTemplate": claim})


def _cron_job(key: str) -> Body:
    """Return a CronJob whose Jobs have a label."""
    spec = {**pod()["spec"], "restartPolicy": "Never"}
    job = {"metadata": {"labels": {key: "x"}}, "spec": {"template": {"spec": spec}}}
    return object_of("batch/v1", "CronJob", spec={"schedule": "@daily", "jobTemplate": job})


def _stateful_claim(key: str) -> Body:
    """Return a StatefulSet whose claims have an annotation."""
    body = stateful_set("standard")
    (template,) = body["spec"]["volumeClaimTemplates"]
    claim = {**template, "metadata": {**template["metadata"], "annotations": {key: "x"}}}
    return {**body, "spec": {**body["spec"], "volumeClaimTemplates": [claim]}}


def _infrastructure(key: str, value: str = "x") -> Body:
    """Return a Gateway whose objects have an annotation."""
    body = gateway()
    return {**body, "spec": {**body["spec"], "infrastructure": {"annotations": {key: value}}}}


_ROLES = "arn:aws:iam::111122223333:role/"

_ALIAS = "nginx.ingress.kubernetes.io/server-alias"

_SNIPPET = {"nginx.ingress.kubernetes.io/configuration-snippet": "x"}

DENIED: dict[str, tuple[Body, str]] = {
    "snippet": (with_metadata(ingress(), annotations=_SNIPPET), "nginx.ingress.kubernetes.io/configuration-snippet"),
    "DNS record": (
        with_metadata(service(), annotations={DNS: "b.example.com,x.a.example.com"}),
        "the host `b.example.com`",
    ),
    "internal DNS record": (
        with_annotation(service(), "external-dns.alpha.kubernetes.io/internal-hostname", "b.example.com"),
        "the host `b.example.com`",
    ),
    "DNS record of a Gateway's Service": (_infrastructure(DNS, "b.example.com"), "the host `b.example.com`"),
    "alias": (with_annotation(ingress(), _ALIAS, "x.a.example.com, b.example.com"), "the host `b.example.com`"),
    "alias after a blank": (
        with_annotation(ingress(), _ALIAS, "b.example.com x.a.example.com"),
        "the host `b.example.com x.a.example.com`",
    ),
    "alias as a pattern": (
        with_annotation(ingress(), _ALIAS, "~^b[.]example[.]com$|x.a.example.com"),
        "the host `~^b[.]example[.]com$|x.a.example.com`",
    ),
    "name of a certificate": (
        with_annotation(ingress(), "cert-manager.io/alt-names", "b.example.com"),
        "the host `b.example.com`",
    ),
    **{
        f"annotation {key.replace('/', ' ')}": (with_annotation(ingress(), key), f"the annotation `{key}`")
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
        with_annotation(ingress(), "haproxy.org/backend-config-snippet"),
        "the annotation `haproxy.org/backend-config-snippet`",
    ),
    "configuration of HAProxy Ingress": (
        with_annotation(ingress(), "haproxy-ingress.github.io/config-backend"),
        "the annotation `haproxy-ingress.github.io/config-backend`",
    ),
    "annotation of a load balancer": (
        with_annotation(service(), "service.beta.kubernetes.io/aws-load-balancer-scheme"),
        "the annotation `service.beta.kubernetes.io/aws-load-balancer-scheme`",
    ),
    "annotation of a Gateway's Service": (
        _infrastructure("networking.gke.io/load-balancer-type"),
        "the annotation `networking.gke.io/load-balancer-type`",
    ),
    "role of another team": (_account("b-reader"), "the annotation `eks.amazonaws.com/role-arn`"),
    "label of a pod": (_labelled(pod(), "azure.workload.identity/use"), "the label `azure.workload.identity/use`"),
    **{
        f"annotation {key.replace('/', ' ')} of pods": (_template(deployment(), key), f"the annotation `{key}`")
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
        with_annotation(object_of("v1", "Secret"), "replicator.v1.mittwald.de/replicate-from", "team-b/x"),
        "the annotation `replicator.v1.mittwald.de/replicate-from`",
    ),
    "priority in a queue": (
        with_metadata(deployment(), labels={"kueue.x-k8s.io/priority-class": "high"}),
        "the priority class `high`",
    ),
    "priority of pods in a queue": (
        _template(deployment(), "a", label="kueue.x-k8s.io/priority-class"),
        "the priority class `c`",
    ),
    **{
        f"key {key.replace('/', ' ')}": (with_annotation(object_of("v1", "ConfigMap"), key), f"the annotation `{key}`")
        for key in (*CONTROLLER_KEYS, *ODD_KEYS, *UPPER_KEYS)
    },
    **{
        f"label {key.replace('/', ' ')} of pods": (_template(deployment(), "a", label=key), f"the label `{key}`")
        for key in ("kai.scheduler/queue", "linkerd.io/inject", "gpu-memory", "dev.gvisor.flag.host-uds")
    },
    "label of a namespace's own": (_labelled(object_of("v1", "ServiceAccount"), "istio-injection"), "istio-injection"),
    "annotation of the claims of a template": (
        device_template({"annotations": {"resource.kubernetes.io/x": "x"}}),
        "the annotation `resource.kubernetes.io/x`",
    ),
}
"""Objects with what the finding names, by what is wrong with them."""

ALLOWED: dict[str, Body] = {
    "DNS record": with_metadata(service(), annotations={DNS: "x.a.example.com"}),
    "alias": with_annotation(ingress(), _ALIAS, "x.a.example.com, y.a.example.com"),
    "annotation of the tenant": with_annotation(ingress(), "alb.ingress.kubernetes.io/scheme"),
    "annotation that kaigen sets": with_metadata(
        ingress(),
        annotations={
            "nginx.ingress.kubernetes.io/proxy-read-timeout": "3600",
            "alb.ingress.kubernetes.io/load-balancer-attributes": "idle_timeout.timeout_seconds=3600",
            "cert-manager.io/cluster-issuer": "public",
        },
    ),
    "annotation that GKE sets": with_annotation(service(), "cloud.google.com/neg", '{"ingress":true}'),
    "own domain": with_metadata(
        pod(),
        annotations={"example.com/ingress.kubernetes.io": "x", "a.b.example.com/x": "x"},
        labels={"a-team.example.org/x": "x", "x.example.com/y_z.A": "x"},
    ),
    "usual keys": with_metadata(
        _template(deployment(), "kubectl.kubernetes.io/default-container", "main", label="app.kubernetes.io/name"),
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
    "StatefulSet in a queue": with_metadata(stateful_set("standard"), labels={"kueue.x-k8s.io/queue-name": "a"}),
    "LeaderWorkerSet in a queue": with_metadata(
        leader_worker_set("standard"), labels={"kueue.x-k8s.io/queue-name": "a"}
    ),
    "Deployment as Kueue changes it": _template(deployment(), "kueue.x-k8s.io/pod-suspending-parent", "deployment"),
    "role": _account("a-reader"),
    "annotation of pods": _template(deployment(), "prometheus.io/scrape", "true"),
    "annotation of a Gateway's Service": _infrastructure(DNS, "x.a.example.com"),
    "annotation of the claims of a StatefulSet": _stateful_claim("example.com/a"),
    "ephemeral volume": _ephemeral_claim("example.com/a"),
    "CronJob": _cron_job("example.com/a"),
    "priority in a queue": with_metadata(deployment(), labels={"kueue.x-k8s.io/priority-class": "a-low"}),
}
"""Objects that the tenant may have."""
