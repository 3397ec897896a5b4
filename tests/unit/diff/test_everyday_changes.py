"""Everyday changes of the demo show no danger: a reviewer who sees one each time stops to read them."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from kaigen.config.load import load_config
from kaigen.diff import Effect, compare
from kaigen.pipeline.grant_changes import new_grants
from kaigen.pipeline.run import render
from tests.cases import EXAMPLES

ENVIRONMENTS = ("dev", "prod", "accounts", "charts")
"""A cluster of K3s, one of GKE that Argo CD reaches by name, one with accounts of namespaces, and one with charts."""

MORE = {
    "accounts": "  accounts: {namespace: ml-dev, clusters: [lab], gitops: {tenancy: {serviceAccount: deployer, "
    "adminServiceAccount: 'argocd:admin', defaultDeny: [Ingress, Egress]}}}\n",
    "charts": "  charts: {namespace: ml-dev, clusters: [lab], format: chart, gitops: {charts: 'oci://registry.example.com/charts'}}\n",
}
SCHEDULE = """\
apiVersion: batch/v1
kind: CronJob
metadata: {name: nightly, namespace: NAMESPACE}
spec:
  schedule: 0 3 * * *
  jobTemplate:
    spec:
      template:
        spec:
          restartPolicy: Never
          automountServiceAccountToken: false
          securityContext: {runAsNonRoot: true, seccompProfile: {type: RuntimeDefault}}
          containers:
            - name: run
              image: registry.example.com/nightly:1
              securityContext: {allowPrivilegeEscalation: false, capabilities: {drop: [ALL]}}
              resources: {requests: {cpu: 1, memory: 1Gi}, limits: {memory: 1Gi}}
"""

Edit = Callable[[Path], None]


def spec(kind: str, name: str, body: str) -> str:
    """The text of a spec of one of kaigen's kinds."""
    inner = "\n".join(f"  {line}" for line in body.strip().splitlines())
    head = f"apiVersion: kaigen.dev/v1alpha1\nkind: {kind}\nmetadata: {{name: {name}}}\nspec:\n"
    return f"{head}{inner}\n"


def new(kind: str, body: str) -> Edit:
    """Adds an app."""
    return lambda root: _write(root / "specs" / "new.yaml", spec(kind, "new", body))


def _write(path: Path, text: str) -> None:
    path.write_text(text, encoding="utf-8")


def edit(name: str, old: str, text: str) -> Edit:
    """Replaces a text of a spec."""

    def apply(root: Path) -> None:
        path = root / "specs" / name
        before = path.read_text(encoding="utf-8")
        assert old in before
        _write(path, before.replace(old, text))

    return apply


def remove(name: str) -> Edit:
    """Removes a spec."""
    return lambda root: (root / "specs" / name).unlink()


HUB = "huggingFace: {repo: Qwen/Qwen2.5-0.5B-Instruct, revision: 7ae557604adf67be50417f59c2c2f167def9a775}"
CPU = "resources: {cpu: 1, memory: 1Gi}"

