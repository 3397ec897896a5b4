"""What `kaigen job create` checks before it uploads anything, and what it leaves when it is refused."""

from __future__ import annotations

import json
import os
from functools import partial
from pathlib import Path

import pytest

from tests.cluster.client import Object
from tests.cluster.images import BASE
from tests.cluster.live import SMALL, call, objects
from tests.cluster.plane import Plane

_WORK = ("--image", BASE, "--command", "true", *SMALL)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "run.py").write_text("print()")
    return folder


def _user(plane: Plane, namespace: str, name: str, *resources: tuple[str, str]) -> Path:
    """Return the kubeconfig of an account that may do everything with some resources of a namespace."""
    rbac = "rbac.authorization.k8s.io"
    rules = [{"apiGroups": [group], "resources": [resource], "verbs": ["*"]} for group, resource in resources]
    metadata: Object = {"name": name, "namespace": namespace}
    role = {"apiVersion": f"{rbac}/v1", "kind": "Role", "metadata": metadata, "rules": rules}
    bound = {
        "apiVersion": f"{rbac}/v1",
        "kind": "RoleBinding",
        "metadata": metadata,
        "roleRef": {"apiGroup": rbac, "kind": "Role", "name": name},
        "subjects": [{"kind": "ServiceAccount", "name": name, "namespace": namespace}],
    }
    account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata}
    for body in (account, role, bound):
        plane.client.create(body, namespace)
    return plane.kubeconfig_of(plane.as_service_account(namespace, name), namespace=namespace)


@pytest.mark.promise("Ephemeral GPU", "Graceful error handling and retry logic")
def test_a_missing_right_is_the_error_and_nothing_is_left(plane: Plane, namespace: str, project: Path) -> None:
    few = _user(plane, namespace, "few", ("batch", "jobs"), ("", "persistentvolumeclaims"), ("", "pods"))
    words = ("--kubeconfig", str(few), "-n", namespace, "--project-dir", str(project))
    printed = call(plane, "kaigen", "job", "create", "mine", *words, *_WORK, code=3)
    assert 'cannot create resource "networkpolicies"' in printed
    assert "delete" not in printed
    assert objects(plane, namespace) == set()


def test_a_quota_is_known_before_the_upload(plane: Plane, namespace: str, project: Path) -> None:
    quota: Object = {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "few"}}
    plane.client.create({**quota, "spec": {"hard": {"count/jobs.batch": "0"}}}, namespace)
    words = ("-n", namespace, "--project-dir", str(project))
    printed = call(plane, "kaigen", "job", "create", "mine", *words, *_WORK, code=3)
    assert "exceeded quota: few" in printed
    assert "uploaded" not in printed
    assert objects(plane, namespace) == set()


def test_files_that_do_not_fit_are_not_uploaded(plane: Plane, namespace: str, project: Path) -> None:
    os.truncate(project / "run.py", 3 << 30)
    words = ("-n", namespace, "--project-dir", str(project))
    printed = call(plane, "kaigen", "job", "create", "mine", *words, *_WORK, code=1)
    assert f"the files have {3 << 30} bytes, and the volume artifacts-mine only {1 << 30}" in printed
    assert "--pvc-size 4Gi" in printed
    assert objects(plane, namespace) == set()


def test_names_of_egpu_are_as_short_as_their_labels(plane: Plane, namespace: str) -> None:
    egpu = partial(call, plane, "egpu", "create")
    words = ("-n", namespace, "--no-create-pvc", "--pvc-name", "x", *_WORK)
    assert "NAME has 39 characters and may have 38" in egpu("a" * 39, *words, code=2)
    assert 'PersistentVolumeClaim "x" not found' in egpu("a" * 38, *words, code=1)


def test_a_namespace_in_which_nothing_expires_is_named(plane: Plane, namespace: str) -> None:
    job = partial(call, plane, "kaigen", "job", "create")
    words = ("-n", namespace, *_WORK)
    said = f"no kaigen-reaper works in namespace {namespace}: nothing expires"
    assert said in job("first", *words, "--ttl", "60")
    assert said not in job("second", *words)
    labels = {"app.kubernetes.io/name": "kaigen-reaper"}
    for name, args in (("elsewhere", ["run", "--namespace=other"]), ("here", ["run", f"--namespace={namespace}"])):
        container: Object = {"name": "reaper", "image": BASE, "args": args}
        plane.client.create(
            {
                "apiVersion": "apps/v1",
                "kind": "Deployment",
                "metadata": {"name": name, "labels": labels},
                "spec": {
                    "replicas": 0,
                    "selector": {"matchLabels": labels},
                    "template": {"metadata": {"labels": labels}, "spec": {"containers": [container]}},
                },
            },
            namespace,
        )
        shown = json.loads(call(plane, "kaigen", "doctor", "-n", namespace, "-o", "json", code=None))
        (reaper,) = (check for check in shown if check["name"] == "reaper")
        works = name == "here"
        assert (reaper["status"] == "ok") == works, reaper
        assert (said in job(f"with-{name}", *words, "--pvc-ttl", "60")) != works
