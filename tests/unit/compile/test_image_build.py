"""Images that are built from Git repositories and artifacts: the Job, its reference, and the pods that wait for it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from kaigen.catalog.images import default_images
from kaigen.compile.app import App, Rendered
from kaigen.compile.job.compile import compile_job
from kaigen.compile.pod_images import with_images
from kaigen.compile.problems import Problems
from kaigen.config.registry import RegistryBlock
from kaigen.kinds.block import read_block
from kaigen.kinds.job import Job
from kaigen.kubernetes.images import images_of
from tests.unit.compile.specs import configured, context

GIT = {"url": "https://git.example.com/acme/train.git", "commit": "7ae557604adf67be50417f59c2c2f167def9a775"}
BUILD = {"git": GIT, "repository": "registry.example.com/acme/train"}
DIGEST = f"sha256:{'7' * 64}"
ARTIFACT = f"registry.example.com/acme/files:main@{DIGEST}"
FOLDER = {"artifact": ARTIFACT, "repository": "registry.example.com/acme/train"}


def app(build: Mapping[str, Any], **spec: Any) -> App:
    """Return the app of a Job that builds its image."""
    document = {"metadata": {"name": "j"}, "spec": {"build": build, **spec}}
    problems = Problems()
    found = compile_job(read_block(Job, document), context(), problems)
    assert not problems.failed
    return found


def objects(found: App) -> dict[str, Rendered]:
    """Return the objects of an app by their roles."""
    return {each.object.role: each for each in found.render()}


def pod_of(rendered: Rendered) -> dict[str, Any]:
    """Return the spec of an object's pod."""
    spec: dict[str, Any] = rendered.body["spec"]["template"]["spec"]
    return spec


def reference(build: Mapping[str, Any]) -> str:
    """Return what the pod of a Job runs."""
    image: str = pod_of(objects(app(build))["job"])["containers"][0]["image"]
    return image


@pytest.mark.parametrize(
    "change",
    [
        {"git": {**GIT, "url": "https://git.example.com/acme/other.git"}},
        {"git": {**GIT, "commit": "8" * 40}},
        {"git": {**GIT, "path": "images"}},
        {"dockerfile": "Dockerfile.gpu"},
        {"target": "runtime"},
        {"args": {"TORCH": "2"}},
        {"provenance": "max"},
        {"builder": "buildkit:2"},
    ],
)
def test_whatever_changes_the_image_changes_its_tag(change: Mapping[str, Any]) -> None:
    assert reference({**BUILD, **change}) != reference(BUILD)


@pytest.mark.parametrize(
    "change",
    [
        {"pushSecret": {"name": "push"}},
        {"git": {**GIT, "tokenSecret": {"name": "git"}}},
        {"cache": "registry.example.com/cache"},
        {"cpu": "4", "memory": "16Gi", "storage": "90Gi", "deadline": "3h", "retries": 5},
        {"nodeSelector": {"kubernetes.io/arch": "amd64"}},
    ],
)
def test_whatever_does_not_change_the_image_keeps_its_tag(change: Mapping[str, Any]) -> None:
    assert reference({**BUILD, **change}) == reference(BUILD)


def test_builder_from_a_mirror_builds_the_same_image() -> None:
    builder = default_images()["buildkit"].removeprefix("docker.io/")
    assert reference({**BUILD, "builder": f"mirror.example.com/{builder}"}) == reference(BUILD)


def test_order_of_arguments_does_not_change_the_build() -> None:
    one, other = ({**BUILD, "args": args} for args in ({"A": "1", "B": "2"}, {"B": "2", "A": "1"}))
    assert objects(app(one))["job-build"].body == objects(app(other))["job-build"].body


def test_artifact_is_named_by_its_digest_alone() -> None:
    copy = {**FOLDER, "artifact": f"other.example.com/copy@{DIGEST}"}
    assert reference(copy) == reference(FOLDER) != reference(BUILD)
    other = {**FOLDER, "artifact": ARTIFACT.replace("7", "8")}
    assert reference(other) != reference(FOLDER)


