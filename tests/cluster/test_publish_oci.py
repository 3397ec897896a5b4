"""`kaigen publish` to a real OCI registry, and what Helm takes from there."""

from __future__ import annotations

import hashlib
import io
import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tarfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import yaml
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator

from kaigen.cli.main import run
from kaigen.publish.artifact import BOM, FLUX_CONTENT, HELM_CONFIG, HELM_CONTENT, STATEMENT
from tests import helm as oracle
from tests.cluster.registry import PASSWORD, LocalRegistry
from tests.tools import helm, kubectl

ROOT = Path(__file__).parents[2]
KILLS = 6
GIT = {
    **{f"GIT_{role}_NAME": "Ada" for role in ("AUTHOR", "COMMITTER")},
    **{f"GIT_{role}_EMAIL": "ada@example.com" for role in ("AUTHOR", "COMMITTER")},
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_CONFIG_NOSYSTEM": "1",
}


@pytest.fixture(scope="module")
def registry(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalRegistry]:
    running = LocalRegistry(tmp_path_factory.mktemp("registry") / "registry")
    try:
        yield running
    finally:
        running.close()


@pytest.fixture
def place(registry: LocalRegistry, request: pytest.FixtureRequest) -> str:
    """A repository of the test's own."""
    return f"oci://{registry.host}/{request.node.name.partition('[')[0].replace('_', '-')}"


