"""`kaigen.dev/compat` makes what AI Operator makes, but for the differences that are meant, which are listed here."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from kaigen.config.settings import Config
from kaigen.pipeline.result import Compilation
from kaigen.pipeline.run import compile_specs
from tests import plain_yaml
from tests.differences import differences

EXAMPLE = Path(__file__).parents[2] / "examples" / "ai-operator" / "finetune-job.yaml"
OPERATOR = Path(__file__).parent / "ai_operator" / "operator.yaml"

MEANT: dict[str, str] = {
    # Who owns what, for selectors, Argo CD and people.
    "PersistentVolumeClaim.metadata.labels.app.kubernetes.io/instance": "kaigen's labels",
    "PersistentVolumeClaim.metadata.labels.app.kubernetes.io/managed-by": "kaigen's labels",
    "PersistentVolumeClaim.metadata.labels.app.kubernetes.io/component": "kaigen's labels",
    "Job.metadata.labels.app.kubernetes.io/instance": "kaigen's labels",
    "Job.metadata.labels.app.kubernetes.io/managed-by": "kaigen's labels",
    "Job.metadata.labels.app.kubernetes.io/component": "kaigen's labels",
    "Job.spec.template.metadata.labels.app.kubernetes.io/instance": "kaigen's labels",
    "Job.spec.template.metadata.labels.app.kubernetes.io/component": "kaigen's labels",
    "PersistentVolumeClaim.metadata.annotations": "trained weights outlive the spec; waves",
    "Job.metadata.annotations": "waves",
    # What a Job ought to say.
    "Job.spec.backoffLimit": "the API's default, said aloud",
    "Job.spec.completions": "a Job, not a work queue",
    "Job.spec.completionMode": "the API's default, said aloud",
    "Job.spec.podFailurePolicy": "an eviction is not a failure",
    # The token reaches the downloader only.
    "Job.spec.template.spec.containers.finetune-job.env.HF_TOKEN": "not for the training container",
    # A GPU and memory are requested, and GPU nodes are tolerated.
    "Job.spec.template.spec.containers.finetune-job.resources": "a GPU is requested",
    "Job.spec.template.spec.initContainers.finetune-job-init.resources": "the scheduler sees the downloader",
    "Job.spec.template.spec.tolerations": "GPU nodes are tainted",
    # Pod Security restricted, and room to write for a user that is not root.
    "Job.spec.template.spec.securityContext": "restricted",
    "Job.spec.template.spec.containers.finetune-job.securityContext": "restricted",
    "Job.spec.template.spec.initContainers.finetune-job-init.securityContext": "restricted",
    "Job.spec.template.spec.automountServiceAccountToken": "nothing asks the API server",
    "Job.spec.template.spec.enableServiceLinks": "no stray variables",
    "Job.spec.template.spec.containers.finetune-job.env.HOME": "a home that can be written to",
    "Job.spec.template.spec.initContainers.finetune-job-init.env.HOME": "a home that can be written to",
    "Job.spec.template.spec.containers.finetune-job.volumeMounts.scratch": "a home that can be written to",
    "Job.spec.template.spec.volumes.scratch": "a home that can be written to",
    # These containers are not interactive.
    "Job.spec.template.spec.containers.finetune-job.tty": "no terminal",
    "Job.spec.template.spec.initContainers.finetune-job-init.tty": "no terminal",
    "Job.spec.template.spec.containers.finetune-job.terminationMessagePolicy": "a failed pod says why",
}
"""Every field in which the two differ, and why."""


@pytest.fixture(scope="module")
def compat(tmp_path_factory: pytest.TempPathFactory) -> Compilation:
    folder = tmp_path_factory.mktemp("compat")
    head = "metadata:\n  name: finetune-job\n"
    text = EXAMPLE.read_text()
    assert head in text
    (folder / "job.yaml").write_text(text.replace(head, f'{head}  annotations: {{kaigen.dev/compat: "true"}}\n'))
    config = Config(root=folder)
    return compile_specs([str(folder)], config)


def by_name(node: Any) -> Any:
    """Lists of named things as mappings, so that they are compared by name and not by place."""
    if isinstance(node, dict):
        return {key: by_name(value) for key, value in node.items()}
    if isinstance(node, list) and node and all(isinstance(item, dict) and "name" in item for item in node):
        return {item["name"]: by_name(item) for item in node}
    return [by_name(item) for item in node] if isinstance(node, list) else node


def objects(compilation: Compilation) -> dict[str, Any]:
    return {item.body["kind"]: item.body for item in compilation.apps[0].objects}


def test_only_the_listed_fields_differ(compat: Compilation) -> None:
    made = objects(compat)
    found = {}
    for original in plain_yaml.load_all(OPERATOR.read_text()):
        kind = original["kind"]
        for line in differences(by_name(made[kind]), by_name(original)):
            path, _, difference = line.partition(": ")
            found[kind + path] = difference
    assert {path: text for path, text in found.items() if path not in MEANT} == {}
    assert [path for path in MEANT if path not in found] == []


@pytest.mark.promise("AI Operator", "The training job has access to the downloaded model files")
def test_no_field_of_the_operator_has_a_different_value(compat: Compilation) -> None:
    """Fields are added or left out; but for the list of what is left out, no value changes."""
    made = objects(compat)
    gone = {".tty", ".env.HF_TOKEN"}
    for original in plain_yaml.load_all(OPERATOR.read_text()):
        for line in differences(by_name(made[original["kind"]]), by_name(original)):
            path, _, difference = line.partition(": ")
            assert difference.startswith("not expected") or any(path.endswith(end) for end in gone), line


@pytest.mark.promise("AI Operator", "`Job` wraps storage, token, download and fine-tuning")
def test_the_only_additional_object_is_a_network_policy(compat: Compilation) -> None:
    assert sorted(objects(compat)) == ["Job", "NetworkPolicy", "PersistentVolumeClaim"]
    assert [item.message for item in compat.diagnostics] == []
