"""Models and Datasets whose files a Job writes: what they wait for, and what waits for them."""

from __future__ import annotations

import itertools
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
VOLUME = {"size": "1Gi", "accessModes": ["ReadWriteMany"], "storageClassName": "shared"}
BUCKET = {"uri": "s3://acme/tuned", "credentials": {"secret": {"name": "keys"}}}


def document(kind: str, name: str, **spec: Any) -> Object:
    return {"apiVersion": "kaigen.dev/v1alpha1", "kind": kind, "metadata": {"name": name}, "spec": spec}


def job(name: str, **spec: Any) -> Object:
    return document("Job", name, **{"image": f"{name}:1", "output": {"volume": VOLUME}, **spec})


def stored(kind: str, name: str, source: str, **fields: Any) -> Object:
    store = fields.pop("store", {"volume": VOLUME})
    return document(kind, name, source={"job": {"name": source, **fields}}, store=store)


def chain(prepare: str = "prepare:1", **fields: Any) -> list[Object]:
    """A Job, its Dataset, a Job that reads it, the Model of that, and a Topology and a Job that read the Model."""
    return [
        job("prepare", image=prepare),
        stored("Dataset", "clean", "prepare"),
        job("tune", inputs=[{"dataset": "clean"}]),
        stored("Model", "tuned", "tune", **fields),
        document("Topology", "chat", engine="transformers", model="tuned"),
        job("evaluate", model="tuned"),
    ]


def apps(folder: Path, documents: Sequence[Object], **config: Any) -> dict[str, Compiled]:
    (folder / "specs").mkdir(parents=True, exist_ok=True)
    for old in (folder / "specs").glob("*.yaml"):
        old.unlink()
    for number, each in enumerate(documents):
        (folder / f"specs/{number}.yaml").write_text(yaml.safe_dump(each))
    head = {"apiVersion": "kaigen.dev/v1alpha1", "kind": "Config", "profile": "generic"}
    (folder / "kaigen.yaml").write_text(yaml.safe_dump({**head, **config}))
    found = load_config(folder)
    return {item.app.name: item for item in compile_specs((), found).apps}


def codes(folder: Path, documents: Sequence[Object]) -> list[str]:
    with pytest.raises(InputError) as error:
        apps(folder, documents)
    return sorted(item.code for item in error.value.diagnostics)


def run(item: Compiled) -> Object:
    (body,) = [found.body for found in item.objects if found.body["kind"] in ("Job", "JobSet")]
    return body


def run_name(item: Compiled) -> str:
    return str(run(item)["metadata"]["name"])


def arguments(item: Compiled, container: str) -> list[str]:
    """The arguments of a container of an app's only workload."""
    (template,) = [
        found.body["spec"]["template"]["spec"] for found in item.objects if found.body["kind"] in ("Job", "Deployment")
    ]
    containers = [*template.get("initContainers", []), *template["containers"]]
    (found,) = [each for each in containers if each["name"] == container]
    return list(found["args"])


def option(item: Compiled, container: str, name: str) -> str:
    (found,) = [text for text in arguments(item, container) if text.startswith(f"--{name}=")]
    return found.partition("=")[2]


def test_a_model_waits_for_the_run_of_its_job_and_stores_a_folder_of_its_output(tmp_path: Path) -> None:
    found = apps(tmp_path, chain(path="merged", exclude=["checkpoint-*/"]))
    tuned = found["tuned"]
    assert arguments(tuned, "wait-for-job")[:3] == ["wait-job", "--kind=Job", f"--name={run_name(found['tune'])}"]
    assert arguments(tuned, "fetch")[:3] == ["put", "/output/merged", "--exclude=checkpoint-*/"]
    pod = run(tuned)["spec"]["template"]["spec"]
    (volume,) = [each for each in pod["volumes"] if each["name"] == "job-output"]
    assert volume["persistentVolumeClaim"] == {"claimName": "tune-output", "readOnly": True}
    (mount,) = [each for each in pod["containers"][0]["volumeMounts"] if each["name"] == "job-output"]
    assert mount["readOnly"] is True


