"""What the pods and claims of each kind request, counted by hand."""

from __future__ import annotations

from typing import Any, get_args

import pytest

from kaigen.catalog.catalog import BUILT_IN
from kaigen.catalog.gpus import is_gpu_resource
from kaigen.kubernetes.cluster_needs import ClusterNeed, NeedKind, cluster_needs, named_objects
from kaigen.kubernetes.quantities import NANO
from kaigen.kubernetes.requests import readable, requests_of, scaled_replicas

POD = {
    "containers": [{"name": "run", "resources": {"requests": {"cpu": "500m", "memory": "1Gi"}}}],
    "initContainers": [
        {"name": "wait", "resources": {"requests": {"cpu": "2"}}},
        {"name": "proxy", "restartPolicy": "Always", "resources": {"requests": {"memory": "1Gi"}}},
    ],
}
"""Half a core runs; an init container needs two for a while, and a side-car one more gigabyte."""
GPU = {"containers": [{"name": "run", "resources": {"limits": {"nvidia.com/gpu": 2}}}]}
CLAIM = {"resources": {"requests": {"storage": "5Gi"}}}


def made(api_version: str, kind: str, **spec: Any) -> dict[str, Any]:
    return {"apiVersion": api_version, "kind": kind, "metadata": {"name": "a"}, "spec": spec}


def lws(leader: bool) -> dict[str, Any]:
    template = {"size": 4, "workerTemplate": {"spec": GPU}}
    if leader:
        template["leaderTemplate"] = {"spec": POD}
    return made("leaderworkerset.x-k8s.io/v1", "LeaderWorkerSet", replicas=2, leaderWorkerTemplate=template)


@pytest.mark.parametrize(
    ("obj", "most", "expected"),
    [
        (made("v1", "Pod", **POD), None, {"cpu": "2", "memory": "2Gi"}),
        (made("apps/v1", "Deployment", replicas=3, template={"spec": POD}), None, {"cpu": "8", "memory": "8Gi"}),
        (made("apps/v1", "Deployment", replicas=3, template={"spec": GPU}), 5, {"nvidia.com/gpu": "14"}),
        (
            made("apps/v1", "StatefulSet", replicas=2, template={"spec": GPU}, volumeClaimTemplates=[{"spec": CLAIM}]),
            None,
            {"nvidia.com/gpu": "4", "storage": "10Gi"},
        ),
        (made("batch/v1", "Job", parallelism=4, completions=3, template={"spec": GPU}), None, {"nvidia.com/gpu": "6"}),
        (lws(leader=True), None, {"cpu": "4", "memory": "4Gi", "nvidia.com/gpu": "12"}),
        (lws(leader=False), None, {"nvidia.com/gpu": "16"}),
        (
            made(
                "jobset.x-k8s.io/v1alpha2",
                "JobSet",
                replicatedJobs=[
                    {"name": "w", "replicas": 2, "template": {"spec": {"parallelism": 3, "template": {"spec": GPU}}}}
                ],
            ),
            None,
            {"nvidia.com/gpu": "12"},
        ),
        (
            made(
                "ray.io/v1",
                "RayCluster",
                headGroupSpec={"template": {"spec": POD}},
                workerGroupSpecs=[{"groupName": "w", "replicas": 1, "maxReplicas": 3, "template": {"spec": GPU}}],
            ),
            None,
            {"cpu": "2", "memory": "2Gi", "nvidia.com/gpu": "6"},
        ),
        (
            made(
                "ray.io/v1",
                "RayCluster",
                headGroupSpec={"template": {"spec": {}}},
                workerGroupSpecs=[{"groupName": "w", "replicas": 0, "minReplicas": 4, "template": {"spec": GPU}}],
            ),
            None,
            {"nvidia.com/gpu": "8"},
        ),
        (made("apps/v1", "Deployment", replicas=3, template={"spec": GPU}), 2, {"nvidia.com/gpu": "8"}),
        (
            made("keda.sh/v1alpha1", "ScaledJob", maxReplicaCount=5, jobTargetRef={"template": {"spec": GPU}}),
            None,
            {"nvidia.com/gpu": "10"},
        ),
        (
            made("keda.sh/v1alpha1", "ScaledJob", jobTargetRef={"parallelism": 2, "template": {"spec": GPU}}),
            None,
            {"nvidia.com/gpu": "400"},
        ),
        (
            made("v1", "Pod", **{**POD, "resources": {"requests": {"cpu": "1", "memory": "8Gi"}}}),
            None,
            {"cpu": "2", "memory": "8Gi"},
        ),
        (made("v1", "PersistentVolumeClaim", **CLAIM), None, {"storage": "5Gi"}),
        (made("v1", "PersistentVolumeClaim", storageClassName="", **CLAIM), None, {}),
    ],
)
def test_an_object_requests_what_all_of_its_pods_request(
    obj: dict[str, Any], most: int | None, expected: dict[str, str]
) -> None:
    found = requests_of(obj, BUILT_IN, most)
    assert {name: readable(name, amount) for name, amount in found.items() if amount} == expected


