"""Real Kueue does what `kaigen plan` and `kaigen diff` say of the kind `Queue`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from kaigen.catalog.catalog import Catalog
from kaigen.diff import compare
from kaigen.kubernetes.admission import Queues, Verdict
from kaigen.kubernetes.workloads import workloads_of
from kaigen.pipeline.result import Compiled
from tests.cluster import world
from tests.cluster.apps import POD, add_gpu_node, compiled, find
from tests.cluster.client import Object, is_true
from tests.cluster.group_controllers import GroupControllers
from tests.cluster.plane import Plane
from tests.cluster.processes import wait_until
from tests.cluster.simulate import Course, set_course

pytestmark = pytest.mark.engine

API = "kueue.x-k8s.io/v1beta2"
WORKLOAD, LOCAL_QUEUE = f"{API}/Workload", f"{API}/LocalQueue"
RACK = "queues.example.com/rack"
RUN_SECONDS = 15.0


def spec(kind: str, name: str, **fields: Any) -> Object:
    return {"apiVersion": "kaigen.dev/v1alpha1", "kind": kind, "metadata": {"name": name}, "spec": fields}


def job(name: str, queue: str, cpu: str = "2", **fields: Any) -> Object:
    placement = {"queue": queue, **fields.pop("placement", {})}
    resources = {"cpu": cpu, "memory": "1Gi", **fields.pop("resources", {})}
    return spec("Job", name, image="train:1", resources=resources, placement=placement, **fields)


@pytest.fixture
def queues(plane: Plane, groups: GroupControllers, namespace: str) -> Iterator[str]:
    """A namespace on a plane with Kueue; what belongs to the cluster is deleted after the test."""
    groups.start_leader_worker_set()
    groups.start_job_set()
    groups.start_kueue()
    add_gpu_node(plane)
    yield namespace
    for body in plane.client.objects("v1/Node", ""):
        if body["metadata"]["name"].startswith(namespace):
            plane.client.delete("v1/Node", body["metadata"]["name"])
    for kind in ("ClusterQueue", "Cohort", "ResourceFlavor", "Topology", "WorkloadPriorityClass"):
        for body in plane.client.objects(f"{API}/{kind}", ""):
            if body["metadata"]["name"].startswith(namespace):
                plane.client.delete(f"{API}/{kind}", body["metadata"]["name"])


def predicted(apps: Mapping[str, Compiled], namespace: str) -> dict[str, Verdict]:
    """Return what kaigen says of the Jobs of apps, by their names, as `kaigen plan` and `kaigen diff` do."""
    placed = [(namespace, item.body) for app in apps.values() for item in app.objects]
    verdicts = Queues(placed).verdicts(workloads_of(placed, Catalog()))
    return {verdict.workload.name: verdict for verdict in verdicts}


def apply(plane: Plane, app: Compiled) -> None:
    for rendered in app.objects:
        plane.client.apply(rendered.body)


def workload(plane: Plane, namespace: str, name: str) -> Object | None:
    """Return Kueue's workload of a Job; None while there is none."""
    for body in plane.client.objects(WORKLOAD, namespace):
        if any(owner["name"] == name for owner in body["metadata"].get("ownerReferences", ())):
            return body
    return None


def is_admitted(plane: Plane, namespace: str, name: str) -> bool:
    found = workload(plane, namespace, name)
    return found is not None and is_true(found, "Admitted")


def why_pending(plane: Plane, namespace: str, name: str) -> str:
    """Return why Kueue did not reserve quota; empty while it says nothing."""
    found: Any = workload(plane, namespace, name) or {}
    conditions = found.get("status", {}).get("conditions", ())
    return next((each["message"] for each in conditions if each["type"] == "QuotaReserved"), "")


def wait_active(plane: Plane, namespace: str, queue: str) -> None:
    def is_active() -> bool:
        found = plane.client.find(LOCAL_QUEUE, queue, namespace)
        return found is not None and is_true(found, "Active")

    wait_until(is_active, f"the queue {queue} is active", every=0.5)