@pytest.fixture
def repository(registry: LocalRegistry, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The demo in a repository of Git, with credentials for the registry."""
    for name, value in {**GIT, "KAIGEN_CACHE_DIR": "off", "DOCKER_CONFIG": str(tmp_path / "docker")}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("HELM_REGISTRY_CONFIG", str(tmp_path / "docker" / "config.json"))
    registry.login(tmp_path / "docker")
    folder = tmp_path / "demo"
    shutil.copytree(ROOT / "examples" / "demo", folder, ignore=shutil.ignore_patterns("rendered"))
    git(folder, "init", "--quiet", "--initial-branch=main")
    commit(folder, "one")
    monkeypatch.chdir(folder)
    return folder


def git(folder: Path, *arguments: str) -> str:
    done = subprocess.run(
        ["git", *arguments], cwd=folder, env=os.environ | GIT, capture_output=True, text=True, check=True
    )
    return done.stdout.strip()


def commit(folder: Path, message: str) -> str:
    git(folder, "add", "--all")
    git(folder, "commit", "--quiet", "--allow-empty", "--message", message)
    return git(folder, "rev-parse", "HEAD")


def change(folder: Path, old: str, new: str) -> None:
    path = folder / "specs" / "qwen.yaml"
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))


@pytest.fixture
def publish(capsys: pytest.CaptureFixture[str]) -> Callable[..., list[dict[str, Any]]]:
    """Publish `prod` of the demo and return the result of each artifact."""

    def call(*arguments: str) -> list[dict[str, Any]]:
        capsys.readouterr()
        assert run(["publish", "--env", "prod", "-o", "json", *arguments]) == 0
        artifacts: list[dict[str, Any]] = json.loads(capsys.readouterr().out)["artifacts"]
        return artifacts

    return call


def repository_of(place: str) -> str:
    return place.removeprefix("oci://").partition("/")[2]


def referrers(registry: LocalRegistry, repository: str, digest: str) -> dict[str, bytes]:
    """What is attached to a manifest, by its type, found as a client without the referrers API finds it."""
    index: Any = registry.manifest(repository, digest.replace(":", "-"))
    found = {}
    for entry in index["manifests"]:
        manifest: Any = registry.manifest(repository, entry["digest"])
        assert manifest["subject"]["digest"] == digest
        content = registry.get(f"{repository}/blobs/{manifest['layers'][0]['digest']}")
        assert content is not None
        found[str(entry["artifactType"])] = content
    return found


def test_a_published_chart_renders_as_the_tree_does(
    registry: LocalRegistry, repository: Path, publish: Callable[..., list[dict[str, Any]]], place: str, tmp_path: Path
) -> None:
    results = publish("--charts", place)
    assert {item["name"]: item["status"] for item in results} == {
        "chat": "published",
        "finetune": "published",
        "finetune-job": "published",
        "qwen": "published",
        "workspace-phi-4-mini": "published",
    }
    assert run(["-q", "render", "--env", "prod", "-o", str(tmp_path / "tree")]) == 0
    for item in results:
        name = item["name"]
        pulled = tmp_path / "pulled"
        done = subprocess.run(
            [helm(), "pull", f"{place}/{name}", "--version", item["version"], "--plain-http", "--untar", "-d", pulled],
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, done.stderr
        assert item["digest"] in done.stdout + done.stderr
        (tree,) = (tmp_path / "tree").glob(f"*/{name}/chart")
        assert files(pulled / name) == files(tree)
        assert oracle.template(pulled / name, name, "ml-prod") == oracle.template(tree, name, "ml-prod")
        manifest: Any = registry.manifest(f"{repository_of(place)}/{name}", item["version"])
        assert manifest["config"]["mediaType"] == HELM_CONFIG
        assert [layer["mediaType"] for layer in manifest["layers"]] == [HELM_CONTENT]


def files(folder: Path) -> dict[str, bytes]:
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_attachments_name_the_source_and_the_images(
    registry: LocalRegistry, repository: Path, publish: Callable[..., list[dict[str, Any]]], place: str
) -> None:
    for item in publish("--charts", place):
        attached = referrers(registry, f"{repository_of(place)}/{item['name']}", item["digest"])
        assert set(attached) == {STATEMENT, BOM}
        statement = json.loads(attached[STATEMENT])
        assert statement["subject"][0]["digest"] == {"sha256": item["digest"].removeprefix("sha256:")}
        origin, *materials = statement["predicate"]["buildDefinition"]["resolvedDependencies"]
        assert origin["digest"] == {"gitCommit": git(repository, "rev-parse", "HEAD")}
        for material in materials:
            content = (repository / material["name"]).read_bytes()
            assert material["digest"] == {"sha256": hashlib.sha256(content).hexdigest()}
        problem = JsonStrictValidator(SchemaVersion.V1_6).validate_str(attached[BOM].decode())
        assert problem is None, problem
        assert json.loads(attached[BOM])["components"]


def test_the_same_content_has_the_same_digest_and_is_pushed_once(
    repository: Path, publish: Callable[..., list[dict[str, Any]]], place: str
) -> None:
    first = publish("--charts", place)
    commit(repository, "of no matter")
    again = publish("--charts", place)
    elsewhere = publish("--charts", f"{place}-2")
    assert [item["status"] for item in again] == ["unchanged"] * 5
    assert [item["status"] for item in elsewhere] == ["published"] * 5
    assert (
        [item["digest"] for item in first]
        == [item["digest"] for item in again]
        == [item["digest"] for item in elsewhere]
    )


def test_a_published_version_never_changes(
    repository: Path,
    publish: Callable[..., list[dict[str, Any]]],
    place: str,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
) -> None:
    first = {item["name"]: item for item in publish("--charts", place)}
    change(repository, "revision: ", "include: ['*.json']\n      revision: ")
    commit(repository, "another qwen")
    assert run(["publish", "--env", "prod", "--charts", place]) == 2
    said = capsys.readouterr().err
    assert "KG0908" in said
    assert "publish.versionSuffix" in said
    suffixed = {item["name"]: item for item in publish("--charts", place, "--version-suffix")}
    assert suffixed["qwen"]["status"] == "published"
    version = suffixed["qwen"]["version"]
    assert version.startswith(f"{first['qwen']['version']}+")
    command = [helm(), "pull", f"{place}/qwen", "--version", version, "--plain-http", "-d", tmp_path]
    subprocess.run(command, check=True, capture_output=True)
    assert (tmp_path / f"qwen-{version}.tgz").exists()


def test_manifests_for_flux_are_the_tree(
    registry: LocalRegistry, repository: Path, publish: Callable[..., list[dict[str, Any]]], place: str, tmp_path: Path
) -> None:
    (item,) = publish("--manifests", place + "/{env}")
    assert item["reference"] == f"{place}/prod:latest"
    name = f"{repository_of(place)}/prod"
    manifest: Any = registry.manifest(name, "latest")
    assert registry.manifest(name, git(repository, "rev-parse", "--short=12", "HEAD")) == manifest
    (layer,) = manifest["layers"]
    assert layer["mediaType"] == FLUX_CONTENT
    assert run(["-q", "render", "--env", "prod", "--format", "manifests", "-o", str(tmp_path / "tree")]) == 0
    with tarfile.open(fileobj=io.BytesIO(registry.get(f"{name}/blobs/{layer['digest']}") or b"")) as archive:
        archive.extractall(tmp_path / "pulled", filter="data")
    tree = files(tmp_path / "tree")
    # The objects for Argo CD and Flux are in the deploy branch, not in the artifact that they apply.
    apps = {path: content for path, content in tree.items() if not re.search(r"(^|/)[._]", path)}
    apps["kustomization.yaml"] = apps["kustomization.yaml"].replace(b"  - ml-prod/_tenant/manifests\n", b"")
    assert files(tmp_path / "pulled") == apps
    built = subprocess.run([kubectl(), "kustomize", tmp_path / "pulled"], check=True, capture_output=True)
    assert {document["kind"] for document in yaml.safe_load_all(built.stdout)} >= {"Deployment", "Job"}
    assert set(referrers(registry, name, item["digest"])) == {STATEMENT, BOM}
    assert publish("--manifests", place + "/{env}")[0]["status"] == "unchanged"


def test_an_artifact_that_flux_reads_is_the_whole_tree(
    registry: LocalRegistry, repository: Path, publish: Callable[..., list[dict[str, Any]]], place: str, tmp_path: Path
) -> None:
    settings = "kind: Config\nnamespace: ml\nspecs: [specs]\nenvironments: {prod: {namespace: ml-prod}}\n"
    settings += f'gitops: {{repository: "https://example.com/a.git", flux: {{oci: "{place}"}}}}\n'
    (repository / "kaigen.yaml").write_text(settings)
    commit(repository, "flux")
    publish("--manifests", place)
    manifest: Any = registry.manifest(repository_of(place), "latest")
    content = registry.get(f"{repository_of(place)}/blobs/{manifest['layers'][0]['digest']}") or b""
    with tarfile.open(fileobj=io.BytesIO(content)) as archive:
        archive.extractall(tmp_path / "pulled", filter="data")
    assert run(["-q", "render", "--env", "prod", "--format", "manifests", "-o", str(tmp_path / "tree")]) == 0
    tree = files(tmp_path / "tree")
    tree.pop(".kaigen-index")
    assert any(path.startswith("_flux/") for path in tree)
    assert files(tmp_path / "pulled") == tree


def test_older_manifests_do_not_take_the_place_of_newer_ones(
    repository: Path, publish: Callable[..., list[dict[str, Any]]], place: str, capsys: pytest.CaptureFixture[str]
) -> None:
    old = git(repository, "rev-parse", "HEAD")
    change(repository, "revision: ", "include: ['*.json']\n      revision: ")
    commit(repository, "newer")
    publish("--manifests", place)
    git(repository, "checkout", "--quiet", old)
    assert run(["publish", "--env", "prod", "--manifests", place]) == 1
    assert "which is newer than" in capsys.readouterr().err
    assert publish("--manifests", place, "--allow-older")[0]["status"] == "published"


@pytest.mark.parametrize("password", ["hunter2-hunter2", None])
def test_a_wrong_or_missing_password_is_reported(
    registry: LocalRegistry,
    repository: Path,
    place: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    password: str | None,
) -> None:
    (tmp_path / "docker" / "config.json").unlink()
    if password:
        registry.login(tmp_path / "docker", password)
    assert run(["publish", "--env", "prod", "--charts", place]) == 3
    said = capsys.readouterr().err
    assert ("rejected the credentials" if password else "requires credentials") in said
    assert "hunter2" not in said
    assert registry.manifest(f"{repository_of(place)}/qwen", "0.1.0") is None


def test_a_dry_run_pushes_nothing(
    registry: LocalRegistry, repository: Path, publish: Callable[..., list[dict[str, Any]]], place: str
) -> None:
    assert {item["status"] for item in publish("--charts", place, "--dry-run")} == {"planned"}
    assert registry.get(f"{repository_of(place)}/qwen/tags/list") is None


def test_two_concurrent_publishes_agree(registry: LocalRegistry, repository: Path, place: str, tmp_path: Path) -> None:
    def call(_: int) -> int:
        return start(repository, "--charts", place).wait(60)

    with ThreadPoolExecutor(3) as pool:
        assert list(pool.map(call, range(3))) == [0, 0, 0]
    for name in ("finetune", "finetune-job", "qwen"):
        complete(registry, f"{repository_of(place)}/{name}")


def start(folder: Path, *arguments: str) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "kaigen", "-q", "publish", "--env", "prod", *arguments]
    env = os.environ | {"PYTHONPATH": str(ROOT)}
    return subprocess.Popen(command, cwd=folder, env=env, stdout=subprocess.DEVNULL, start_new_session=True)


def complete(registry: LocalRegistry, name: str) -> None:
    """Check that a tag is complete."""
    manifest: Any = registry.manifest(name, "0.1.0")
    assert manifest is not None
    content = registry.get(f"{name}/manifests/0.1.0") or b""
    for part in (manifest["config"], *manifest["layers"]):
        blob = registry.get(f"{name}/blobs/{part['digest']}") or b""
        assert f"sha256:{hashlib.sha256(blob).hexdigest()}" == part["digest"]
    assert set(referrers(registry, name, f"sha256:{hashlib.sha256(content).hexdigest()}")) == {STATEMENT, BOM}


def test_a_killed_publish_leaves_complete_charts_or_none(
    registry: LocalRegistry, repository: Path, place: str, tmp_path: Path
) -> None:
    rng = random.Random(20260103)
    took, killed, number = 0.0, 0, 0
    while killed < KILLS:
        number += 1
        target = f"{place}/{number}"
        begin = time.monotonic()
        process = start(repository, "--charts", target)
        try:
            assert process.wait(took * rng.uniform(0.4, 1.0) if took else None) == 0
            # How long it takes depends on what else the machine does, and that changes.
            took = time.monotonic() - begin
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            killed += 1
        names = [f"{repository_of(target)}/{name}" for name in ("finetune", "finetune-job", "qwen")]
        for name in names:
            if registry.manifest(name, "0.1.0") is not None:
                complete(registry, name)
        assert start(repository, "--charts", target).wait(60) == 0
        for name in names:
            complete(registry, name)
    assert PASSWORD not in str(list(tmp_path.rglob("*")))


def test_pin_resolves_the_tag_of_a_registry_that_asks_for_a_password(
    registry: LocalRegistry, repository: Path, place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert run(["-q", "publish", "--env", "dev", "--manifests", place, "--allow-dirty"]) == 0
    name = place.removeprefix(f"oci://{registry.host}/")
    listed = json.loads(registry.get(f"{name}/tags/list") or b"{}")
    tag = next(tag for tag in listed["tags"] if not tag.startswith("sha256"))
    manifest = registry.get(f"{name}/manifests/{tag}")
    assert manifest is not None
    job = {"apiVersion": "kaigen.dev/v1alpha1", "kind": "Job", "metadata": {"name": "own"}}
    image = f"{registry.host}/{name}:{tag}"
    path = repository / "specs" / "own.yaml"
    path.write_text(json.dumps({**job, "spec": {"command": ["true"], "image": image}}))
    assert run(["-q", "pin", "own"]) == 0
    digest = hashlib.sha256(manifest).hexdigest()
    assert json.loads(path.read_text())["spec"]["image"] == f"{image}@sha256:{digest}"

    monkeypatch.delenv("DOCKER_CONFIG")
    monkeypatch.setenv("HOME", str(repository))
    monkeypatch.delenv("HELM_REGISTRY_CONFIG")
    path.write_text(json.dumps({**job, "spec": {"command": ["true"], "image": image}}))
    assert run(["-q", "pin", "own"]) == 2