def test_an_autoscaler_names_what_it_scales_and_how_far() -> None:
    scaler = made("keda.sh/v1alpha1", "ScaledObject", maxReplicaCount=7, scaleTargetRef={"name": "chat"})
    assert scaled_replicas(scaler) == ("Deployment", "chat", 7)
    assert scaled_replicas(made("apps/v1", "Deployment", replicas=2)) is None


@pytest.mark.parametrize(
    ("resource", "amount", "text"),
    [("cpu", 1_500_000_000, "1500m"), ("memory", 3 * 1024**3 * 10**9, "3Gi"), ("memory", 10**9, "1"),
     ("storage", 1_000_000_000_000 * 10**9, "932Gi"), ("nvidia.com/gpu", 8 * 10**9, "8")],
)  # fmt: skip
def test_an_amount_is_printed_as_a_quantity(resource: str, amount: int, text: str) -> None:
    assert readable(resource, amount) == text


def test_an_object_needs_the_apis_classes_drivers_and_resources_that_it_names() -> None:
    pod = {
        **GPU,
        "priorityClassName": "high",
        "runtimeClassName": "nvidia",
        "volumes": [
            {"name": "b", "csi": {"driver": "gcsfuse.csi.storage.gke.io"}},
            {"name": "s", "ephemeral": {"volumeClaimTemplate": {"spec": {**CLAIM, "storageClassName": "fast"}}}},
        ],
    }
    job = made("batch/v1", "Job", template={"spec": pod})
    job["metadata"]["labels"] = {"kueue.x-k8s.io/queue-name": "batch"}
    assert {(need.kind, need.name) for need in cluster_needs(job)} == {
        ("API", "kueue.x-k8s.io LocalQueue"),
        ("CSIDriver", "gcsfuse.csi.storage.gke.io"),
        ("PriorityClass", "high"),
        ("RuntimeClass", "nvidia"),
        ("StorageClass", "fast"),
        ("resource", "nvidia.com/gpu"),
    }
    assert [(each.type, each.namespace, each.name) for each in named_objects(job, "ml")] == [
        ("LocalQueue.kueue.x-k8s.io", "ml", "batch")
    ]


def test_device_classes_of_every_form_of_a_request_are_needed() -> None:
    requests = [
        {"name": "a", "exactly": {"deviceClassName": "gpu.nvidia.com"}},
        {"name": "b", "firstAvailable": [{"name": "c", "deviceClassName": "mig.nvidia.com"}]},
    ]
    template = made("resource.k8s.io/v1", "ResourceClaimTemplate", spec={"devices": {"requests": requests}})
    assert [(need.kind, need.name) for need in cluster_needs(template)] == [
        ("DeviceClass", "gpu.nvidia.com"),
        ("DeviceClass", "mig.nvidia.com"),
    ]


@pytest.mark.parametrize(
    ("obj", "expected"),
    [
        (made("v1", "PersistentVolumeClaim", **CLAIM), {"(default)"}),
        (made("v1", "PersistentVolumeClaim", volumeName="disk", **CLAIM), set()),
        (made("v1", "PersistentVolumeClaim", storageClassName="", **CLAIM), set()),
        (made("networking.k8s.io/v1", "Ingress", ingressClassName="traefik"), {"traefik"}),
        (
            made("autoscaling/v2", "HorizontalPodAutoscaler", metrics=[{"type": "Resource"}, {"type": "Pods"}]),
            {"metrics.k8s.io/v1beta1", "custom.metrics.k8s.io/v1beta2"},
        ),
        (made("apps/v1", "Deployment", template={"spec": {"priorityClassName": "system-node-critical"}}), set()),
    ],
)
def test_what_the_cluster_has_anyway_is_no_need(obj: dict[str, Any], expected: set[str]) -> None:
    assert {need.name for need in cluster_needs(obj)} == expected


@pytest.mark.parametrize("kind", get_args(NeedKind))
def test_need_of_an_object_has_its_type(kind: NeedKind) -> None:
    found = ClusterNeed(kind, "name", (), "name").type
    assert found.partition(".")[0] == ("" if kind in ("API", "resource") else kind)


