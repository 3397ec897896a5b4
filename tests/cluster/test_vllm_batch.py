"""`workload: generate` with the real vLLM on a real node: chat, Parquet, OpenAI's batch files, vectors, labels."""

from __future__ import annotations

import io
import json
import math
import shutil
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
import yaml
from pyarrow import parquet

from runtimes.downloader.tests.hub import COMMIT, REPO, Hub
from tests.cluster.apps import JOB, compiled, job_name, spec
from tests.cluster.client import Object, is_true
from tests.cluster.images import runtime_image
from tests.cluster.live import call
from tests.cluster.node import Node
from tests.cluster.processes import wait_until
from tests.cluster.test_node import install, run_client
from tests.cluster.test_vllm import DEPLOYMENT
from tests.cluster.tiny_llama import Files, base_files, classifier_files
from tests.cluster.vllm_app import model, start_hub, topology
from tests.cluster.vllm_image import vllm_image

pytestmark = pytest.mark.engine

SHARED = {"volume": {"size": "1Gi", "accessModes": ["ReadWriteMany"], "storageClassName": "local-path"}}
TEXTS = ["Hello", "What is it?", "one two three", "ABC", "x", "The end."]
LABELS = ["bad", "fair", "good"]
PARAMETERS = {"max_tokens": 8, "temperature": 0}
ASK = """
import json, urllib.request
def ask(text):
    body = {"model": "tiny", "messages": [{"role": "user", "content": text}], "max_tokens": 8, "temperature": 0}
    data = json.dumps(body).encode()
    request = urllib.request.Request("http://chat/v1/chat/completions", data, {"Content-Type": "application/json"})
    return json.load(urllib.request.urlopen(request, timeout=120))["choices"][0]["message"]["content"]
"""


class Batches:
    """Batches in a namespace of the node, whose models and lines come from Hubs."""

    def __init__(self, node: Node, namespace: str, folder: Path, stack: ExitStack) -> None:
        self.node, self.namespace, self.folder, self.stack = node, namespace, folder, stack

    def hub(self, files: Files) -> Hub:
        """Start a Hub with these files."""
        found = start_hub(self.node, files)
        self.stack.callback(found.__exit__)
        return found

    def dataset(self, name: str, files: Files) -> Object:
        """Return the spec of a Dataset."""
        hub = self.hub(files)
        hub.repo = f"datasets/{REPO}"
        return spec(
            "Dataset",
            name,
            source={"huggingFace": {"repo": REPO, "revision": COMMIT, "endpoint": hub.url}},
            store=SHARED,
        )

    def run(self, name: str, block: Mapping[str, Any], others: Sequence[Object], *, is_watched: bool = False) -> Path:
        """Run a batch to its end, and return the folder of its output.

        Args:
            name: name of the Job.
            block: its settings `generate`.
            others: the Model and the Datasets.
            is_watched: whether `kaigen status` is asked for the progress meanwhile.
        """
        inputs = [{"dataset": each["metadata"]["name"]} for each in others if each["kind"] == "Dataset"]
        whole: dict[str, Any] = {
            "workload": "generate",
            "model": "tiny",
            "inputs": inputs,
            "generate": {
                "contextLength": 512,
                "input": f"/inputs/{inputs[0]['dataset']}",
                "engineArgs": {"enforce-eager": True, "num-gpu-blocks-override": 64},
                **block,
            },
            "env": {"VLLM_CPU_KVCACHE_SPACE": "1"},
            "resources": {"cpu": "100m", "memory": "3Gi"},
            "retries": 0,
            "output": SHARED,
        }
        apps = compiled(self.folder / name, [spec("Job", name, **whole), *others], self.namespace, "generic")
        install(self.node, apps, "manifests", self.folder / "charts")
        run = job_name(apps[name])
        if is_watched:
            self.sees_progress(self.folder / name, name)
        wait_until(partial(_ended, self.node, self.namespace, run), f"{run} has ended", 600, every=1)
        printed = self.node.run("kubectl", "logs", "--namespace", self.namespace, f"job/{run}").stdout
        assert is_true(self.node.client.get(JOB, run, self.namespace), "Complete"), printed[-3000:]
        claim = self.node.client.get("v1/PersistentVolumeClaim", f"{name}-output", self.namespace)
        volume = self.node.client.get("v1/PersistentVolume", claim["spec"]["volumeName"])["spec"]
        return Path((volume.get("hostPath") or volume["local"])["path"])

    def sees_progress(self, specs: Path, name: str) -> None:
        """Wait until `kaigen status` shows which share of the lines is done: no line is as long as vLLM starts."""
        folder = self.folder / f"{name}-status"
        shutil.copytree(specs, folder / "specs")
        config = {
            **{"apiVersion": "kaigen.dev/v1alpha1", "kind": "Config", "profile": "generic"},
            **{"namespace": self.namespace, "specs": ["specs"], "allow": {"servers": ["hub.test"]}},
        }
        (folder / "kaigen.yaml").write_text(yaml.safe_dump(config))
        status = partial(call, self.node, "kaigen", "status", name, folder=folder, code=None)
        wait_until(lambda: "progress 0% (0 of" in status(), "the status has the progress", 300, every=3)


def _ended(node: Node, namespace: str, name: str) -> bool:
    found = node.client.find(JOB, name, namespace)
    return found is not None and (is_true(found, "Complete") or is_true(found, "Failed"))


@pytest.fixture
def batches(node: Node, node_namespace: str, tmp_path: Path) -> Any:
    """Return what runs batches."""
    for image in (vllm_image(), runtime_image("pyarrow")):
        node.import_image(image)
    with ExitStack() as stack:
        yield Batches(node, node_namespace, tmp_path, stack)


