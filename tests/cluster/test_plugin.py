"""kaigen as Argo CD's plugin: its repository server asks for manifests by its own protocol, and syncs them."""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path

import pytest

from kaigen.config.load import load_config
from kaigen.pipeline.run import compile_specs
from tests.cluster.argocd import APPLICATION, ArgoCD
from tests.cluster.client import Object
from tests.cluster.git import Repository
from tests.cluster.plane import Plane
from tests.specs import QWEN

ROOT = Path(__file__).parents[2]
CLAIM = "v1/PersistentVolumeClaim"
SPEC = "specs/qwen.yaml"


@pytest.fixture(scope="module")
def plugin(argocd: ArgoCD, tmp_path_factory: pytest.TempPathFactory) -> ArgoCD:
    """Argo CD with the plugin next to its repository server."""
    programs = tmp_path_factory.mktemp("programs")
    kaigen = programs / "kaigen"
    kaigen.write_text(f'#!/bin/sh\nPYTHONPATH="{ROOT}" exec "{sys.executable}" -m kaigen "$@"\n')
    kaigen.chmod(0o755)
    argocd.start_plugin(ROOT / "gitops" / "argocd", programs)
    return argocd


def repository_files(namespace: str) -> dict[str, str]:
    """A Model in an environment, and nothing rendered."""
    config = f"""\
apiVersion: kaigen.dev/v1alpha1
kind: Config
namespace: nowhere
profile: k3s
environments:
  here: {{namespace: {namespace}}}
"""
    return {"ai/kaigen.yaml": config, f"ai/{SPEC}": QWEN}


def application(argocd: ArgoCD, name: str, repository: Repository, namespace: str, **source: object) -> Object:
    found = argocd.application(name, repository.url, "ai", namespace)
    found["spec"]["source"].update(source)
    return found


def test_an_application_with_the_plugin_syncs_and_reports_errors(
    plane: Plane, plugin: ArgoCD, namespace: str, tmp_path: Path
) -> None:
    repository = Repository(tmp_path / "repository")
    files = repository_files(namespace)
    revision = repository.commit(files)
    parameters = [{"name": "environment", "string": "here"}, {"name": "set", "array": ["qwen.storage.size=7Gi"]}]
    name = f"{namespace}-plugin"
    chosen = {"plugin": {"name": "kaigen", "parameters": parameters}}
    plane.client.apply(application(plugin, name, repository, namespace, **chosen))
    plugin.wait_synced(name, revision)

    # The cluster has what kaigen renders from the specs, with the setting overridden.
    config = load_config(repository.folder / "ai", "here")
    compilation = compile_specs((), config)
    (app,) = compilation.apps
    for rendered in app.objects:
        body = rendered.body
        kind = f"{body['apiVersion']}/{body['kind']}"
        assert plane.client.find(kind, body["metadata"]["name"], namespace) is not None, kind
    claim = plane.client.get(CLAIM, "qwen-weights", namespace)
    assert claim["spec"]["resources"]["requests"]["storage"] == "7Gi"

    # A broken spec fails with its line, and the existing objects stay.
    wrong = {**files, f"ai/{SPEC}": files[f"ai/{SPEC}"].replace("spec:\n", "spec:\n  sorce: {}\n", 1)}
    repository.commit(wrong)

    def has_error(found: Object) -> bool:
        conditions = found.get("status", {}).get("conditions", [])
        return any("KG0201" in str(each.get("message")) and SPEC in str(each) for each in conditions)

    plugin.wait(name, has_error, "the error is reported")
    assert plane.client.get(CLAIM, "qwen-weights", namespace)["metadata"].get("deletionTimestamp") is None

    revision = repository.commit(files)
    plugin.wait_synced(name, revision)
    plane.client.delete(APPLICATION, name, plugin.namespace)
    plane.client.wait_gone(APPLICATION, name, plugin.namespace)


def test_the_plugin_is_found_by_kaigens_own_file(plane: Plane, plugin: ArgoCD, namespace: str, tmp_path: Path) -> None:
    repository = Repository(tmp_path / "repository")
    revision = repository.commit(repository_files(namespace))
    env = [{"name": "ENVIRONMENT", "value": "here"}]
    name = f"{namespace}-found"
    plane.client.apply(application(plugin, name, repository, namespace, plugin={"env": env}))
    plugin.wait_synced(name, revision)
    plane.client.wait(CLAIM, "qwen-weights", namespace, partial(_has_size, size="5Gi"), "there")
    plane.client.delete(APPLICATION, name, plugin.namespace)
    plane.client.wait_gone(APPLICATION, name, plugin.namespace)


def _has_size(claim: Object, size: str) -> bool:
    return bool(claim["spec"]["resources"]["requests"]["storage"] == size)
