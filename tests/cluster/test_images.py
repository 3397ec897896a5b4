"""`kaigen images` with a real builder, as in a company.

Its registry has the base image and asks for a password, and its proxy decrypts TLS with an authority of its own.
"""

from __future__ import annotations

import io
import json
import re
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from kaigen import __version__
from kaigen.images.attest import BILL, STATEMENT
from kaigen.images.recipes import find_recipes
from tests.cluster import images
from tests.cluster.processes import free_ports
from tests.cluster.registry import PASSWORD, USER, LocalRegistry
from tests.cluster.tls_proxy import tls_proxy

SMALL = ["downloader", "reaper", "argocd"]
"""Images that take seconds: those with PyTorch take gigabytes, and JupyterLab a minute."""


@pytest.fixture(scope="module")
def registry(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalRegistry]:
    """A registry of a company: nothing is pulled without its password."""
    server = LocalRegistry(tmp_path_factory.mktemp("registry") / "data")
    yield server
    server.close()


@pytest.fixture(scope="module")
def environment(registry: LocalRegistry, tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, str]:
    """What builder and kaigen read: storage of the tests, and the login."""
    folder = tmp_path_factory.mktemp("login")
    registry.login(folder)
    return {**images.builder_environment(), "BUILDAH_ISOLATION": "chroot", "DOCKER_CONFIG": str(folder)}


@pytest.fixture(scope="module")
def base(registry: LocalRegistry, environment: Mapping[str, str]) -> str:
    """The base image as a company has it: a copy in its registry."""
    name = images.load_image(images.base())
    copy = f"{registry.host}/mirror/python:3.13"
    login = f"{USER}:{PASSWORD}"
    images.run(["buildah", "push", "--tls-verify=false", "--creds", login, name, f"docker://{copy}"])
    return copy