def effects(old: Sequence[Compiled], new: Sequence[Compiled]) -> list[str]:
    """Return what `kaigen diff` says of a change, as text."""
    trees = [{path: data for app in side for path, data in app.files("manifests").items()} for side in (old, new)]
    return [effect.text for app in compare(*trees).apps for item in app.objects for effect in item.effects]


@pytest.mark.ran("ClusterQueue", "LocalQueue", "ResourceFlavor", by="kueue")
def test_a_job_waits_for_quota_until_another_one_ends_as_plan_and_diff_said(
    plane: Plane, queues: str, tmp_path: Path
) -> None:
    def apps(cpus: int) -> dict[str, Compiled]:
        quota = spec("Queue", queues, quota=[{"cpu": str(cpus), "memory": "64Gi"}])
        return compiled(tmp_path, [quota, job("first", queues), job("second", queues)], queues, "generic")

    both, one = apps(4), apps(2)
    first, second = (find(one[name], "Job")["metadata"]["name"] for name in ("first", "second"))
    said = predicted(one, queues)
    assert [(said[name].never, said[name].waits) for name in (first, second)] == [((), False), ((), True)]
    assert not predicted(both, queues)[second].waits
    assert f"Job {second} now waits when all of the queue are there at once" in effects(
        list(both.values()), list(one.values())
    )
    alone = [one[queues], one["first"]]
    assert f"fits into the queue {queues}: 1 pod of flavor {queues}-nodes" in effects([one[queues]], alone)
    assert f"waits for quota of the queue {queues} when all of the queue are there at once" in effects(
        alone, list(one.values())
    )

    set_course(plane.client, queues, Course(state="completed", delay=RUN_SECONDS))
    apply(plane, one[queues])
    wait_active(plane, queues, queues)
    apply(plane, one["first"])
    wait_until(lambda: is_admitted(plane, queues, first), "the first Job is admitted", every=0.2)
    apply(plane, one["second"])
    wait_until(lambda: "insufficient unused quota for cpu" in why_pending(plane, queues, second), "it waits", every=0.2)
    assert not is_admitted(plane, queues, second)
    assert not is_true(plane.client.get("batch/v1/Job", first, queues), "Complete")
    wait_until(lambda: is_admitted(plane, queues, second), "the second Job is admitted", 60, every=0.2)
    assert is_true(plane.client.get("batch/v1/Job", first, queues), "Complete")


@pytest.mark.ran("Topology", by="kueue")
def test_two_pods_are_placed_in_the_only_rack_with_room_for_both(plane: Plane, queues: str, tmp_path: Path) -> None:
    kind = {"queues.example.com/nodes": queues}
    for name, rack in (("a-1", "a"), ("b-1", "b"), ("b-2", "b"), ("c-1", "c")):
        labels = {**kind, RACK: f"{queues}-{rack}"}
        capacity = {"cpu": "4", "memory": "16Gi", "pods": "20", "ephemeral-storage": "64Gi"}
        plane.add_node(world.node(f"{queues}-{name}", capacity=capacity, labels=labels))
    quota = spec(
        "Queue",
        queues,
        quota=[{"cpu": "16", "memory": "64Gi", "nodeLabels": kind}],
        topology=[RACK, "host"],
        priorities={"low": 10},
    )
    near = {"topology": {"required": RACK}, "priority": f"{queues}-low"}
    # A pod takes more than half of a node.
    train = job("train", queues, cpu="3", nodes=2, groups="indexedJob", placement=near)
    alone = job("alone", queues, cpu="3", nodes=3, groups="indexedJob", placement=near)
    apps = compiled(tmp_path, [quota, train, alone], queues, "generic")
    name, too_many = (find(apps[each], "Job")["metadata"]["name"] for each in ("train", "alone"))
    said = predicted(apps, queues)
    assert not said[name].never
    assert set(said[name].flavors.values()) == {f"{queues}-nodes"}
    fits = f"fits into the queue {queues}: 2 pods of flavor {queues}-nodes, placed by {RACK}"
    assert fits in effects([apps[queues]], [apps[queues], apps["train"]])

    apply(plane, apps[queues])
    wait_active(plane, queues, queues)
    apply(plane, apps["train"])
    wait_until(lambda: is_admitted(plane, queues, name), "the Job is admitted", every=0.5)

    def nodes() -> list[str]:
        pods = plane.client.objects(POD, queues, "app.kubernetes.io/name=train")
        return sorted(str(pod["spec"].get("nodeName", "")) for pod in pods)

    wait_until(lambda: nodes() == [f"{queues}-b-1", f"{queues}-b-2"], "both pods are in rack b", every=0.5)
    admission: Any = workload(plane, queues, name)
    (assigned,) = admission["status"]["admission"]["podSetAssignments"]
    assert assigned["flavors"] == {"cpu": f"{queues}-nodes", "memory": f"{queues}-nodes"}
    assert admission["spec"]["priority"] == 10
    # Three pods have no room in any rack: only Kueue knows the nodes.
    apply(plane, apps["alone"])
    wait_until(lambda: bool(why_pending(plane, queues, too_many)), "Kueue says why the other waits", every=0.5)
    assert not is_admitted(plane, queues, too_many)


