"""The convert image, built from its Dockerfile: a Model is downloaded and converted, and a Job reads what it became."""

from __future__ import annotations

import hashlib
import json
from functools import partial
from pathlib import Path

import pytest

from tests.cluster.apps import JOB, POD, compiled, job_name, spec
from tests.cluster.client import Object, is_true
from tests.cluster.images import BASE, runtime_image
from tests.cluster.node import Node
from tests.cluster.tiny_dllama import converted, converted_model, files
from tests.cluster.vllm_app import start_hub

READ = """
import hashlib, json, os, pathlib
names = sorted(path.name for path in pathlib.Path("/weights").iterdir())
print(json.dumps({"names": names, "model": hashlib.sha256(open("/weights/model.m", "rb").read()).hexdigest()}))
"""


def specs(hub_model: Object) -> list[Object]:
    """Return the Model and a Job that reads it."""
    small = {"cpu": "50m", "memory": "128Mi"}
    use = {"name": "tiny", "mountPath": "/weights"}
    return [
        hub_model,
        spec("Job", "read", image=BASE, command=["python", "-c", READ], resources=small, model=use),
    ]


@pytest.mark.ran("Job", "PersistentVolumeClaim", by=("node", "downloader", "convert"))
@pytest.mark.ran("Job", "PersistentVolumeClaim", by="node")
def test_a_downloaded_model_is_converted_and_read_by_its_gate(
    node: Node, node_namespace: str, tmp_path: Path
) -> None:
    node.import_image(runtime_image("convert"))
    hub = start_hub(node, files())
    try:
        apps = compiled(tmp_path, specs(converted_model("tiny", hub)), node_namespace, "generic")
        # The reader first: it waits for the converted files.
        for name in ("read", "tiny"):
            for rendered in apps[name].objects:
                node.client.apply(rendered.body)
        facts = json.loads(ended(node, node_namespace, job_name(apps["tiny"])))
        printed = json.loads(log(node, node_namespace, job_name(apps["read"])))
        assert printed == {
            "names": [".kaigen", "model.m", "tokenizer.t"],
            "model": hashlib.sha256(converted("q40")).hexdigest(),
        }
        assert facts["bytes"] > len(converted("q40"))
        assert (facts["weights"], facts["human"][-3:]) == ("q40", "KiB")
        # A run that starts again, as after a lost Job, adopts what is there.
        node.client.delete(JOB, job_name(apps["tiny"]), node_namespace, propagation="Foreground")
        node.client.wait_gone(JOB, job_name(apps["tiny"]), node_namespace)
        for rendered in apps["tiny"].objects:
            node.client.apply(rendered.body)
        assert json.loads(ended(node, node_namespace, job_name(apps["tiny"]))) == facts
        assert "already converted" in everything(node, node_namespace, job_name(apps["tiny"]))
    finally:
        hub.__exit__()


def ended(node: Node, namespace: str, name: str) -> str:
    """Wait until a Job is complete; return the termination message of its main container."""
    node.client.wait(JOB, name, namespace, partial(is_true, condition="Complete"), "complete")
    (pod,) = node.client.objects(POD, namespace, f"batch.kubernetes.io/job-name={name}")
    (status,) = pod["status"]["containerStatuses"]
    return str(status["state"]["terminated"]["message"])


def log(node: Node, namespace: str, name: str) -> str:
    """Wait until a Job is complete; return the last line of its log."""
    node.client.wait(JOB, name, namespace, partial(is_true, condition="Complete"), "complete")
    return everything(node, namespace, name).strip().rpartition("\n")[2]


def everything(node: Node, namespace: str, name: str) -> str:
    """Return the log of a Job's main container."""
    return node.run("kubectl", "logs", "--namespace", namespace, f"job/{name}").stdout
