"""The server of a Notebook on a local port, the objects of its spec, and the copy of its files in a folder."""

from __future__ import annotations

import html
import tempfile
import webbrowser
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from msgspec import Struct

from kaigen.cluster.client import Cluster
from kaigen.cluster.port_forward import PortForward
from kaigen.compile.notebook.pod import PORT
from kaigen.config.settings import Config
from kaigen.diagnostics.errors import CheckFailed
from kaigen.kinds.notebook import Notebook
from kaigen.kubernetes.manifest import Manifest
from kaigen.ops.contents import Contents
from kaigen.ops.folder_sync import Direction, synchronize
from kaigen.ops.local_folder import LocalFolder, Record
from kaigen.ops.notebooks import pod_name, token_of, volume_of, wait_ready
from kaigen.pipeline.run import Run


class RenderedNotebook(Struct, frozen=True):
    """A Notebook and its objects.

    Attributes:
        name: its name.
        namespace: its namespace.
        objects: in the order in which they are applied.
    """

    name: str
    namespace: str
    objects: list[Manifest]


def render_notebook(path: str, config: Config) -> RenderedNotebook:
    """Return the Notebook of a file, compiled with the settings of the repository.

    Raises:
        InputError: a spec is invalid.
        CheckFailed: the file has no Notebook, or several.
    """
    compiled = Run.load([path], config).apps()
    apps = [item for item in compiled if item.spec is not None and isinstance(item.spec.block, Notebook)]
    if len(apps) != 1:
        raise CheckFailed(f"{path} has {len(apps)} Notebooks", hint="name a file with one Notebook")
    (found,) = apps
    objects: list[Manifest] = [dict(item.body) for item in found.objects if not item.object.test]
    return RenderedNotebook(found.app.name, found.app.namespace, objects)


Say = Callable[[str], object]


class Opened(Struct, frozen=True):
    """A Notebook behind a local port.

    Attributes:
        port: the local port.
        token: token of the server.
    """

    port: int
    token: str

    @property
    def url(self) -> str:
        """Address for a browser, with the token."""
        return f"http://127.0.0.1:{self.port}/lab?token={self.token}"


@contextmanager
def forward_notebook(cluster: Cluster, notebook: Manifest, seconds: float, say: Say, port: int = 0) -> Iterator[Opened]:
    """Wait for the server of a Notebook, and forward a local port to it until the end of the block.

    Args:
        cluster: the cluster.
        notebook: its StatefulSet.
        seconds: how long to wait.
        say: receives what the pod waits for.
        port: the local port; 0 for a free one.

    Raises:
        CheckFailed: there is no token.
        SystemFailure: the server does not start, or the port cannot be forwarded.
    """
    token = token_of(cluster, notebook, say)
    wait_ready(cluster, notebook, seconds, say)
    with PortForward(cluster, notebook["metadata"]["namespace"], pod_name(notebook), PORT, port) as forward:
        forward.check()
        yield Opened(forward.port, token)


_LAST_S = 10.0
"""Seconds without an answer of the server that end the last synchronization."""


class FolderSync:
    """Synchronizes a folder with the files of an open Notebook."""

    def __init__(
        self,
        cluster: Cluster,
        notebook: Manifest,
        found: Opened,
        folder: Path,
        say: Say,
        direction: Direction = Direction.BOTH,
    ) -> None:
        metadata = notebook["metadata"]
        self._local = LocalFolder(folder)
        self._remote = Contents(found.port, found.token, self._local.ignores)
        volume = volume_of(cluster, notebook)["metadata"]["uid"]
        self._record = Record(folder, f"{metadata['namespace']}.{metadata['name']}", volume)
        self._say, self._direction = say, direction
        self._said: set[str] = set()

    def run_last(self) -> list[str]:
        """Synchronize once for a user who waits for the end: a server that is silent for some seconds is an error.

        Raises:
            SystemFailure: as `run`.
            OSError: as `run`.
        """
        self._remote.wait_at_most(_LAST_S)
        return self.run()

    def run(self) -> list[str]:
        """Synchronize once, and return what was skipped for the first time.

        Raises:
            SystemFailure: the server does not answer, or a file cannot be written.
            OSError: a local file cannot be read or written.
        """
        try:
            result = synchronize(self._local, self._remote, self._record.base, self._direction, self._say)
        finally:
            self._record.save()
        large = sorted(self._local.skipped | self._remote.skipped)
        lines = [*result.skipped, *(f"{path}: larger than 100 MiB" for path in large)]
        new = [line for line in lines if line not in self._said]
        self._said = set(lines)
        return new


@contextmanager
def show_address(url: str) -> Iterator[None]:
    """Open an address in the user's browser. The list of processes shows a file that leads to it, not the token."""
    with tempfile.TemporaryDirectory(prefix="kaigen-notebook-") as folder:
        page = Path(folder) / "open.html"
        page.write_text(f'<meta http-equiv="refresh" content="0; url={html.escape(url)}">', encoding="utf-8")
        with suppress(webbrowser.Error):
            webbrowser.open(page.as_uri())
        yield