def check_prediction(plane: Plane, apps: Mapping[str, Compiled], queues: str, *, fits: bool) -> None:
    """Apply queues, then a Job `j`, and compare what Kueue does with it with what was predicted."""
    (said,) = predicted(apps, queues).values()
    assert bool(said.never) is not fits
    for name, app in apps.items():
        if name != "j":
            apply(plane, app)
    wait_active(plane, queues, queues)
    apply(plane, apps["j"])
    name = said.workload.name
    if fits:
        wait_until(lambda: is_admitted(plane, queues, name), "the Job is admitted", every=0.2)
    else:
        wait_until(lambda: bool(why_pending(plane, queues, name)), "Kueue says why the Job waits", every=0.2)
        assert not is_admitted(plane, queues, name)


@pytest.mark.parametrize(
    ("case", "fits"),
    [
        ("enough", True),
        ("too much", False),
        ("borrowed", True),
        ("more than may be borrowed", False),
        ("more than others lend", False),
        ("no quota of the resource", False),
        ("other nodes", False),
        ("no topology", False),
    ],
    ids=lambda value: value if isinstance(value, str) else ("fits" if value else "never"),
)
def test_kueue_agrees_with_kaigen_about_what_a_queue_can_hold(
    plane: Plane, queues: str, tmp_path: Path, case: str, fits: bool
) -> None:
    labels = {"queues.example.com/nodes": queues, "queues.example.com/gpu": "yes"}
    gpus = {"gpuType": "H100", "gpus": 4, "nodeLabels": labels}
    more = f"{queues}-b"
    pair = [
        spec("Queue", queues, cohort=queues, quota=[{**gpus, "borrow": 2}]),
        spec("Queue", more, cohort=queues, flavorsOf=queues, quota=[{**gpus, "lend": 3}]),
    ]
    lending = [
        spec("Queue", queues, cohort=queues, quota=[gpus]),
        spec("Queue", more, cohort=queues, flavorsOf=queues, quota=[{**gpus, "lend": 1}]),
    ]
    alone = [spec("Queue", queues, quota=[gpus])]
    needs: dict[str, Any] = {
        "enough": (alone, job("j", queues, resources={"gpus": 4})),
        "too much": (alone, job("j", queues, resources={"gpus": 5})),
        "borrowed": (pair, job("j", queues, resources={"gpus": 6})),
        "more than may be borrowed": (pair, job("j", queues, resources={"gpus": 7})),
        "more than others lend": (lending, job("j", queues, resources={"gpus": 6})),
        "no quota of the resource": (alone, job("j", queues, resources={"ephemeralStorage": "1Gi"})),
        "other nodes": (
            alone,
            job("j", queues, resources={"gpus": 1}, placement={"nodeSelector": {"queues.example.com/gpu": "no"}}),
        ),
        "no topology": (
            alone,
            job("j", queues, resources={"gpus": 1}, nodes=2, placement={"topology": {"preferred": RACK}}),
        ),
    }
    documents, run = needs[case]
    apps = compiled_with_problems(tmp_path, [*documents, run], queues)
    check_prediction(plane, apps, queues, fits=fits)


