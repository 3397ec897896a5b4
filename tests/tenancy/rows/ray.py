"""Clusters of Ray: the Services and the Ingress that KubeRay makes of them, and their pods."""

from __future__ import annotations

from tests.tenancy.objects import DNS, object_of, pod, security_context
from tests.tenancy.tenants import Body


def ray_cluster(head: Body | None = None, **cluster: object) -> Body:
    """Return a RayCluster that the tenant may have, with changes of its head and its `spec`."""
    return object_of("ray.io/v1", "RayCluster", spec=_ray(head, **cluster))


def _ray(head: Body | None = None, **cluster: object) -> Body:
    template = {"spec": pod()["spec"]}
    return {"headGroupSpec": {"rayStartParams": {}, "template": template, **(head or {})}, **cluster}


def _ray_service(head: Body | None = None, **spec: object) -> Body:
    return object_of("ray.io/v1", "RayService", spec={"rayClusterConfig": _ray(head), **spec})


_BALANCED: Body = {"type": "LoadBalancer", "ports": [{"port": 80}]}

DENIED: dict[str, tuple[Body, str]] = {
    "image of Ray's autoscaler": (
        ray_cluster(autoscalerOptions={"image": "x:1", "securityContext": security_context()}),
        "the image `x:1`",
    ),
    "rights of Ray's autoscaler": (
        ray_cluster(autoscalerOptions={"securityContext": security_context(privileged=True)}),
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
        ray_cluster({"headService": {"metadata": {"annotations": {DNS: "bank.example.com"}}}}),
        "the host `bank.example.com`",
    ),
    "Ingress of Ray": (ray_cluster({"enableIngress": True}), "all hosts by an Ingress"),
    "Service of a RayService": (
        _ray_service(serveService={"spec": {**_BALANCED, "type": "NodePort"}}),
        "a Service of type `NodePort`",
    ),
    "annotation of a RayService's Service": (
        _ray_service(serveService={"metadata": {"annotations": {DNS: "bank.example.com"}}}),
        "the host `bank.example.com`",
    ),
    "head of a RayService": (_ray_service({"enableIngress": True}), "all hosts by an Ingress"),
    "head of a RayJob": (
        object_of("ray.io/v1", "RayJob", spec={"rayClusterSpec": _ray({"enableIngress": True})}),
        "all hosts by an Ingress",
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
}
"""Objects with what the finding names, by what is wrong with them."""

ALLOWED: dict[str, Body] = {
    "Ray": ray_cluster(
        {"serviceType": "ClusterIP", "enableIngress": False}, autoscalerOptions={"securityContext": security_context()}
    ),
    "RayJob": object_of("ray.io/v1", "RayJob", spec={"entrypoint": "python x.py", "rayClusterSpec": _ray()}),
    "RayService": _ray_service(
        {"headService": {"spec": {"type": "ClusterIP", "ports": [{"port": 8265}]}}},
        serveService={"metadata": {"annotations": {"example.com/a": "b"}}},
    ),
    "labels of Ray": ray_cluster({"labels": {"app": "x"}}),
}
"""Objects that the tenant may have."""
