"""The post-renderer, called by a real Helm."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.pipelines.checkout import ROOT, read_yaml

PLUGINS = ROOT / "gitops" / "helm"
PLUGIN = "kaigen-check"
RIGHT = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {{ .Release.Name }}\ndata: {a: b}\n"
WRONG = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {{ .Release.Name }}\ndta: {a: b}\n"
DOUBTFUL = "apiVersion: policy/v1\nkind: PodDisruptionBudget\nmetadata:\n  name: b\nstatus: {currentHealthy: 1}\n"


class Helm:
    """Helm with the plugin, and a chart."""

    def __init__(self, program: Path, folder: Path) -> None:
        self.program = program
        self.chart = folder / "chart"
        (self.chart / "templates").mkdir(parents=True)
        (self.chart / "Chart.yaml").write_text("apiVersion: v2\nname: web\nversion: 0.1.0\n")
        programs = folder / "programs"
        programs.mkdir()
        kaigen = programs / "kaigen"
        kaigen.write_text(f'#!/bin/sh\nPYTHONPATH="{ROOT}" exec "{sys.executable}" -m kaigen "$@"\n')
        kaigen.chmod(0o755)
        nowhere = str(folder / "nowhere")
        self.variables = {
            "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}",
            "HOME": nowhere,
            "KUBECONFIG": os.devnull,
            "HELM_PLUGINS": str(PLUGINS),
            **{f"HELM_{kind}_HOME": nowhere for kind in ("CACHE", "CONFIG", "DATA")},
        }

    def template(self, text: str, *arguments: str, checked: bool = True) -> subprocess.CompletedProcess[str]:
        """Render a chart of one template."""
        (self.chart / "templates" / "one.yaml").write_text(text)
        renderer = ["--post-renderer", PLUGIN, *arguments] if checked else []
        return subprocess.run(
            [self.program, "template", "release", str(self.chart), *renderer],
            env=self.variables,
            cwd=self.chart,
            capture_output=True,
            text=True,
            check=False,
        )


@pytest.fixture
def charts(helm: Path, tmp_path: Path) -> Helm:
    """A Helm that knows post-renderers as plugins: 4 or newer."""
    return Helm(helm, tmp_path)


def test_right_manifests_are_rendered_as_without_it(charts: Helm) -> None:
    done = charts.template(RIGHT)
    assert done.returncode == 0, done.stderr
    assert done.stdout == charts.template(RIGHT, checked=False).stdout
    assert "name: release" in done.stdout


def test_a_wrong_manifest_fails_with_what_is_wrong_and_in_which_template(charts: Helm) -> None:
    done = charts.template(WRONG)
    assert done.returncode == 1
    assert "error[KG0504]: ConfigMap release (web/templates/one.yaml): unknown field `dta`" in done.stderr
    assert "did you mean `data`?" in done.stderr


def test_arguments_reach_kaigen(charts: Helm) -> None:
    assert charts.template(DOUBTFUL).returncode == 0
    done = charts.template(DOUBTFUL, "--post-renderer-args=--strict")
    assert done.returncode == 1
    assert "KG0568" in done.stderr
    assert charts.template(WRONG, "--post-renderer-args=--ignore=KG0504").returncode == 0


def test_without_kaigen_the_message_names_what_to_install(charts: Helm, tmp_path: Path) -> None:
    programs = tmp_path / "few"
    programs.mkdir()
    (programs / "sh").symlink_to("/bin/sh")
    charts.variables["PATH"] = str(programs)
    done = charts.template(RIGHT)
    assert done.returncode == 1
    assert "pip install kaigen" in done.stderr


def test_by_its_path_it_is_a_filter_as_helm_3_wants_it(charts: Helm, tmp_path: Path) -> None:
    script = PLUGINS / PLUGIN / "check.sh"
    manifests = RIGHT.replace("{{ .Release.Name }}", "a")
    for text, code, out in ((manifests, 0, manifests), (manifests.replace("data", "dta"), 1, "")):
        done = subprocess.run([script], env=charts.variables, input=text, capture_output=True, text=True, check=False)
        assert (done.returncode, done.stdout) == (code, out)
        assert ("KG0504" in done.stderr) == (code == 1)


def test_the_plugin_has_kaigens_version() -> None:
    from kaigen import __version__

    assert read_yaml(PLUGINS / PLUGIN / "plugin.yaml")["version"] == __version__
