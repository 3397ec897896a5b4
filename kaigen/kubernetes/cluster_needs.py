"""What a cluster must have for an object: APIs of controllers, classes, drivers and resources of nodes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from kaigen.core.json_types import FieldPath
from kaigen.kubernetes.claims import created_volume
from kaigen.kubernetes.manifest import Object, entries, group_of, mapping, text, type_of
from kaigen.kubernetes.pods import containers, pod_templates
from kaigen.kubernetes.queues import QUEUE_LABEL, queue_of
from kaigen.kubernetes.schemas import may_be_custom

NeedKind = Literal[
    "API",
    "StorageClass",
    "PriorityClass",
    "RuntimeClass",
    "IngressClass",
    "GatewayClass",
    "DeviceClass",
    "CSIDriver",
    "resource",
]

_TYPES: Mapping[NeedKind, str] = {
    "CSIDriver": "CSIDriver.storage.k8s.io",
    "DeviceClass": "DeviceClass.resource.k8s.io",
    "GatewayClass": "GatewayClass.gateway.networking.k8s.io",
    "IngressClass": "IngressClass.networking.k8s.io",
    "PriorityClass": "PriorityClass.scheduling.k8s.io",
    "RuntimeClass": "RuntimeClass.node.k8s.io",
    "StorageClass": "StorageClass.storage.k8s.io",
}

DEFAULT_CLASS = "(default)"
"""Name of a class that an object leaves to the cluster."""

SUPPLIERS: Mapping[str, str] = {
    "argoproj.io": "Argo CD",
    "bitnami.com": "Sealed Secrets",
    "custom.metrics.k8s.io": "Prometheus Adapter, or another adapter of metrics",
    "external-secrets.io": "External Secrets Operator",
    "external.metrics.k8s.io": "an adapter of metrics",
    "gateway.networking.k8s.io": "Gateway API, and an implementation of it",
    "helm.toolkit.fluxcd.io": "Flux: helm-controller",
    "inference.networking.k8s.io": "Gateway API Inference Extension",
    "jobset.x-k8s.io": "JobSet",
    "karpenter.azure.com": "Karpenter, or node auto-provisioning of AKS",
    "karpenter.k8s.aws": "Karpenter",
    "karpenter.sh": "Karpenter, or a node auto-provisioner with its API",
    "keda.sh": "KEDA",
    "kueue.x-k8s.io": "Kueue",
    "kustomize.toolkit.fluxcd.io": "Flux: kustomize-controller",
    "leaderworkerset.x-k8s.io": "LeaderWorkerSet",
    "metrics.k8s.io": "metrics-server",
    "monitoring.coreos.com": "Prometheus Operator",
    "ray.io": "KubeRay",
    "source.toolkit.fluxcd.io": "Flux: source-controller",
    "trainer.kubeflow.org": "Kubeflow Trainer",
}
"""What serves an API group and acts on its objects."""

RESOURCE_SUPPLIERS: Mapping[str, str] = {
    "amd.com": "AMD GPU device plugin",
    "habana.ai": "Intel Gaudi device plugin",
    "hugepages-": "nodes with huge pages",
    "nvidia.com": "NVIDIA device plugin, or GPU Operator",
    "rdma": "RDMA shared device plugin",
    "vpc.amazonaws.com": "EFA device plugin",
}
"""What makes nodes offer a resource, by the beginning of its name."""

DRIVER_SUPPLIERS: Mapping[str, str] = {
    "blob.csi.azure.com": "Azure Blob CSI driver",
    "ch.ctrox.csi.s3-driver": "csi-s3",
    "gcsfuse.csi.storage.gke.io": "Cloud Storage FUSE CSI driver of GKE",
    "s3.csi.aws.com": "Mountpoint for Amazon S3 CSI driver",
    "s3.csi.scality.com": "Scality CSI driver for S3",
    "secrets-store.csi.k8s.io": "Secrets Store CSI driver, and its provider",
}
"""What provides a CSI driver."""

CLASS_SUPPLIERS: Mapping[str, str] = {
    "RuntimeClass nvidia": "NVIDIA Container Toolkit, or GPU Operator",
    "DeviceClass gpu.nvidia.com": "NVIDIA DRA driver for GPUs",
}
"""What usually makes a class, by kind and name."""

_METRIC_APIS = {
    "ContainerResource": "metrics.k8s.io/v1beta1",
    "External": "external.metrics.k8s.io/v1beta1",
    "Object": "custom.metrics.k8s.io/v1beta2",
    "Pods": "custom.metrics.k8s.io/v1beta2",
    "Resource": "metrics.k8s.io/v1beta1",
}
"""https://kubernetes.io/docs/tasks/run-application/horizontal-pod-autoscale/, 2026-11-01"""

