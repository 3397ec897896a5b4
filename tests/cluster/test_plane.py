"""The harness itself: what the other tests of this folder rest on."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from tests.cluster import world
from tests.cluster.client import ApiError, Object, is_true
from tests.cluster.plane import Plane
from tests.cluster.processes import Command, PlaneError, Processes, free_ports, wait_until
from tests.cluster.simulate import Course, container, end_course, pod, pod_spec, release, set_course
from tests.cluster.supervisor import children
from tests.cluster.tools.parts import module_of

POD = "v1/Pod"
JOB = "batch/v1/Job"
DEPLOYMENT = "apps/v1/Deployment"
CLAIM = "v1/PersistentVolumeClaim"


def job(name: str, **spec: object) -> Object:
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name},
        "spec": {"template": {"spec": pod_spec() | {"restartPolicy": "Never"}}} | spec,
    }


def deployment(name: str) -> Object:
    labels = {"app": name}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name},
        "spec": {"selector": {"matchLabels": labels}, "template": {"metadata": {"labels": labels}, "spec": pod_spec()}},
    }


def config_map(name: str, **data: str) -> Object:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data}


def claim(name: str, storage_class: str) -> Object:
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": name},
        "spec": {
            "storageClassName": storage_class,
            "accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": "10Gi"}},
        },
    }


def in_phase(obj: Object, phase: str) -> bool:
    return bool(obj.get("status", {}).get("phase") == phase)


def steps(seen: Object) -> list[str]:
    """What a pod's containers are doing, ``name:state`` in their order."""
    statuses = [*seen["status"].get("initContainerStatuses", []), *seen["status"].get("containerStatuses", [])]
    return [f"{status['name']}:{next(iter(status['state']))}" for status in statuses]


def history(plane: Plane, made: Object, until: str) -> list[list[str]]:
    """What a new pod's containers did, change by change, until the pod is in a phase."""
    metadata = made["metadata"]
    seen: list[list[str]] = []
    for _, found in plane.client.watch(POD, metadata["namespace"], 30, metadata["resourceVersion"]):
        if found["metadata"]["name"] == metadata["name"]:
            now = steps(found)
            if now and (not seen or seen[-1] != now):
                seen.append(now)
            if in_phase(found, until):
                return seen
    raise AssertionError(f"{metadata['name']} never was {until}: {seen}")


def test_every_custom_kind_is_served(plane: Plane) -> None:
    expected = {kind["metadata"]["name"] for kind in world.custom_kinds()}
    served = {
        kind["metadata"]["name"]
        for kind in plane.client.objects("apiextensions.k8s.io/v1/CustomResourceDefinition")
        if is_true(kind, "Established")
    }
    assert len(expected) >= 52
    # The controllers of other tests may have added theirs.
    assert expected <= served


def test_clients_can_parse_the_version_of_the_server(plane: Plane) -> None:
    version = plane.client.request("GET", "/version").body
    assert [version["major"], version["minor"]] == module_of("kube-apiserver")[1][1:].split(".")[:2]
    assert version["gitVersion"] in plane.run("kubectl", "version").stdout


def test_a_root_pod_is_refused_by_restricted_admission(plane: Plane, namespace: str) -> None:
    rooted = pod("rooted", securityContext={"runAsUser": 0})
    with pytest.raises(ApiError, match='violates PodSecurity "restricted:latest"') as refused:
        plane.client.apply(rooted, namespace)
    assert refused.value.code == 403


def test_a_workload_whose_pods_would_be_refused_gets_a_warning(plane: Plane, namespace: str) -> None:
    rooted = deployment("rooted")
    rooted["spec"]["template"]["spec"]["securityContext"] = {}
    applied = plane.client.apply(rooted, namespace)
    assert applied.created
    assert any("would violate PodSecurity" in warning for warning in applied.warnings)
    assert plane.client.apply(deployment("fine"), namespace).warnings == ()


