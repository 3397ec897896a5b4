"""The rendered Job of a `build`, executed: real rootless BuildKit, a Git server and a registry that want passwords."""

from __future__ import annotations

import base64
import hashlib
import io
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from kaigen.cli.main import run
from kaigen.config.settings import Config
from kaigen.pipeline.run import render
from tests.cluster.registry import PASSWORD, USER, LocalRegistry
from tests.cluster.rootless import RootlessMachine
from tests.cluster.tools.parts import locate_part
from tests.unit.publish import gitserver
from tests.unit.publish.gitserver import GitServer, git

pytestmark = pytest.mark.engine

DOWNLOADER = Path(__file__).parents[2] / "runtimes" / "downloader"
TOKEN = "a-token-of-the-git-server"
DOCKERFILE = """\
FROM scratch AS base
ARG NOTE
COPY run.txt /run.txt
FROM base AS runtime
RUN --mount=type=bind,source=program,target=/program ["/program", "--version"]
LABEL note=${NOTE}
"""
FOLDER = """\
apiVersion: kaigen.dev/v1alpha1
kind: Job
metadata: {{name: train}}
spec:
  build:
    repository: {host}/acme/folder
    provenance: max
    pushSecret: {name: push}
    plainHttp: true
"""
FOLDER_DOCKERFILE = """\
FROM scratch
COPY . /files/
RUN ["/files/bin/program", "--version"]
"""
SPEC = """\
apiVersion: kaigen.dev/v1alpha1
kind: Job
metadata: {{name: train}}
spec:
  build:
    git: {{url: "{url}", commit: {commit}, path: images/train, tokenSecret: {{name: git}}}}
    repository: {host}/acme/train
    target: {target}
    args: {{NOTE: "a,b $(HOME) $HOME 'c'"}}
    cache: {host}/acme/cache
    provenance: max
    pushSecret: {name: push}
    plainHttp: true
"""


class World:
    """A registry, a Git server, and the machine of the builder."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """Start the servers, and commit the files of an image."""
        # BuildKit sends a token as the password of this user (source: its package source/git).
        monkeypatch.setattr(gitserver, "USER", "x-access-token")
        monkeypatch.setattr(gitserver, "PASSWORD", TOKEN)
        self.folder = folder
        self.registry = LocalRegistry(folder / "registry")
        (folder / "git").mkdir()
        self.git = GitServer(folder / "git")
        bare = self.git.make("train")
        work = folder / "work"
        git(folder, "clone", "--quiet", str(bare.path), str(work))
        (work / "images/train").mkdir(parents=True)
        (work / "images/train/Dockerfile").write_text(DOCKERFILE)
        (work / "images/train/run.txt").write_text("hello\n")
        # A static program, so that a step runs without a base image.
        shutil.copy(locate_part("rootlesskit"), work / "images/train/program")
        git(work, "add", ".")
        git(work, "-c", "user.name=t", "-c", "user.email=t@example.com", "commit", "--quiet", "-m", "Add")
        git(work, "push", "--quiet", "origin", "HEAD:main")
        self.commit = git(work, "rev-parse", "HEAD").strip()
        self.machine = RootlessMachine(folder / "machine")

    def close(self) -> None:
        """End the servers."""
        self.git.close()
        self.registry.close()

    def pod(self, target: str = "runtime") -> tuple[dict[str, Any], str]:
        """Return the pod of the rendered Job, and the image that the app's own pod runs."""
        url = self.git.url("train", user="")
        spec = SPEC.format(url=url, commit=self.commit, host=self.registry.host, target=target)
        (self.folder / "spec.yaml").write_text(spec)
        return self.rendered()

    def rendered(self) -> tuple[dict[str, Any], str]:
        """Return the pod of the Job of the spec, and the image that the app's own pod runs."""
        files = render([self.folder / "spec.yaml"], Config(namespace="research"))
        objects = {
            path.rpartition("/")[2]: yaml.safe_load(data) for path, data in files.items() if path.endswith(".yaml")
        }
        pods = {name: objects[name]["spec"]["template"]["spec"] for name in ("job-build.yaml", "job.yaml")}
        return pods["job-build.yaml"], pods["job.yaml"]["containers"][0]["image"]

    def build(self, pod: Mapping[str, Any]) -> subprocess.CompletedProcess[str]:
        """Run the containers of the pod in their order, with the files and variables of its Secrets."""
        auth = base64.b64encode(f"{USER}:{PASSWORD}".encode()).decode()
        config = json.dumps({"auths": {self.registry.host: {"auth": auth}}})
        mounts = {
            "/status": "status",
            "/etc/kaigen-registry": "login",
            "/etc/kaigen-git": "token",
            "/context": "volume",
        }
        for name in mounts.values():
            (self.folder / name).mkdir(exist_ok=True)
        (self.folder / "login/config.json").write_text(config)
        (self.folder / "token/token").write_text(TOKEN)

        def here(text: str) -> str:
            for path, name in mounts.items():
                text = re.sub(rf"(?<![\w/]){path}(?=/|$)", str(self.folder / name), text)
            # Kubernetes turns an escaped `$(` back.
            return text.replace("$$(", "$(")

        (builder,) = pod["containers"]
        for each in pod["initContainers"]:
            done = subprocess.run(
                [sys.executable, "-m", "kaigen_downloader", *map(here, each["args"])],
                env={"PATH": os.environ["PATH"], "PYTHONPATH": str(DOWNLOADER), "REGISTRY_AUTH": config},
                capture_output=True,
                text=True,
                check=False,
            )
            assert done.returncode == 0, done.stderr
        variables = {each["name"]: here(each["value"]) for each in builder["env"]}
        return self.machine.run([here(each) for each in [*builder["command"], *builder["args"]]], variables)

    def blob(self, repository: str, digest: str) -> bytes:
        """Return a blob of the registry."""
        content = self.registry.get(f"{repository}/blobs/{digest}")
        assert content is not None
        assert f"sha256:{hashlib.sha256(content).hexdigest()}" == digest
        return content


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    # The builder's user must reach the files of its Secrets, and pytest's own folder is for root only.
    with tempfile.TemporaryDirectory(prefix="kaigen-build-") as folder:
        Path(folder).chmod(0o755)
        made = World(Path(folder), monkeypatch)
        yield made
        made.close()


