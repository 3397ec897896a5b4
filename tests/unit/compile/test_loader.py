"""Models and Datasets that a container fills: the Job of the container, and what the Model reads of it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.unit.compile.test_job_source import Object, apps, arguments, codes, document, option, run, run_name

VOLUME = {"size": "1Gi", "accessModes": ["ReadWriteMany"], "storageClassName": "shared"}


def loaded(kind: str, name: str, loader: Object, **spec: Any) -> Object:
    return document(
        kind,
        name,
        source={"loader": loader if "build" in loader else {"image": f"{name}:1", **loader}},
        **{"store": {"volume": VOLUME}, **spec},
    )


def main(item: Any) -> Object:
    (found,) = run(item)["spec"]["template"]["spec"]["containers"]
    return dict(found)


def mounts(item: Any) -> dict[str, Object]:
    return {each["mountPath"]: each for each in main(item)["volumeMounts"]}


def test_the_container_runs_in_a_job_and_the_model_stores_what_it_writes(tmp_path: Path) -> None:
    found = apps(tmp_path, [loaded("Model", "qwen", {"command": ["load"], "args": ["--fast"]})])
    assert sorted(found) == ["qwen", "qwen-load"]
    container = main(found["qwen-load"])
    assert (container["image"], container["command"], container["args"]) == ("qwen:1", ["load"], ["--fast"])
    assert arguments(found["qwen"], "wait-for-job")[2] == f"--name={run_name(found['qwen-load'])}"
    assert arguments(found["qwen"], "fetch")[:2] == ["put", "/output"]
    (volume,) = [
        each for each in run(found["qwen"])["spec"]["template"]["spec"]["volumes"] if each["name"] == "job-output"
    ]
    assert volume["persistentVolumeClaim"] == {"claimName": "qwen-load-output", "readOnly": True}


def test_the_container_finds_everything_in_content(tmp_path: Path) -> None:
    found = apps(
        tmp_path,
        [
            loaded("Dataset", "rows", {"params": {"num-rows": 5}}),
            loaded("Model", "base", {}),
            loaded("Model", "tuned", {"dataset": "rows", "model": "base"}),
        ],
    )
    assert {"/content/params.json", "/content/artifacts"} <= mounts(found["rows-load"]).keys()
    assert {"name": "PARAM_NUM_ROWS", "value": "5"} in main(found["rows-load"])["env"]
    tuned = mounts(found["tuned-load"])
    assert tuned["/content/data"]["readOnly"]
    assert tuned["/content/model"]["readOnly"]
    assert tuned["/content/data"]["subPath"] == option(found["rows"], "fetch", "identity")
    assert tuned["/content/model"]["subPath"] == option(found["base"], "fetch", "identity")
    assert option(found["tuned-load"], "wait-for-rows", "identity") == tuned["/content/data"]["subPath"]
    assert option(found["tuned-load"], "wait-for-model", "identity") == tuned["/content/model"]["subPath"]


def test_without_params_the_file_is_an_empty_mapping(tmp_path: Path) -> None:
    found = apps(tmp_path, [loaded("Model", "qwen", {})])["qwen-load"]
    (data,) = [each.body["data"] for each in found.objects if each.body["kind"] == "ConfigMap"]
    assert data == {"params.json": "{}"}


def test_its_volume_is_like_that_of_the_store_and_is_not_retained(tmp_path: Path) -> None:
    def claim(item: Any) -> Object:
        (body,) = [each.body for each in item.objects if each.body["kind"] == "PersistentVolumeClaim"]
        return dict(body)

    like = claim(apps(tmp_path, [loaded("Model", "qwen", {})])["qwen-load"])
    assert like["spec"]["accessModes"] == ["ReadWriteMany"]
    assert like["spec"]["storageClassName"] == "shared"
    assert "helm.sh/resource-policy" not in like["metadata"].get("annotations", {})
    own = claim(
        apps(tmp_path, [loaded("Model", "qwen", {"volume": {"size": "9Gi", "storageClassName": "x"}})])["qwen-load"]
    )
    assert own["spec"]["resources"]["requests"]["storage"] == "9Gi"
    assert own["spec"]["storageClassName"] == "x"


def test_placement_and_security_are_those_of_the_downloader_unless_the_loader_has_its_own(tmp_path: Path) -> None:
    shared = {
        "placement": {"nodeSelector": {"disk": "nvme"}},
        "security": {"runAsUser": 1000},
        "imagePullSecrets": ["registry"],
    }
    found = apps(tmp_path, [loaded("Model", "qwen", {}, **shared)])["qwen-load"]
    pod = run(found)["spec"]["template"]["spec"]
    assert pod["nodeSelector"] == {"disk": "nvme"}
    assert pod["securityContext"]["runAsUser"] == 1000
    assert pod["imagePullSecrets"] == [{"name": "registry"}]
    own = {"placement": {"nodeSelector": {"disk": "hdd"}}, "security": {"runAsUser": 7}}
    pod = run(apps(tmp_path, [loaded("Model", "qwen", own, **shared)])["qwen-load"])["spec"]["template"]["spec"]
    assert pod["nodeSelector"] == {"disk": "hdd"}
    assert pod["securityContext"]["runAsUser"] == 7


def test_another_image_is_another_revision_and_the_same_spec_is_the_same(tmp_path: Path) -> None:
    first = apps(tmp_path, [loaded("Model", "qwen", {})])["qwen"]
    again = apps(tmp_path, [loaded("Model", "qwen", {})])["qwen"]
    other = apps(tmp_path, [loaded("Model", "qwen", {"image": "qwen:2"})])["qwen"]
    assert run_name(first) == run_name(again)
    assert option(first, "fetch", "identity") == option(again, "fetch", "identity")
    assert option(first, "fetch", "identity") != option(other, "fetch", "identity")


def test_a_built_image_is_waited_for(tmp_path: Path) -> None:
    build = {
        "git": {"url": "https://github.com/acme/load.git", "commit": "7" * 40},
        "repository": "registry.example.com/acme/load",
    }
    found = apps(tmp_path, [loaded("Model", "qwen", {"build": build})])["qwen-load"]
    jobs = {
        each.body["metadata"]["labels"]["app.kubernetes.io/component"]: each.body
        for each in found.objects
        if each.body["kind"] == "Job"
    }
    (gate,) = jobs["run"]["spec"]["template"]["spec"]["initContainers"]
    assert f"--name={jobs['build']['metadata']['name']}" in gate["args"]


def test_what_is_wrong_with_the_loader_is_reported_once(tmp_path: Path) -> None:
    assert codes(tmp_path, [loaded("Model", "qwen", {"dataset": "rows"})]) == ["KG0301"]
    assert codes(tmp_path, [loaded("Model", "qwen", {"resources": {"gpuType": "L5"}})]) == ["KG0306"]


def test_a_loader_that_reads_its_own_model_is_a_circle(tmp_path: Path) -> None:
    assert codes(tmp_path, [loaded("Model", "qwen", {"model": "qwen"})]) == ["KG0388"]