def test_an_unknown_field_is_refused(plane: Plane, namespace: str) -> None:
    misspelt = config_map("misspelt") | {"dta": {}}
    with pytest.raises(ApiError, match=r"\.dta: field not declared in schema"):
        plane.client.apply(misspelt, namespace)


def test_an_unknown_field_of_a_custom_kind_is_refused(plane: Plane, namespace: str) -> None:
    scaler: Object = {
        "apiVersion": "keda.sh/v1alpha1",
        "kind": "ScaledObject",
        "metadata": {"name": "scaler"},
        "spec": {"scaleTargetRef": {"name": "x"}, "triggers": [], "minReplicas": 0},
    }
    with pytest.raises(ApiError, match=r"\.spec\.minReplicas: field not declared in schema"):
        plane.client.apply(scaler, namespace)


def test_the_second_apply_changes_nothing(plane: Plane, namespace: str) -> None:
    first = plane.client.apply(config_map("twice", a="1"), namespace)
    second = plane.client.apply(config_map("twice", a="1"), namespace)
    assert (first.created, second.created) == (True, False)
    assert first.object["metadata"]["resourceVersion"] == second.object["metadata"]["resourceVersion"]


def test_a_job_runs_to_completion(plane: Plane, namespace: str) -> None:
    plane.client.apply(job("ends-well", completions=2), namespace)
    done = plane.client.wait(JOB, "ends-well", namespace, partial(is_true, condition="Complete"), "complete")
    assert done["status"]["succeeded"] == 2


def test_init_containers_run_one_after_another_before_the_container(plane: Plane, namespace: str) -> None:
    ordered = pod("ordered", initContainers=[container("first"), container("second")], restartPolicy="Never")
    made = plane.client.apply(ordered, namespace).object
    assert history(plane, made, "Succeeded") == [
        ["first:waiting", "second:waiting", "main:waiting"],
        ["first:running", "second:waiting", "main:waiting"],
        ["first:terminated", "second:waiting", "main:waiting"],
        ["first:terminated", "second:running", "main:waiting"],
        ["first:terminated", "second:terminated", "main:waiting"],
        ["first:terminated", "second:terminated", "main:running"],
        ["first:terminated", "second:terminated", "main:terminated"],
    ]


def test_a_sidecar_keeps_running_while_the_next_init_container_runs(plane: Plane, namespace: str) -> None:
    side_car = container("side-car") | {"restartPolicy": "Always"}
    plane.client.apply(pod("pair", initContainers=[side_car, container("gate")]), namespace)
    ready = plane.client.wait(POD, "pair", namespace, partial(is_true, condition="Ready"), "ready")
    assert steps(ready) == ["side-car:running", "gate:terminated", "main:running"]


def test_a_held_init_container_keeps_the_container_waiting_until_it_is_released(plane: Plane, namespace: str) -> None:
    gated = deployment("gated")
    gated["spec"]["template"]["spec"]["initContainers"] = [container("gate"), container("after")]
    set_course(plane.client, namespace, Course(hold_init="gate"))
    plane.client.apply(gated, namespace)
    [waiting] = wait_for_pods(plane, namespace, ["gate:running", "after:waiting", "main:waiting"])
    assert in_phase(waiting, "Pending")
    release(plane.client, namespace)
    available = partial(is_true, condition="Available")
    plane.client.wait(DEPLOYMENT, "gated", namespace, available, "available")
    assert wait_for_pods(plane, namespace, ["gate:terminated", "after:terminated", "main:running"])


def wait_for_pods(plane: Plane, namespace: str, doing: list[str]) -> list[Object]:
    found: list[Object] = []

    def all_do() -> bool:
        found[:] = [entry for entry in plane.client.objects(POD, namespace) if entry["status"].get("hostIP")]
        return bool(found) and all(steps(entry) == doing for entry in found)

    wait_until(all_do, f"pods of {namespace} do {doing}")
    return found


