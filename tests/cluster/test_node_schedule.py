"""A schedule on a real node, by the minute: a run that overlaps, one that is missed, and a folder for each."""

from __future__ import annotations

import re
import time
from pathlib import Path
from typing import Any

import pytest

from runtimes.downloader.tests.s3 import S3
from tests.cluster.apps import JOB, client_pod, compiled, spec
from tests.cluster.client import Object, is_true
from tests.cluster.images import BASE
from tests.cluster.node import Node
from tests.cluster.processes import wait_until
from tests.cluster.test_node import install, run_pod
from tests.cluster.test_node_outputs import make_keys, place, storage

__all__ = ["storage"]

pytestmark = pytest.mark.engine

_WORK = "import os, time; open('/output/result', 'w').write(os.environ['JOB_NAME']); time.sleep(75)"
_LIST = (
    "import pathlib; print(*sorted(f'{p.parent.name}={p.read_text()}' for p in pathlib.Path('/o').glob('*/result')))"
)


def evaluation(**schedule: Any) -> Object:
    """Return the spec of a Job that is due each minute, and takes longer."""
    return spec(
        "Job",
        "evaluate",
        image=BASE,
        command=["python", "-c", _WORK],
        resources={"cpu": "10m", "memory": "64Mi"},
        schedule={"cron": "* * * * *", "keep": 5, "startingDeadline": "20s", **schedule},
        output={"volume": {"size": "10Mi"}},
    )


def runs(node: Node, namespace: str) -> list[Object]:
    """Return the runs, the oldest first."""
    found = node.client.objects(JOB, namespace)
    return sorted(found, key=lambda job: job["metadata"]["creationTimestamp"])


def minute(run: Object) -> int:
    """Return the minute at which a run was due, from its name."""
    return int(run["metadata"]["name"].rpartition("-")[2])


@pytest.mark.ran("CronJob", by=("node",))
def test_runs_that_overlap_or_are_missed_are_left_out(node: Node, node_namespace: str, tmp_path: Path) -> None:
    def apply(**schedule: Any) -> None:
        install(node, compiled(tmp_path, [evaluation(**schedule)], node_namespace), "manifests", tmp_path)

    def ended(number: int) -> bool:
        found = runs(node, node_namespace)
        return len(found) >= number and is_true(found[number - 1], "Complete")

    apply()
    wait_until(lambda: ended(2), "two runs are complete", 300, every=2)
    apply(suspend=True)
    first, second, *_ = runs(node, node_namespace)
    assert minute(second) - minute(first) == 2, "the run in between was due while the first one ran"
    before = len(runs(node, node_namespace))
    wait_until(lambda: ended(before), "what ran before the suspension has ended", 120, every=2)
    last = minute(runs(node, node_namespace)[-1])
    wait_until(lambda: time.time() // 60 > last + 3, "further runs would have been due", 300, every=2)
    assert len(runs(node, node_namespace)) == before
    apply()
    wait_until(lambda: ended(before + 1), "a run after the suspension is complete", 240, every=2)

    apply(suspend=True)
    complete = [run["metadata"]["name"] for run in runs(node, node_namespace) if is_true(run, "Complete")]
    pod = client_pod(_LIST)
    (container,) = pod["spec"]["containers"]
    container["volumeMounts"] = [{"name": "results", "mountPath": "/o"}]
    pod["spec"]["volumes"] = [{"name": "results", "persistentVolumeClaim": {"claimName": "evaluate-output"}}]
    printed = run_pod(node, node_namespace, pod).split()
    assert {f"{name}={name}" for name in complete} <= set(printed)


_COPY = (
    "import pathlib, shutil; (file,) = pathlib.Path('/output/in').glob('*.txt'); shutil.copy(file, '/output/result')"
)


@pytest.mark.ran("CronJob", "Role", by=("node", "downloader"))
def test_each_run_reads_the_newest_file_and_its_result_is_uploaded(
    node: Node, node_namespace: str, storage: S3, tmp_path: Path
) -> None:
    bucket = f"schedule-{node_namespace[-6:]}"
    with node.network.entered():
        storage.make_bucket(bucket)
        for day in (1, 2):
            storage.put(f"in/day-{day}.txt", f"day {day}".encode())
    make_keys(node, node_namespace)
    labelled = spec(
        "Job",
        "label",
        image=BASE,
        command=["python", "-c", _COPY],
        resources={"cpu": "10m", "memory": "64Mi"},
        schedule={"cron": "* * * * *", "keep": 9, "startingDeadline": "20s"},
        inputs={"into": "output", "files": [{"s3": {**place(storage, f"s3://{bucket}/in"), "newest": 1}}]},
        output={"volume": {"size": "10Mi"}, "bucket": place(storage, f"s3://{bucket}/out")},
    )
    install(node, compiled(tmp_path, [labelled], node_namespace), "manifests", tmp_path)

    def results() -> dict[str, str]:
        """Return the result of each run that is uploaded: what it read."""
        with node.network.entered():
            keys = storage.everything()
            complete = sorted(key for key in keys if re.fullmatch(r"out/label-[0-9]+/\.kaigen/model\.json", key))
            runs = [key.split("/")[1] for key in complete]
            assert all(f"out/{run}/in/.kaigen/model.json" in keys for run in runs)
            return {run: (storage.get(f"out/{run}/result") or b"").decode() for run in runs}

    wait_until(lambda: len(results()) >= 1, "the result of a run is uploaded", 240, every=2)
    assert set(results().values()) == {"day 2"}
    with node.network.entered():
        storage.put("in/day-3.txt", b"day 3")
    wait_until(lambda: "day 3" in results().values(), "a later run reads the new file", 240, every=2)
    names = {run["metadata"]["name"] for run in runs(node, node_namespace)}
    assert results().keys() <= names
    assert all(name.replace("label-", "label-upload-") in names for name in results())
