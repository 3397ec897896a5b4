"""The gate of a Topology that serves what a Job writes: it waits for exactly that run."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import yaml

from kaigen.config.load import load_config
from kaigen.diagnostics.errors import InputError
from kaigen.pipeline.result import Compiled
from kaigen.pipeline.run import compile_specs

Object = dict[str, Any]
COMMIT = "7ae557604adf67be50417f59c2c2f167def9a775"
VOLUME = {"size": "1Gi", "accessModes": ["ReadWriteMany"], "storageClassName": "shared"}


def document(kind: str, name: str, **spec: Any) -> Object:
    return {"apiVersion": "kaigen.dev/v1alpha1", "kind": kind, "metadata": {"name": name}, "spec": spec}


def model(commit: str = COMMIT) -> Object:
    source = {"huggingFace": {"repo": "org/base", "revision": commit}}
    return document("Model", "base", source=source, store={"volume": VOLUME})


def job(**spec: Any) -> Object:
    return document("Job", "tune", **{"image": "tune:1", "model": "base", "output": {"volume": VOLUME}, **spec})


def served(**spec: Any) -> Object:
    return document("Topology", "chat", **{"engine": "transformers", "model": {"job": {"name": "tune"}}, **spec})


def apps(folder: Path, documents: Sequence[Object], **config: Any) -> dict[str, Compiled]:
    (folder / "specs").mkdir(parents=True, exist_ok=True)
    (folder / "specs/all.yaml").write_text(yaml.safe_dump_all(documents))
    head = {"apiVersion": "kaigen.dev/v1alpha1", "kind": "Config", "profile": "generic"}
    (folder / "kaigen.yaml").write_text(yaml.safe_dump({**head, **config}))
    found = load_config(folder)
    return {item.app.name: item for item in compile_specs((), found).apps}


def bodies(item: Compiled, kind: str) -> list[Object]:
    return [found.body for found in item.objects if found.body["kind"] == kind]


def only(item: Compiled, kind: str) -> Object:
    (body,) = bodies(item, kind)
    return body


def run_name(item: Compiled) -> str:
    (body,) = bodies(item, "Job") + bodies(item, "JobSet")
    return str(body["metadata"]["name"])


def pods(item: Compiled) -> list[Object]:
    """The pod specs of an app's workload."""
    (body,) = bodies(item, "Deployment") + bodies(item, "LeaderWorkerSet")
    group = body["spec"].get("leaderWorkerTemplate")
    templates = [group["leaderTemplate"], group["workerTemplate"]] if group is not None else [body["spec"]["template"]]
    return [template["spec"] for template in templates]


def gates(item: Compiled) -> set[str]:
    """The runs that the pods wait for, with their kinds; the Role must grant exactly these."""
    args = [found["initContainers"][0]["args"] for found in pods(item)]
    assert {each[0] for each in args} == {"wait-job"}
    waited = {(each[1].removeprefix("--kind="), each[2].removeprefix("--name=")) for each in args}
    granted = {(rule["resources"][0], name) for rule in only(item, "Role")["rules"] for name in rule["resourceNames"]}
    assert granted == {(f"{kind.lower()}s", name) for kind, name in waited}
    return {f"{kind}/{name}" for kind, name in waited}


def test_the_pods_wait_for_the_run_of_the_job(tmp_path: Path) -> None:
    made = apps(tmp_path, [model(), job(), served()])
    chat = made["chat"]
    assert gates(chat) == {f"Job/{run_name(made['tune'])}"}
    (rule,) = only(chat, "Role")["rules"]
    assert (rule["apiGroups"], rule["verbs"]) == (["batch"], ["get"])
    (subject,) = only(chat, "RoleBinding")["subjects"]
    account = only(chat, "ServiceAccount")
    assert subject["name"] == account["metadata"]["name"] == "chat-gate"
    assert account["automountServiceAccountToken"] is False
    assert ("", "tune") not in chat.needs
    assert chat.needs == (("default", "tune"),)


def test_only_the_gate_has_the_token(tmp_path: Path) -> None:
    (pod,) = pods(apps(tmp_path, [model(), job(), served()])["chat"])
    assert (pod["serviceAccountName"], pod["automountServiceAccountToken"]) == ("chat-gate", False)
    (token,) = [volume for volume in pod["volumes"] if "projected" in volume]
    source = token["projected"]["sources"][0]["serviceAccountToken"]
    assert source["expirationSeconds"] <= 3600
    with_token = [
        container["name"]
        for container in [*pod["initContainers"], *pod["containers"]]
        if token["name"] in {mount["name"] for mount in container.get("volumeMounts", [])}
    ]
    assert with_token == ["wait-for-job"]


@pytest.mark.parametrize(
    ("account", "name", "made"),
    [("cloud", "cloud", []), ({"create": {"annotations": {"role": "reader"}}}, "chat", ["chat"])],
)
def test_the_account_of_the_spec_reads_the_job(tmp_path: Path, account: object, name: str, made: list[str]) -> None:
    config = {"external": [{"kind": "ServiceAccount", "name": "cloud"}]} if account == "cloud" else {}
    chat = apps(tmp_path, [model(), job(), served(serviceAccount=account)], **config)["chat"]
    assert pods(chat)[0]["serviceAccountName"] == name
    assert [subject["name"] for subject in only(chat, "RoleBinding")["subjects"]] == [name]
    assert [found["metadata"]["name"] for found in bodies(chat, "ServiceAccount")] == made