def kaigen(environment: Mapping[str, str], folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run the command line in a folder."""
    command = [sys.executable, "-m", "kaigen", *arguments]
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)


def read(registry: LocalRegistry, path: str) -> Any:
    """Return the JSON at a path of the registry."""
    content = registry.get(path)
    assert content is not None, path
    return json.loads(content)


def place(registry: LocalRegistry, image: Mapping[str, object]) -> tuple[str, str]:
    """Return repository and digest of an image that was pushed."""
    name, _, digest = str(image["reference"]).partition("@")
    return name.rpartition(":")[0].removeprefix(f"{registry.host}/"), digest


def attached(registry: LocalRegistry, repository: str, digest: str) -> dict[str, Any]:
    """Return what is attached to an image, by its type."""
    found = {}
    # The registry has no referrers API, so the specification's tag lists them.
    for each in read(registry, f"{repository}/manifests/{digest.replace(':', '-')}")["manifests"]:
        manifest = read(registry, f"{repository}/manifests/{each['digest']}")
        assert manifest["subject"]["digest"] == digest
        found[each["artifactType"]] = read(registry, f"{repository}/blobs/{manifest['layers'][0]['digest']}")
    return found


def find(built: list[dict[str, object]], name: str) -> dict[str, object]:
    """Return the image of a name."""
    return next(each for each in built if each["name"] == name)


@pytest.fixture(scope="module")
def pushed(
    registry: LocalRegistry, environment: Mapping[str, str], base: str, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Path, list[dict[str, object]]]:
    """A repository, and the images that were pushed for it."""
    folder = tmp_path_factory.mktemp("repository")
    (folder / "kaigen.yaml").write_text("# Our cluster\nnamespace: ml\nimages: # built by us\n  kubectl: kubectl:1\n")
    with tls_proxy(tmp_path_factory.mktemp("proxy")) as (proxy, certificate, hosts):
        done = kaigen(
            {**environment, "HTTPS_PROXY": proxy, "NO_PROXY": "127.0.0.1"},
            folder,
            *("images", "push", *SMALL, "--registry", f"{registry.host}/kaigen", "--base", base),
            *("--builder", "buildah", "--ca-certificate", str(certificate), "--write", "kaigen.yaml", "-o", "json"),
        )
    assert hosts, "no package came through the proxy"
    # The names have the registry's port, so no later run would use what the builder keeps of them.
    kept = [f"{registry.host}/kaigen/{name}:0.2.0" for name in SMALL]
    subprocess.run(["buildah", "rmi", "--force", *kept, base], env=environment, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr
    return folder, json.loads(done.stdout)


def test_every_image_is_in_the_registry_by_the_printed_digest(
    registry: LocalRegistry, pushed: tuple[Path, list[dict[str, object]]]
) -> None:
    _, built = pushed
    assert [each["name"] for each in built] == SMALL
    for each in built:
        repository, digest = place(registry, each)
        assert read(registry, f"{repository}/manifests/0.2.0") == read(registry, f"{repository}/manifests/{digest}")
        assert isinstance(each["bytes"], int)


def test_settings_are_written_between_the_others(pushed: tuple[Path, list[dict[str, object]]]) -> None:
    folder, built = pushed
    fields = "".join(f"  {each['name']}: {each['reference']}\n" for each in built if each["name"] != "argocd")
    expected = f"# Our cluster\nnamespace: ml\nimages: # built by us\n  kubectl: kubectl:1\n{fields}"
    assert (folder / "kaigen.yaml").read_text() == expected


def test_bills_and_provenance_are_attached(
    registry: LocalRegistry, pushed: tuple[Path, list[dict[str, object]]]
) -> None:
    repository, digest = place(registry, find(pushed[1], "downloader"))
    found = attached(registry, repository, digest)
    assert "botocore" in {each["name"] for each in found[BILL]["components"]}
    statement = found[STATEMENT]
    assert statement["subject"] == [{"name": repository, "digest": {"sha256": digest.removeprefix("sha256:")}}]
    assert statement["predicate"]["buildDefinition"]["externalParameters"]["image"] == "downloader"


def test_layers_have_neither_certificates_nor_configuration_of_the_build(
    registry: LocalRegistry, pushed: tuple[Path, list[dict[str, object]]]
) -> None:
    for each in pushed[1]:
        repository, digest = place(registry, each)
        manifest = read(registry, f"{repository}/manifests/{digest}")
        config = read(registry, f"{repository}/blobs/{manifest['config']['digest']}")["config"]
        assert config["User"] in {"65532:65532", "999:999"}
        assert config["Labels"]["org.opencontainers.image.version"] == "0.2.0"
        for layer in manifest["layers"][1:]:  # The first one is that of the base image.
            content = registry.get(f"{repository}/blobs/{layer['digest']}")
            with tarfile.open(fileobj=io.BytesIO(content or b""), mode="r:*") as files:
                names = files.getnames()
            assert not [path for path in names if path.endswith(("pip.conf", "ca.crt", "ca-certificates.crt"))]


def entries(*names: str) -> str:
    """Return the entries of packages in the lock of the chat server."""
    lock = (find_recipes()["chat"].context / "chat" / "requirements.txt").read_text()
    return "".join(re.findall(rf"^(?:{'|'.join(names)})==.*\n(?:    --hash.*\n)*", lock, re.MULTILINE))


INSTALL = """\
FROM {torch}
WORKDIR /src
COPY install.sh requirements-build.txt requirements.txt ./
RUN sh install.sh packages requirements.txt && /opt/kaigen/bin/python -c 'import h11, typing_extensions'
RUN packages=/opt/kaigen/lib/python3.13/site-packages && test -d $packages/h11 && \
    test ! -e $packages/nvidia && test ! -e $packages/typing_extensions.py
"""


def test_an_image_that_starts_from_another_build_of_pytorch_has_no_packages_of_the_default_one(
    registry: LocalRegistry, environment: Mapping[str, str], base: str, tmp_path: Path
) -> None:
    # A package of some kilobytes is the other build. PyTorch takes gigabytes.
    lock = tmp_path / "cpu.txt"
    lock.write_text(entries("typing-extensions"))
    done = kaigen(
        environment,
        tmp_path,
        *("images", "push", "torch", "--torch-lock", str(lock), "--registry", f"{registry.host}/kaigen"),
        *("--base", base, "--builder", "buildah", "-o", "json", *images.secret_options()),
    )
    assert done.returncode == 0, done.stderr
    repository, digest = place(registry, json.loads(done.stdout)[0])
    bill = attached(registry, repository, digest)[BILL]
    assert [each["name"] for each in bill["components"]] == ["typing-extensions"]

    runtimes = find_recipes()["chat"].context
    context = tmp_path / "context"
    context.mkdir()
    shutil.copy(runtimes / "shared" / "install.sh", context)
    shutil.copy(runtimes / "chat" / "requirements-build.txt", context)
    (context / "requirements.txt").write_text(entries("h11", "nvidia-nvtx", "typing-extensions"))
    torch = f"{registry.host}/{repository.partition('/')[0]}/torch:{__version__}"
    (context / "Dockerfile").write_text(INSTALL.format(torch=torch))
    images.build_in_place("kaigen.test/on-torch:1", context, tmp_path / "image.tar")
    images.run(["buildah", "rmi", "--force", torch])


def test_check_prints_a_line_for_each_image(
    registry: LocalRegistry,
    environment: Mapping[str, str],
    pushed: tuple[Path, list[dict[str, object]]],
    tmp_path: Path,
) -> None:
    folder, built = pushed
    (folder / "specs").mkdir()
    (folder / "specs" / "model.yaml").write_text(
        "apiVersion: kaigen.dev/v1alpha1\nkind: Model\nmetadata: {name: tiny}\n"
        "spec: {source: {huggingFace: {repo: acme/tiny, revision: " + "a" * 40 + "}}, store: {volume: {size: 1Gi}}}\n"
    )
    downloader = str(find(built, "downloader")["reference"])
    done = kaigen(environment, folder, "images", "check", "-o", "json")
    assert [each["state"] for each in json.loads(done.stdout)] == ["found"], done.stderr
    assert done.returncode == 0

    settings = folder / "kaigen.yaml"
    text = settings.read_text()
    settings.write_text(text.replace(downloader, downloader.replace("kaigen/downloader", "kaigen/nothing")))
    done = kaigen(environment, folder, "images", "check")
    assert done.returncode == 1
    assert done.stdout.splitlines()[1].startswith(f"missing  {registry.host}/kaigen/nothing:0.2.0@sha256:")

    settings.write_text(text)
    done = kaigen({**environment, "DOCKER_CONFIG": str(tmp_path)}, folder, "images", "check")
    assert done.returncode == 3
    assert done.stdout.splitlines()[1].startswith(f"login  {downloader}")
    assert "requires credentials to read kaigen/downloader" in done.stdout

    (port,) = free_ports(1)
    settings.write_text(text.replace(registry.host, f"127.0.0.1:{port}"))
    done = kaigen(environment, folder, "images", "check")
    assert done.returncode == 3
    assert done.stdout.splitlines()[1].startswith("unreachable  ")
    settings.write_text(text)
