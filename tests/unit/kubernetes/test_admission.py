"""Which workloads Kueue admits. tests/cluster/test_queue_kind.py asks Kueue itself."""

from __future__ import annotations

from typing import Any

import pytest

from kaigen.catalog.catalog import Catalog
from kaigen.kubernetes.admission import Queues, Verdict, shares_nothing
from kaigen.kubernetes.requests import requests_of
from kaigen.kubernetes.train_jobs import with_trained
from kaigen.kubernetes.workloads import workloads_of

API = "kueue.x-k8s.io/v1beta2"
Object = dict[str, Any]


def named(kind: str, name: str, **fields: Any) -> Object:
    return {"apiVersion": API, "kind": kind, "metadata": {"name": name}, **fields}


def amount(name: str, nominal: Any, borrow: Any = None, lend: Any = None) -> Object:
    limits = {"borrowingLimit": borrow, "lendingLimit": lend}
    return {"name": name, "nominalQuota": nominal, **{key: value for key, value in limits.items() if value is not None}}


def queue(name: str, *flavors: tuple[str, list[Object]], cohort: str = "") -> list[Object]:
    covered = [each["name"] for each in flavors[0][1]]
    groups = [
        {
            "coveredResources": covered,
            "flavors": [{"name": flavor, "resources": amounts} for flavor, amounts in flavors],
        }
    ]
    spec = {**({"cohortName": cohort} if cohort else {}), "resourceGroups": groups}
    return [named("ClusterQueue", name, spec=spec), named("LocalQueue", name, spec={"clusterQueue": name})]


def flavor(name: str, **spec: Any) -> Object:
    return named("ResourceFlavor", name, spec=spec)


def run(name: str, cpu: Any = 1, *, pods: int = 1, queue: str = "q", priority: str = "", **pod: Any) -> Object:
    labels = {"kueue.x-k8s.io/queue-name": queue}
    if priority:
        labels["kueue.x-k8s.io/priority-class"] = priority
    template: Object = {"spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": cpu}}}], **pod}}
    if "annotations" in pod:
        template["metadata"] = {"annotations": template["spec"].pop("annotations")}
    spec = {"parallelism": pods, "completions": pods, "template": template}
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name, "labels": labels}, "spec": spec}


def verdicts(*objects: Object) -> dict[str, Verdict]:
    placed = [("ns", each) for each in objects]
    found = Queues(placed).verdicts(workloads_of(placed, Catalog()))
    return {each.workload.name: each for each in found}


def states(*objects: Object) -> dict[str, str]:
    found = verdicts(*objects)
    return {name: "never" if each.never else "waits" if each.waits else "yes" for name, each in found.items()}


PLAIN = [flavor("f"), *queue("q", ("f", [amount("cpu", 4)]))]


def test_workloads_are_admitted_in_the_order_of_their_names_until_the_quota_is_used() -> None:
    assert states(*PLAIN, run("a", 3), run("b", 2), run("c", 1), run("d", 5)) == {
        "a": "yes",
        "b": "waits",
        "c": "yes",
        "d": "never",
    }


def test_a_higher_priority_comes_first() -> None:
    high = named("WorkloadPriorityClass", "high", value=7)
    assert states(*PLAIN, high, run("a", 3), run("b", 2, priority="high")) == {"a": "waits", "b": "yes"}


def test_all_pods_of_a_job_are_admitted_as_one() -> None:
    assert states(*PLAIN, run("a", 1, pods=4)) == {"a": "yes"}
    found = verdicts(*PLAIN, run("a", "1500m", pods=3))["a"]
    assert found.never == ["flavor f has 4 cpu for it, and it needs 4500m"]


def test_a_queue_that_no_object_defines_has_no_verdict() -> None:
    assert states(run("a", 9)) == {}
    assert states(*PLAIN, run("a", 9, queue="other")) == {}
    assert states(*PLAIN[1:], run("a", 9)) == {}


def test_a_resource_without_a_quota_is_never_admitted() -> None:
    resources = {"requests": {"cpu": 1, "memory": "1Gi"}}
    found = verdicts(*PLAIN, run("a", containers=[{"name": "c", "resources": resources}]))["a"]
    assert found.never == ["the queue has no quota of memory"]


def test_the_quota_of_pods_counts_them() -> None:
    objects = [flavor("f"), *queue("q", ("f", [amount("cpu", 4), amount("pods", 2)]))]
    assert states(*objects, run("a", 1, pods=2), run("b", 1, pods=3)) == {"a": "yes", "b": "never"}


