"""`output.bucket.skipIfComplete`: a run that restores its results from the bucket and ends, if they are there."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest

from kaigen import programs
from tests.unit.compile.test_job_source import Object, apps, codes, document, job
from tests.unit.compile.test_upload import BUCKET, VOLUME, jobs, name_of, pod

SKIP = {**BUCKET, "skipIfComplete": True}
PROGRAMS = Path(programs.__file__).parent
COMMAND = ["python", "train.py"]
HUB = {"huggingFace": {"repo": "a/b", "revision": "0" * 40}}
MODEL = document("Model", "m", source=HUB, store={"volume": {"size": "1Gi"}})


def skipping(**fields: Any) -> Object:
    output = {"volume": fields.pop("volume", VOLUME), "bucket": {**SKIP, **fields.pop("bucket", {})}}
    return job("tune", **{"command": COMMAND, **fields}, output=output)


def run_of(tmp_path: Path, *specs: Object) -> Object:
    """Return the pod of the run."""
    return pod(jobs(apps(tmp_path, list(specs))["tune"])["run"])


def test_the_first_container_restores_the_results_of_this_run(tmp_path: Path) -> None:
    found = jobs(apps(tmp_path, [skipping()])["tune"])
    (restore,) = pod(found["run"])["initContainers"]
    assert restore["args"] == [
        *("fetch", "s3", "--uri=s3://acme/results/tune/$(KAIGEN_RUN)", "--dest=/output", "--identity=$(KAIGEN_RUN)"),
        "--if-complete=/tmp/.kaigen-complete",
    ]
    # The name of a Job ends in a hash of its pods, so they read it from their label.
    names = {each["name"]: each for each in restore["env"]}
    label = "metadata.labels['batch.kubernetes.io/job-name']"
    assert names["KAIGEN_RUN"]["valueFrom"]["fieldRef"]["fieldPath"] == label
    assert {"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"} < names.keys()
    assert {mount["mountPath"] for mount in restore["volumeMounts"]} == {"/output", "/tmp"}
    # What it looks for is what the upload stores.
    (upload,) = pod(found["upload"])["containers"]
    run = name_of(found["run"])
    assert upload["args"][2:] == [f"--dest=s3://acme/results/tune/{run}", f"--identity={run}"]
    rules = [rule["onExitCodes"] for rule in found["run"]["spec"]["podFailurePolicy"]["rules"] if "onExitCodes" in rule]
    assert [rule["containerName"] for rule in rules] == ["restore"]


def test_the_keys_are_in_no_other_container(tmp_path: Path) -> None:
    (container,) = run_of(tmp_path, skipping())["containers"]
    assert not [each for each in container["env"] if each["name"].startswith("AWS_")]


def test_gates_do_nothing_when_the_results_are_restored(tmp_path: Path) -> None:
    restore, *gates = run_of(tmp_path, MODEL, skipping(model="m"))["initContainers"]
    assert restore["name"] == "restore"
    assert gates
    for gate in gates:
        assert gate["args"][0] == "--skip-if=/tmp/.kaigen-complete"
        assert {"name": "scratch", "mountPath": "/tmp"} in gate["volumeMounts"]


def test_nothing_changes_without_it(tmp_path: Path) -> None:
    made = run_of(tmp_path, job("tune", command=COMMAND, output={"volume": VOLUME, "bucket": BUCKET}))
    assert "initContainers" not in made
    assert made["containers"][0]["command"] == COMMAND


def ran(container: Object, note: Path) -> str:
    """Run the command of a container, with a file in place of its note; return what it prints."""
    shell, script, _, *program = container["command"]
    argv = [shell, str(PROGRAMS / Path(script).name), str(note), *program]
    return subprocess.run([*argv, *container.get("args", [])], capture_output=True, text=True, check=True).stdout


def test_the_program_runs_with_its_arguments_unless_there_is_a_note(tmp_path: Path) -> None:
    spec = skipping(command=["printf", "%s|"], args=["a b", "$c", ""])
    (container,) = run_of(tmp_path, spec)["containers"]
    note = tmp_path / "note"
    assert ran(container, note) == "a b|$c||"
    note.write_text("already complete: s3://acme/a, 3 files\n")
    assert ran(container, note) == "already complete: s3://acme/a, 3 files\n"


@pytest.mark.parametrize(
    ("fields", "entry"),
    [
        ({"tune": {}, "model": "m", "inputs": [{"url": "https://a.example/b"}]}, ["kaigen-train"]),
        (
            {
                "workload": "classify",
                "classify": {"model": "resnet50", "weights": {"path": "/a.safetensors"}, "input": "/b"},
            },
            ["kaigen-classify"],
        ),
    ],
)
def test_kaigens_own_programs_are_the_entry_points_of_their_images(
    tmp_path: Path, fields: Object, entry: list[str]
) -> None:
    made = skipping(**fields)
    for name in ("image", "command"):
        made["spec"].pop(name)
    (container,) = run_of(tmp_path, MODEL, made)["containers"]
    assert container["command"][:2] == ["sh", "/etc/kaigen-programs/unless_file.sh"]
    assert container["command"][3:] == entry
    folder = {"kaigen-train": "train", "kaigen-classify": "classify"}[entry[0]]
    dockerfile = Path(__file__).parents[3] / "runtimes" / folder / "Dockerfile"
    assert f'ENTRYPOINT ["{entry[0]}"]' in dockerfile.read_text()


def test_batch_inference_is_not_repeated(tmp_path: Path) -> None:
    made = skipping(workload="generate", model="m", inputs=[{"url": "https://a.example/b.jsonl"}], generate={})
    for name in ("image", "command"):
        made["spec"].pop(name)
    (container,) = run_of(tmp_path, MODEL, made)["containers"]
    script, program = "/etc/kaigen-programs/unless_file.sh", "/etc/kaigen-programs/generate.py"
    assert container["command"] == ["sh", script, "/tmp/.kaigen-complete", "python3", program]


def test_an_image_whose_program_is_unknown_is_an_error(tmp_path: Path) -> None:
    made = skipping()
    del made["spec"]["command"]
    assert codes(tmp_path, [made]) == ["KG0456"]


def test_an_account_of_the_upload_alone_is_an_error(tmp_path: Path) -> None:
    account = {"credentials": {"serviceAccount": {"annotations": {"a.example/role": "b"}}}}
    assert codes(tmp_path, [skipping(bucket=account)]) == ["KG0456"]
    assert run_of(tmp_path, skipping(bucket=account, serviceAccount={"name": "own"}))["serviceAccountName"] == "own"


def test_each_pod_of_a_jobset_reads_the_name_of_the_jobset(tmp_path: Path) -> None:
    volume = {**VOLUME, "accessModes": ["ReadWriteMany"]}
    made = skipping(nodes=2, groups="jobSet", volume=volume)
    found = jobs(apps(tmp_path, [made])["tune"])["run"]
    spec = found["spec"]["replicatedJobs"][0]["template"]["spec"]["template"]["spec"]
    (run,) = [each for each in spec["initContainers"][0]["env"] if each["name"] == "KAIGEN_RUN"]
    assert run["valueFrom"]["fieldRef"]["fieldPath"] == "metadata.labels['jobset.sigs.k8s.io/jobset-name']"
