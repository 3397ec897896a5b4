"""A repository of specs, a Hub and registries on loopback."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from kaigen.cli.main import cli
from runtimes.downloader.tests.hub import Hub
from tests.unit.oci.conftest import make_web
from tests.unit.oci.web import Reply, Web

__all__ = ["make_web"]

INDEX = b'{"schemaVersion": 2}'
DIGEST = "sha256:" + sha256(INDEX).hexdigest()


@dataclass
class Repository:
    """Specs in a folder."""

    root: Path

    def write(self, text: str, name: str = "specs/a.yaml") -> None:
        """Write a file byte by byte."""
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text.encode())

    def text(self, name: str = "specs/a.yaml") -> str:
        """Return a file byte by byte."""
        return (self.root / name).read_bytes().decode()

    def pin(self, *arguments: str) -> Result:
        """Run `kaigen pin`."""
        return CliRunner().invoke(cli, ["pin", *arguments], standalone_mode=False)


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Repository:
    """An empty repository, in the working folder; no credentials of the user are read."""
    root = tmp_path / "repository"
    root.mkdir()
    monkeypatch.chdir(root)
    for name in ("HF_TOKEN", "HF_ENDPOINT", "HF_TOKEN_PATH"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HF_HOME", str(tmp_path / "hf"))
    monkeypatch.setenv("DOCKER_CONFIG", str(tmp_path / "docker"))
    monkeypatch.setenv("HELM_REGISTRY_CONFIG", str(tmp_path / "helm.json"))
    found = Repository(root)
    found.write("apiVersion: kaigen.dev/v1alpha1\nkind: Config\nnamespace: ml\n", "kaigen.yaml")
    return found


@pytest.fixture
def hub() -> Iterator[Hub]:
    """A Hub with `owner/name`."""
    with Hub() as running:
        yield running


@pytest.fixture
def images(make_web: Callable[[], Web]) -> Web:
    """A registry with `acme/tune:1`."""

    def answer(method: str, path: str, authorization: str) -> Reply:
        if path == "/v2/acme/tune/manifests/1":
            return 200, {"Docker-Content-Digest": DIGEST}, INDEX
        return 404, {}, json.dumps({"errors": [{"code": "MANIFEST_UNKNOWN"}]}).encode()

    web = make_web()
    web.answer = answer
    return web