def test_artifact_is_fetched_where_the_builder_reads_it() -> None:
    pod = pod_of(objects(app({**FOLDER, "pushSecret": {"name": "push"}}))["job-build"])
    finder, fetcher = pod["initContainers"]
    (builder,) = pod["containers"]
    assert fetcher["args"][:5] == ["fetch", "oci", f"--ref={ARTIFACT}", "--build-context", "--unless=/status/found"]
    assert f"--write={fetcher['args'][4].removeprefix('--unless=')}" in finder["args"]
    assert fetcher["env"] == finder["env"]
    assert {"name": "context", "mountPath": "/context"} in fetcher["volumeMounts"]
    assert {"name": "context", "mountPath": "/context", "readOnly": True} in builder["volumeMounts"]
    assert "--local=context=/context/context" in builder["args"]
    assert "--local=dockerfile=/context/context" in builder["args"]
    assert not any(argument.startswith("--opt=context") for argument in builder["args"])
    rules = objects(app(FOLDER))["job-build"].body["spec"]["podFailurePolicy"]["rules"]
    assert {"containerName": "fetch-context", "operator": "In", "values": [10, 13]} in [
        each.get("onExitCodes") for each in rules
    ]


def test_plain_http_is_for_the_registry_of_the_image() -> None:
    def arguments(build: Mapping[str, Any]) -> list[str]:
        found: list[str] = pod_of(objects(app(build))["job-build"])["initContainers"][1]["args"]
        return found

    other = {**FOLDER, "artifact": f"other.example.com/files@{DIGEST}", "plainHttp": True}
    assert "--plain-http" in arguments({**FOLDER, "plainHttp": True})
    assert "--plain-http" not in arguments(other)


def test_pod_waits_for_the_job_that_pushes_what_it_runs() -> None:
    found = objects(app(BUILD))
    build, run = found["job-build"], pod_of(found["job"])
    (gate,) = run["initContainers"]
    assert gate["args"][:3] == ["wait-job", "--kind=Job", f"--name={build.body['metadata']['name']}"]
    assert run["serviceAccountName"] == "j-gate"
    assert found["role"].body["rules"][0]["resourceNames"] == [build.body["metadata"]["name"]]
    image = run["containers"][0]["image"]
    assert image.startswith("registry.example.com/acme/train:")
    assert f"--output=type=image,name={image},push=true" in pod_of(build)["containers"][0]["args"]
    assert f"--ref={image}" in pod_of(build)["initContainers"][0]["args"]


def test_run_fails_at_once_when_the_build_has_failed() -> None:
    rules = objects(app(BUILD))["job"].body["spec"]["podFailurePolicy"]["rules"]
    assert {"containerName": "wait-for-build", "operator": "In", "values": [14]} in [
        each.get("onExitCodes") for each in rules
    ]


def test_only_the_build_is_privileged_and_the_namespace_must_allow_it() -> None:
    found = app(BUILD)
    assert (found.pod_security, found.lowest_pod_security) == ("restricted", "privileged")
    levels = {each.object.role: each.object.pod_security for each in found.render()}
    assert {role for role, level in levels.items() if level} == {"job-build"}


def test_secrets_are_only_in_the_pod_of_the_build() -> None:
    build = {**BUILD, "pushSecret": {"name": "push"}, "git": {**GIT, "tokenSecret": {"name": "git", "key": "password"}}}
    found = objects(app(build))
    assert {
        volume["secret"]["secretName"] for volume in pod_of(found["job-build"])["volumes"] if "secret" in volume
    } == {"push", "git"}
    assert not any("secret" in volume for volume in pod_of(found["job"])["volumes"])
    assert "password" not in str(pod_of(found["job-build"])["containers"][0]["args"])


def test_kubernetes_expands_no_variable_in_an_argument() -> None:
    (container,) = pod_of(objects(app({**BUILD, "args": {"A": "$(HOME) $HOME"}}))["job-build"])["containers"]
    assert "--opt=build-arg:A=$$(HOME) $HOME" in container["args"]


def test_mirror_moves_the_builder_and_not_the_built_image() -> None:
    mirror = RegistryBlock(mirror="mirror.example.com")
    moved = with_images(app(BUILD), configured(context(), mirror=mirror))
    images = images_of(each.body for each in moved.render())
    assert reference(BUILD) in images
    builder = default_images()["buildkit"].removeprefix("docker.io/")
    assert f"mirror.example.com/{builder}" in images
