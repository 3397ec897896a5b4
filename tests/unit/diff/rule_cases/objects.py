"""Objects of the kinds that the cases need, and what a case is."""

from __future__ import annotations

from typing import Any, NamedTuple

from tests.unit.diff.diff_cases import Obj, container, deployment, obj, template

RBAC = "rbac.authorization.k8s.io/v1"


class Case(NamedTuple):
    """One difference and what one rule says of it, exactly."""

    rule: str
    what: str
    old: Obj | None
    new: Obj | None
    expected: list[tuple[str, str]]
    siblings: tuple[Obj, ...] = ()


def lws(size: int = 2, replicas: int = 1, image: str = "a@sha256:" + "a" * 64) -> Obj:
    """Groups of pods."""
    return obj(
        "LeaderWorkerSet",
        "llm",
        "leaderworkerset.x-k8s.io/v1",
        spec={
            "replicas": replicas,
            "leaderWorkerTemplate": {"size": size, "workerTemplate": template(container(image=image))},
        },
    )


def service(**spec: Any) -> Obj:
    """A Service on port 80."""
    return obj("Service", "web", spec={"selector": {"app": "web"}, "ports": [{"port": 80}], **spec})


def policy(**spec: Any) -> Obj:
    """A NetworkPolicy."""
    return obj("NetworkPolicy", "web", "networking.k8s.io/v1", spec={"podSelector": {}, **spec})


def hpa(low: int | None, high: int) -> Obj:
    """A HorizontalPodAutoscaler of Deployment `web`."""
    bounds = {"maxReplicas": high} | ({"minReplicas": low} if low is not None else {})
    target = {"scaleTargetRef": {"kind": "Deployment", "name": "web"}}
    return obj("HorizontalPodAutoscaler", "web", "autoscaling/v2", spec=target | bounds)


def keda(**spec: Any) -> Obj:
    """A ScaledObject of Deployment `web`."""
    return obj("ScaledObject", "web", "keda.sh/v1alpha1", spec={"scaleTargetRef": {"name": "web"}, **spec})


def role(*rules: Obj, kind: str = "Role") -> Obj:
    """A role with these rules."""
    return obj(kind, "r", RBAC, rules=list(rules))


def grant(resources: list[str], verbs: list[str], group: str = "", **more: Any) -> Obj:
    """One rule of a role."""
    return {"apiGroups": [group], "resources": resources, "verbs": verbs, **more}


def binding(*subjects: str, kind: str = "RoleBinding", to: str = "r") -> Obj:
    """A binding to service accounts."""
    who = [{"kind": "ServiceAccount", "name": name, "namespace": "team-a"} for name in subjects]
    return obj(kind, "b", RBAC, roleRef={"kind": "Role", "name": to, "apiGroup": "g"}, subjects=who)


def namespace(level: str | None) -> Obj:
    """A namespace that enforces a level."""
    labels = {"labels": {"pod-security.kubernetes.io/enforce": level}} if level else {}
    return obj("Namespace", "team-a", metadata=labels)


def application(**spec: Any) -> Obj:
    """An Argo CD Application."""
    return obj("Application", "a", "argoproj.io/v1alpha1", spec=spec)


def flux(**spec: Any) -> Obj:
    """A Flux Kustomization."""
    return obj("Kustomization", "a", "kustomize.toolkit.fluxcd.io/v1", spec=spec)


def pdb(**spec: Any) -> Obj:
    """A PodDisruptionBudget."""
    return obj("PodDisruptionBudget", "web", "policy/v1", spec={"selector": {"matchLabels": {"a": "b"}}, **spec})


def route(host: str, backend: str) -> Obj:
    """An HTTPRoute."""
    return obj(
        "HTTPRoute",
        "web",
        "gateway.networking.k8s.io/v1",
        spec={"hostnames": [host], "rules": [{"backendRefs": [{"name": backend, "port": 80}]}]},
    )


def split(*more: dict[str, Any], **weights: int) -> Obj:
    """An HTTPRoute with these weights of backends, after others."""
    refs = [*more, *({"name": name, "port": 80, "weight": weight} for name, weight in weights.items())]
    return obj("HTTPRoute", "web", "gateway.networking.k8s.io/v1", spec={"rules": [{"backendRefs": refs}]})


def ingress(host: str, backend: str) -> Obj:
    """An Ingress."""
    path = {"path": "/", "backend": {"service": {"name": backend, "port": {"number": 80}}}}
    spec = {"rules": [{"host": host, "http": {"paths": [path]}}]}
    return obj("Ingress", "web", "networking.k8s.io/v1", spec=spec)


def config(name: str = "cfg", kind: str = "ConfigMap", **fields: Any) -> Obj:
    """A ConfigMap, or a Secret."""
    return obj(kind, name, **fields)


def uses_config(how: str) -> Obj:
    """A Deployment that reads ConfigMap `cfg` in one way."""
    if how == "env":
        return deployment(pod=template(container(envFrom=[{"configMapRef": {"name": "cfg"}}])))
    mount = {"name": "v", "mountPath": "/etc/x"} | ({"subPath": "x"} if how == "subPath" else {})
    volumes = [{"name": "v", "configMap": {"name": "cfg"}}]
    return deployment(pod=template(container(volumeMounts=[mount]), volumes=volumes))


def pv(**spec: Any) -> Obj:
    """A PersistentVolume of a bucket."""
    return obj("PersistentVolume", "pv", spec={"csi": {"driver": "s3", "volumeHandle": "b"}, **spec})


def ray(replicas: int = 1, image: str = "ray:1", serve: str = "a") -> Obj:
    """A RayService with one group of workers."""
    group = {"groupName": "gpu", "replicas": replicas, "template": template(container(image=image))}
    config = {"workerGroupSpecs": [group]}
    return obj("RayService", "llm", "ray.io/v1", spec={"rayClusterConfig": config, "serveConfigV2": serve})


def gpu(count: int, name: str = "nvidia.com/gpu") -> Obj:
    """A Deployment with GPUs."""
    return deployment(pod=template(container(resources={"limits": {name: count}})))


def crd() -> Obj:
    """A CustomResourceDefinition."""
    names = {"kind": "Widget", "plural": "widgets"}
    return obj("CustomResourceDefinition", "widgets.a", "apiextensions.k8s.io/v1", spec={"names": names})


def project(*namespaces: str) -> Obj:
    """An AppProject for these namespaces."""
    there = [{"namespace": name, "server": "https://k"} for name in namespaces]
    kinds = [{"group": "batch", "kind": "Job"}]
    spec = {"destinations": there, "namespaceResourceWhitelist": kinds}
    return obj("AppProject", "p", "argoproj.io/v1alpha1", spec=spec)
