"""The umbrella chart of docs/charts.md, installed twice in one namespace."""

from __future__ import annotations

import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest
import yaml

from kaigen.kubernetes.schemas import SUPPORTED_VERSIONS
from tests.cluster.apps import CLAIM, JOB, POD
from tests.cluster.client import Object, is_true
from tests.cluster.plane import Plane
from tests.umbrella import APPS, write_umbrella

DEPLOYMENT = "apps/v1/Deployment"
SLICE = "discovery.k8s.io/v1/EndpointSlice"


class Umbrella:
    """Releases of the chart in one namespace: `one` by Helm 4, and `two` by Helm 3."""

    def __init__(self, plane: Plane, chart: Path, namespace: str) -> None:
        self.plane, self.chart, self.namespace = plane, chart, namespace

    def helm(self, command: str, release: str, *arguments: str) -> str:
        """Run a command of Helm on a release."""
        program = "helm3" if release == "two" else "helm"
        return self.plane.run(program, *self._arguments(command, release), *arguments).stdout

    def _arguments(self, command: str, release: str) -> list[str]:
        chart = [str(self.chart)] if command in ("install", "upgrade", "template") else []
        return [command, release, *chart, "--namespace", self.namespace]

    def rendered(self, program: str, release: str) -> list[Object]:
        """Return the objects that a version of Helm prints."""
        arguments = self._arguments("template", release)
        done = self.plane.run(program, *arguments, f"--kube-version={SUPPORTED_VERSIONS[-1]}.0")
        return [each for each in yaml.safe_load_all(done.stdout) if each]

    def names(self, kind: str, release: str) -> set[str]:
        """Return the names of a release's objects of one kind that are not being deleted."""
        found = self.plane.client.objects(kind, self.namespace, f"app.kubernetes.io/instance={release}")
        return {each["metadata"]["name"] for each in found if "deletionTimestamp" not in each["metadata"]}

    def job(self, release: str, app: str) -> str:
        """Return the name of an app's Job."""
        (name,) = (each for each in self.names(JOB, release) if each.startswith(f"{release}-{app}-"))
        return name

    def wait(self, release: str) -> None:
        """Wait until the Jobs of a release are complete and its server is ready."""
        for name in self.names(JOB, release):
            self.plane.client.wait(JOB, name, self.namespace, partial(is_true, condition="Complete"), "complete")
        self.plane.client.wait(
            DEPLOYMENT, f"{release}-chat", self.namespace, partial(is_true, condition="Available"), "ready"
        )

    def endpoints(self, release: str) -> set[str]:
        """Return the names of the pods behind the Service of a release."""
        label = f"kubernetes.io/service-name={release}-chat"
        return {
            endpoint["targetRef"]["name"]
            for each in self.plane.client.objects(SLICE, self.namespace, label)
            for endpoint in each.get("endpoints") or ()
        }


def claims_of(pod: Object) -> set[str]:
    """Return the names of the claims that a pod mounts."""
    volumes = pod["spec"].get("volumes", ())
    return {each["persistentVolumeClaim"]["claimName"] for each in volumes if "persistentVolumeClaim" in each}


@pytest.fixture
def umbrella(plane: Plane, namespace: str, tmp_path: Path) -> Umbrella:
    folder = tmp_path / "repository"
    folder.mkdir()
    return Umbrella(plane, write_umbrella(folder, tmp_path / "cache"), namespace)


def test_an_umbrella_is_installed_twice_in_one_namespace(umbrella: Umbrella) -> None:
    plane, namespace = umbrella.plane, umbrella.namespace
    releases = ("one", "two")
    rendered = [each for release in releases for each in umbrella.rendered("helm", release)]
    assert rendered == [each for release in releases for each in umbrella.rendered("helm3", release)]
    checked = subprocess.run(
        [sys.executable, "-m", "kaigen", "check", "--strict", "-"],
        input=yaml.safe_dump_all(rendered),
        capture_output=True,
        text=True,
        check=False,
    )
    assert checked.returncode == 0, checked.stderr

    for release in releases:
        umbrella.helm("install", release)
    for release in releases:
        umbrella.wait(release)
        assert umbrella.names(CLAIM, release) == {f"{release}-qwen-weights", f"{release}-evaluate-output"}
        pods = plane.client.objects(POD, namespace, f"app.kubernetes.io/instance={release}")
        served = {
            each["metadata"]["name"] for each in pods if each["metadata"]["labels"]["app.kubernetes.io/name"] == "chat"
        }
        assert len(served) == 2
        assert umbrella.endpoints(release) == served
        assert {claim for pod in pods for claim in claims_of(pod)} == umbrella.names(CLAIM, release)
        assert {image for pod in pods for image in images(pod)} == {
            image for image in images_of(rendered) if image.startswith("registry.example.com/mirror/")
        }
        umbrella.helm("test", release)

    # The same once more is not a new run; a setting of one app changes this app of this release only.
    before = {release: umbrella.names(JOB, release) for release in releases}
    umbrella.helm("upgrade", "one")
    assert {release: umbrella.names(JOB, release) for release in releases} == before
    old = umbrella.job("one", "evaluate")
    umbrella.helm("upgrade", "one", "--set", "evaluate.args={changed}")
    plane.client.wait_gone(JOB, old, namespace)
    umbrella.wait("one")
    assert umbrella.job("one", "qwen") in before["one"]
    assert umbrella.job("one", "evaluate") not in before["one"]
    assert umbrella.names(JOB, "two") == before["two"]

    # A condition removes one app; what its spec keeps stays.
    umbrella.helm("upgrade", "two", "--set", "chat.enabled=false")
    plane.client.wait_gone(DEPLOYMENT, "two-chat", namespace)
    assert umbrella.names(JOB, "two") == before["two"]
    umbrella.helm("uninstall", "two")
    for name in before["two"]:
        plane.client.wait_gone(JOB, name, namespace)
    umbrella.wait("one")
    assert len(umbrella.endpoints("one")) == len(APPS) - 1


def images(pod: Object) -> set[str]:
    """Return the images of a pod."""
    return {each["image"] for each in (*pod["spec"].get("initContainers", ()), *pod["spec"]["containers"])}


def images_of(objects: list[Object]) -> set[str]:
    """Return the images of all pods, except those of `helm test`."""
    templates = [each["spec"]["template"] for each in objects if each["kind"] in ("Job", "Deployment")]
    return {image for template in templates for image in images(template)}