EVERYDAY: dict[str, Edit] = {
    "new tag of an image": edit("finetune.yaml", "torchtune:latest", "torchtune:v2"),
    "a schedule": edit("nightly.yaml", "0 3 * * *", "0 4 * * *"),
    "replicas": edit("chat.yaml", "contextLength: 8192", "contextLength: 8192\n  shape: {replicas: 2}"),
    "memory": edit("finetune.yaml", "memory: 24Gi", "memory: 32Gi"),
    "GPUs": edit("finetune.yaml", "gpus: 1", "gpus: 2"),
    "context length": edit("chat.yaml", "8192", "16384"),
    "arguments": edit("finetune.yaml", "- output_dir=/output", "- output_dir=/output\n    - epochs=3"),
    "a variable": edit("finetune.yaml", "  output:", "  env: {EPOCHS: '3'}\n  output:"),
    "a variable of a Secret": edit(
        "finetune.yaml", "  output:", "  env: {TOKEN: {secret: {name: wandb, key: token}}}\n  output:"
    ),
    "a revision of a model": edit(
        "qwen.yaml", "7ae557604adf67be50417f59c2c2f167def9a775", "0123456789abcdef0123456789abcdef01234567"
    ),
    "a larger volume": edit("finetune.yaml", "size: 50Gi", "size: 80Gi"),
    "autoscaling": edit(
        "chat.yaml",
        "contextLength: 8192",
        "contextLength: 8192\n  autoscale: {min: 1, max: 3, metric: cpu, target: 70}",
    ),
    "a route": edit(
        "chat.yaml",
        "contextLength: 8192",
        "contextLength: 8192\n  route: {host: chat.example.com, ingress: {className: nginx}}",
    ),
    "a new Model": new("Model", f"source:\n  {HUB}\nstore: {{volume: {{size: 5Gi}}}}"),
    "a new Model in a bucket": new(
        "Model", f"source:\n  {HUB}\nstore:\n  bucket: {{uri: s3://acme/new, credentials: {{secret: {{name: keys}}}}}}"
    ),
    "a new Topology of a bucket": lambda root: _write(
        root / "specs" / "new.yaml",
        spec(
            "Model",
            "weights",
            f"source:\n  {HUB}\nstore: {{bucket: {{uri: s3://acme/new, credentials: {{secret: {{name: keys}}}}}}}}",
        )
        + "---\n"
        + spec("Topology", "new", "model: weights\nresources: {gpuType: L4}"),
    ),
    "a new Dataset": new(
        "Dataset",
        "source: {huggingFace: {repo: acme/reviews, revision: 0123456789abcdef0123456789abcdef01234567}}\n"
        "store: {volume: {size: 5Gi}}",
    ),
    "a new Job": new("Job", f"image: registry.example.com/train:1\ncommand: [train]\n{CPU}"),
    "a new Job on two nodes": new(
        "Job", "image: registry.example.com/train:1\ncommand: [train]\nnodes: 2\nresources: {gpus: 1, memory: 8Gi}"
    ),
    "a new Topology": new("Topology", "model: qwen\nresources: {gpuType: L4}"),
    "a new Topology on two nodes": new(
        "Topology", "preset: deepseek-v3-0324\nresources: {instanceType: p5.48xlarge, cpu: 96, memory: 1Ti}"
    ),
    "a new Topology behind a Gateway": new(
        "Topology",
        "model: qwen\nresources: {gpuType: L4}\nroute: {host: new.example.com, gateway: {className: istio}}\n"
        "autoscale: {min: 1, max: 4, metric: cpu, target: 70}",
    ),
    "a new Topology behind a Gateway of another namespace": new(
        "Topology",
        "model: qwen\nresources: {gpuType: L4}\n"
        "route: {host: new.example.com, gateway: {name: public, namespace: gateways}}",
    ),
    "a new Notebook": new("Notebook", f"image: quay.io/jupyter/base-notebook:2026-01-01\n{CPU}"),
    "a new Job of AI Operator": lambda root: _write(
        root / "specs" / "new.yaml",
        (root / "specs" / "finetune-job.yaml").read_text(encoding="utf-8").replace("finetune-job", "new"),
    ),
    "a new Workspace": lambda root: _write(
        root / "specs" / "new.yaml",
        (root / "specs" / "workspace.yaml").read_text(encoding="utf-8").replace("workspace-phi-4-mini", "new"),
    ),
    "no Workspace": remove("workspace.yaml"),
    "no chat": remove("chat.yaml"),
    "no fine-tuning": remove("finetune.yaml"),
}


def dangers(root: Path, apply: Edit, environment: str) -> list[Effect]:
    """Return the dangers of a change of the demo."""
    before = load_config(root, environment)
    old = render((), before)
    apply(root)
    now = load_config(root, environment)
    change = compare(old, render((), now))
    assert change.apps
    assert new_grants(before, now) == []
    return [effect for app in change.apps for _, effect in app.all_effects() if effect.level == "danger"]


CASES = [
    (what, environment)
    for what in EVERYDAY
    for environment in ENVIRONMENTS
    # The objects of a chart are not compared, so its removal is a danger.
    if not (what.startswith("no ") and environment == "charts")
]


@pytest.mark.parametrize(("what", "environment"), CASES)
def test_an_everyday_change_of_the_demo_is_no_danger(what: str, environment: str, tmp_path: Path) -> None:
    root = tmp_path / "demo"
    shutil.copytree(EXAMPLES / "demo", root, ignore=shutil.ignore_patterns("rendered"))
    config = (root / "kaigen.yaml").read_text(encoding="utf-8").replace("promotion:", "passthrough: true\npromotion:")
    more = MORE.get(environment, "")
    _write(root / "kaigen.yaml", config.replace("environments:\n", f"environments:\n{more}"))
    namespace = "ml-prod" if environment == "prod" else "ml-dev"
    _write(root / "specs" / "nightly.yaml", SCHEDULE.replace("NAMESPACE", namespace))
    assert dangers(root, EVERYDAY[what], environment) == []