@pytest.mark.parametrize(
    ("replicas", "strategy", "expected"),
    [
        (4, {}, 5),
        (1, {}, 2),
        (0, {}, 0),
        (5, {"type": "RollingUpdate"}, 7),
        (4, {"type": "Recreate"}, 4),
        (4, {"rollingUpdate": {"maxSurge": 0}}, 4),
        (4, {"rollingUpdate": {"maxSurge": 3}}, 7),
        (4, {"rollingUpdate": {"maxSurge": "3"}}, 7),
        (3, {"rollingUpdate": {"maxSurge": "50%"}}, 5),
        (3, {"rollingUpdate": {"maxSurge": "100%"}}, 6),
        (3, {"rollingUpdate": {"maxUnavailable": 1}}, 4),
        (3, {"rollingUpdate": {"maxSurge": "many"}}, 3),
    ],
)
def test_the_replicas_that_a_rollout_adds_are_counted(replicas: int, strategy: dict[str, Any], expected: int) -> None:
    template = {"spec": {"containers": [{"resources": {"limits": {"nvidia.com/gpu": 1}}}]}}
    obj = made("apps/v1", "Deployment", replicas=replicas, strategy=strategy, template=template)
    assert requests_of(obj, BUILT_IN)["nvidia.com/gpu"] == expected * NANO
    assert requests_of(obj, BUILT_IN, surge=False)["nvidia.com/gpu"] == replicas * NANO


def test_the_groups_that_a_rollout_adds_are_counted() -> None:
    obj = lws(leader=False)
    obj["spec"]["rolloutStrategy"] = {"rollingUpdateConfiguration": {"maxSurge": 1}}
    assert requests_of(obj, BUILT_IN)["nvidia.com/gpu"] == 24 * NANO


@pytest.mark.parametrize(
    ("limits", "expected"),
    [
        ({"nvidia.com/gpumem": 3000}, {"nvidia.com/gpu": 1}),
        ({"nvidia.com/gpumem-percentage": 50, "nvidia.com/gpucores": 30}, {"nvidia.com/gpu": 1}),
        ({"nvidia.com/gpu": 2, "nvidia.com/gpumem": 3000}, {"nvidia.com/gpu": 2}),
        ({"nvidia.com/gpu": 0, "nvidia.com/gpucores": 30}, {"nvidia.com/gpu": 1}),
        ({"nvidia.com/gpumem": 0}, {}),
        ({"nvidia.com/mig-1g.10gb": 2}, {"nvidia.com/mig-1g.10gb": 2}),
        ({"nvidia.com/gpu.shared": 2}, {"nvidia.com/gpu.shared": 2}),
        ({"amd.com/gpu": 2}, {"amd.com/gpu": 2}),
        ({"volcano.sh/vgpu-number": 2, "volcano.sh/vgpu-memory": 9}, {"volcano.sh/vgpu-number": 2}),
        ({"volcano.sh/vgpu-memory": 9}, {"volcano.sh/vgpu-number": 1}),
        ({"hygon.com/dcumem": 2000}, {"hygon.com/dcunum": 1}),
        ({"mthreads.com/sgpu-core": 8}, {"mthreads.com/vgpu": 1}),
        ({"iluvatar.ai/MR-V100-vgpu": 1, "iluvatar.ai/MR-V100.vMem": 64}, {"iluvatar.ai/MR-V100-vgpu": 1}),
        ({"iluvatar.ai/BI-V150.vCore": 50}, {"iluvatar.ai/vgpu": 1}),
        ({"metax-tech.com/sgpu": 1, "metax-tech.com/vmemory": 4}, {"metax-tech.com/sgpu": 1}),
        ({"enflame.com/vgcu": 3}, {"enflame.com/vgcu": 3}),
        ({"kunlunxin.com/xpu": 4}, {"kunlunxin.com/xpu": 4}),
        ({"huawei.com/Ascend910B2-memory": 8192}, {"huawei.com/Ascend910": 1}),
        ({"cambricon.com/mlu.smlu.vmemory": 20}, {"cambricon.com/vmlu": 1}),
        ({"example.com/gpumem": 8}, {}),
    ],
)
def test_a_share_of_a_gpu_is_one_gpu(limits: dict[str, Any], expected: dict[str, int]) -> None:
    found = requests_of(made("v1", "Pod", containers=[{"resources": {"limits": limits}}]), BUILT_IN)
    gpus = {name: amount // NANO for name, amount in found.items() if is_gpu_resource(name, BUILT_IN) and amount}
    assert gpus == expected
