"""A `build` on a real node: rootless BuildKit pushes an image from its rendered pod, and the pod that waits runs it."""

from __future__ import annotations

import shutil
import tempfile
import uuid
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from kaigen.contexts.artifact import pack, push, target
from kaigen.contexts.folder import read_folder
from tests.cluster.apps import JOB, compiled, spec
from tests.cluster.client import is_true
from tests.cluster.node import Node
from tests.cluster.registry import LocalRegistry
from tests.cluster.rootless import BUILDER, builder_image
from tests.cluster.tools.parts import locate_part
from tests.unit.publish import gitserver
from tests.unit.publish.gitserver import GitServer, git

pytestmark = pytest.mark.engine

TOKEN = "a-token-of-the-git-server"
DOCKERFILE = """\
FROM scratch AS base
COPY program /program
FROM base
RUN ["/program", "--version"]
"""


@pytest.fixture
def registry(node: Node, tmp_path: Path) -> Iterator[LocalRegistry]:
    """A registry with a password that the node pulls from."""
    made = LocalRegistry(tmp_path / "registry", network=node.network)
    node.trust_registry(made.host)
    yield made
    made.close()


@pytest.fixture
def server(node: Node, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[GitServer]:
    """A Git server with a token that pods reach."""
    monkeypatch.setattr(gitserver, "USER", "x-access-token")
    monkeypatch.setattr(gitserver, "PASSWORD", TOKEN)
    (tmp_path / "git").mkdir()
    with node.network.entered():
        made = GitServer(tmp_path / "git", node.network.host)
    yield made
    made.close()


@pytest.fixture
def privileged(node: Node) -> Iterator[str]:
    """A namespace that allows the pod of a build."""
    name = f"builds-{uuid.uuid4().hex[:6]}"
    node.make_namespace(name, pod_security="privileged")
    yield name
    node.client.delete("v1/Namespace", name)


def commit(server: GitServer, folder: Path) -> str:
    """Commit an image with a static program; return the commit."""
    bare = server.make("train")
    git(folder, "clone", "--quiet", str(bare.path), "work")
    work = folder / "work"
    (work / "Dockerfile").write_text(DOCKERFILE)
    shutil.copy(locate_part("rootlesskit"), work / "program")
    git(work, "add", ".")
    git(work, "-c", "user.name=t", "-c", "user.email=t@example.com", "commit", "--quiet", "-m", "Add")
    git(work, "push", "--quiet", "origin", "HEAD:main")
    return git(work, "rev-parse", "HEAD").strip()


@pytest.fixture
def artifact(node: Node, registry: LocalRegistry, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """The context of a build: a folder that was pushed to the registry."""
    monkeypatch.setenv("DOCKER_CONFIG", str(tmp_path / "docker"))
    registry.login(tmp_path / "docker")
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "Dockerfile").write_text(DOCKERFILE)
    shutil.copy(locate_part("rootlesskit"), folder / "program")
    with node.network.entered(), tempfile.TemporaryFile() as archive:
        packed = pack(read_folder(folder), archive)
        pushed = push(packed, archive, target(f"{registry.host}/acme/files"), plain_http=True)
    return {"artifact": pushed.reference}


def log(node: Node, namespace: str, job: str) -> str:
    """Wait until a Job is complete; return the log of its main container."""
    node.client.wait(JOB, job, namespace, partial(is_true, condition="Complete"), "complete")
    return node.run("kubectl", "logs", "--namespace", namespace, f"job/{job}").stdout


@pytest.fixture
def repository(server: GitServer, tmp_path: Path) -> dict[str, object]:
    """The context of a build: a commit of a Git repository."""
    made = commit(server, tmp_path)
    return {"git": {"url": server.url("train", user=""), "commit": made, "tokenSecret": {"name": "git"}}}


@pytest.mark.promise("Substratus", "`container.git` triggers a container build Job")
@pytest.mark.ran("Job", "ServiceAccount", "Role", "RoleBinding", by=("node", "downloader"))
@pytest.mark.parametrize("source", ["repository", "artifact"])
def test_image_is_built_pushed_and_run(
    node: Node, registry: LocalRegistry, privileged: str, tmp_path: Path, request: pytest.FixtureRequest, source: str
) -> None:
    node.import_image(builder_image())
    for name, content in (("push", registry.secret("push", privileged)), ("git", None)):
        body = content or {
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {"name": name, "namespace": privileged},
            "stringData": {"token": TOKEN},
        }
        node.client.apply(body)
    build = {
        **request.getfixturevalue(source),
        "repository": f"{registry.host}/acme/train",
        "pushSecret": "push",
        "plainHttp": True,
        "builder": BUILDER,
        "cpu": "100m",
        "memory": "2Gi",
    }
    job = spec(
        "Job",
        "train",
        build=build,
        command=["/program", "--version"],
        imagePullSecrets=["push"],
        resources={"cpu": "50m", "memory": "64Mi"},
    )
    (app,) = compiled(tmp_path / "specs", [job], privileged, "generic").values()
    for rendered in app.objects:
        node.client.apply(rendered.body)
    names = {item.object.role: str(item.body["metadata"]["name"]) for item in app.objects}
    assert "pushing manifest" in log(node, privileged, names["job-build"])
    assert "rootlesskit version" in log(node, privileged, names["job"])
