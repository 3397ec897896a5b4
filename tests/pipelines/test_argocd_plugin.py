"""The commands of Argo CD's plugin, run as Argo CD runs them: in a copy of the source, with its variables."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.pipelines.checkout import ROOT, read_yaml, write_repository

FOLDER = ROOT / "gitops" / "argocd"


class Source:
    """A source folder that nothing may be written into, and the plugin's commands."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "source"
        write_repository(self.folder)
        programs = folder / "programs"
        programs.mkdir()
        kaigen = programs / "kaigen"
        kaigen.write_text(f'#!/bin/sh\nPYTHONPATH="{ROOT}" exec "{sys.executable}" -m kaigen "$@"\n')
        kaigen.chmod(0o755)
        self.path = f"{programs}{os.pathsep}/usr/bin{os.pathsep}/bin"

    def generate(self, **variables: str) -> subprocess.CompletedProcess[str]:
        """Call the generate command."""
        spec = read_yaml(FOLDER / "plugin.yaml")["spec"]["generate"]
        before = self.files()
        done = subprocess.run(
            [*spec["command"], *spec["args"]],
            cwd=self.folder,
            env={
                "PATH": self.path,
                "HOME": "/nonexistent",
                "PYTHONDONTWRITEBYTECODE": "1",
                "ARGOCD_APP_NAME": "ai",
                "ARGOCD_APP_NAMESPACE": "elsewhere",
                "ARGOCD_APP_PARAMETERS": "[]",
                **variables,
            },
            capture_output=True,
            text=True,
            check=False,
        )
        assert self.files() == before
        return done

    def files(self) -> set[str]:
        """What is in the folder."""
        return {str(path) for path in self.folder.rglob("*")}

    def render(self, *arguments: str) -> str:
        """What kaigen prints by hand."""
        done = subprocess.run(
            [sys.executable, "-m", "kaigen", "render", "--stdout", *arguments],
            cwd=self.folder,
            env={"PATH": self.path, "PYTHONPATH": str(ROOT), "KAIGEN_CACHE_DIR": "off"},
            capture_output=True,
            text=True,
            check=True,
        )
        return done.stdout


@pytest.fixture
def source(tmp_path: Path) -> Source:
    return Source(tmp_path)


def test_a_source_is_found_by_its_configuration(source: Source) -> None:
    plugin = read_yaml(FOLDER / "plugin.yaml")
    assert plugin["apiVersion"] == "argoproj.io/v1alpha1"
    assert plugin["kind"] == "ConfigManagementPlugin"
    assert (source.folder / plugin["spec"]["discover"]["fileName"]).is_file()
    assert "version" not in plugin["spec"], "it would become a part of the name that Applications give"


def test_it_prints_what_render_prints_and_nothing_else(source: Source) -> None:
    done = source.generate()
    assert done.returncode == 0, done.stderr
    assert done.stdout == source.render()
    objects = list(yaml.safe_load_all(done.stdout))
    assert len(objects) > 5
    assert all(each["apiVersion"] and each["kind"] and each["metadata"]["name"] for each in objects)


def test_parameters_and_variables_of_an_application_reach_it(source: Source) -> None:
    config = source.folder / "kaigen.yaml"
    found: dict[str, Any] = read_yaml(config)
    found["environments"] = {"prod": {"namespace": "ml-prod"}, "eu-1": {"namespace": "odd"}}
    config.write_text(yaml.safe_dump(found))
    prod = source.render("--env", "prod")
    assert source.generate(ARGOCD_ENV_ENVIRONMENT="prod").stdout == prod
    assert source.generate(PARAM_ENVIRONMENT="prod", ARGOCD_ENV_ENVIRONMENT="eu-1").stdout == prod
    assert source.generate(PARAM_ENVIRONMENT="eu-1").stdout == source.render("--env", "eu-1")
    settings = {f"PARAM_SET_{number}": f"qwen.storage.size={number + 7}Gi" for number in range(11)}
    settings["PARAM_ENVIRONMENT"] = "prod"
    assert source.generate(**settings).stdout == source.render("--env", "prod", "--set", "qwen.storage.size=17Gi")


