"""A real OCI registry on loopback with a password: Debian's `docker-registry` (CNCF Distribution 2.8)."""

from __future__ import annotations

import base64
import json
import os
import shutil
import subprocess
import tempfile
import urllib.error
import urllib.request
from functools import partial
from pathlib import Path

from tests.cluster.network import Loopback, Network
from tests.cluster.processes import Command, Processes, free_ports, listening
from tests.cluster.tools.parts import ToolsMissing, cache

PACKAGE = "docker-registry"
USER = "ada"
PASSWORD = "correct-horse"
# bcrypt of the password, which the registry asks for and Python's own library cannot make.
_HTPASSWD = "ada:$2b$05$abcdefghijklmnopqrstuuZ0Fx87Pb/Aqb0E90lfvCwzXnaFKUHpS\n"
_CONFIGURATION = """\
version: 0.1
log: {{level: error, accesslog: {{disabled: true}}}}
storage: {{filesystem: {{rootdirectory: {data}}}}}
http: {{addr: "{host}"}}
"""
_AUTH = "auth: {{htpasswd: {{realm: test, path: {folder}/htpasswd}}}}\n"


def program() -> Path:
    """The registry's program: on the PATH, or taken out of Debian's package, which needs no root.

    Raises:
        ToolsMissing: it is not to be had.
    """
    found = shutil.which(PACKAGE)
    if found is not None:
        return Path(found)
    kept = cache() / PACKAGE / "usr" / "bin" / PACKAGE
    if kept.exists():
        return kept
    if shutil.which("apt-get") is None or shutil.which("dpkg") is None:
        raise ToolsMissing(f"{PACKAGE} is not on the PATH: install CNCF Distribution under that name")
    cache().mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=cache(), prefix=f".{PACKAGE}-") as scratch:
        done = _apt("download", PACKAGE, folder=scratch)
        if done.returncode != 0:
            _apt("update", "-q", folder=scratch)
            done = _apt("download", PACKAGE, folder=scratch)
        packages = list(Path(scratch).glob("*.deb"))
        if not packages:
            raise ToolsMissing(f"{PACKAGE} could not be fetched: {done.stderr.strip()[-300:]}")
        unpacked = Path(scratch, "unpacked")
        subprocess.run(["dpkg", "-x", packages[0], unpacked], check=True)
        if not kept.exists():
            unpacked.rename(cache() / PACKAGE)
    return kept


def _apt(*arguments: str, folder: str) -> subprocess.CompletedProcess[str]:
    env = os.environ | {"LC_ALL": "C"}
    return subprocess.run(["apt-get", *arguments], cwd=folder, env=env, capture_output=True, text=True, check=False)


class LocalRegistry:
    """A registry that runs until `close`.

    Attributes:
        host: its address and port.
    """

    def __init__(
        self, folder: Path, *, network: Network | None = None, password: bool = True, data: Path | None = None
    ) -> None:
        """Start one.

        Args:
            folder: a folder that does not exist yet, for what is pushed.
            data: folder of what is pushed, which may have content; one in `folder` where None.
            network: where it listens; loopback where None.
            password: whether it asks for `PASSWORD`.
        """
        folder.mkdir()
        (port,) = free_ports(1)
        where = network or Loopback()
        self.host = f"{where.host}:{port}"
        self._accounts = folder / "htpasswd"
        self.accept(True)
        configuration = folder / "registry.yaml"
        text = _CONFIGURATION + (_AUTH if password else "")
        configuration.write_text(text.format(folder=folder, data=data or folder / "data", host=self.host))
        self._processes = Processes(folder, folder / "scratch", where, keeps_network=True)
        argv = [str(program()), "serve", str(configuration)]
        self._processes.start(Command("registry", argv, {"OTEL_TRACES_EXPORTER": "none"}))
        self._processes.wait_until(partial(self._listens, where, port), "the registry listens")

    @staticmethod
    def _listens(network: Network, port: int) -> bool:
        with network.entered():
            return listening(port, network.host)

    def accept(self, accepted: bool) -> None:
        """Accept the account from now on, or refuse it."""
        self._accounts.write_text(_HTPASSWD if accepted else _HTPASSWD.replace(f"{USER}:", "somebody:"))

    def close(self) -> None:
        """End it."""
        self._processes.close()

    def login(self, folder: Path, password: str = PASSWORD) -> None:
        """Write credentials as `docker login` keeps them."""
        folder.mkdir(exist_ok=True)
        auth = base64.b64encode(f"{USER}:{password}".encode()).decode()
        (folder / "config.json").write_text(json.dumps({"auths": {self.host: {"auth": auth}}}))

    def secret(self, name: str, namespace: str) -> dict[str, object]:
        """Return a Secret with the credentials."""
        auth = base64.b64encode(f"{USER}:{PASSWORD}".encode()).decode()
        return {
            "apiVersion": "v1",
            "kind": "Secret",
            "type": "kubernetes.io/dockerconfigjson",
            "metadata": {"name": name, "namespace": namespace},
            "stringData": {".dockerconfigjson": json.dumps({"auths": {self.host: {"auth": auth}}})},
        }

    def get(self, path: str) -> bytes | None:
        """Return the content at a path below `/v2/`; None if there is none."""
        auth = base64.b64encode(f"{USER}:{PASSWORD}".encode()).decode()
        kinds = ("manifest", "index")
        accept = ", ".join(f"application/vnd.oci.image.{kind}.v1+json" for kind in kinds)
        headers = {"Authorization": f"Basic {auth}", "Accept": accept}
        try:
            with urllib.request.urlopen(
                urllib.request.Request(f"http://{self.host}/v2/{path}", headers=headers)
            ) as done:
                content: bytes = done.read()
                return content
        except urllib.error.HTTPError as error:
            with error:
                if error.code == 404:
                    return None
                raise

    def manifest(self, repository: str, name: str) -> dict[str, object] | None:
        """A manifest or index; None when there is none."""
        content = self.get(f"{repository}/manifests/{name}")
        found: dict[str, object] | None = json.loads(content) if content is not None else None
        return found