def test_a_failing_job_fails(plane: Plane, namespace: str) -> None:
    set_course(plane.client, namespace, Course(state="failed", exit_code=3, reason="OOMKilled"))
    plane.client.apply(job("ends-badly", backoffLimit=0), namespace)
    plane.client.wait(JOB, "ends-badly", namespace, partial(is_true, condition="Failed"), "failed")
    [failed] = plane.client.objects(POD, namespace)
    ended = failed["status"]["containerStatuses"][0]["state"]["terminated"]
    assert (failed["status"]["phase"], ended["exitCode"], ended["reason"]) == ("Failed", 3, "OOMKilled")


def test_a_failing_server_crashes_again_and_again(plane: Plane, namespace: str) -> None:
    crashing = pod("crashing", annotations=Course(state="failed").annotations())
    plane.client.apply(crashing, namespace)

    def crashed(found: Object) -> bool:
        [status] = found["status"].get("containerStatuses", [{}])
        return bool(status.get("restartCount"))

    found = plane.client.wait(POD, "crashing", namespace, crashed, "restarted")
    assert found["status"]["containerStatuses"][0]["state"]["waiting"]["reason"] == "CrashLoopBackOff"
    assert not is_true(found, "Ready")


def test_a_failing_init_container_fails_the_pod(plane: Plane, namespace: str) -> None:
    course = Course(fail_init="second", exit_code=4)
    chain = [container("first"), container("second"), container("third")]
    plane.client.apply(
        pod("broken", annotations=course.annotations(), initContainers=chain, restartPolicy="Never"), namespace
    )
    failed = plane.client.wait(POD, "broken", namespace, partial(in_phase, phase="Failed"), "failed")
    assert steps(failed) == ["first:terminated", "second:terminated", "third:waiting", "main:waiting"]
    assert failed["status"]["initContainerStatuses"][1]["state"]["terminated"]["exitCode"] == 4


def test_a_slow_job_takes_its_time(plane: Plane, namespace: str) -> None:
    plane.client.apply(pod("slow", annotations=Course(delay=2).annotations(), restartPolicy="Never"), namespace)
    plane.client.wait(POD, "slow", namespace, partial(in_phase, phase="Running"), "running")
    started = time.monotonic()
    plane.client.wait(POD, "slow", namespace, partial(in_phase, phase="Succeeded"), "succeeded")
    assert time.monotonic() - started > 1.5


def test_slow_and_unready_servers_run_without_being_ready(plane: Plane, namespace: str) -> None:
    plane.client.apply(pod("slow", annotations=Course(delay=1.5).annotations()), namespace)
    plane.client.apply(pod("unready", annotations=Course(state="unready").annotations()), namespace)
    slow = plane.client.wait(POD, "slow", namespace, partial(in_phase, phase="Running"), "running")
    assert not is_true(slow, "Ready")
    plane.client.wait(POD, "slow", namespace, partial(is_true, condition="Ready"), "ready")
    unready = plane.client.get(POD, "unready", namespace)
    assert (in_phase(unready, "Running"), is_true(unready, "Ready")) == (True, False)


def test_a_course_applies_to_the_selected_pods_until_it_ends(plane: Plane, namespace: str) -> None:
    where = "object.metadata.?generateName.orValue('').startsWith('picked-')"
    rule = set_course(plane.client, namespace, Course(state="failed"), where)
    plane.client.apply(job("picked", backoffLimit=0), namespace)
    plane.client.apply(job("other", backoffLimit=0), namespace)
    plane.client.wait(JOB, "picked", namespace, partial(is_true, condition="Failed"), "failed")
    plane.client.wait(JOB, "other", namespace, partial(is_true, condition="Complete"), "complete")
    end_course(plane.client, rule)

    def taken_back() -> bool:
        probe = pod("probe")
        del probe["metadata"]["name"]
        probe["metadata"]["generateName"] = "picked-"
        made = plane.client.create(probe, namespace, dry_run=True)
        return "sim.kaigen.dev/state" not in made["metadata"].get("annotations", {})

    wait_until(taken_back, "the rule is taken back")


