"""Charts as dependencies of one chart: names never collide, and names of other apps' objects follow."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from yamllint import linter
from yamllint.config import YamlLintConfig

from kaigen.compile.expressions import NAME_MAX
from kaigen.compile.name_expressions import full_name
from kaigen.kubernetes.pods import pod_templates
from tests import helm
from tests.cases import app_cases, write_chart
from tests.umbrella import APPS, umbrella_of, write_umbrella

Objects = list[dict[str, Any]]
NAMESPACE = "ml"

CHART_TESTING = """\
extends: default
rules:
  braces: {min-spaces-inside: 0, max-spaces-inside: 0, min-spaces-inside-empty: -1, max-spaces-inside-empty: -1}
  comments: {require-starting-space: true, min-spaces-from-content: 2}
  comments-indentation: disable
  document-end: disable
  document-start: disable
  indentation: {spaces: consistent, indent-sequences: whatever, check-multi-line-strings: false}
  line-length: disable
  truthy: {level: error}
"""
"""Rules of chart-testing's lintconf.yaml (source: github.com/helm/chart-testing, etc/lintconf.yaml)."""


@pytest.fixture(scope="module")
def platform(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The umbrella chart of the page."""
    folder = tmp_path_factory.mktemp("umbrella")
    return write_umbrella(folder, tmp_path_factory.mktemp("cache"))


@pytest.fixture(scope="module")
def tuned(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An umbrella chart of a Topology and the Job whose output it serves."""
    folder = tmp_path_factory.mktemp("tuned")
    items = [case.compiled for case in app_cases() if case.case.name == "topology/fine-tuned"]
    return umbrella_of(folder / "umbrella", {item.app.name: write_chart(folder, item) for item in items})


def names(objects: Objects) -> list[tuple[str, str]]:
    return [(each["kind"], each["metadata"]["name"]) for each in objects]


def of_kind(objects: Objects, kind: str) -> Objects:
    return [each for each in objects if each["kind"] == kind and "helm.sh/hook" not in notes_of(each)]


def notes_of(obj: dict[str, Any]) -> dict[str, str]:
    found: dict[str, str] = obj["metadata"].get("annotations", {})
    return found


def pods(objects: Objects) -> Iterator[dict[str, Any]]:
    for each in objects:
        yield from (template.spec for template in pod_templates(each))


def containers(objects: Objects) -> Iterator[dict[str, Any]]:
    for pod in pods(objects):
        yield from [*pod.get("initContainers", []), *pod["containers"]]


def values(node: Any, key: str) -> Iterator[Any]:
    """Yield the value of a key everywhere in a tree."""
    if isinstance(node, dict):
        for name, inner in node.items():
            if name == key:
                yield inner
            yield from values(inner, key)
    elif isinstance(node, list):
        for inner in node:
            yield from values(inner, key)


def test_two_releases_in_one_namespace_have_no_name_in_common(platform: Path) -> None:
    one, two = (helm.template(platform, release, NAMESPACE) for release in ("one", "two"))
    assert len(set(names(one))) == len(one) == len(two)
    assert set(names(one)).isdisjoint(names(two))
    for objects, release in ((one, "one"), (two, "two")):
        assert {name.split("-")[0] for _, name in names(objects)} == {release}
        assert set(values(objects, "claimName")) == {f"{release}-qwen-weights", f"{release}-evaluate-output"}


def test_kaigen_check_finds_no_problem_in_two_releases(platform: Path, tmp_path: Path) -> None:
    objects = [each for name in ("one", "two") for each in helm.template(platform, name, NAMESPACE)]
    done = subprocess.run(
        [sys.executable, "-m", "kaigen", "check", "--strict", "-"],
        input=yaml.safe_dump_all(objects),
        capture_output=True,
        text=True,
        cwd=tmp_path,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, f"{len(objects)} objects: no problems\n")


def test_selectors_find_the_pods_of_one_app_of_one_release(platform: Path) -> None:
    objects = [each for name in ("one", "two") for each in helm.template(platform, name, NAMESPACE)]
    labels: list[Any] = [template.metadata["labels"] for each in objects for template in pod_templates(each)]
    for each in of_kind(objects, "Service"):
        found = [own for own in labels if each["spec"]["selector"].items() <= own.items()]
        assert len(found) == 1, each["metadata"]["name"]


def test_global_values_reach_every_dependency(platform: Path) -> None:
    objects = helm.template(platform, "one", NAMESPACE)
    for container in containers(objects):
        assert container["image"].startswith("registry.example.com/mirror/"), container["image"]
    assert {tuple(map(str, pod["imagePullSecrets"])) for pod in pods(objects)} == {("{'name': 'mirror'}",)}
    for each in objects:
        assert each["metadata"]["labels"]["cost-center"] == "research"
        for template in pod_templates(each):
            assert template.metadata["labels"]["cost-center"] == "research"  # type: ignore[index]


@pytest.mark.parametrize(
    ("image", "mirrored"),
    [
        ("docker.io/vllm/vllm-openai:v1", "mirror:5000/a/vllm/vllm-openai:v1"),
        ("python:3.12", "mirror:5000/a/python:3.12"),
        ("org/image@sha256:00", "mirror:5000/a/org/image@sha256:00"),
        ("localhost/x:1", "mirror:5000/a/x:1"),
        ("registry:5000/x/y:1", "mirror:5000/a/x/y:1"),
    ],
)
def test_the_global_registry_replaces_the_registry_of_an_image(platform: Path, image: str, mirrored: str) -> None:
    given = {"global": {"imageRegistry": "mirror:5000/a/"}, "evaluate": {"image": image}}
    (job,) = (
        each
        for each in of_kind(helm.template(platform, "one", NAMESPACE, given, fast=True), "Job")
        if "evaluate" in each["metadata"]["name"]
    )
    assert job["spec"]["template"]["spec"]["containers"][0]["image"] == mirrored


def test_annotations_of_the_umbrella_reach_objects_and_pods_without_replacing_those_of_kaigen(platform: Path) -> None:
    given = {
        "global": {"annotations": {"example.com/a": "global", "argocd.argoproj.io/sync-wave": "9"}},
        "chat": {"annotations": {"example.com/a": "own"}, "podAnnotations": {"example.com/b": "pod"}},
    }
    (deployment,) = of_kind(helm.template(platform, "one", NAMESPACE, given), "Deployment")
    assert notes_of(deployment) == {"example.com/a": "own", "argocd.argoproj.io/sync-wave": "3"}
    assert deployment["spec"]["template"]["metadata"]["annotations"] == {
        "example.com/a": "global",
        "example.com/b": "pod",
        "example.com/scrape": "true",
        "argocd.argoproj.io/sync-wave": "9",
    }


def test_overrides_reach_the_objects(platform: Path) -> None:
    objects = helm.template(platform, "one", NAMESPACE)
    (deployment,) = of_kind(objects, "Deployment")
    (service,) = of_kind(objects, "Service")
    pod = deployment["spec"]["template"]["spec"]
    assert deployment["spec"]["replicas"] == 2
    assert pod["containers"][0]["env"][-1] == {"name": "LOG_LEVEL", "value": "debug"}
    assert pod["containers"][0]["volumeMounts"][-1] == {"name": "prompts", "mountPath": "/prompts"}
    assert pod["volumes"][-1]["name"] == "prompts"
    assert notes_of(service) == {"example.com/owner": "research"}


@pytest.mark.parametrize("off", APPS)
def test_a_condition_switches_a_dependency_off(platform: Path, off: str) -> None:
    objects = helm.template(platform, "one", NAMESPACE, {off: {"enabled": False}})
    assert {each["metadata"]["labels"]["app.kubernetes.io/name"] for each in objects} == {*APPS} - {off}


def test_names_of_other_apps_can_be_set(platform: Path) -> None:
    given = {
        "qwen": {"fullnameOverride": "shared"},
        "chat": {"model": {"claimName": "shared-weights"}},
        "evaluate": {"model": {"claimName": "shared-weights"}},
    }
    objects = helm.template(platform, "one", NAMESPACE, given)
    assert set(values(objects, "claimName")) == {"shared-weights", "one-evaluate-output"}
    assert [each["metadata"]["name"] for each in of_kind(objects, "PersistentVolumeClaim")] == [
        "one-evaluate-output",
        "shared-weights",
    ]


def test_two_aliases_of_one_chart_do_not_collide(platform: Path, tmp_path: Path) -> None:
    chat = platform.parent / "rendered" / "ml" / "chat" / "chart"
    chart = umbrella_of(tmp_path / "pair", {"blue": chat, "green": chat})
    objects = helm.template(chart, "one", NAMESPACE)
    assert len(set(names(objects))) == len(objects)
    services = {each["metadata"]["name"]: each["spec"]["selector"] for each in of_kind(objects, "Service")}
    assert set(services) == {"one-blue", "one-green"}
    assert services["one-blue"] != services["one-green"]


@pytest.mark.parametrize("release", ["qwen", "chat", "qwen-chat", "evaluate-qwen-chat"])
def test_a_release_that_is_called_like_its_dependencies_does_not_mix_them_up(platform: Path, release: str) -> None:
    """Helm's convention alone would give several charts the name of the release."""
    objects = helm.template(platform, release, NAMESPACE)
    assert len(set(names(objects))) == len(objects)
    assert set(values(objects, "claimName")) <= {name for _, name in names(objects)}


@pytest.mark.parametrize(
    ("release", "given", "expected"),
    [
        ("chat", {}, "chat"),
        ("prod", {}, "prod-chat"),
        ("chat-prod", {}, "chat-prod"),
        ("prod", {"nameOverride": "talk"}, "prod-talk"),
        ("talk", {"nameOverride": "talk"}, "talk"),
        ("prod", {"fullnameOverride": "talk"}, "talk"),
        ("r" * 53, {}, full_name("r" * 53, "chat")),
        ("prod", {"fullnameOverride": "t" * 60}, None),
    ],
)
def test_the_full_name_follows_helms_convention(
    platform: Path, release: str, given: dict[str, str], expected: str | None
) -> None:
    chart = platform.parent / "rendered" / "ml" / "chat" / "chart"
    objects = helm.template(chart, release, NAMESPACE, given)
    (deployment,) = of_kind(objects, "Deployment")
    name = deployment["metadata"]["name"]
    assert len(name) <= NAME_MAX
    if expected is not None:
        assert name == expected
    assert deployment["metadata"]["labels"]["app.kubernetes.io/instance"] == release
    assert deployment["spec"]["selector"]["matchLabels"].items() <= (
        deployment["spec"]["template"]["metadata"]["labels"].items()
    )
    # Without values for it, the claim is that of the Model's own release.
    assert set(values(deployment, "claimName")) == {"qwen-weights"}


@pytest.mark.parametrize(
    "given",
    [
        {},
        {"global": {"labels": {"team": "ml"}, "imageRegistry": "mirror"}},
        {"global": {"annotations": {"example.com/a": "b"}, "imagePullSecrets": ["x", {"name": "y"}]}},
    ],
    ids=["plain", "labels", "secrets"],
)
def test_pods_wait_for_the_run_of_a_job_in_the_same_umbrella(tuned: Path, given: dict[str, Any]) -> None:
    objects = helm.template(tuned, "one", "default", given)
    jobs = {name for kind, name in names(objects) if kind == "Job"}
    awaited = [
        argument.removeprefix("--name=")
        for container in containers(objects)
        for argument in container.get("args", [])
        if argument.startswith("--name=")
    ]
    assert awaited
    assert set(awaited) <= jobs
    gates = [each for each in of_kind(objects, "Role") if each["metadata"]["name"].endswith("-gate")]
    assert {name for each in gates for rule in each["rules"] for name in rule["resourceNames"]} == set(awaited)
    assert set(values(objects, "claimName")) <= {name for kind, name in names(objects)}


@pytest.mark.parametrize(
    "given",
    [
        {"chat": {"nameOveride": "x"}},
        {"chat": {"enabled": "yes"}},
        {"chat": {"fullnameOverride": "Not valid"}},
        {"global": {"labels": {"app.kubernetes.io/name": "x"}}},
        {"global": {"imageRegistry": 5}},
    ],
)
def test_the_schema_stays_closed(platform: Path, given: dict[str, Any]) -> None:
    with pytest.raises(helm.HelmError, match="values don't meet the specifications"):
        helm.template(platform, "one", NAMESPACE, given)


def test_unknown_global_values_are_those_of_other_charts(platform: Path) -> None:
    given = {"global": {"storageClass": "fast"}}
    assert helm.template(platform, "one", NAMESPACE, given) == helm.template(platform, "one", NAMESPACE)


def test_the_charts_pass_helms_linter_and_the_rules_of_chart_testing(platform: Path) -> None:
    rules = YamlLintConfig(CHART_TESTING)
    rendered = platform.parent / "rendered" / "ml"
    for app in APPS:
        assert "0 chart(s) failed" in helm.lint(rendered / app / "chart")
    for chart in (platform, *(rendered / app / "chart" for app in APPS)):
        for name in ("Chart.yaml", "values.yaml"):
            found = [str(each) for each in linter.run((chart / name).read_text(), rules)]
            assert found == [], chart / name
    for app in APPS:
        about = yaml.safe_load((rendered / app / "chart" / "Chart.yaml").read_text())
        assert {"apiVersion", "name", "version", "description", "type", "kubeVersion"} <= set(about)
        assert (rendered / app / "chart" / "README.md").exists()