def lines(rows: Sequence[object]) -> bytes:
    return "".join(f"{json.dumps(row)}\n" for row in rows).encode()


def read(path: Path) -> list[Any]:
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


def request(name: str, url: str, **body: Any) -> Object:
    """Return a line of OpenAI's batch files."""
    return {"custom_id": name, "method": "POST", "url": url, "body": {"model": "gpt-5", **body}}


def alike(one: Sequence[float], other: Sequence[float]) -> float:
    """Return the cosine of the angle between two vectors of length 1; a batch changes the last digits."""
    return sum(a * b for a, b in zip(one, other, strict=True))


def table(rows: list[Object]) -> bytes:
    stream = io.BytesIO()
    parquet.write_table(pa.Table.from_pylist(rows), stream, row_group_size=4)
    return stream.getvalue()


@pytest.mark.ran("Job", "PersistentVolumeClaim", by=("node", "downloader", "pyarrow"))
def test_chat_from_and_to_parquet_and_by_openai_has_the_answers_of_the_server(batches: Batches, tmp_path: Path) -> None:
    node, namespace = batches.node, batches.namespace
    tiny = model("tiny", batches.hub(base_files(context=512)))
    flags = {"enforce-eager": True, "num-gpu-blocks-override": 64}
    server = topology("chat", "tiny", servedNames=["tiny"], contextLength=512, engineArgs=flags)
    install(node, compiled(tmp_path / "chat", [server, tiny], namespace, "generic"), "manifests", tmp_path / "charts")
    node.client.wait(DEPLOYMENT, "chat", namespace, _is_ready, "ready", timeout=600)
    expected = json.loads(run_client(node, namespace, f"{ASK}\nprint(json.dumps([ask(text) for text in {TEXTS!r}]))"))
    node.client.delete(DEPLOYMENT, "chat", namespace)

    rows = [{"who": {"says": text}, "at": number} for number, text in enumerate(TEXTS)]
    block = {"prompt": "{who.says}", "parameters": PARAMETERS, "results": "parquet"}
    folder = batches.run("chats", block, [tiny, batches.dataset("lines", {"a.parquet": table(rows)})])
    found = parquet.read_table(folder / "results.parquet").to_pylist()
    assert [each["output"] for each in found] == expected
    assert [each["row"] for each in found] == rows
    assert {each["usage"]["completion_tokens"] for each in found} == {8}

    asked = [
        request(f"r{number}", "/v1/chat/completions", messages=[{"role": "user", "content": text}], **PARAMETERS)
        for number, text in enumerate(TEXTS)
    ]
    asked += [
        request("text", "/v1/completions", prompt="Hello", **PARAMETERS),
        request("vector", "/v1/embeddings", input="Hello"),
        request("long", "/v1/completions", prompt="x" * 600, **PARAMETERS),
    ]
    folder = batches.run("requests", {"format": "openai"}, [tiny, batches.dataset("asked", {"a.jsonl": lines(asked)})])
    answers = read(folder / "results.jsonl")
    assert [each["custom_id"] for each in answers] == [*(f"r{number}" for number in range(len(TEXTS))), "text"]
    contents = [each["response"]["body"]["choices"][0] for each in answers]
    assert [each["message"]["content"] for each in contents[:-1]] == expected
    assert len(contents[-1]["text"]) == 8
    assert all(each["response"]["body"]["model"] == "tiny" for each in answers)
    assert [each["custom_id"] for each in read(folder / "failures.jsonl")] == ["vector", "long"]


def _is_ready(found: Object) -> bool:
    return bool(found.get("status", {}).get("readyReplicas") == 1)


def test_vectors_are_the_same_by_rows_and_by_openai(batches: Batches) -> None:
    tiny = model("tiny", batches.hub(base_files(context=512)))
    rows = batches.dataset("lines", {"a.jsonl": lines([{"text": text} for text in [*TEXTS, TEXTS[0]]])})
    found = read(batches.run("vectors", {"task": "embed"}, [tiny, rows]) / "results.jsonl")
    vectors = [each["output"] for each in found]
    assert {len(vector) for vector in vectors} == {128}
    assert all(math.isclose(math.hypot(*vector), 1, abs_tol=1e-3) for vector in vectors)
    assert alike(vectors[0], vectors[-1]) > 0.999
    assert max(alike(vectors[0], other) for other in vectors[1:-1]) < 0.99
    asked = [request(f"r{number}", "/v1/embeddings", input=text) for number, text in enumerate(TEXTS)]
    requests = batches.dataset("asked", {"a.jsonl": lines(asked)})
    folder = batches.run("requests", {"format": "openai", "task": "embed"}, [tiny, requests])
    answers = [each["response"]["body"]["data"][0]["embedding"] for each in read(folder / "results.jsonl")]
    assert len(answers) == len(TEXTS)
    assert min(map(alike, vectors[:-1], answers)) > 0.999


def test_labels_are_those_of_the_model(batches: Batches) -> None:
    tiny = model("tiny", batches.hub(classifier_files(LABELS)))
    rows = batches.dataset("lines", {"a.jsonl": lines([{"text": text} for text in [*TEXTS, TEXTS[0]]])})
    found = read(batches.run("labels", {"task": "classify"}, [tiny, rows], is_watched=True) / "results.jsonl")
    assert [each["row"]["text"] for each in found] == [*TEXTS, TEXTS[0]]
    for each in found:
        assert math.isclose(sum(each["probabilities"]), 1, abs_tol=1e-3)
        assert each["output"] == LABELS[max(range(3), key=each["probabilities"].__getitem__)]
    assert found[0]["probabilities"] == pytest.approx(found[-1]["probabilities"], abs=1e-5)
    assert len({tuple(each["probabilities"]) for each in found}) > 1