def test_a_deleted_pod_counts_as_failed_in_its_job(plane: Plane, namespace: str) -> None:
    set_course(plane.client, namespace, Course(state="ready"))
    plane.client.apply(job("endless", backoffLimit=0), namespace)
    [running] = wait_for_pods(plane, namespace, ["main:running"])
    name = running["metadata"]["name"]
    plane.client.delete(POD, name, namespace)
    plane.client.wait_gone(POD, name, namespace)
    plane.client.wait(JOB, "endless", namespace, partial(is_true, condition="Failed"), "failed")


def test_pods_are_deleted_with_their_job(plane: Plane, namespace: str) -> None:
    plane.client.apply(job("owner"), namespace)
    plane.client.wait(JOB, "owner", namespace, partial(is_true, condition="Complete"), "complete")
    plane.client.delete(JOB, "owner", namespace)
    wait_until(lambda: plane.client.objects(POD, namespace) == [], "the pods are collected")


def test_a_claim_of_an_immediate_class_binds_at_once(plane: Plane, namespace: str) -> None:
    plane.client.apply(claim("eager", "standard"), namespace)
    bound = plane.client.wait(CLAIM, "eager", namespace, partial(in_phase, phase="Bound"), "bound")
    volume = bound["spec"]["volumeName"]
    plane.client.delete(CLAIM, "eager", namespace)
    plane.client.wait_gone("v1/PersistentVolume", volume)


def test_a_claim_of_a_waiting_class_binds_with_its_first_pod(plane: Plane, namespace: str) -> None:
    plane.client.apply(claim("patient", "standard-wait"), namespace)
    plane.client.apply(claim("eager", "standard"), namespace)
    plane.client.wait(CLAIM, "eager", namespace, partial(in_phase, phase="Bound"), "bound")
    assert in_phase(plane.client.get(CLAIM, "patient", namespace), "Pending")
    mounted = [{"name": "data", "persistentVolumeClaim": {"claimName": "patient"}}]
    plane.client.apply(pod("consumer", volumes=mounted), namespace)
    plane.client.wait(CLAIM, "patient", namespace, partial(in_phase, phase="Bound"), "bound")
    plane.client.wait(POD, "consumer", namespace, partial(is_true, condition="Ready"), "ready")


def test_gpus_are_counted_and_their_nodes_are_found_by_label(plane: Plane, namespace: str) -> None:
    def wants(name: str, gpus: str, product: str) -> Object:
        wanting = pod(
            name,
            nodeSelector={"nvidia.com/gpu.product": product},
            tolerations=[{"key": "nvidia.com/gpu", "operator": "Exists"}],
        )
        wanting["spec"]["containers"][0]["resources"] = {"limits": {"nvidia.com/gpu": gpus}}
        return wanting

    plane.client.apply(wants("fits", "8", "NVIDIA-L4"), namespace)
    plane.client.apply(wants("too-many", "9", "NVIDIA-L4"), namespace)
    fits = plane.client.wait(POD, "fits", namespace, partial(is_true, condition="Ready"), "ready")
    assert fits["spec"]["nodeName"].startswith("gpu-nvidia-l4-")

    def unschedulable(found: Object) -> bool:
        conditions = found["status"].get("conditions", [])
        return any(entry.get("reason") == "Unschedulable" for entry in conditions)

    refused = plane.client.wait(POD, "too-many", namespace, unschedulable, "unschedulable")
    assert "Insufficient nvidia.com/gpu" in refused["status"]["conditions"][0]["message"]


def test_a_node_can_be_added(plane: Plane, namespace: str) -> None:
    labels = {"node.kubernetes.io/instance-type": namespace}
    node = world.node(namespace, capacity={"cpu": "4", "memory": "8Gi", "pods": "9"}, labels=labels)
    plane.add_node(node)
    plane.client.apply(pod("picky", nodeSelector=labels), namespace)
    placed = plane.client.wait(POD, "picky", namespace, partial(is_true, condition="Ready"), "ready")
    assert placed["spec"]["nodeName"] == namespace
    plane.client.delete("v1/Node", namespace)