def test_image_is_built_once_and_has_the_commit_and_the_arguments(world: World) -> None:
    pod, reference = world.pod()
    repository, tag = reference.removeprefix(f"{world.registry.host}/").split(":")
    done = world.build(pod)
    assert done.returncode == 0, done.stdout + done.stderr
    index = world.registry.manifest(repository, tag)
    assert index is not None
    manifests: Any = index["manifests"]
    image, attestation = manifests
    manifest: Any = world.registry.manifest(repository, image["digest"])
    config = json.loads(world.blob(repository, manifest["config"]["digest"]))
    assert config["config"]["Labels"] == {"note": "a,b $(HOME) $HOME 'c'"}
    layer, *_ = manifest["layers"]
    listed = subprocess.run(
        ["tar", "-tzf", "-"], input=world.blob(repository, layer["digest"]), capture_output=True, check=True
    )
    assert listed.stdout.split() == [b"run.txt"]
    attached: Any = world.registry.manifest(repository, attestation["digest"])
    statement = world.blob(repository, attached["layers"][0]["digest"]).decode()
    assert world.commit in statement
    assert "rootlesskit version" in done.stderr
    assert TOKEN not in statement + done.stdout + done.stderr
    assert world.registry.manifest("acme/cache", "buildcache") is not None

    # The next Job finds the image, and starts no builder.
    asked = len(world.git.asked)
    again = world.build(pod)
    assert (again.returncode, again.stdout, again.stderr) == (0, "", "")
    assert len(world.git.asked) == asked


def test_folder_of_this_machine_is_built_from_its_artifact(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DOCKER_CONFIG", str(world.folder / "docker"))
    world.registry.login(world.folder / "docker")
    files = world.folder / "train"
    (files / "bin").mkdir(parents=True)
    (files / "Dockerfile").write_text(FOLDER_DOCKERFILE)
    (files / ".dockerignore").write_text("Dockerfile\n.dockerignore\ndata\n!data/keep\n")
    shutil.copy(locate_part("rootlesskit"), files / "bin/program")
    (files / "data").mkdir()
    for name in ("keep", "other"):
        (files / "data" / name).write_text(name)
    (files / "link").symlink_to("bin/program")
    (files / "empty").mkdir()
    (world.folder / "spec.yaml").write_text(FOLDER.format(host=world.registry.host))
    assert run(["build", "push", str(files), "--spec", str(world.folder / "spec.yaml")]) == 0

    pod, reference = world.rendered()
    done = world.build(pod)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "rootlesskit version" in done.stderr
    tag = reference.rpartition(":")[2]
    index: Any = world.registry.manifest("acme/folder", tag)
    manifest: Any = world.registry.manifest("acme/folder", index["manifests"][0]["digest"])
    with tarfile.open(fileobj=io.BytesIO(world.blob("acme/folder", manifest["layers"][0]["digest"]))) as layer:
        names = {member.name.rstrip("/"): member.linkname for member in layer}
    assert names == {
        "files": "",
        "files/bin": "",
        "files/bin/program": "",
        "files/data": "",
        "files/data/keep": "",
        "files/empty": "",
        "files/link": "bin/program",
    }

    # The next Job finds the image: it fetches nothing, and starts no builder.
    shutil.rmtree(world.folder / "volume")
    again = world.build(pod)
    assert (again.returncode, again.stdout, again.stderr) == (0, "", "")
    assert not [*(world.folder / "volume").iterdir()]


def test_failed_build_pushes_nothing_and_prints_the_reason(world: World) -> None:
    pod, reference = world.pod(target="base-that-is-missing")
    done = world.build(pod)
    assert done.returncode != 0
    assert "base-that-is-missing" in done.stderr
    assert world.registry.manifest("acme/train", reference.rpartition(":")[2]) is None