_STANDARD_RESOURCES = frozenset({"cpu", "memory", "ephemeral-storage"})
_BUILT_IN_PRIORITIES = frozenset({"system-cluster-critical", "system-node-critical"})
_NO_PROVISIONER = ""
"""The storage class of a claim for a volume that exists."""


class ClusterNeed(Struct, frozen=True):
    """Something that a cluster must have.

    Attributes:
        kind: what it is; `API` for a group, version and kind, `resource` for a resource of nodes.
        name: its name, such as `ray.io/v1 RayService`, `nvidia.com/gpu` or `fast-ssd`.
        path: the field of the object that needs it.
        text: the text there.
        supplier: what usually provides it; empty where kaigen does not know.
    """

    kind: NeedKind
    name: str
    path: FieldPath
    text: str
    supplier: str = ""

    @property
    def type(self) -> str:
        """Kind and group of the object; empty for what is not an object."""
        return _TYPES.get(self.kind, "")


class NamedObject(Struct, frozen=True):
    """An object that another one names, and that the table of object kinds has no field for.

    Attributes:
        type: kind and group.
        namespace: its namespace; empty for an object of the cluster.
        name: its name.
        path: the field with the name.
    """

    type: str
    namespace: str
    name: str
    path: FieldPath


def cluster_needs(obj: Object) -> Iterator[ClusterNeed]:
    """Yield what the cluster must have for an object; the same as often as fields need it."""
    yield from _apis(obj)
    spec = mapping(obj.get("spec"))
    match type_of(obj):
        case "PersistentVolumeClaim":
            yield from _claim(spec, ("spec",))
        case "Job.batch":
            volume = created_volume(obj)
            if volume is not None:
                yield from _claim(mapping(volume.body.get("spec")), volume.path)
        case "ResourceClaim.resource.k8s.io":
            yield from _devices(spec, ("spec",))
        case "ResourceClaimTemplate.resource.k8s.io":
            yield from _devices(mapping(spec.get("spec")), ("spec", "spec"))
        case "PersistentVolume":
            yield from _driver(mapping(spec.get("csi")), ("spec", "csi"))
        case "Ingress.networking.k8s.io" if "ingressClassName" in spec:
            yield from _class("IngressClass", spec, "ingressClassName", ("spec",))
        case "Ingress.networking.k8s.io" if not _has_old_class(obj):
            yield ClusterNeed("IngressClass", DEFAULT_CLASS, ("spec",), "")
        case "Gateway.gateway.networking.k8s.io":
            yield from _class("GatewayClass", spec, "gatewayClassName", ("spec",))
    yield from _claim_templates(obj)
    for template in pod_templates(obj):
        yield from _pod(template.spec, template.spec_path)
        for container in containers(template):
            yield from _resources(container.body, container.path)


def named_objects(obj: Object, namespace: str) -> Iterator[NamedObject]:
    """Yield the queue that an object waits in, the gateway of a route, and the store of an ExternalSecret.

    Args:
        obj: the object.
        namespace: where it is.
    """
    queue = queue_of(obj)
    if queue:
        yield NamedObject("LocalQueue.kueue.x-k8s.io", namespace, queue, ("metadata", "labels", QUEUE_LABEL))
    spec = mapping(obj.get("spec"))
    group = group_of(obj)
    if group == "gateway.networking.k8s.io":
        for number, parent in entries(spec.get("parentRefs")):
            kind = text(parent.get("kind")) or "Gateway"
            where = text(parent.get("namespace")) or namespace
            path = ("spec", "parentRefs", number, "name")
            yield NamedObject(f"{kind}.{group}", where, text(parent.get("name")), path)
    if group == "external-secrets.io":
        store = mapping(spec.get("secretStoreRef"))
        kind = text(store.get("kind")) or "SecretStore"
        where = "" if kind.startswith("Cluster") else namespace
        if name := text(store.get("name")):
            yield NamedObject(f"{kind}.{group}", where, name, ("spec", "secretStoreRef", "name"))
    if group in {"karpenter.sh"}:
        node_class = mapping(mapping(mapping(spec.get("template")).get("spec")).get("nodeClassRef"))
        if name := text(node_class.get("name")):
            type_ = f"{text(node_class.get('kind'))}.{text(node_class.get('group'))}"
            yield NamedObject(type_, "", name, ("spec", "template", "spec", "nodeClassRef", "name"))