def test_only_the_awaited_run_can_be_read(tmp_path: Path) -> None:
    found = apps(tmp_path, chain())
    (role,) = [each.body for each in found["tuned"].objects if each.body["kind"] == "Role"]
    (rule,) = [each for each in role["rules"] if "jobs" in each["resources"]]
    assert rule == {
        "apiGroups": ["batch"],
        "resources": ["jobs"],
        "resourceNames": [run_name(found["tune"])],
        "verbs": ["get"],
    }


def test_readers_wait_for_what_the_model_stores(tmp_path: Path) -> None:
    found = apps(tmp_path, chain())
    expected = option(found["tuned"], "fetch", "identity")
    assert option(found["chat"], "wait-for-model", "identity") == expected
    assert option(found["evaluate"], "wait-for-model", "identity") == expected
    assert option(found["tune"], "wait-for-clean", "identity") == option(found["clean"], "fetch", "identity")


def test_a_new_run_at_the_start_of_a_chain_is_another_revision_of_everything(tmp_path: Path) -> None:
    before, after = apps(tmp_path, chain()), apps(tmp_path, chain(prepare="prepare:2"))
    for name in ("prepare", "clean", "tune", "tuned", "evaluate"):
        assert run_name(before[name]) != run_name(after[name]), name
    for name in ("clean", "tuned"):
        assert option(before[name], "fetch", "identity") != option(after[name], "fetch", "identity")


def test_an_override_of_the_job_is_another_revision_as_well(tmp_path: Path) -> None:
    before = apps(tmp_path, chain())
    override = [{"match": {"kind": "Job", "app": "prepare"}, "spec": {"args": ["--fast"]}}]
    after = apps(tmp_path, chain(), overrides=override)
    assert option(before["tuned"], "fetch", "identity") != option(after["tuned"], "fetch", "identity")


def test_the_order_of_the_files_does_not_matter(tmp_path: Path) -> None:
    documents = chain()
    expected = {name: [each.body for each in item.objects] for name, item in apps(tmp_path, documents).items()}
    for order in itertools.islice(itertools.permutations(documents), 0, None, 180):
        found = apps(tmp_path, order)
        assert {name: [each.body for each in item.objects] for name, item in found.items()} == expected


def test_a_bucket_is_filled_with_its_keys(tmp_path: Path) -> None:
    tuned = apps(tmp_path, chain(store={"bucket": BUCKET}))["tuned"]
    identity = option(tuned, "fetch", "identity")
    assert option(tuned, "fetch", "dest") == f"s3://acme/tuned/{identity}"
    (fetch,) = run(tuned)["spec"]["template"]["spec"]["containers"]
    assert {"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"} <= {each["name"] for each in fetch["env"]}


def test_no_object_of_a_chain_has_a_later_wave_than_what_waits_for_it(tmp_path: Path) -> None:
    waves = {
        (name, each.kind): each.wave for name, item in apps(tmp_path, chain()).items() for each in item.app.objects
    }
    assert len({waves[name, "Job"] for name in ("prepare", "clean", "tune", "tuned", "evaluate")}) == 1
    assert waves["tuned", "PersistentVolumeClaim"] == waves["tuned", "Job"]


def test_specs_in_a_circle_are_reported_at_each_model(tmp_path: Path) -> None:
    circle = [
        job("one", model="second"),
        stored("Model", "first", "one"),
        job("two", model={"name": "first", "mountPath": "/weights"}),
        stored("Model", "second", "two"),
    ]
    assert codes(tmp_path, circle) == ["KG0388", "KG0388"]


def test_a_circle_further_up_the_chain_is_not_reported_twice(tmp_path: Path) -> None:
    circle = [job("one", model="first"), stored("Model", "first", "one")]
    below = [job("two", model="first"), stored("Model", "second", "two")]
    assert "KG0388" in codes(tmp_path, [*circle, *below])


def test_a_chain_of_very_many_jobs_is_an_error(tmp_path: Path) -> None:
    def links(count: int) -> list[Object]:
        found = [job("job-0")]
        for number in range(count):
            found.append(stored("Dataset", f"data-{number}", f"job-{number}"))
            found.append(job(f"job-{number + 1}", inputs=[{"dataset": f"data-{number}"}]))
        return found

    apps(tmp_path, links(8))
    assert set(codes(tmp_path, links(10))) >= {"KG0388"}
