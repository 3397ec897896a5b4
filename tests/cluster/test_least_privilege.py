"""What kaigen's service accounts may do is what their programs do: no less, and no more."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests import helm
from tests.cases import write_chart
from tests.cluster.apps import JOB, POD, add_gpu_node, compiled, demo, find, job_name, spec
from tests.cluster.client import Object, is_true
from tests.cluster.downloader import account_variables, argument, finish, hub_of, running, variables
from tests.cluster.plane import Plane
from tests.cluster.privileges import granted, is_refused, used
from tests.cluster.processes import wait_until
from tests.cluster.simulate import Course, set_course

CONFIG_MAP = "v1/ConfigMap"


def test_the_downloader_can_write_its_facts_and_nothing_else(plane: Plane, namespace: str, tmp_path: Path) -> None:
    item = demo(namespace)["qwen"]
    for rendered in item.objects:
        plane.client.apply(rendered.body)
    job = plane.client.get(JOB, job_name(item), namespace)
    wait_until(lambda: bool(plane.client.objects(POD, namespace)), "the Job's pod is there")
    (pod,) = plane.client.objects(POD, namespace)
    account = pod["spec"]["serviceAccountName"]
    (container,) = pod["spec"]["containers"]
    env = variables(container, pod) | account_variables(plane, namespace, account, tmp_path / "account")
    mark = plane.audit.mark()

    with hub_of(container) as hub:

        def fetch() -> str:
            with running(container, tmp_path / "model", env, f"--endpoint={hub.url}") as process:
                return finish(process)

        assert "created ConfigMap" in fetch()
        facts = plane.client.get(CONFIG_MAP, "qwen-facts", namespace)
        (owner,) = facts["metadata"]["ownerReferences"]
        assert (owner["kind"], owner["name"], owner["uid"]) == ("Job", job["metadata"]["name"], job["metadata"]["uid"])
        assert facts["data"]["files"] == "2"
        # A fact that is no longer right is put right, and progress ends.
        old = {"files": "3", "progress": "fetching 5% of 1.0 GiB", "conversionSizeBytes": "1"}
        plane.client.patch(CONFIG_MAP, "qwen-facts", namespace, {"data": old})
        assert "updated ConfigMap" in fetch()
        assert plane.client.get(CONFIG_MAP, "qwen-facts", namespace)["data"] == facts["data"]
        # To remove the revision, it must know whether a pod reads it.
        name = "a" * 16
        other = (f"--identity={name}", f"--dest={tmp_path / 'model' / name}", "--keep-revisions=0")
        with running(container, tmp_path / "model", env, f"--endpoint={hub.url}", *other) as process:
            assert argument(container, "identity") in finish(process)

    role = find(item, "Role")
    user = f"system:serviceaccount:{namespace}:{account}"
    assert used(plane, mark, user, role) == granted(role)

    plane.client.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "other"}}, namespace)
    client = plane.as_service_account(namespace, account)
    maps = client.path(CONFIG_MAP, namespace=namespace)
    change: Object = {"data": {"key": "value"}}
    assert is_refused(client, "GET", maps)
    assert is_refused(client, "GET", f"{maps}/other")
    assert is_refused(client, "PATCH", f"{maps}/other", change)
    assert is_refused(client, "DELETE", f"{maps}/qwen-facts")
    assert is_refused(client, "GET", client.path("v1/Secret", namespace=namespace))
    assert is_refused(client, "GET", client.path("v1/Secret", "hf-token", namespace))
    assert is_refused(client, "GET", client.path(JOB, job["metadata"]["name"], namespace))
    assert is_refused(client, "GET", client.path(POD, pod["metadata"]["name"], namespace))
    assert is_refused(client, "DELETE", client.path(POD, pod["metadata"]["name"], namespace))
    elsewhere = client.path(CONFIG_MAP, namespace="default")
    assert is_refused(client, "POST", elsewhere, {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "new"}})


def test_the_facts_are_deleted_with_the_job(plane: Plane, namespace: str, tmp_path: Path) -> None:
    item = demo(namespace)["qwen"]
    for rendered in item.objects:
        plane.client.apply(rendered.body)
    wait_until(lambda: bool(plane.client.objects(POD, namespace)), "the Job's pod is there")
    (pod,) = plane.client.objects(POD, namespace)
    (container,) = pod["spec"]["containers"]
    account = account_variables(plane, namespace, pod["spec"]["serviceAccountName"], tmp_path / "account")
    with (
        hub_of(container) as hub,
        running(container, tmp_path / "model", variables(container, pod) | account, f"--endpoint={hub.url}") as process,
    ):
        finish(process)
    assert plane.client.find(CONFIG_MAP, "qwen-facts", namespace) is not None
    plane.client.delete(JOB, job_name(item), namespace)
    plane.client.wait_gone(CONFIG_MAP, "qwen-facts", namespace)


def test_helm_test_can_wait_for_its_job_and_nothing_else(
    plane: Plane, namespace: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    add_gpu_node(plane)
    apps = demo(namespace)
    item = apps["finetune"]
    chart = write_chart(tmp_path, item)
    hooks = {
        found["kind"]: found
        for found in helm.template(chart, item.app.name, namespace)
        if "helm.sh/hook" in found["metadata"].get("annotations", {})
    }
    for kind in ("ServiceAccount", "Role", "RoleBinding"):
        plane.client.apply(hooks[kind])
    pod = hooks["Pod"]
    account = pod["spec"]["serviceAccountName"]
    (container,) = pod["spec"]["containers"]
    client = plane.as_service_account(namespace, account)
    kubeconfig = plane.kubeconfig_of(client, namespace=namespace)

    # It has to wait for a while, so that it watches.
    set_course(plane.client, namespace, Course(state="completed", delay=3))
    for name in ("qwen", "finetune"):
        for rendered in apps[name].objects:
            plane.client.apply(rendered.body)
    mark = plane.audit.mark()
    printed = plane.run("kubectl", *container["args"], kubeconfig=kubeconfig).stdout
    name = job_name(item)
    assert f"job.batch/{name} condition met" in printed
    assert is_true(plane.client.get(JOB, name, namespace), "Complete")
    # Against an API server that cannot stream lists, kubectl lists before it watches.
    monkeypatch.setenv("KUBE_FEATURE_WatchListClient", "false")
    plane.run("kubectl", *container["args"], kubeconfig=kubeconfig)
    role = hooks["Role"]
    assert used(plane, mark, f"system:serviceaccount:{namespace}:{account}", role) == granted(role)

    assert is_refused(client, "GET", client.path(JOB, namespace=namespace))
    assert is_refused(client, "GET", client.path(JOB, job_name(apps["qwen"]), namespace))
    assert is_refused(client, "DELETE", client.path(JOB, name, namespace))
    assert is_refused(client, "GET", client.path(POD, namespace=namespace))
    assert is_refused(client, "GET", client.path("v1/Secret", namespace=namespace))


def test_a_gate_can_read_its_job_and_nothing_else(plane: Plane, namespace: str, tmp_path: Path) -> None:
    tune = spec("Job", "tune", image="tune:1", retries=0, output={"volume": {"size": "1Gi"}})
    chat = spec("Topology", "chat", engine="transformers", model={"job": {"name": "tune"}})
    apps = compiled(tmp_path / "specs", [tune, chat], namespace)
    served = find(apps["chat"], "Deployment")["spec"]["template"]["spec"]
    (gate,) = served["initContainers"]
    account = served["serviceAccountName"]
    # What waits may be there before the Job, and before its own permission.
    plane.client.apply(find(apps["chat"], "ServiceAccount"))
    env = account_variables(plane, namespace, account, tmp_path / "account")
    begins = "object.metadata.?generateName.orValue('').startsWith('{}-')"
    first = job_name(apps["tune"])
    set_course(plane.client, namespace, Course(state="completed", delay=2), begins.format(first))
    with running(gate, tmp_path, env) as process:
        assert process.stdout is not None
        assert "answers 403 to get" in process.stdout.readline()
        for kind in ("Role", "RoleBinding"):
            plane.client.apply(find(apps["chat"], kind))
        assert "does not exist yet" in process.stdout.readline()
        mark = plane.audit.mark()
        for rendered in apps["tune"].objects:
            plane.client.apply(rendered.body)
        printed = finish(process)
    assert "has not completed: 1 active pod" in printed
    assert printed.endswith(f"ready: Job {namespace}/{first} has completed\n")
    role, user = find(apps["chat"], "Role"), f"system:serviceaccount:{namespace}:{account}"
    assert used(plane, mark, user, role) == granted(role) == {("get", "jobs", first)}

    plane.client.create({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "other"}}, namespace)
    client = plane.as_service_account(namespace, account)
    assert is_refused(client, "GET", client.path(JOB, namespace=namespace))
    assert is_refused(client, "GET", client.path(JOB, f"{first}x", namespace))
    assert is_refused(client, "PATCH", client.path(JOB, first, namespace), {"spec": {"suspend": True}})
    assert is_refused(client, "DELETE", client.path(JOB, first, namespace))
    assert is_refused(client, "GET", client.path("v1/Secret", "other", namespace))
    assert is_refused(client, "GET", client.path(POD, namespace=namespace))

    # The next run has a gate and a permission of its own, and fails.
    changed = {**tune, "spec": {**tune["spec"], "command": ["fail"]}}
    apps = compiled(tmp_path / "specs", [changed, chat], namespace)
    second = job_name(apps["tune"])
    set_course(plane.client, namespace, Course(state="failed"), begins.format(second))
    (gate,) = find(apps["chat"], "Deployment")["spec"]["template"]["spec"]["initContainers"]
    for rendered in (*apps["tune"].objects, *apps["chat"].objects):
        plane.client.apply(rendered.body)
    with running(gate, tmp_path, env) as process:
        printed, _ = process.communicate(timeout=120)
    assert process.returncode == 14
    last = printed.splitlines()[-1]
    assert last.startswith(f"error: Job {namespace}/{second} failed (BackoffLimitExceeded: ")
    assert "change its spec, which starts a new run, or delete the Job" in last