@pytest.mark.parametrize(
    ("mine", "theirs", "most"),
    [
        ({}, {}, 8),
        ({"borrow": 1}, {}, 5),
        ({}, {"lend": 1}, 5),
        ({"borrow": 0}, {}, 4),
        ({"lend": 2}, {}, 8),
        ({"lend": 2, "borrow": 3}, {"lend": 0}, 4),
        ({"lend": 0, "borrow": 3}, {}, 7),
    ],
)
def test_a_queue_borrows_what_the_cohort_lends(mine: Object, theirs: Object, most: int) -> None:
    objects = [
        flavor("f"),
        *queue("q", ("f", [amount("cpu", 4, **mine)]), cohort="c"),
        *queue("r", ("f", [amount("cpu", 4, **theirs)]), cohort="c"),
        *queue("s", ("f", [amount("cpu", 100)]), cohort="d"),
    ]
    assert states(*objects, run("a", most)) == {"a": "yes"}
    assert states(*objects, run("a", most + 1)) == {"a": "never"}


def test_what_one_queue_borrowed_another_one_waits_for() -> None:
    objects = [
        flavor("f"),
        *queue("q", ("f", [amount("cpu", 4, lend=3)]), cohort="c"),
        *queue("r", ("f", [amount("cpu", 4)]), cohort="c"),
    ]
    assert states(*objects, run("a", 6, queue="r"), run("b", 2)) == {"a": "yes", "b": "yes"}
    assert states(*objects, run("a", 6, queue="r"), run("b", 3)) == {"a": "yes", "b": "waits"}


def test_flavors_are_tried_in_their_order() -> None:
    flavors = [flavor("f"), flavor("g")]
    both = queue("q", ("f", [amount("cpu", 2)]), ("g", [amount("cpu", 4)]))
    found = verdicts(*flavors, *both, run("a", 2), run("b", 4), run("c", 5))
    assert found["a"].flavors == {"cpu": "f"}
    assert found["b"].flavors == {"cpu": "g"}
    assert [text.split(" has ")[0] for text in found["c"].never] == ["flavor f", "flavor g"]


IN_X = {"key": "zone", "operator": "In", "values": ["x"]}


def affinity(*terms: list[Object]) -> Object:
    selector = {"nodeSelectorTerms": [{"matchExpressions": term} for term in terms]}
    return {"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": selector}}}


@pytest.mark.parametrize(
    ("pod", "fits"),
    [
        ({"nodeSelector": {"zone": "x"}}, True),
        ({"nodeSelector": {"zone": "y"}}, False),
        ({"nodeSelector": {"other": "y"}}, True),
        (affinity([IN_X]), True),
        (affinity([{**IN_X, "values": ["y"]}]), False),
        (affinity([{**IN_X, "values": ["y"]}], [IN_X]), True),
        # A term about other labels may be true of the nodes.
        (affinity([{**IN_X, "values": ["y"]}], [{**IN_X, "key": "other"}]), True),
        (affinity([{"key": "zone", "operator": "NotIn", "values": ["x"]}]), False),
        (affinity([{"key": "zone", "operator": "Exists"}]), True),
        (affinity([{"key": "zone", "operator": "DoesNotExist"}]), False),
        (affinity([{"key": "size", "operator": "Gt", "values": ["7"]}]), True),
        (affinity([{"key": "size", "operator": "Lt", "values": ["8"]}]), False),
    ],
)
def test_pods_that_select_other_nodes_are_never_admitted(pod: Object, fits: bool) -> None:
    objects = [flavor("f", nodeLabels={"zone": "x", "size": "8"}), *queue("q", ("f", [amount("cpu", 4)]))]
    assert states(*objects, run("a", **pod)) == {"a": "yes" if fits else "never"}


TAINT = {"key": "spot", "value": "true", "effect": "NoSchedule"}