def test_values_of_an_application_are_never_run_as_a_script(source: Source) -> None:
    odd = "$(touch hacked); `touch hacked` \" ' qwen.storage.size=1Gi"
    for variables in ({"PARAM_SET_0": odd}, {"PARAM_ENVIRONMENT": odd}):
        done = source.generate(**variables)
        assert done.returncode == 2
        assert done.stdout == ""
        assert "touch hacked" in done.stderr


def test_an_error_is_on_standard_error_with_its_line_and_nothing_is_printed(source: Source) -> None:
    spec = source.folder / "specs" / "qwen.yaml"
    spec.write_text(spec.read_text().replace("spec:\n", "spec:\n  sorce: {}\n", 1))
    done = source.generate()
    assert done.returncode == 2
    assert done.stdout == ""
    assert "specs/qwen.yaml:6:3: error[KG0201]" in done.stderr


def test_the_component_adds_the_sidecar_to_argo_cds_own_deployment(kubectl: Path, tmp_path: Path) -> None:
    deployment = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "argocd-repo-server"},
        "spec": {
            "template": {
                "spec": {
                    "containers": [{"name": "argocd-repo-server", "image": "argocd"}],
                    "volumes": [{"name": "var-files", "emptyDir": {}}, {"name": "plugins", "emptyDir": {}}],
                }
            }
        },
    }
    (tmp_path / "argocd.yaml").write_text(yaml.safe_dump(deployment))
    shutil.copytree(FOLDER, tmp_path / "kaigen")
    kustomization = {
        "resources": ["argocd.yaml"],
        "components": ["kaigen"],
        "images": [{"name": "kaigen-argocd", "newName": "registry.example.com/kaigen-argocd", "newTag": "1"}],
    }
    (tmp_path / "kustomization.yaml").write_text(yaml.safe_dump(kustomization))
    done = subprocess.run([kubectl, "kustomize", str(tmp_path)], capture_output=True, text=True, check=True)
    pod = yaml.safe_load(done.stdout)["spec"]["template"]["spec"]
    (sidecar,) = [each for each in pod["containers"] if each["name"] == "kaigen"]
    (own,) = [each for each in pod["containers"] if each["name"] == "argocd-repo-server"]
    assert own == {"name": "argocd-repo-server", "image": "argocd"}
    assert sidecar["image"] == "registry.example.com/kaigen-argocd:1"
    assert sidecar["securityContext"]["runAsUser"] == 999
    assert {each["name"] for each in sidecar["volumeMounts"]} <= {each["name"] for each in pod["volumes"]}


def test_the_sidecar_keeps_pod_security_restricted() -> None:
    from kaigen.check.policy import check_policy
    from kaigen.check.schema_check import check_object

    patch = read_yaml(FOLDER / "repo-server.yaml")
    spec = patch["spec"]
    spec["selector"] = {"matchLabels": {"app": "a"}}
    spec["template"]["metadata"] = {"labels": {"app": "a"}}
    sockets: list[dict[str, object]] = [{"name": name, "emptyDir": {}} for name in ("var-files", "plugins")]
    spec["template"]["spec"]["volumes"] += sockets
    assert [*check_object(patch), *check_policy(patch)] == []


def test_the_image_is_built_of_what_is_there() -> None:
    text = (FOLDER / "Dockerfile").read_text()
    for line in text.splitlines():
        words = line.split()
        if words[:1] == ["COPY"] and not words[1].startswith("--"):
            assert all((ROOT / path).exists() for path in words[1:-1]), line
    assert "USER 999:999" in text
    linked = [path.resolve().relative_to(ROOT) for path in (ROOT / "kaigen").rglob("*") if path.is_symlink()]
    assert linked
    for path in linked:  # Without it, the wheel cannot be built.
        assert re.search(rf"^COPY {path} {path}$", text, re.MULTILINE), path
