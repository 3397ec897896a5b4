"""Annotations that kustomize, Argo CD and Flux obey do not remove objects unseen."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterable
from pathlib import Path

import pytest
import yaml

from tests.unit.security.hostile import CONFIG, JOB, Repository

BUILD = [
    "config.kubernetes.io/local-config",
    "internal.config.kubernetes.io/needsHashSuffix",
    "internal.config.kubernetes.io/prefixes",
    "kustomize.config.k8s.io/behavior",
    "config.k8s.io/id",
]
PLAIN = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c, annotations: {KEY: 'true'}}\ndata: {a: b}\n"
PATCH = """\
patches:
  - target: {app: evaluate, kind: Job}
    patch: {metadata: {annotations: {KEY: "true"}}}
"""


def annotated(key: str, value: str = "true") -> str:
    """Return the Job with an annotation."""
    return JOB.replace("{name: evaluate}", f"{{name: evaluate, annotations: {{{key}: '{value}'}}}}")


def _in_order(objects: Iterable[object]) -> list[str]:
    return sorted(json.dumps(body, sort_keys=True) for body in objects)


@pytest.mark.parametrize("key", BUILD)
def test_no_object_has_an_annotation_that_kustomize_obeys(repository: Repository, key: str) -> None:
    for spec in (annotated(key), PLAIN.replace("KEY", key)):
        repository.write({"kaigen.yaml": CONFIG + "passthrough: true\n", "specs/evaluate.yaml": spec})
        done = repository.kaigen("validate")
        assert (done.code, "KG0552" in done.err, key in done.err) == (2, True, True), done.text


def test_no_patch_adds_an_annotation_that_kustomize_obeys(repository: Repository) -> None:
    repository.write({"kaigen.yaml": CONFIG + PATCH.replace("KEY", BUILD[0])})
    done = repository.kaigen("validate")
    assert (done.code, "KG0552" in done.err) == (2, True), done.text


def build(kubectl: Path, folder: Path) -> str:
    """Return what kustomize makes of a folder."""
    command = [str(kubectl), "kustomize", str(folder)]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def test_kustomize_drops_an_object_with_an_annotation_that_is_refused(kubectl: Path, tmp_path: Path) -> None:
    (tmp_path / "kustomization.yaml").write_text("resources: [kept.yaml, dropped.yaml]\n", encoding="utf-8")
    (tmp_path / "kept.yaml").write_text(PLAIN.replace("KEY", "example.com/a"), encoding="utf-8")
    dropped = PLAIN.replace("name: c", "name: d").replace("KEY", "config.kubernetes.io/local-config")
    (tmp_path / "dropped.yaml").write_text(dropped, encoding="utf-8")
    built = [body["metadata"]["name"] for body in yaml.safe_load_all(build(kubectl, tmp_path))]
    assert built == ["c"]


@pytest.mark.parametrize(
    "key",
    [
        "example.com/config.kubernetes.io",
        "argocd.argoproj.io/sync-options",
        "kustomize.toolkit.fluxcd.io/prune",
        "my-config.kubernetes.io/local-config",
    ],
)
def test_kustomize_builds_every_object_that_passes(repository: Repository, kubectl: Path, key: str) -> None:
    repository.write({"specs/evaluate.yaml": annotated(key)})
    repository.rendered()
    (folder,) = repository.folder.glob("rendered/**/manifests")
    files = [file for file in folder.glob("*.yaml") if file.name != "kustomization.yaml"]
    built = build(kubectl, folder)
    written = [yaml.safe_load(file.read_text(encoding="utf-8")) for file in files]
    assert written
    assert _in_order(yaml.safe_load_all(built)) == _in_order(written)


def test_an_annotation_that_a_syncer_obeys_is_a_danger(repository: Repository) -> None:
    repository.rendered()
    repository.write({"specs/evaluate.yaml": annotated("kustomize.toolkit.fluxcd.io/reconcile", "disabled")})
    assert repository.kaigen("render").code == 0
    done = repository.kaigen("diff", "--base", "HEAD")
    assert "danger: Argo CD, Flux or Helm may skip, replace or delete it" in done.out, done.text


@pytest.mark.parametrize(
    ("key", "text"),
    [("argocd.argoproj.io/sync-options", "Prune=false"), ("kustomize.toolkit.fluxcd.io/prune", "disabled")],
)
def test_the_removal_of_an_annotation_that_keeps_an_object_is_a_danger(
    repository: Repository, key: str, text: str
) -> None:
    repository.write({"specs/evaluate.yaml": annotated(key, text)})
    repository.rendered()
    repository.write({"specs/evaluate.yaml": JOB})
    assert repository.kaigen("render").code == 0
    done = repository.kaigen("diff", "--base", "HEAD")
    message = f"danger: Argo CD, Flux or Helm may now delete it with its file or its app, without {key}: {text}"
    assert message in " ".join(done.out.split()), done.text