def api_need(api_version: str, kind: str, path: FieldPath = ("kind",)) -> ClusterNeed:
    """Return the need for the API of a kind; for any version of it when only the group is given."""
    group = api_version.partition("/")[0]
    name = f"{api_version} {kind}".rstrip()
    return ClusterNeed("API", name, path, kind, SUPPLIERS.get(group, ""))


def _apis(obj: Object) -> Iterator[ClusterNeed]:
    version, kind = text(obj.get("apiVersion")), text(obj.get("kind"))
    if may_be_custom(version, kind):
        yield api_need(version, kind)
    if queue := queue_of(obj):
        # Any version of Kueue reads the label.
        need = api_need("kueue.x-k8s.io", "LocalQueue", ("metadata", "labels", QUEUE_LABEL))
        yield replace(need, text=queue)
    if type_of(obj) == "HorizontalPodAutoscaler.autoscaling":
        for number, metric in entries(mapping(obj.get("spec")).get("metrics")):
            api = _METRIC_APIS.get(text(metric.get("type")))
            if api:
                yield api_need(api, "", ("spec", "metrics", number, "type"))


def _has_old_class(obj: Object) -> bool:
    """Return whether an Ingress names its class by the annotation that came before the field."""
    return "kubernetes.io/ingress.class" in mapping(mapping(obj.get("metadata")).get("annotations"))


def _claim(spec: Object, path: FieldPath) -> Iterator[ClusterNeed]:
    if "storageClassName" in spec:
        yield from _class("StorageClass", spec, "storageClassName", path)
    elif not spec.get("volumeName"):
        yield ClusterNeed("StorageClass", DEFAULT_CLASS, path, "")


def _claim_templates(obj: Object) -> Iterator[ClusterNeed]:
    for path, spec in claim_templates(obj):
        yield from _claim(spec, path)


def claim_templates(obj: Object) -> Iterator[tuple[FieldPath, Object]]:
    """Yield the spec of each claim that an object makes for each of its pods, with its path."""
    spec = mapping(obj.get("spec"))
    for number, claim in entries(spec.get("volumeClaimTemplates")):
        yield ("spec", "volumeClaimTemplates", number, "spec"), mapping(claim.get("spec"))
    for template in pod_templates(obj):
        for number, volume in entries(template.spec.get("volumes")):
            claim = mapping(mapping(volume.get("ephemeral")).get("volumeClaimTemplate"))
            if claim:
                path = template.place(("volumes", number, "ephemeral", "volumeClaimTemplate", "spec"))
                yield path, mapping(claim.get("spec"))


def _class(kind: NeedKind, holder: Object, field: str, path: FieldPath) -> Iterator[ClusterNeed]:
    name = holder.get(field)
    if isinstance(name, str) and name != _NO_PROVISIONER:
        yield ClusterNeed(kind, name, (*path, field), name, CLASS_SUPPLIERS.get(f"{kind} {name}", ""))


def _driver(source: Object, path: FieldPath) -> Iterator[ClusterNeed]:
    name = text(source.get("driver"))
    if name:
        yield ClusterNeed("CSIDriver", name, (*path, "driver"), name, DRIVER_SUPPLIERS.get(name, ""))


def _devices(spec: Object, path: FieldPath) -> Iterator[ClusterNeed]:
    for number, request in entries(mapping(spec.get("devices")).get("requests")):
        place = (*path, "devices", "requests", number)
        yield from _class("DeviceClass", request, "deviceClassName", place)
        exactly = mapping(request.get("exactly"))
        yield from _class("DeviceClass", exactly, "deviceClassName", (*place, "exactly"))
        for index, one in entries(request.get("firstAvailable")):
            yield from _class("DeviceClass", one, "deviceClassName", (*place, "firstAvailable", index))


def _pod(spec: Object, path: FieldPath) -> Iterator[ClusterNeed]:
    if spec.get("priorityClassName") not in _BUILT_IN_PRIORITIES:
        yield from _class("PriorityClass", spec, "priorityClassName", path)
    yield from _class("RuntimeClass", spec, "runtimeClassName", path)
    for number, volume in entries(spec.get("volumes")):
        yield from _driver(mapping(volume.get("csi")), (*path, "volumes", number, "csi"))


def _resources(container: Object, path: FieldPath) -> Iterator[ClusterNeed]:
    resources = mapping(container.get("resources"))
    for field in ("limits", "requests"):
        for name in mapping(resources.get(field)):
            if name not in _STANDARD_RESOURCES:
                supplier = next((by for start, by in RESOURCE_SUPPLIERS.items() if name.startswith(start)), "")
                yield ClusterNeed("resource", name, (*path, "resources", field, name), name, supplier)
