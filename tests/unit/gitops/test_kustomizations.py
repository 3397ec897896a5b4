"""Each namespace and the environment have a kustomization, which neither Argo CD nor Flux reads."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from kaigen.config.load import load_config
from kaigen.pipeline.run import Run
from tests import plain_yaml
from tests.kustomize import build, in_order

CONFIG = """\
namespace: search
kustomizations: {on}
gitops:
  repository: https://git.example.com/acme/ml.git
  argocd: {{}}
  flux: {{}}
  tenancy: {{namespaces: true, defaultDeny: [Ingress]}}
environments: {{prod: {{}}}}
"""
JOB = """\
apiVersion: kaigen.dev/v1alpha1
kind: Job
metadata: {{name: {name}, namespace: {namespace}}}
spec: {{image: "python:3.12-slim"}}
"""
ROUTED = """\
apiVersion: kaigen.dev/v1alpha1
kind: Topology
metadata: {name: chat, namespace: search}
spec: {engine: transformers, model: {folder: /weights}, route: {host: chat.example.com, gateway: {name: public}}}
"""
GROUPS = {"kustomization.yaml", "search/kustomization.yaml", "ml/kustomization.yaml"}


def rendered(root: Path, *, on: bool) -> dict[str, bytes]:
    root.mkdir(exist_ok=True)
    (root / "specs").mkdir(exist_ok=True)
    (root / "kaigen.yaml").write_text(CONFIG.format(on=str(on).lower()), encoding="utf-8")
    for name, namespace in (("a", "search"), ("b", "search"), ("c", "ml")):
        (root / "specs" / f"{name}.yaml").write_text(JOB.format(name=name, namespace=namespace), encoding="utf-8")
    tree = Run.load((), load_config(root, "prod"), use_cache=False).tree(root / "rendered" / "prod")
    tree.write()
    return {path: (tree.root / path).read_bytes() for path in tree.files}


def test_they_are_all_that_is_added_to_what_argo_cd_and_flux_sync(tmp_path: Path) -> None:
    without, with_groups = rendered(tmp_path / "a", on=False), rendered(tmp_path / "b", on=True)
    assert with_groups.keys() - without.keys() == GROUPS
    assert {path: with_groups[path] for path in without} == without


def test_kustomize_builds_exactly_the_apps_of_a_namespace_and_everything_of_the_environment(
    tmp_path: Path, kubectl: Path
) -> None:
    rendered(tmp_path, on=True)
    root = tmp_path / "rendered" / "prod"
    search = [each for app in ("a", "b") for each in build(kubectl, root / "search" / app / "manifests")]
    other = build(kubectl, root / "ml" / "c" / "manifests")
    tenants = [each for name in ("ml", "search") for each in build(kubectl, root / name / "_tenant" / "manifests")]
    assert in_order(build(kubectl, root / "search")) == in_order(search)
    assert in_order(build(kubectl, root)) == in_order([*tenants, *search, *other])


def test_an_overlay_includes_a_namespace(tmp_path: Path, kubectl: Path) -> None:
    rendered(tmp_path, on=True)
    overlay = tmp_path / "overlay"
    overlay.mkdir()
    text = "resources: [../rendered/prod/search]\nlabels: [{pairs: {team: search}}]\n"
    (overlay / "kustomization.yaml").write_text(text, encoding="utf-8")
    built = build(kubectl, overlay)
    assert {each["metadata"]["labels"]["team"] for each in built} == {"search"}


def test_they_are_removed_when_they_are_switched_off(tmp_path: Path) -> None:
    rendered(tmp_path, on=True)
    rendered(tmp_path, on=False)
    assert not [path for path in GROUPS if (tmp_path / "rendered" / "prod" / path).exists()]


def test_kustomize_builds_a_routed_app_with_its_component_and_refuses_another(tmp_path: Path, kubectl: Path) -> None:
    (tmp_path / "specs").mkdir()
    (tmp_path / "specs" / "chat.yaml").write_text(ROUTED, encoding="utf-8")
    rendered(tmp_path, on=False)
    root = tmp_path / "rendered" / "prod"
    alone = build(kubectl, root / "search" / "chat" / "manifests")
    (component,) = plain_yaml.load((root / "_flux/apps/search.chat.yaml").read_bytes())["spec"]["components"]

    def built(path: str) -> list[Any]:
        # As Flux does it: kustomize_generator.go of github.com/fluxcd/pkg/kustomize.
        file = root / "search" / "chat" / "manifests" / "kustomization.yaml"
        file.write_text(f"{file.read_text(encoding='utf-8')}components: [{path}]\n", encoding="utf-8")
        return build(kubectl, file.parent)

    assert in_order(built(component)) == in_order(alone)
    rendered(tmp_path, on=False)
    with pytest.raises(AssertionError, match="not a valid directory"):
        built(f"{component}0")
