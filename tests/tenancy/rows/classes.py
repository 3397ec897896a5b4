"""Names of classes and queues: schedulers, runtimes, controllers, storage and devices."""

from __future__ import annotations

from tests.tenancy.objects import (
    claim_of,
    deployment,
    device_template,
    gateway,
    ingress,
    job_set,
    object_of,
    pod,
    pod_monitor,
    pod_with_claim,
    service,
    stateful_set,
    with_annotation,
)
from tests.tenancy.tenants import Body


def _device_claim(*classes: str) -> Body:
    """Return a claim of the first available of some devices."""
    listed = [{"name": f"d{number}", "deviceClassName": name} for number, name in enumerate(classes)]
    spec = {"devices": {"requests": [{"name": "gpu", "firstAvailable": listed}]}}
    return object_of("resource.k8s.io/v1", "ResourceClaim", spec=spec)


def _gateway_of(name: str, **spec: object) -> Body:
    """Return a Gateway of a class."""
    body = gateway()
    return {**body, "spec": {**body["spec"], "gatewayClassName": name, **spec}}


def _scraped(name: str) -> Body:
    """Return a monitor with a scrape class."""
    body = pod_monitor()
    return {**body, "spec": {**body["spec"], "scrapeClass": name}}


def _queue(name: str) -> Body:
    return object_of("kueue.x-k8s.io/v1beta1", "LocalQueue", spec={"clusterQueue": name})


DENIED: dict[str, tuple[Body, str]] = {
    "runtime class": (deployment(runtimeClassName="kata"), "the class `RuntimeClass/kata`"),
    "scheduler": (pod(schedulerName="kai-scheduler"), "the class `Scheduler/kai-scheduler`"),
    "class of a Gateway": (_gateway_of("y"), "the class `GatewayClass/y`"),
    "class of a load balancer": (
        service(type="LoadBalancer", loadBalancerClass="example.com/b"),
        "the class `LoadBalancerClass/example.com/b`",
    ),
    **{
        f"attributes of {what}": (body, "the class `VolumeAttributesClass/gold`")
        for what, body in (
            ("a claim", claim_of("standard", volumeAttributesClassName="gold")),
            ("a StatefulSet", stateful_set("standard", volumeAttributesClassName="gold")),
            ("a JobSet", job_set(claim_of("standard", volumeAttributesClassName="gold"))),
            ("an ephemeral volume", pod_with_claim("standard", volumeAttributesClassName="gold")),
        )
    },
    "devices": (device_template(deviceClassName="gpu.nvidia.com"), "the class `DeviceClass/gpu.nvidia.com`"),
    "class of an Ingress": (ingress(ingressClassName="traefik"), "the class `IngressClass/traefik`"),
    "class of an Ingress by its annotation": (
        with_annotation(ingress(), "kubernetes.io/ingress.class", "traefik"),
        "the class `IngressClass/traefik`",
    ),
    "class of a Service by its annotation": (
        with_annotation(service(), "kubernetes.io/ingress.class", "traefik"),
        "the class `IngressClass/traefik`",
    ),
    "devices of others": (device_template(adminAccess=True), "devices that others use"),
    "devices of a claim": (_device_claim("gpu.example.com", "b.x"), "the class `DeviceClass/b.x`"),
    "scrape class": (_scraped("b"), "the class `ScrapeClass/b`"),
    "queue of another team": (_queue("b"), "the queue `ClusterQueue/b`"),
}
"""Objects with what the finding names, by what is wrong with them."""

ALLOWED: dict[str, Body] = {
    "runtime class": deployment(runtimeClassName="sandbox", schedulerName="default-scheduler"),
    "scheduler": deployment(schedulerName="a-scheduler"),
    "class of a load balancer": service(type="LoadBalancer", loadBalancerClass="example.com/a"),
    "attributes of a claim": claim_of("standard", volumeAttributesClassName="a"),
    "devices": device_template({"labels": {"app": "x"}}),
    "devices of a claim": _device_claim("gpu.example.com"),
    "scrape class": _scraped("a"),
    "queue": _queue("a"),
    "classes of an Ingress": with_annotation(ingress(ingressClassName="nginx"), "prometheus.io/probe", "true"),
    "class of an Ingress by its annotation": with_annotation(ingress(), "kubernetes.io/ingress.class", "nginx"),
}
"""Objects that the tenant may have."""