@pytest.mark.parametrize(
    ("toleration", "fits"),
    [
        (None, False),
        ({"operator": "Exists"}, True),
        ({"key": "spot", "operator": "Exists"}, True),
        ({"key": "spot", "value": "true"}, True),
        ({"key": "spot", "value": "false"}, False),
        ({"key": "other", "operator": "Exists"}, False),
        ({"key": "spot", "operator": "Exists", "effect": "NoExecute"}, False),
    ],
)
def test_pods_that_do_not_tolerate_a_taint_are_never_admitted(toleration: Object | None, fits: bool) -> None:
    group = queue("q", ("f", [amount("cpu", 4)]))
    pods = run("a", tolerations=[toleration] if toleration else [])
    assert states(flavor("f", nodeTaints=[TAINT]), *group, pods) == {"a": "yes" if fits else "never"}
    assert states(flavor("f", nodeTaints=[{**TAINT, "effect": "PreferNoSchedule"}]), *group, pods) == {"a": "yes"}
    assert states(flavor("f", nodeTaints=[TAINT], tolerations=[{"operator": "Exists"}]), *group, pods) == {"a": "yes"}


def near(level: str) -> Object:
    return {"annotations": {"kueue.x-k8s.io/podset-required-topology": level}}


def test_a_topology_must_have_the_level_of_the_pods() -> None:
    topology = named("Topology", "t", spec={"levels": [{"nodeLabel": "rack"}, {"nodeLabel": "host"}]})
    placed, plain = flavor("f", nodeLabels={"a": "b"}, topologyName="t"), flavor("g")
    one = queue("q", ("f", [amount("cpu", 4)]))
    both = queue("q", ("g", [amount("cpu", 4)]), ("f", [amount("cpu", 4)]))
    assert states(topology, placed, *one, run("a", **near("rack"))) == {"a": "yes"}
    assert states(topology, placed, *one, run("a", **near("block"))) == {"a": "never"}
    assert states(*PLAIN, run("a", **near("rack"))) == {"a": "never"}
    # Without a wish, pods are placed by the topology only where all flavors have one.
    assert states(topology, placed, *one, run("a")) == {"a": "yes"}
    found = verdicts(topology, placed, plain, *both, run("a"), run("b", 4, **near("rack")), run("c", 3), run("d", 4))
    assert [found[name].flavors["cpu"] for name in "abcd"] == ["g", "f", "g", "g"]
    assert [found[name].waits for name in "abcd"] == [False, False, False, True]


def queued(kind: str, api: str, spec: Object) -> Object:
    labels = {"kueue.x-k8s.io/queue-name": "q"}
    return {"apiVersion": api, "kind": kind, "metadata": {"name": "a", "labels": labels}, "spec": spec}


TEMPLATE = {"spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": 1}}}]}}


@pytest.mark.parametrize(
    ("obj", "copies", "counts"),
    [
        (queued("Deployment", "apps/v1", {"replicas": 3, "template": TEMPLATE}), 3, [1]),
        (queued("StatefulSet", "apps/v1", {"replicas": 3, "template": TEMPLATE}), 1, [3]),
        (
            queued(
                "LeaderWorkerSet",
                "leaderworkerset.x-k8s.io/v1",
                {
                    "replicas": 2,
                    "leaderWorkerTemplate": {"size": 4, "leaderTemplate": TEMPLATE, "workerTemplate": TEMPLATE},
                },
            ),
            2,
            [1, 3],
        ),
        (
            queued(
                "JobSet",
                "jobset.x-k8s.io/v1alpha2",
                {"replicatedJobs": [{"name": "w", "template": {"spec": {"parallelism": 2, "template": TEMPLATE}}}]},
            ),
            1,
            [2],
        ),
    ],
    ids=["Deployment", "StatefulSet", "LeaderWorkerSet", "JobSet"],
)
def test_a_workload_is_what_kueue_admits_as_one(obj: Object, copies: int, counts: list[int]) -> None:
    (found,) = workloads_of([("ns", obj)], Catalog())
    assert found is not None
    assert (found.copies, [pods.count for pods in found.pod_sets]) == (copies, counts)
    assert found.requests == {"cpu": sum(counts) * 10**9}


def test_sets_of_pods_of_one_workload_are_added_up() -> None:
    group = {"size": 5, "leaderTemplate": TEMPLATE, "workerTemplate": TEMPLATE}
    obj = queued("LeaderWorkerSet", "leaderworkerset.x-k8s.io/v1", {"leaderWorkerTemplate": group})
    assert states(*PLAIN, obj) == {"a": "never"}
    group["size"] = 4
    assert states(*PLAIN, obj) == {"a": "yes"}


def test_replicas_that_are_workloads_of_their_own_may_wait() -> None:
    objects = queued("Deployment", "apps/v1", {"replicas": 5, "template": TEMPLATE})
    assert states(*PLAIN, objects) == {"a": "waits"}


