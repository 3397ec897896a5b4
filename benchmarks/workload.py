"""The rendered specs: any number of kaigen's own kinds, the same in every run."""

from __future__ import annotations

from hashlib import sha256
from pathlib import Path
from typing import Any

Object = dict[str, Any]
"""One Kubernetes object, as data."""

_CONFIG = """\
apiVersion: kaigen.dev/v1alpha1
kind: Config
kubernetes: "1.36"
profile: generic
namespace: ml
specs: [specs]
output: rendered
format: manifests
"""

_MODEL = """\
apiVersion: kaigen.dev/v1alpha1
kind: Model
metadata:
  name: model-{number:05}
spec:
  source:
    huggingFace:
      repo: example/model-{number:05}
      revision: {revision}
      tokenSecret: {{name: hf-token}}
  store:
    volume: {{size: {size}Gi, accessModes: [ReadWriteMany]}}
"""

_JOB = """\
apiVersion: kaigen.dev/v1alpha1
kind: Job
metadata:
  name: job-{number:05}
spec:
  image: registry.example/team/train:1.{number}.0
  model: model-{number:05}
  command: [tune, run, full_finetune_single_device]
  args:
    - --config
    - qwen2_5/0.5B_full_single_device
    - checkpointer.checkpoint_dir=/model
  env:
    LOG_LEVEL: info
    RUN_NAME: run-{number:05}
    EDITION: first
  params:
    epochs: 3
    learning_rate: 0.0002
    batch_size: {size}
    tags: [nightly, "{number:05}"]
  output:
    volume: {{size: 50Gi}}
  resources:
    gpus: 1
    cpu: "4"
    memory: 24Gi
"""

_LONE_JOB = _JOB.replace("  model: model-{number:05}\n", "")

DEPLOYMENT: Object = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {"name": "web", "namespace": "ml", "labels": {"app.kubernetes.io/name": "web"}},
    "spec": {
        "replicas": 2,
        "selector": {"matchLabels": {"app.kubernetes.io/name": "web"}},
        "template": {
            "metadata": {"labels": {"app.kubernetes.io/name": "web"}},
            "spec": {
                "securityContext": {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}},
                "containers": [
                    {
                        "name": "web",
                        "image": "registry.example/team/web:1.0.0",
                        "ports": [{"name": "http", "containerPort": 8080}],
                        "env": [{"name": "LOG_LEVEL", "value": "info"}],
                        "resources": {"requests": {"cpu": "100m", "memory": "128Mi"}, "limits": {"memory": "128Mi"}},
                        "readinessProbe": {"httpGet": {"path": "/ready", "port": "http"}},
                    }
                ],
            },
        },
    },
}
"""A typical small input of these tools, for measuring start-up."""


def write_repository(folder: Path, specs: int) -> Path:
    """Create a repository with one spec per file, half Models and half Jobs that use them, and return its folder.

    If the number is odd, there is one Model more.
    """
    texts = {f"job-{number:05}": _fill(_JOB, number) for number in range(specs // 2)}
    texts |= {f"model-{number:05}": _fill(_MODEL, number) for number in range(specs - specs // 2)}
    return _write(folder, texts)


def write_lone_job(folder: Path) -> Path:
    """Create a repository with one Job that uses no Model and return its folder."""
    return _write(folder, {"job-00000": _fill(_LONE_JOB, 0)})


def edit_specs(repository: Path, text: str, most: int) -> None:
    """Set one environment variable to `text` in at most `most` Jobs of a repository."""
    for path in sorted((repository / "specs").glob("job-*.yaml"))[:most]:
        lines = path.read_text().splitlines(keepends=True)
        path.write_text("".join(f"    EDITION: {text}\n" if "EDITION:" in line else line for line in lines))


def _fill(text: str, number: int) -> str:
    revision = sha256(str(number).encode()).hexdigest()[:40]
    return text.format(number=number, revision=revision, size=1 + number % 64)


def _write(folder: Path, texts: dict[str, str]) -> Path:
    specs = folder / "specs"
    specs.mkdir(parents=True)
    (folder / "kaigen.yaml").write_text(_CONFIG)
    for name, text in texts.items():
        (specs / f"{name}.yaml").write_text(text)
    return folder