def test_a_service_account_has_its_own_rights_and_no_more(plane: Plane, namespace: str) -> None:
    account: Object = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "reader"}}
    role: Object = {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "Role",
        "metadata": {"name": "reader"},
        "rules": [{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get"]}],
    }
    binding: Object = {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "RoleBinding",
        "metadata": {"name": "reader"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "reader"},
        "subjects": [{"kind": "ServiceAccount", "name": "reader", "namespace": namespace}],
    }
    for obj in (account, role, binding, config_map("readable", a="1")):
        plane.client.apply(obj, namespace)
    reader = plane.as_service_account(namespace, "reader")
    mark = plane.audit.mark()
    assert reader.get("v1/ConfigMap", "readable", namespace)["data"] == {"a": "1"}
    with pytest.raises(ApiError, match="cannot list resource"):
        reader.objects("v1/ConfigMap", namespace)
    with pytest.raises(ApiError, match="cannot get resource"):
        reader.get("v1/ConfigMap", "readable", "default")
    with pytest.raises(ApiError, match="cannot patch resource"):
        reader.apply(config_map("readable", a="2"), namespace)
    user = f"system:serviceaccount:{namespace}:reader"
    asked = [(entry.verb, entry.code) for entry in plane.audit.requests(mark) if entry.user == user]
    assert asked == [("get", 200), ("list", 403), ("get", 403), ("patch", 403)]


def test_the_audit_log_shows_what_was_written_and_by_whom(plane: Plane, namespace: str) -> None:
    someone = plane.as_admin("someone")
    mark = plane.audit.mark()
    someone.get("v1/Namespace", namespace)
    someone.create(config_map("never"), namespace, dry_run=True)
    assert plane.audit.writes_since(mark, namespace=namespace) == []
    someone.apply(config_map("seen", a="1"), namespace)
    someone.delete("v1/ConfigMap", "seen", namespace)
    created, deleted = plane.audit.writes_since(mark, namespace=namespace, user="someone")
    assert (created.verb, created.resource, created.name) == ("patch", "configmaps", "seen")
    assert created.body["data"] == {"a": "1"}
    assert (deleted.verb, deleted.resource, deleted.name) == ("delete", "configmaps", "seen")


def test_secrets_stay_out_of_the_audit_log(plane: Plane, namespace: str) -> None:
    mark = plane.audit.mark()
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}, "stringData": {"k": "hush-hush"}}
    plane.client.apply(secret, namespace)
    [written] = plane.audit.writes_since(mark, namespace=namespace, user="kaigen-tests")
    assert (written.resource, written.body) == ("secrets", {})


def test_kubectl_and_helm_work_on_it(plane: Plane, namespace: str, tmp_path: Path) -> None:
    plane.run("kubectl", "apply", "--namespace", namespace, "-f", "-", stdin=str(config_map("by-kubectl", a="1")))
    assert plane.client.get("v1/ConfigMap", "by-kubectl", namespace)["data"] == {"a": "1"}
    chart = tmp_path / "chart"
    (chart / "templates").mkdir(parents=True)
    (chart / "Chart.yaml").write_text("apiVersion: v2\nname: tiny\nversion: 0.1.0\nkubeVersion: '>=1.36.0'\n")
    (chart / "templates" / "config.yaml").write_text(
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: by-helm}\ndata: {a: '{{ .Values.a }}'}\n"
    )
    plane.run("helm", "install", "tiny", str(chart), "--namespace", namespace, "--set", "a=2", "--wait")
    assert plane.client.get("v1/ConfigMap", "by-helm", namespace)["data"] == {"a": "2"}
    plane.run("helm", "uninstall", "tiny", "--namespace", namespace, "--wait")
    assert plane.client.find("v1/ConfigMap", "by-helm", namespace) is None


def test_the_logs_of_a_simulated_container_can_be_read(plane: Plane, namespace: str) -> None:
    plane.client.apply(pod("talks"), namespace)
    plane.client.wait(POD, "talks", namespace, partial(is_true, condition="Ready"), "ready")
    assert plane.run("kubectl", "logs", "talks", "--namespace", namespace).stdout == "simulated\n"


