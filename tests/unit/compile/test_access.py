"""ServiceAccounts of pods."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from kaigen.kinds.block import read_block
from kaigen.kinds.job import Job
from tests.unit.compile.specs import Block, Object, app, job, model, objects, pod, problem_paths, topology

ROLE = {"eks.amazonaws.com/role-arn": "arn:aws:iam::111122223333:role/trainer"}
KINDS: list[Callable[..., Block]] = [job, lambda **spec: topology(model={"folder": "/weights"}, **spec)]
every_kind = pytest.mark.parametrize("make", KINDS, ids=["Job", "Topology"])


@every_kind
def test_pods_have_no_account_by_default(make: Callable[..., Block]) -> None:
    found = pod(make())
    assert "serviceAccountName" not in found
    assert found["automountServiceAccountToken"] is False
    assert "ServiceAccount" not in objects(make())


@every_kind
@pytest.mark.parametrize("account", ["trainer", {"name": "trainer"}])
def test_pods_run_as_an_existing_account(make: Callable[..., Block], account: Any) -> None:
    block = make(serviceAccount=account)
    assert pod(block)["serviceAccountName"] == "trainer"
    assert pod(block)["automountServiceAccountToken"] is False
    assert "ServiceAccount" not in objects(block)


@every_kind
def test_pods_run_as_a_created_account(make: Callable[..., Block]) -> None:
    block = make(serviceAccount={"create": {"annotations": ROLE}, "automountToken": True})
    account = objects(block)["ServiceAccount"]
    assert account["metadata"]["annotations"] == ROLE
    assert account["automountServiceAccountToken"] is False
    assert pod(block)["serviceAccountName"] == account["metadata"]["name"] == block.metadata.name
    assert pod(block)["automountServiceAccountToken"] is True


def test_every_pod_of_a_group_has_the_account() -> None:
    spec = {"model": {"folder": "/weights"}, "image": "vllm/vllm-openai:v0.25.1", "serviceAccount": "server"}
    block = topology(**spec, shape={"nodes": 2, "groups": "statefulSet"}, resources={"gpus": 1})
    assert pod(block)["serviceAccountName"] == "server"
    sets = objects_of(block, "StatefulSet")
    assert [one["spec"]["template"]["spec"]["serviceAccountName"] for one in sets] == ["server", "server"]


def objects_of(block: Block, kind: str) -> list[Object]:
    """Return all objects of a kind."""
    return [item.body for item in app(block).render() if item.body["kind"] == kind]


def test_the_downloader_writes_its_measurements_under_an_existing_account() -> None:
    made = objects(model(serviceAccount="fetcher"))
    assert "ServiceAccount" not in made
    assert made["RoleBinding"]["roleRef"]["name"] == made["Role"]["metadata"]["name"] == "m-download"
    assert [subject["name"] for subject in made["RoleBinding"]["subjects"]] == ["fetcher"]
    spec = made["Job"]["spec"]["template"]["spec"]
    assert (spec["serviceAccountName"], spec["automountServiceAccountToken"]) == ("fetcher", False)


TOKEN = "/var/run/secrets/kubernetes.io/serviceaccount"
BUCKET = {"uri": "s3://acme/m", "credentials": {"secret": {"name": "keys"}}}
CONVERT = {"distributedLlama": {"weights": "q40"}}


def token_mounts(found: Object) -> dict[str, str]:
    """Return which volume each container of a pod has at the folder of the API token; empty for none."""
    containers = [*found.get("initContainers", []), *found["containers"]]
    return {
        container["name"]: next((m["name"] for m in container.get("volumeMounts", []) if m["mountPath"] == TOKEN), "")
        for container in containers
    }


@pytest.mark.parametrize(
    ("fields", "callers", "others"),
    [
        ({}, {"fetch"}, set()),
        ({"convert": CONVERT}, {"fetch", "record"}, {"convert"}),
        ({"store": {"bucket": BUCKET}}, {"fetch"}, set()),
        (
            {"convert": CONVERT, "store": {"bucket": BUCKET}},
            # The upload asks which revisions pods read, as the download does.
            {"fetch", "record", "upload"},
            {"stage", "convert"},
        ),
        (
            {
                "sidecars": {"proxy": {"image": "proxy:1", "cpu": "1", "memory": "1Gi"}},
                "initContainers": {"check": {"image": "check:1", "cpu": "1", "memory": "1Gi"}},
            },
            {"fetch"},
            {"proxy", "check"},
        ),
    ],
)
def test_only_containers_that_call_the_api_server_have_a_token(
    fields: dict[str, Any], callers: set[str], others: set[str]
) -> None:
    found = objects(model(**fields))["Job"]["spec"]["template"]["spec"]
    assert found["automountServiceAccountToken"] is False
    mounts = token_mounts(found)
    assert {name for name, volume in mounts.items() if volume} == callers
    assert {name for name, volume in mounts.items() if not volume} == others
    (volume,) = {volume for volume in mounts.values() if volume}
    (source,) = [each["projected"]["sources"] for each in found["volumes"] if each["name"] == volume]
    assert source == [
        {"serviceAccountToken": {"path": "token", "expirationSeconds": 3600}},
        {"configMap": {"name": "kube-root-ca.crt", "items": [{"key": "ca.crt", "path": "ca.crt"}]}},
        {"downwardAPI": {"items": [{"path": "namespace", "fieldRef": {"fieldPath": "metadata.namespace"}}]}},
    ]


def test_a_spec_can_ask_for_the_token_in_all_containers_of_a_download() -> None:
    found = objects(model(serviceAccount={"name": "fetcher", "automountToken": True}))["Job"]
    assert found["spec"]["template"]["spec"]["automountServiceAccountToken"] is True


def test_the_downloaders_own_account_has_the_annotations_of_spec_and_bucket() -> None:
    bucket = {"uri": "s3://acme/m", "credentials": {"serviceAccount": {"annotations": {"a/b": "c"}}}}
    made = objects(model(store={"bucket": bucket}, serviceAccount={"create": {"annotations": ROLE}}))
    assert made["ServiceAccount"]["metadata"]["annotations"] == {"a/b": "c", **ROLE}
    assert made["ServiceAccount"]["metadata"]["name"] == "m-download"


def test_fields_that_the_downloader_ignores_are_reported() -> None:
    bucket = {"uri": "s3://acme/m", "credentials": {"serviceAccount": {"annotations": {"a/b": "c"}}}}
    account = {"name": "fetcher", "automountToken": False}
    assert problem_paths(model(store={"bucket": bucket}, serviceAccount=account)) == [
        ("KG0340", "spec.store.bucket.credentials.serviceAccount.annotations")
    ]


def test_a_pod_template_names_its_account_itself() -> None:
    template = {"spec": {"containers": [{"name": "a", "image": "i", "ports": [{"containerPort": 80}]}]}}
    spec = {"template": template, "serviceAccount": "trainer"}
    for block in (read_block(Job, {"metadata": {"name": "j"}, "spec": spec}), topology(**spec)):
        assert problem_paths(block) == [("KG0340", "spec.serviceAccount")]
