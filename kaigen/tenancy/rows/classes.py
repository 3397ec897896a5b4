"""What objects reach by the names of classes and queues: schedulers, runtimes, controllers and devices."""

from __future__ import annotations

from kaigen.kubernetes.manifest import ALL, Step
from kaigen.tenancy.conditions.references import GrantedClass
from kaigen.tenancy.conditions.values import NotTrue
from kaigen.tenancy.reach import PODS, Reach
from kaigen.tenancy.rows.pods import EPHEMERAL_CLAIM
from kaigen.tenancy.rows.storage import CLAIM_KINDS, in_all_claims

_INGRESS = "IngressClass"
_MONITORS = ("PodMonitor.monitoring.coreos.com", "ServiceMonitor.monitoring.coreos.com")
_DEVICES = ("ResourceClaim.resource.k8s.io", "ResourceClaimTemplate.resource.k8s.io")
_ATTRIBUTES = GrantedClass("VolumeAttributesClass", always=("",))
_ATTRIBUTES_CLASS = ("spec", "volumeAttributesClassName")


def _in_requests(*path: str) -> tuple[Step, ...]:
    """Return the paths in a request for devices, which is `exactly` or `firstAvailable` since `v1beta2`."""
    places = (("spec",), ("spec", "spec"))
    forms: tuple[Step, ...] = ((), ("exactly",), ("firstAvailable", ALL))
    return tuple((*place, "devices", "requests", ALL, *form, *path) for place in places for form in forms)


CLASS_REACHES: tuple[Reach, ...] = (
    Reach("runtime-class", "the class", (PODS,), (("runtimeClassName",),), GrantedClass("RuntimeClass")),
    Reach(
        "scheduler",
        "the class",
        (PODS,),
        (("schedulerName",),),
        GrantedClass("Scheduler", always=("default-scheduler",)),
    ),
    Reach(
        "ingress-class",
        "the class",
        ("Ingress.networking.k8s.io",),
        (("spec", "ingressClassName"),),
        GrantedClass(_INGRESS),
    ),
    Reach(
        "ingress-class-annotation",
        "the class",
        (),
        (("metadata", "annotations", "kubernetes.io/ingress.class"),),
        GrantedClass(_INGRESS),
    ),
    Reach(
        "gateway-class",
        "the class",
        ("Gateway.gateway.networking.k8s.io",),
        (("spec", "gatewayClassName"),),
        GrantedClass("GatewayClass"),
    ),
    Reach(
        "load-balancer-class",
        "the class",
        ("Service",),
        (("spec", "loadBalancerClass"),),
        GrantedClass("LoadBalancerClass"),
    ),
    Reach("volume-attributes", "the class", CLAIM_KINDS, in_all_claims(_ATTRIBUTES_CLASS), _ATTRIBUTES),
    Reach("pod-volume-attributes", "the class", (PODS,), ((*EPHEMERAL_CLAIM, *_ATTRIBUTES_CLASS),), _ATTRIBUTES),
    Reach("device-class", "the class", _DEVICES, _in_requests("deviceClassName"), GrantedClass("DeviceClass")),
    Reach("device-admin", "devices that others use", _DEVICES, _in_requests("adminAccess"), NotTrue()),
    Reach("scrape-class", "the class", _MONITORS, (("spec", "scrapeClass"),), GrantedClass("ScrapeClass")),
    Reach(
        "cluster-queue",
        "the queue",
        ("LocalQueue.kueue.x-k8s.io",),
        (("spec", "clusterQueue"),),
        GrantedClass("ClusterQueue"),
    ),
)