def test_without_a_job_there_is_no_account(tmp_path: Path) -> None:
    chat = apps(tmp_path, [model(), served(model="base")])["chat"]
    assert "serviceAccountName" not in pods(chat)[0]
    assert bodies(chat, "Role") == bodies(chat, "ServiceAccount") == []


@pytest.mark.parametrize(
    "change",
    [
        {"documents": [model(), job(command=["tune"]), served()]},
        {"documents": [model("0" * 40), job(), served()]},
        {"values": {"tune": {"image": "tune:2"}}},
        {"patches": [{"target": {"app": "tune", "kind": "Job"}, "patch": {"spec": {"completions": 2}}}]},
    ],
    ids=["spec", "model", "values", "patch"],
)
def test_a_new_run_is_a_new_gate(tmp_path: Path, change: dict[str, Any]) -> None:
    documents = [model(), job(), served()]
    before = apps(tmp_path / "before", documents)
    after = apps(tmp_path / "after", change.pop("documents", documents), **change)
    assert run_name(before["tune"]) != run_name(after["tune"])
    assert gates(before["chat"]) == {f"Job/{run_name(before['tune'])}"}
    assert gates(after["chat"]) == {f"Job/{run_name(after['tune'])}"}
    assert only(after["tune"], "NetworkPolicy")["metadata"]["name"] == run_name(after["tune"])


def test_an_adapter_waits_for_the_job_that_writes_it(tmp_path: Path) -> None:
    adapters = [
        {"name": "north", "job": {"name": "tune", "path": "final"}},
        {"name": "1-south", "job": {"name": "tune"}},
    ]
    made = apps(tmp_path, [model(), job(), served(engine="vllm", model="base", adapters=adapters)])
    run = run_name(made["tune"])
    (pod,) = pods(made["chat"])
    assert [each["name"] for each in pod["initContainers"]] == ["wait-for-model", "wait-for-north", "wait-for-1-south"]
    for gate in pod["initContainers"][1:]:
        assert gate["args"][:3] == ["wait-job", "--kind=Job", f"--name={run}"]
    mounts = {each["name"]: each for each in pod["containers"][0]["volumeMounts"]}
    assert mounts["adapter-north"]["subPath"] == "final"
    claims = [each["persistentVolumeClaim"]["claimName"] for each in pod["volumes"] if "adapter" in each["name"]]
    assert claims == ["tune-output"] * 2
    assert [rule["resourceNames"] for rule in only(made["chat"], "Role")["rules"]] == [[run], [run]]


@pytest.mark.parametrize(("groups", "kind"), [("jobSet", "JobSet"), ("indexedJob", "Job")])
def test_several_nodes_wait_for_several_nodes(tmp_path: Path, groups: str, kind: str) -> None:
    chat = served(engine="vllm", shape={"nodes": 2, "groups": "leaderWorkerSet"}, resources={"gpus": 1})
    made = apps(tmp_path, [model(), job(nodes=2, groups=groups), chat])
    assert len(pods(made["chat"])) == 2
    assert gates(made["chat"]) == {f"{kind}/{run_name(made['tune'])}"}


@pytest.mark.parametrize(("compat", "claim"), [("true", "tune"), ("false", "tune-output")])
def test_names_of_a_dialect_are_those_of_its_objects(tmp_path: Path, compat: str, claim: str) -> None:
    foreign = {
        "apiVersion": "ai.re-cinq.com/v1",
        "kind": "Job",
        "metadata": {"name": "tune", "annotations": {"kaigen.dev/compat": compat}},
        "spec": {"image": "tune:1", "model": "org/base", "diskSize": 5, "command": ["tune"]},
    }
    made = apps(tmp_path, [foreign, served()])
    assert gates(made["chat"]) == {f"Job/{run_name(made['tune'])}"}
    volume = pods(made["chat"])[0]["volumes"][0]
    assert volume["persistentVolumeClaim"]["claimName"] == claim
    assert only(made["tune"], "PersistentVolumeClaim")["metadata"]["name"] == claim


def test_an_image_of_the_downloader_is_that_of_every_gate(tmp_path: Path) -> None:
    adapters = [
        {"name": "lora", "huggingFace": {"repo": "org/lora", "revision": COMMIT}},
        {"name": "other", "model": "base"},
    ]
    documents = [
        model(),
        job(),
        served(engine="vllm", adapters=adapters, transfer={"image": "mirror/downloader:1"}),
        document(
            "Topology",
            "direct",
            engine="vllm",
            model="base",
            adapters=adapters,
            transfer={"image": "mirror/downloader:1"},
        ),
    ]
    made = apps(tmp_path, documents)
    for name, gate in (("chat", "wait-for-job"), ("direct", "wait-for-model")):
        (pod,) = pods(made[name])
        images = {found["name"]: found["image"] for found in pod["initContainers"]}
        assert images == dict.fromkeys([gate, "fetch-lora", "wait-for-other"], "mirror/downloader:1")


def test_a_job_with_errors_has_no_gate(tmp_path: Path) -> None:
    documents = [job(model="missing"), served()]
    with pytest.raises(InputError) as caught:
        apps(tmp_path, documents)
    messages = [item.message for item in caught.value.diagnostics]
    assert "Job `tune` has errors, so its run is unknown" in messages
