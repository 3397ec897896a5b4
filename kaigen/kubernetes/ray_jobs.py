"""RayJobs as Kueue counts them: the pods of their clusters, and what KubeRay adds to these.

Source: sigs.k8s.io/kueue v0.19.2, pkg/controller/jobs/rayjob/rayjob_controller.go and
pkg/controller/jobs/raycluster/common.go.
"""

from __future__ import annotations

from kaigen.kubernetes.manifest import Object, entries, mapping

RAY_JOB = "RayJob.ray.io"

_SUBMITTER: Object = {
    "name": "ray-job-submitter",
    "resources": {"limits": {"cpu": "1", "memory": "1Gi"}, "requests": {"cpu": "500m", "memory": "200Mi"}},
}
_AUTOSCALER: Object = {"requests": {"cpu": "500m", "memory": "512Mi"}, "limits": {"cpu": "500m", "memory": "512Mi"}}


def queued_ray_job(obj: Object) -> Object | None:
    """Return a RayJob with the pods that Kueue counts; None for one that uses a cluster that exists.

    The workers of a group are its `replicas`, whatever the limits of its autoscaler are.
    """
    spec = mapping(obj.get("spec"))
    cluster = mapping(spec.get("rayClusterSpec"))
    if spec.get("clusterSelector") or not cluster:
        return None
    mode = spec.get("submissionMode", "K8sJobMode")
    added = [_SUBMITTER] if mode == "SidecarMode" else []
    if cluster.get("enableInTreeAutoscaling") is True:
        resources = mapping(cluster.get("autoscalerOptions")).get("resources") or _AUTOSCALER
        added.append({"name": "autoscaler", "resources": resources})
    groups = [{**group, "minReplicas": 0, "maxReplicas": 0} for _, group in entries(cluster.get("workerGroupSpecs"))]
    counted = {key: value for key, value in cluster.items() if key not in {"autoscalerOptions", "historyServerOptions"}}
    counted |= {"workerGroupSpecs": groups, "headGroupSpec": _with_containers(cluster.get("headGroupSpec"), added)}
    pods = {key: value for key, value in spec.items() if key != "submitterPodTemplate"} | {"rayClusterSpec": counted}
    if mode == "K8sJobMode":
        pods["submitterPodTemplate"] = spec.get("submitterPodTemplate") or {"spec": {"containers": [_SUBMITTER]}}
    return {**obj, "spec": pods}


def _with_containers(head: object, added: list[Object]) -> Object:
    template = mapping(mapping(head).get("template"))
    spec = mapping(template.get("spec"))
    containers = [each for _, each in entries(spec.get("containers"))]
    return {**mapping(head), "template": {**template, "spec": {**spec, "containers": [*containers, *added]}}}