def compiled_with_problems(folder: Path, documents: Sequence[Object], namespace: str) -> dict[str, Compiled]:
    """Return the apps of specs that kaigen rejects together: the Job on its own, and the queues."""
    *others, run = documents
    return {
        **compiled(folder / "queues", others, namespace, "generic"),
        **compiled(folder / "job", [run], namespace, "generic"),
    }


@pytest.mark.ran("WorkloadPriorityClass", by="kueue")
def test_a_run_with_a_higher_priority_stops_another_one_which_starts_again(
    plane: Plane, queues: str, tmp_path: Path
) -> None:
    low, high = f"{queues}-low", f"{queues}-high"
    quota = spec(
        "Queue",
        queues,
        quota=[{"cpu": "2", "memory": "64Gi"}],
        priorities={"low": 10, "high": 1000},
        preemption={"withinClusterQueue": "LowerPriority"},
    )
    runs = [job(name, queues, placement={"priority": each}) for name, each in (("slow", low), ("urgent", high))]
    apps = compiled(tmp_path, [quota, *runs], queues, "generic")
    slow, urgent = (find(apps[name], "Job")["metadata"]["name"] for name in ("slow", "urgent"))
    said = predicted(apps, queues)
    assert (said[urgent].waits, said[slow].waits) == (False, True)

    set_course(plane.client, queues, Course(state="completed", delay=RUN_SECONDS))
    apply(plane, apps[queues])
    wait_active(plane, queues, queues)
    apply(plane, apps["slow"])
    wait_until(lambda: is_admitted(plane, queues, slow), "the slow Job is admitted", every=0.2)
    apply(plane, apps["urgent"])
    wait_until(lambda: is_admitted(plane, queues, urgent), "the urgent Job is admitted", every=0.2)

    def is_suspended() -> bool:
        return bool(plane.client.get("batch/v1/Job", slow, queues)["spec"]["suspend"])

    wait_until(is_suspended, "the slow Job is suspended", every=0.2)
    wait_until(lambda: is_admitted(plane, queues, slow), "the slow Job is admitted again", 60, every=0.2)
    assert is_true(plane.client.get("batch/v1/Job", urgent, queues), "Complete")
    # It did not fail: preemption counts as no attempt.
    assert not plane.client.get("batch/v1/Job", slow, queues)["status"].get("failed")


@pytest.mark.ran("Cohort", by="kueue")
@pytest.mark.parametrize(
    ("count", "lend", "parents", "fits"),
    [
        (10, None, True, True),
        (11, None, True, False),
        (5, None, False, False),
        (6, 2, True, True),
        (7, 2, True, False),
    ],
)
def test_kueue_agrees_with_kaigen_about_nested_cohorts(
    plane: Plane, queues: str, tmp_path: Path, count: int, lend: int | None, parents: bool, fits: bool
) -> None:
    """A queue of 4 GPUs and one of 6 in cohorts of their own, which are in a third one."""
    labels = {"queues.example.com/nodes": queues}
    gpus = {"gpuType": "H100", "nodeLabels": labels}
    other, top = f"{queues}-b", f"{queues}-top"
    parent = {"parentCohort": top} if parents else {}
    documents = [
        spec("Queue", queues, cohort=queues, **parent, quota=[{**gpus, "gpus": 4}]),
        spec(
            "Queue",
            other,
            cohort=other,
            parentCohort=top,
            flavorsOf=queues,
            quota=[{**gpus, "gpus": 6, **({"lend": lend} if lend else {})}],
        ),
    ]
    apps = compiled_with_problems(tmp_path, [*documents, job("j", queues, resources={"gpus": count})], queues)
    check_prediction(plane, apps, queues, fits=fits)
