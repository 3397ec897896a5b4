"""KAITO's Workspace with `tuning` on a real node: kaigen's own program trains an adapter into the user's volume."""

from __future__ import annotations

import json
from contextlib import ExitStack
from functools import partial
from pathlib import Path

import pytest
import yaml

from runtimes.downloader.tests.hub import COMMIT, REPO
from tests.cluster.apps import JOB, compiled, find, job_name, spec
from tests.cluster.client import Object, is_true
from tests.cluster.images import runtime_image
from tests.cluster.node import Node
from tests.cluster.test_live_jobs import add_gpus
from tests.cluster.test_node import install
from tests.cluster.tiny_llama import base_files
from tests.cluster.vllm_app import start_hub

pytestmark = pytest.mark.engine

SETTINGS = {
    "LoraConfig": {"r": 4, "target_modules": ["q_proj", "v_proj"]},
    "TrainingArguments": {
        "output_dir": "/mnt/out",
        "num_train_epochs": 20,
        "per_device_train_batch_size": 4,
        "learning_rate": "1e-2",
    },
    "DatasetConfig": {"context_column": "question", "response_column": "answer", "train_test_split": 1},
}
ROWS = "question,answer\n" + 'Where is my parcel?," In Leeds."\n' * 16


def documents(address: str, data: str) -> list[Object]:
    """Return the Workspace with its settings, and the Model that it trains."""
    config = json.loads(base_files(context=256)["config.json"])
    return [
        {
            "apiVersion": "kaito.sh/v1beta1",
            "kind": "Workspace",
            "metadata": {"name": "train", "annotations": {"kaigen.dev/model": "tiny"}},
            "resource": {"labelSelector": {"matchLabels": {"kubernetes.io/os": "linux"}}},
            "tuning": {
                "preset": {"name": REPO},
                "method": "lora",
                "config": "settings",
                "input": {"urls": [data]},
                "output": {"volumeSource": {"persistentVolumeClaim": {"claimName": "adapters"}}},
            },
        },
        {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": "settings"},
            "data": {"training_config.yaml": yaml.safe_dump({"training_config": SETTINGS})},
        },
        spec(
            "Model",
            "tiny",
            source={"huggingFace": {"repo": REPO, "revision": COMMIT, "endpoint": address}},
            store={"volume": {"size": "1Gi", "accessModes": ["ReadWriteMany"], "storageClassName": "local-path"}},
            facts={"config": config, "weights": "2Mi"},
        ),
    ]


def claim(namespace: str) -> Object:
    """Return the user's volume for the adapter."""
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": "adapters", "namespace": namespace},
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": "local-path",
            "resources": {"requests": {"storage": "1Gi"}},
        },
    }


@pytest.mark.ran("Job", by=("node", "train", "downloader"))
def test_a_workspace_trains_an_adapter_into_its_volume(node: Node, node_namespace: str, tmp_path: Path) -> None:
    node.import_image(runtime_image("train"))
    add_gpus(node)
    with ExitStack() as stack:
        hub = start_hub(node, {**base_files(context=256), "train.csv": ROWS.encode()})
        stack.callback(hub.__exit__)
        data = f"{hub.url}/{REPO}/resolve/{COMMIT}/train.csv"
        apps = compiled(tmp_path / "specs", documents(hub.url, data), node_namespace, "generic")
        run = find(apps["train"], "Job")
        # The machine of the tests has two processors.
        run["spec"]["template"]["spec"]["containers"][0]["resources"]["requests"]["cpu"] = "100m"
        node.client.apply(claim(node_namespace))
        install(node, apps, "manifests", tmp_path / "charts")
        complete = partial(is_true, condition="Complete")
        node.client.wait(JOB, job_name(apps["train"]), node_namespace, complete, "complete", 600)
    bound = node.client.get("v1/PersistentVolumeClaim", "adapters", node_namespace)["spec"]["volumeName"]
    volume = node.client.get("v1/PersistentVolume", bound)["spec"]
    folder = Path((volume.get("hostPath") or volume["local"])["path"])
    report = json.loads((folder / "report.json").read_text())
    assert (report["result"], report["samples"], report["steps"]) == (".", 16, 80)
    assert report["loss"]["after"] < report["loss"]["before"]
    config = json.loads((folder / "adapter_config.json").read_text())
    assert (config["r"], config["target_modules"]) == (4, ["q_proj", "v_proj"])
    assert (folder / "adapter_model.safetensors").is_file()