def test_the_pods_of_a_train_job_are_those_of_its_runtime() -> None:
    api = "trainer.kubeflow.org/v1alpha1"
    work: Object = {"name": "node", "template": {"spec": {"parallelism": 3, "completions": 3, "template": TEMPLATE}}}
    runtime: Object = {"apiVersion": api, "kind": "TrainingRuntime", "metadata": {"name": "a"}}
    runtime["spec"] = {"template": {"spec": {"replicatedJobs": [work]}}}
    train = queued("TrainJob", api, {"runtimeRef": {"kind": "TrainingRuntime", "name": "a"}})
    (found,) = workloads_of([("ns", train), ("other", train), ("ns", runtime)], Catalog())
    assert (found.key, [pods.count for pods in found.pod_sets]) == (("ns", "TrainJob", "a"), [3])
    assert states(*PLAIN, train, runtime) == {"a": "yes"}
    work["template"]["spec"] |= {"parallelism": 5, "completions": 5}
    assert states(*PLAIN, train, runtime) == {"a": "never"}


def test_a_train_job_changes_how_many_pods_its_runtime_has_and_what_they_request() -> None:
    api = "trainer.kubeflow.org/v1alpha1"
    labels = {"trainer.kubeflow.org/trainjob-ancestor-step": "trainer"}
    pod = {"spec": {"containers": [{"name": "node", "resources": {"requests": {"cpu": "1"}}}]}}
    jobs: list[Object] = [
        {"name": "fetch", "template": {"spec": {"template": TEMPLATE}}},
        {"name": "node", "template": {"metadata": {"labels": labels}, "spec": {"parallelism": 1, "template": pod}}},
    ]
    runtime: Object = {"apiVersion": api, "kind": "TrainingRuntime", "metadata": {"name": "a"}}
    runtime["spec"] = {"mlPolicy": {"numNodes": 1}, "template": {"spec": {"replicatedJobs": jobs}}}
    trainer = {"numNodes": 3, "resourcesPerNode": {"limits": {"nvidia.com/gpu": "8"}, "requests": {"cpu": "2"}}}
    train = queued("TrainJob", api, {"runtimeRef": {"kind": "TrainingRuntime", "name": "a"}, "trainer": trainer})
    (found,) = workloads_of([("ns", runtime), ("ns", train)], Catalog())
    assert [pods.count for pods in found.pod_sets] == [1, 3]
    assert found.requests == {"cpu": 7 * 10**9, "nvidia.com/gpu": 24 * 10**9}
    # The pods of a TrainingRuntime run once for each TrainJob.
    counted = with_trained([("ns", runtime), ("ns", train), ("ns", train), ("other", runtime)])
    assert [requests_of(body, Catalog())["nvidia.com/gpu"] // 10**9 for _, body in counted] == [0, 0, 0, 24, 24]


RAY_SPEC: Object = {
    "rayClusterSpec": {
        "headGroupSpec": {"template": TEMPLATE},
        "workerGroupSpecs": [{"replicas": 2, "numOfHosts": 2, "maxReplicas": 9, "template": TEMPLATE}],
    }
}


@pytest.mark.parametrize(
    ("change", "cpus"),
    [
        ({}, [1000, 4000, 500]),
        ({"submitterPodTemplate": TEMPLATE}, [1000, 4000, 1000]),
        ({"submissionMode": "SidecarMode", "submitterPodTemplate": TEMPLATE}, [1500, 4000]),
        ({"submissionMode": "HTTPMode"}, [1000, 4000]),
    ],
)
def test_the_pods_of_a_ray_job_are_those_of_its_cluster_and_its_submitter(change: Object, cpus: list[int]) -> None:
    (found,) = workloads_of([("ns", queued("RayJob", "ray.io/v1", {**RAY_SPEC, **change}))], Catalog())
    assert [pods.requests["cpu"] // 10**6 for pods in found.pod_sets] == cpus


def test_the_autoscaler_of_ray_counts_in_the_head() -> None:
    cluster = {**RAY_SPEC["rayClusterSpec"], "enableInTreeAutoscaling": True, "autoscalerOptions": {}}
    for options, cpu in (({}, 1500), ({"resources": {"requests": {"cpu": "2"}}}, 3000)):
        cluster["autoscalerOptions"] = options
        spec = {"rayClusterSpec": cluster, "submissionMode": "HTTPMode"}
        (found,) = workloads_of([("ns", queued("RayJob", "ray.io/v1", spec))], Catalog())
        assert [pods.requests["cpu"] // 10**6 for pods in found.pod_sets] == [cpu, 4000]


def test_kueue_leaves_a_ray_job_alone_that_uses_a_cluster_which_exists() -> None:
    job = queued("RayJob", "ray.io/v1", {"clusterSelector": {"ray.io/cluster": "a"}})
    assert not workloads_of([("ns", job)], Catalog())


def test_a_scheduled_job_has_its_queue_in_the_template() -> None:
    template = {"metadata": {"labels": {"kueue.x-k8s.io/queue-name": "q"}}, "spec": {"template": TEMPLATE}}
    obj: Object = {"apiVersion": "batch/v1", "kind": "CronJob", "metadata": {"name": "a"}}
    obj["spec"] = {"jobTemplate": template}
    (found,) = workloads_of([("ns", obj)], Catalog())
    assert found is not None
    assert found.queue == "q"


def test_an_object_without_a_queue_is_no_workload() -> None:
    plain = run("a")
    plain["metadata"]["labels"] = {}
    assert workloads_of([("ns", plain), ("ns", queued("ConfigMap", "v1", {}))], Catalog()) == ()


def test_queues_of_a_cohort_without_a_common_flavor_share_nothing() -> None:
    q, r, s = (
        queue(name, (flavor_, [amount("cpu", 1)]), cohort="c") for name, flavor_ in zip("qrs", "ffg", strict=True)
    )
    placed = [("ns", each) for each in (*q, *r, *s)]
    assert [each.name for each in shares_nothing(Queues(placed))] == ["s"]
    assert list(shares_nothing(Queues(placed[:2]))) == []


def cohort(name: str, parent: str = "", *amounts: Object) -> Object:
    groups = [
        {
            "coveredResources": [each["name"] for each in amounts],
            "flavors": [{"name": "f", "resources": list(amounts)}],
        }
    ]
    spec = {**({"parentName": parent} if parent else {}), **({"resourceGroups": groups} if amounts else {})}
    return named("Cohort", name, spec=spec)


def nested(*parents: Object, lend: Any = None, borrow: Any = None) -> list[Object]:
    """Queue q with 4 CPUs in cohort a, and queue r with 6 in cohort b."""
    return [
        flavor("f"),
        *queue("q", ("f", [amount("cpu", 4, borrow=borrow)]), cohort="a"),
        *queue("r", ("f", [amount("cpu", 6, lend=lend)]), cohort="b"),
        *parents,
    ]


def test_queues_of_nested_cohorts_borrow_from_each_other() -> None:
    apart = [cohort("a"), cohort("b")]
    together = [cohort("a", "top"), cohort("b", "top")]
    assert states(*nested(*apart), run("j", 5)) == {"j": "never"}
    assert states(*nested(*together), run("j", 10), run("k", 11)) == {"j": "yes", "k": "never"}
    assert states(*nested(*together, lend=2), run("j", 6), run("k", 7)) == {"j": "yes", "k": "never"}
    assert states(*nested(*together, borrow=3), run("j", 7), run("k", 8)) == {"j": "yes", "k": "never"}


def test_a_queue_whose_cohort_is_below_that_of_another_one_borrows_from_it() -> None:
    below = nested(cohort("a", "b"))
    assert states(*below, run("j", 10)) == {"j": "yes"}
    assert states(*below, run("j", 7), run("k", 4, queue="r")) == {"j": "yes", "k": "waits"}


def test_a_cohort_has_quota_and_limits_of_its_own() -> None:
    pool = [cohort("a", "top", amount("cpu", 1, borrow=2)), cohort("b", "top", amount("cpu", 0, lend=5))]
    # 4 of the queue, 1 of its cohort, and 2 of the other one.
    assert states(*nested(*pool), run("j", 7), run("k", 8)) == {"j": "yes", "k": "never"}
    # 6 of the other queue, 4 of this one and 1 of its cohort.
    assert states(*nested(*pool), run("j", 11, queue="r"), run("k", 12, queue="r")) == {"j": "yes", "k": "never"}


def test_nothing_is_admitted_in_a_cycle_of_cohorts() -> None:
    (found,) = verdicts(*nested(cohort("a", "b"), cohort("b", "a")), run("j", 1)).values()
    assert found.never == ["the cohorts above q are a cycle"]


def test_queues_of_one_tree_of_cohorts_share_what_they_have_in_common() -> None:
    placed = [("ns", each) for each in nested(cohort("a", "top"), cohort("b", "top"))]
    assert list(shares_nothing(Queues(placed))) == []
