"""Order: consumers of a model start after the model is stored, however the manifests were applied.

The nodes are simulated, so the real downloader runs as a local process: `fetch` fills a folder like the Model's Job,
and `wait` in the same folder decides when the consumer's init container ends.
"""

from __future__ import annotations

import subprocess
import time
from functools import partial
from pathlib import Path

import pytest

from kaigen.pipeline.result import Compiled
from tests.cluster.apps import JOB, POD, add_gpu_node, compiled, demo_specs, find, job_name
from tests.cluster.client import Object, is_true
from tests.cluster.downloader import argument, finish, hub_of, running
from tests.cluster.plane import Plane
from tests.cluster.processes import wait_until
from tests.cluster.simulate import PREFIX, Course, release, set_course
from tests.cluster.syncers import make_syncer

CONSUMER = "app.kubernetes.io/name=finetune"


def container_of(item: Compiled, name: str) -> Object:
    pod = find(item, "Job")["spec"]["template"]["spec"]
    (found,) = [each for each in [*pod.get("initContainers", []), *pod["containers"]] if each["name"] == name]
    return dict(found)


def started(pod: Object) -> bool:
    """Whether one of the pod's own containers has begun, init containers left out."""
    statuses = pod["status"].get("containerStatuses", [])
    return any(status.get("started") or "waiting" not in status["state"] for status in statuses)


def consumers(plane: Plane, namespace: str) -> list[Object]:
    return plane.client.objects(POD, namespace, CONSUMER)


def is_waiting(plane: Plane, namespace: str) -> bool:
    """Whether the consumer's pod is in the init container that waits for the model."""
    return any(
        status["name"] == "wait-for-model" and "running" in status["state"]
        for pod in consumers(plane, namespace)
        for status in pod["status"].get("initContainerStatuses", [])
    )


def older(spec: Object) -> Object:
    """The same Model at another commit."""
    hub = {**spec["spec"]["source"]["huggingFace"], "revision": "0" * 40}
    return {**spec, "spec": {**spec["spec"], "source": {"huggingFace": hub}}}


@pytest.mark.parametrize("way", ["apply", "argocd", "flux"])
def test_nothing_starts_before_the_model_is_stored(
    plane: Plane, namespace: str, tmp_path: Path, request: pytest.FixtureRequest, way: str
) -> None:
    add_gpu_node(plane)
    specs = demo_specs()
    apps = compiled(tmp_path / "specs", [specs["qwen"], specs["finetune"]], namespace)
    before = compiled(tmp_path / "older", [older(specs["qwen"])], namespace)
    # The download is slow and does not finish. The consumer waits until `wait` has ended.
    begins = "object.metadata.?generateName.orValue('').startsWith('{}-')"
    set_course(plane.client, namespace, Course(state="unready"), begins.format("qwen"))
    set_course(plane.client, namespace, Course(hold_init="wait-for-model"), begins.format("finetune"))
    syncer = None
    if way == "apply":
        # The consumer first: the order of files is not an order of work.
        for name in ("finetune", "qwen"):
            for rendered in apps[name].objects:
                plane.client.apply(rendered.body)
    else:
        syncer = make_syncer(request, way, plane, namespace, tmp_path)
        syncer.begin(apps)
    wait_until(lambda: is_waiting(plane, namespace), "the consumer waits")

    weights = tmp_path / "weights"
    fetch = container_of(apps["qwen"], "fetch")
    stored = weights / argument(fetch, "identity") / ".kaigen/model.json"
    with hub_of(container_of(before["qwen"], "fetch")) as hub:
        endpoint = f"--endpoint={hub.url}"
        with running(container_of(before["qwen"], "fetch"), weights, {}, endpoint) as process:
            finish(process)
    with running(container_of(apps["finetune"], "wait-for-model"), weights) as waiting, hub_of(fetch) as hub:
        # Another commit of the model is complete in the folder: that is not what is waited for.
        with pytest.raises(subprocess.TimeoutExpired):
            waiting.wait(0.5)
        hub.rate = 128 * 1024
        with running(fetch, weights, {}, f"--endpoint={hub.url}") as fetching:
            wait_until(lambda: hub.sent > 0, "the download has begun")
            while fetching.poll() is None:
                # `fetch` writes the marker a moment before it exits, and `wait` may end in that moment.
                assert waiting.poll() is None or stored.exists()
                assert not any(started(pod) for pod in consumers(plane, namespace))
                time.sleep(0.1)
            finish(fetching)
        finish(waiting)
    assert not any(started(pod) for pod in consumers(plane, namespace))
    release(plane.client, namespace, CONSUMER)
    complete = partial(is_true, condition="Complete")
    plane.client.wait(JOB, job_name(apps["finetune"]), namespace, complete, "complete")
    # The download's own Job is not over: the marker counts, not the Job.
    assert not is_true(plane.client.get(JOB, job_name(apps["qwen"]), namespace), "Complete")
    (download,) = plane.client.objects(POD, namespace, "app.kubernetes.io/name=qwen")
    over = {"metadata": {"annotations": {f"{PREFIX}state": "completed"}}}
    plane.client.patch(POD, download["metadata"]["name"], namespace, over)
    plane.client.wait(JOB, job_name(apps["qwen"]), namespace, complete, "complete")
    if syncer:
        for app in apps:
            syncer.remove(app)
