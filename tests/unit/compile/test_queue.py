"""The kind Queue: the quota of nodes and GPUs as objects of Kueue, and what else reads it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from kaigen.config.cluster import ClusterVersions
from kaigen.config.settings import Config
from kaigen.pipeline.run import Run, render
from kaigen.pipeline.validate import validate
from kaigen.plan.queues import plan_queues, queue_data, queue_tables, reasons
from tests import plain_yaml

Object = dict[str, Any]
CPU = {"cpu": "8", "memory": "64Gi"}
H100 = {"gpuType": "H100", "gpus": 8}


def spec(kind: str, name: str, namespace: str = "", **fields: Any) -> Object:
    metadata = {"name": name, **({"namespace": namespace} if namespace else {})}
    return {"apiVersion": "kaigen.dev/v1alpha1", "kind": kind, "metadata": metadata, "spec": fields}


def queue(name: str = "q", *quota: Object, **fields: Any) -> Object:
    return spec("Queue", name, quota=list(quota) or [CPU], **fields)


def job(name: str = "j", *, cpu: str = "1", queue: str = "q", **fields: Any) -> Object:
    placement = {"queue": queue, **fields.pop("placement", {})}
    resources = {"cpu": cpu, "memory": "1Gi", **fields.pop("resources", {})}
    return spec("Job", name, image="train:1", resources=resources, placement=placement, **fields)


def config(root: Path, profile: str = "generic", kueue: str = "") -> Config:
    cluster = ClusterVersions(kueue=kueue) if kueue else None
    return replace(Config(root=root), specs=("specs.yaml",), profile=profile, cluster=cluster, implied_namespace=False)


def written(root: Path, *documents: Object) -> list[str]:
    (root / "specs.yaml").write_text("---\n".join(plain_yaml.dump(each) for each in documents), encoding="utf-8")
    return [str(root / "specs.yaml")]


def objects(root: Path, *documents: Object, **settings: str) -> dict[tuple[str, str, str], Object]:
    """Return the objects of specs by namespace of the app, kind and name."""
    files = render(written(root, *documents), config(root, **settings))
    return {
        (path.split("/")[0], body["kind"], body["metadata"]["name"]): body
        for path, data in files.items()
        if path.endswith(".yaml") and "/manifests/" in path
        for body in plain_yaml.load_all(bytes(data).decode())
        if body["kind"] != "Kustomization"
    }


def problems(root: Path, *documents: Object, **settings: str) -> list[str]:
    """Return code, message and field of the problems of specs."""
    written(root, *documents)
    found, _ = validate((), config(root, **settings))
    return [f"{item.code} {item.message}" for item in found]


def flavor_of(body: Object) -> list[tuple[str, Object]]:
    (group,) = body["spec"]["resourceGroups"]
    return [
        (each["name"], {quota.pop("name"): quota for quota in each["resources"]})
        for each in group["flavors"]
        if [quota["name"] for quota in each["resources"]] == group["coveredResources"]
    ]


def test_nodes_become_a_flavor_with_their_labels_and_a_quota(tmp_path: Path) -> None:
    entry = {"instanceType": "p5.48xlarge", "count": 4, "borrow": 2, "lend": 1}
    found = objects(tmp_path, queue("q", entry, cohort="c"), profile="eks")
    assert found["default", "ResourceFlavor", "q-p5.48xlarge"]["spec"] == {
        "nodeLabels": {"node.kubernetes.io/instance-type": "p5.48xlarge"}
    }
    cluster_queue = found["default", "ClusterQueue", "q"]
    assert cluster_queue["apiVersion"] == "kueue.x-k8s.io/v1beta2"
    assert "namespace" not in cluster_queue["metadata"]
    assert cluster_queue["spec"]["cohortName"] == "c"
    assert flavor_of(cluster_queue) == [
        (
            "q-p5.48xlarge",
            {
                "nvidia.com/gpu": {"nominalQuota": "32", "borrowingLimit": "16", "lendingLimit": "8"},
                "cpu": {"nominalQuota": "768", "borrowingLimit": "384", "lendingLimit": "192"},
                "memory": {"nominalQuota": "8Ti", "borrowingLimit": "4Ti", "lendingLimit": "2Ti"},
            },
        )
    ]
    assert found["default", "LocalQueue", "q"]["spec"] == {"clusterQueue": "q"}


def test_nodes_have_the_label_of_their_gpu_where_pods_select_them_by_it(tmp_path: Path) -> None:
    entry = {"instanceType": "a3-highgpu-8g", "count": 1}
    found = objects(tmp_path, queue("q", entry, {**entry, "spot": True}), profile="gke")
    labels = {
        "node.kubernetes.io/instance-type": "a3-highgpu-8g",
        "cloud.google.com/gke-accelerator": "nvidia-h100-80gb",
    }
    assert found["default", "ResourceFlavor", "q-a3-highgpu-8g"]["spec"] == {"nodeLabels": labels}
    assert found["default", "ResourceFlavor", "q-a3-highgpu-8g-spot"]["spec"] == {
        "nodeLabels": {**labels, "cloud.google.com/gke-spot": "true"},
        "nodeTaints": [{"key": "cloud.google.com/gke-spot", "value": "true", "effect": "NoSchedule"}],
    }


def test_gpus_have_a_quota_and_cpus_and_memory_none_that_limits(tmp_path: Path) -> None:
    found = objects(tmp_path, queue("q", {**H100, "borrow": 4}, cohort="c"))
    ((name, amounts),) = flavor_of(found["default", "ClusterQueue", "q"])
    assert name == "q-h100"
    assert amounts == {
        "nvidia.com/gpu": {"nominalQuota": "8", "borrowingLimit": "4"},
        "cpu": {"nominalQuota": "1M"},
        "memory": {"nominalQuota": "1Pi"},
    }
    run = job(cpu="65", resources={"gpus": 8, "memory": "64Gi"})
    assert problems(tmp_path, queue("q", H100), run) == []
    (wrong,) = problems(tmp_path, queue("q", {**H100, "cpu": "64"}), run)
    assert "flavor q-h100 has 64 cpu for it, and it needs 65" in wrong


def test_each_flavor_has_a_quota_of_every_resource_of_the_queue(tmp_path: Path) -> None:
    extra = {**CPU, "nodeLabels": {"pool": "cpu"}, "resources": {"ephemeral-storage": "1Ti"}}
    found = objects(tmp_path, queue("q", H100, extra))
    (_, first), (_, second) = flavor_of(found["default", "ClusterQueue", "q"])
    assert list(first) == list(second) == ["nvidia.com/gpu", "cpu", "ephemeral-storage", "memory"]
    assert first["ephemeral-storage"] == second["nvidia.com/gpu"] == {"nominalQuota": "0"}


def test_each_namespace_has_a_local_queue_in_an_app_of_its_own(tmp_path: Path) -> None:
    found = objects(tmp_path, queue("q", namespaces=["a", "b", "a"]))
    assert sorted(key for key in found if key[1] == "LocalQueue") == [
        ("a", "LocalQueue", "q"),
        ("b", "LocalQueue", "q"),
    ]
    selector = found["default", "ClusterQueue", "q"]["spec"]["namespaceSelector"]
    assert selector["matchExpressions"] == [
        {"key": "kubernetes.io/metadata.name", "operator": "In", "values": ["a", "b"]}
    ]
    found = objects(tmp_path, queue("q", namespaces=["default", "a"]))
    assert sorted(key for key in found if key[1] == "LocalQueue") == [
        ("a", "LocalQueue", "q"),
        ("default", "LocalQueue", "q"),
    ]


def test_a_queue_may_use_a_cluster_queue_that_exists(tmp_path: Path) -> None:
    found = objects(tmp_path, spec("Queue", "q", "lab", clusterQueue="shared"))
    assert list(found) == [("lab", "LocalQueue", "q")]
    assert found["lab", "LocalQueue", "q"]["spec"] == {"clusterQueue": "shared"}
    wrong = problems(tmp_path, spec("Queue", "q", clusterQueue="shared", cohort="c", priorities={"a": 1}))
    assert wrong == [
        "KG0340 `cohort` has no effect next to `clusterQueue`, which has its own quota",
        "KG0340 `priorities` has no effect next to `clusterQueue`, which has its own quota",
    ]


@pytest.mark.parametrize(
    ("version", "api", "field"), [("0.14.8", "v1beta1", "cohort"), ("0.16.2", "v1beta2", "cohortName")]
)
def test_the_version_of_kueue_decides_about_the_api_version(tmp_path: Path, version: str, api: str, field: str) -> None:
    found = objects(tmp_path, queue("q", cohort="c"), kueue=version)
    assert {body["apiVersion"] for body in found.values()} == {f"kueue.x-k8s.io/{api}"}
    assert found["default", "ClusterQueue", "q"]["spec"][field] == "c"


def test_what_decides_about_preemption_and_shares_is_written_as_it_is(tmp_path: Path) -> None:
    preemption = {
        "withinClusterQueue": "LowerPriority",
        "reclaimWithinCohort": "Any",
        "borrowWithinCohort": {"policy": "LowerPriority", "maxPriorityThreshold": 100},
    }
    fields = {"cohort": "c", "preemption": preemption, "fairSharing": {"weight": 2}, "strategy": "StrictFIFO"}
    body = objects(tmp_path, queue("q", **fields))["default", "ClusterQueue", "q"]["spec"]
    assert (body["preemption"], body["fairSharing"], body["queueingStrategy"]) == (
        preemption,
        {"weight": "2"},
        "StrictFIFO",
    )


def test_priorities_are_classes_of_the_cluster_and_a_label_of_the_run(tmp_path: Path) -> None:
    found = objects(tmp_path, queue("q", priorities={"low": 10}), job(placement={"priority": "q-low"}))
    assert found["default", "WorkloadPriorityClass", "q-low"]["value"] == 10
    (run,) = (body for key, body in found.items() if key[1] == "Job")
    labels = run["metadata"]["labels"]
    assert (labels["kueue.x-k8s.io/queue-name"], labels["kueue.x-k8s.io/priority-class"]) == ("q", "q-low")


@pytest.mark.parametrize(
    ("profile", "rack"),
    [
        ("eks", "topology.k8s.aws/network-node-layer-3"),
        ("gke", "cloud.google.com/gce-topology-subblock"),
        ("aks", "network.topology.nvidia.com/leaf"),
        ("generic", "network.topology.nvidia.com/leaf"),
    ],
)
def test_levels_of_the_network_are_node_labels_of_the_profile(tmp_path: Path, profile: str, rack: str) -> None:
    levels = ["block", "rack", "example.com/row", "host"]
    near = job(nodes=2, placement={"topology": {"required": "rack"}})
    found = objects(tmp_path, queue("q", {**H100, "nodeLabels": {"a": "b"}}, topology=levels), near, profile=profile)
    labels = [each["nodeLabel"] for each in found["default", "Topology", "q"]["spec"]["levels"]]
    assert labels[1:] == [rack, "example.com/row", "kubernetes.io/hostname"]
    assert found["default", "ResourceFlavor", "q-h100"]["spec"]["topologyName"] == "q"
    (run,) = (body for key, body in found.items() if key[1] == "JobSet")
    pods = run["spec"]["replicatedJobs"][0]["template"]["spec"]["template"]
    assert pods["metadata"]["annotations"]["kueue.x-k8s.io/podset-required-topology"] == rack


def test_a_leader_and_its_workers_are_placed_together(tmp_path: Path) -> None:
    server = spec(
        "Topology",
        "t",
        preset="llama-3.3-70b-instruct",
        shape={"nodes": 2, "pipelineParallel": 2, "tensorParallel": 8},
        resources={"gpus": 8, "gpuType": "H100"},
        tokenSecret={"name": "hf"},
        placement={"queue": "q", "topology": {"preferred": "block"}},
    )
    found = objects(tmp_path, server)
    group = found["default", "LeaderWorkerSet", "t"]["spec"]["leaderWorkerTemplate"]
    for name in ("leaderTemplate", "workerTemplate"):
        notes = group[name]["metadata"]["annotations"]
        assert notes["kueue.x-k8s.io/podset-preferred-topology"] == "network.topology.nvidia.com/spine"
        assert notes["kueue.x-k8s.io/podset-group-name"] == "group"


NODES = {"instanceType": "p5.48xlarge", "count": 4}


@pytest.mark.parametrize(
    ("document", "profile", "expected"),
    [
        (queue("q", {"instanceType": "p5.48xlarge"}), "eks", "KG0475 `instanceType` needs `count`"),
        (queue("q", {"gpus": 8}), "eks", "KG0475 `gpus` needs `gpuType`"),
        (queue("q", {**NODES, **H100}), "eks", "KG0475 `instanceType` and `gpuType` exclude each other"),
        (queue("q", {"cpu": "8"}), "eks", "KG0475 the entry does not say how much it is"),
        (queue("q", {**CPU, "lend": 1}, cohort="c"), "eks", "KG0475 `lend` counts nodes or GPUs, and the entry has"),
        (
            queue("q", {"instanceType": "p55.48xlarge", "count": 1}),
            "eks",
            "KG0306 unknown instance type `p55.48xlarge`",
        ),
        (queue("q", {"gpuType": "H101", "gpus": 1}), "eks", "KG0306 unknown GPU type `H101`"),
        (queue("q", {**NODES, "spot": True}), "generic", "KG0308 profile `generic` has no spot nodes"),
        (queue("q", {**NODES, "borrow": 1}), "eks", "KG0476 `borrow` needs a cohort"),
        (queue("q", {**NODES, "lend": 5}, cohort="c"), "eks", "KG0476 `lend` is 5, and the entry has 4"),
        (queue("q", NODES, fairSharing={"weight": 1}), "eks", "KG0476 `fairSharing` needs a cohort"),
        (
            queue("q", NODES, preemption={"borrowWithinCohort": {"policy": "LowerPriority"}}, cohort="c"),
            "eks",
            "KG0476 `borrowWithinCohort` needs a `reclaimWithinCohort` other than Never",
        ),
        (queue("q", NODES, NODES), "eks", "KG0477 another entry has the same nodes, `p5.48xlarge`"),
        (queue("q", NODES, flavorsOf="r", cohort="c"), "eks", "KG0477 namespace `default` has no Queue `r` with"),
        (queue("q", NODES, topology=["row"]), "eks", "KG0478 profile `eks` has no node label for the level `row`"),
        (queue("q", NODES, topology=["host", "rack"]), "eks", "KG0478 `host` must be the last level"),
        (
            queue("q", NODES, topology=["topology.k8s.aws/network-node-layer-3", "rack"]),
            "eks",
            "KG0478 two levels have the same node label",
        ),
        (queue("q", topology=["rack"]), "eks", "KG0478 a flavor with a topology needs node labels"),
        (job(placement={"topology": {"required": "host"}}), "eks", "KG0340 `topology` has no effect on one pod"),
        (
            job(nodes=2, placement={"topology": {"required": "row"}}),
            "eks",
            "KG0478 profile `eks` has no node label for the level `row`",
        ),
    ],
)
def test_contradictions_are_errors(tmp_path: Path, document: Object, profile: str, expected: str) -> None:
    assert any(found.startswith(expected) for found in problems(tmp_path, document, profile=profile))


def test_without_a_queue_a_priority_and_a_topology_have_no_effect(tmp_path: Path) -> None:
    run = spec("Job", "j", image="i:1", nodes=2, placement={"priority": "low", "topology": {"required": "rack"}})
    assert [found for found in problems(tmp_path, run) if "KG0340" in found] == [
        "KG0340 `priority` has no effect without a queue",
        "KG0340 `topology` has no effect without a queue",
    ]


def test_an_old_version_without_topologies_is_refused(tmp_path: Path) -> None:
    documents = queue("q", {**H100, "nodeLabels": {"a": "b"}}, topology=["rack", "host"])
    assert problems(tmp_path, documents, kueue="0.13.1") == ["KG0478 Kueue 0.13.1 does not place pods by a topology"]
    # The newest API version is not in 0.14.
    old = problems(tmp_path, documents, kueue="0.14.0")
    assert [each for each in old if not each.endswith("is deprecated")] == []


def test_queues_of_a_cohort_use_the_flavors_of_one_of_them(tmp_path: Path) -> None:
    owner = queue("q", {**H100, "nodeLabels": {"a": "b"}}, cohort="c", topology=["host"])
    other = queue("r", {**H100, "nodeLabels": {"a": "b"}}, cohort="c", flavorsOf="q")
    found = objects(tmp_path, owner, other)
    assert [key[2] for key in found if key[1] in ("ResourceFlavor", "Topology")] == ["q-h100", "q"]
    assert flavor_of(found["default", "ClusterQueue", "r"])[0][0] == "q-h100"
    differs = queue("r", H100, cohort="c", flavorsOf="q")
    elsewhere = {**other, "metadata": {"name": "r", "namespace": "platform"}}
    found = objects(tmp_path, owner, elsewhere)
    assert flavor_of(found["platform", "ClusterQueue", "r"])[0][0] == "q-h100"
    (wrong,) = problems(tmp_path, owner, differs)
    assert wrong.startswith("KG0477 the Queue `q` has no flavor `h100` with the same node labels")
    apart = queue("r", {**H100, "nodeLabels": {"a": "b"}}, cohort="c")
    assert problems(tmp_path, owner, apart) == [
        "KG0481 no other queue of the cohort `c` has a flavor of `q`",
        "KG0481 no other queue of the cohort `c` has a flavor of `r`",
    ]
    placed = queue("r", {**H100, "nodeLabels": {"a": "b"}}, cohort="c", flavorsOf="q", topology=["host"])
    assert problems(tmp_path, owner, placed) == [
        "KG0340 `topology` has no effect next to `flavorsOf`: the flavors are those of another Queue"
    ]


def test_a_run_that_its_queue_can_never_hold_is_an_error(tmp_path: Path) -> None:
    (wrong,) = problems(tmp_path, queue(), job(cpu="9"))
    assert wrong.startswith("KG0479 the queue `q` can never hold Job j-")
    assert wrong.endswith(": flavor q-nodes has 8 cpu for it, and it needs 9")
    assert problems(tmp_path, queue(), job(cpu="8")) == []


def test_unknown_queues_and_priorities_are_warnings_where_queues_are_defined(tmp_path: Path) -> None:
    assert problems(tmp_path, job(queue="p")) == []
    run = job(queue="p", placement={"priority": "hihg"})
    assert problems(tmp_path, queue("q", priorities={"high": 1}), run) == [
        "KG0480 namespace `default` has no queue `p`",
        "KG0480 no Queue has the priority `hihg`",
    ]
    elsewhere = {**job(), "metadata": {"name": "j", "namespace": "other"}}
    assert problems(tmp_path, queue(), elsewhere) == ["KG0480 namespace `other` has no queue `q`"]


def test_plan_says_which_flavor_takes_an_app_and_what_waits(tmp_path: Path) -> None:
    run = Run.load(
        written(tmp_path, queue(), job("a", cpu="5"), job("b", cpu="5"), job("c", cpu="9")), config(tmp_path)
    )
    found = plan_queues(run)
    assert found is not None
    quotas, apps = queue_tables(found)
    assert quotas[1] == ("q", "q-nodes", "8 cpu", "8 cpu")
    assert [(row[1].rpartition("-")[0], *row[2:]) for row in apps[1:]] == [
        ("default/a", "1", "5 cpu", "q-nodes", "yes"),
        ("default/b", "1", "5 cpu", "q-nodes", "waits"),
        ("default/c", "1", "9 cpu", "-", "never"),
    ]
    (why,) = reasons(found)
    assert why.endswith("flavor q-nodes has 8 cpu for it, and it needs 9")
    (data,) = queue_data(found)
    assert [each["admitted"] for each in data["workloads"]] == ["yes", "waits", "never"]  # type: ignore[attr-defined]


def test_a_repository_without_queues_has_no_plan_of_them(tmp_path: Path) -> None:
    assert plan_queues(Run.load(written(tmp_path, job()), config(tmp_path))) is None


def test_a_cohort_is_in_another_one(tmp_path: Path) -> None:
    small = queue("vision", cohort="vision", parentCohort="research")
    large = queue("b", {"cpu": "16", "memory": "64Gi"}, cohort="research", flavorsOf="vision")
    (found,) = [body for (_, kind, _), body in objects(tmp_path, small, large).items() if kind == "Cohort"]
    assert (found["metadata"]["name"], found["spec"]) == ("vision", {"parentName": "research"})
    assert "namespace" not in found["metadata"]
    assert problems(tmp_path, small, large, job(cpu="24", queue="vision")) == []
    assert problems(
        tmp_path, {**small, "spec": {**small["spec"], "parentCohort": None}}, large, job(cpu="24", queue="vision")
    )


def test_a_cohort_above_itself_is_an_error(tmp_path: Path) -> None:
    first, second = queue("x", cohort="x", parentCohort="y"), queue("y", cohort="y", parentCohort="x", flavorsOf="x")
    found = problems(tmp_path, first, second)
    assert len(found) == 2
    assert all("KG0482" in each and "are a cycle, in which Kueue admits nothing" in each for each in found)
    (own,) = problems(tmp_path, queue("x", cohort="x", parentCohort="x"))
    assert "KG0482" in own
    (other,) = problems(tmp_path, queue("a", cohort="x", parentCohort="y"))
    assert "KG0483 the Queue of the cohort `x` has another name, `a`" in other


def test_a_parent_needs_a_cohort(tmp_path: Path) -> None:
    (found,) = problems(tmp_path, queue("a", parentCohort="x"))
    assert "`parentCohort` needs a cohort" in found