def test_the_plane_survives_a_crash_of_its_api_server_and_a_halt_of_its_store(plane: Plane, namespace: str) -> None:
    plane.client.apply(config_map("kept", a="1"), namespace)
    plane.processes.stop("kube-apiserver", kill=True)
    with pytest.raises(ConnectionRefusedError):
        plane.as_admin("late").get("v1/Namespace", namespace)
    plane.processes.start_again("kube-apiserver")
    plane.wait_ready()
    plane.processes.pause("etcd")
    plane.processes.resume("etcd")
    assert plane.client.get("v1/ConfigMap", "kept", namespace)["data"] == {"a": "1"}
    plane.client.apply(job("afterwards"), namespace)
    plane.client.wait(JOB, "afterwards", namespace, partial(is_true, condition="Complete"), "complete")


def descendants(pid: int) -> set[int]:
    below = set(children(pid))
    return below.union(*(descendants(child) for child in below))


def alive(pids: set[int]) -> set[int]:
    return {pid for pid in pids if Path(f"/proc/{pid}/stat").exists()}


def test_a_killed_run_leaves_no_processes_or_files(tmp_path: Path) -> None:
    # A run of its own, killed once its plane is up.
    script = (
        "import time, tests.cluster.plane as p\n"
        "plane = p.Plane(custom_kinds=False)\n"
        "print('up', flush=True)\n"
        "time.sleep(600)"
    )
    with subprocess.Popen(
        [sys.executable, "-c", script], stdout=subprocess.PIPE, text=True, env=os.environ | {"TMPDIR": str(tmp_path)}
    ) as run:
        assert run.stdout is not None
        assert run.stdout.readline() == "up\n"
        below = descendants(run.pid)
        commands = {Path(f"/proc/{pid}/comm").read_text().strip() for pid in below}
        assert {"etcd", "kube-apiserver", "kube-controller", "kube-scheduler", "kwok"} <= commands
        run.kill()
    wait_until(lambda: not alive(below), "every process of the plane ends", 10)
    [folder] = tmp_path.iterdir()
    assert not (folder / "data").exists()
    assert (folder / "logs" / "kube-apiserver.log").exists()


@pytest.fixture
def processes(tmp_path: Path) -> Iterator[Processes]:
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    running = Processes(tmp_path, scratch)
    yield running
    running.close()


def test_grandchildren_end_with_the_processes_and_so_does_the_scratch_folder(
    processes: Processes, tmp_path: Path
) -> None:
    command = Command("parent", ["sh", "-c", "trap '' TERM; (setsid sleep 600 &) ; sleep 600"], {})
    parent = processes.start(command)
    wait_until(lambda: len(descendants(processes.pid)) >= 3, "the grandchild runs")
    below = descendants(processes.pid)
    assert parent in below
    processes.close()
    assert alive(below | {processes.pid}) == set()
    assert not (tmp_path / "scratch").exists()


def test_children_end_with_a_supervisor_that_is_killed(processes: Processes) -> None:
    child = processes.start(Command("child", ["sleep", "600"], {}))
    os.kill(processes.pid, signal.SIGKILL)
    wait_until(lambda: not alive({child}), "the child ends")
    with pytest.raises(PlaneError, match="supervisor"):
        processes.check()


def test_a_process_that_exits_is_reported_with_the_end_of_its_log(processes: Processes) -> None:
    processes.start(Command("short", ["sh", "-c", "echo the reason; exit 7"], {}))
    with pytest.raises(PlaneError, match=r"(?s)short ended with exit code 7.*the reason"):
        processes.wait_until(lambda: False, "never", 10)


def test_a_missing_program_is_reported(processes: Processes) -> None:
    with pytest.raises(PlaneError, match="No such file"):
        processes.start(Command("missing", ["/nonexistent/program"], {}))


def test_free_ports_differ() -> None:
    assert len(set(free_ports(50))) == 50
