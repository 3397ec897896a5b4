"""Flux on a plane: its controllers for sources, Kustomizations and HelmReleases, and a Git server with a password."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial

from tests.cluster.client import Object, is_true
from tests.cluster.git import Repository
from tests.cluster.patience import PATIENCE
from tests.cluster.plane import Plane
from tests.cluster.processes import free_ports
from tests.unit.publish.gitserver import PASSWORD, USER, GitServer

KUSTOMIZATION = "kustomize.toolkit.fluxcd.io/v1/Kustomization"
HELM_RELEASE = "helm.toolkit.fluxcd.io/v2/HelmRelease"
GIT_REPOSITORY = "source.toolkit.fluxcd.io/v1/GitRepository"
OCI_REPOSITORY = "source.toolkit.fluxcd.io/v1/OCIRepository"
SECRET = "git-password"
"""Name of the Secret with the credentials of the Git server."""

LOCKDOWN = (
    "--no-cross-namespace-refs=true",
    "--default-service-account=default",
    "--feature-gates=CancelHealthCheckOnNewRevision=true",
)
"""Options of the multi-tenancy lockdown in Flux's documentation, and of a fix that ends the wait for its fault."""
_HOST = "127.0.0.1"
_REQUESTED = "reconcile.fluxcd.io/requestedAt"


class Flux:
    """Running controllers of Flux.

    Attributes:
        user: User of the kustomize-controller in the audit log.
        helm_user: User of the helm-controller in the audit log.
        namespace: Namespace of Kustomizations and sources.
    """

    user = "kustomize-controller"
    helm_user = "helm-controller"

    def __init__(self, plane: Plane, namespace: str = "flux-system", concurrent: int = 4) -> None:
        """Start source-controller and kustomize-controller. They end with the plane; the Git server with ``close``.

        Args:
            plane: Where.
            namespace: Namespace of Kustomizations and sources.
            concurrent: Number of objects that each controller reconciles in parallel.
        """
        self._plane = plane
        self.namespace = namespace
        self._concurrent = concurrent
        self._folder = plane.folder / "data" / "flux"
        (self._folder / "git").mkdir(parents=True)
        with plane.network.entered():
            self.server = GitServer(self._folder / "git")
        self._repositories: dict[str, Repository] = {}
        self._options: dict[str, tuple[str, ...]] = {}
        plane.make_namespace(namespace)
        self.give_credentials(namespace)
        storage, (port,) = self._folder / "storage", free_ports(1)
        storage.mkdir()
        where = f"{_HOST}:{port}"
        self._start(
            "source-controller", f"--storage-path={storage}", f"--storage-addr={where}", f"--storage-adv-addr={where}"
        )
        self._start(self.user, "--requeue-dependency=1s")

    def _start(self, name: str, *options: str) -> None:
        """Start a controller and wait until it listens."""
        self._options[name] = options
        metrics, health = free_ports(2)
        scratch = self._folder / name
        scratch.mkdir(exist_ok=True)
        self._plane.start(
            name,
            str(self._plane.program(name)),
            f"--metrics-addr={_HOST}:{metrics}",
            f"--health-addr={_HOST}:{health}",
            "--events-addr=",
            "--interval-jitter-percentage=0",
            f"--concurrent={self._concurrent}",
            *options,
            env={
                "KUBECONFIG": str(self._plane.kubeconfig_for(name)),
                "RUNTIME_NAMESPACE": self.namespace,
                "TMPDIR": str(scratch),
            },
        )
        self._plane.processes.wait_until(partial(self._plane.listens, health), f"{name} listens")

    def start_helm(self) -> None:
        """Start the helm-controller unless it is running."""
        if self.helm_user not in self._options:
            self._start(
                self.helm_user,
                "--requeue-dependency=1s",
                # By default an old process outlives SIGTERM for ten minutes during an upgrade.
                "--graceful-shutdown-timeout=5s",
            )

    @contextmanager
    def locked_down(self) -> Iterator[None]:
        """Run the controllers of Kustomizations and HelmReleases with `LOCKDOWN` while in the context."""
        self.start_helm()
        with self.with_options(LOCKDOWN, self.user, self.helm_user):
            yield

    @contextmanager
    def with_options(self, options: Sequence[str], *names: str) -> Iterator[None]:
        """Run controllers with further options while in the context; that of Kustomizations without a name."""
        usual = {name: self._options[name] for name in names or (self.user,)}
        try:
            for name in usual:
                self._plane.processes.stop(name)
                self._start(name, *usual[name], *options)
            yield
        finally:
            for name in usual:
                self._plane.processes.stop(name)
                self._start(name, *usual[name])

    def close(self) -> None:
        """End the Git server."""
        self.server.close()

    def give_credentials(self, namespace: str) -> None:
        """Create the Secret with the Git server's password in a namespace."""
        self._plane.client.apply(
            {
                "apiVersion": "v1",
                "kind": "Secret",
                "metadata": {"name": SECRET, "namespace": namespace},
                "stringData": {"username": USER, "password": PASSWORD},
            }
        )

    # Sources

    def url(self, name: str) -> str:
        """Return the URL of a repository on the Git server; it asks for a password."""
        return f"http://{_HOST}:{self.server.port}/{name}/.git"

    def commit(self, name: str, files: Mapping[str, str]) -> str:
        """Make these files, and no others, the content of a repository on the Git server.

        Args:
            name: Name of the repository; created if missing.
            files: Content by path.

        Returns:
            The revision, as sources name it.
        """
        if name not in self._repositories:
            self._repositories[name] = Repository(self._folder / "git" / name)
        return f"main@sha1:{self._repositories[name].commit(files)}"

    def file_url(self, name: str) -> str:
        """Return the URL of a repository for programs on this machine; it asks for no password."""
        return self._repositories[name].url

    def publish(self, name: str, files: Mapping[str, str]) -> str:
        """Commit files, and have the GitRepository of the same name fetch them; both are created if missing.

        Returns:
            The revision.
        """
        revision = self.commit(name, files)
        source: Object = {
            "apiVersion": GIT_REPOSITORY.rpartition("/")[0],
            "kind": "GitRepository",
            "metadata": {"name": name, "namespace": self.namespace},
            "spec": {"interval": "1h", "url": self.url(name), "ref": {"branch": "main"}, "secretRef": {"name": SECRET}},
        }
        self._plane.client.apply(source)
        self.fetch(GIT_REPOSITORY, name)
        return revision

    def fetch(self, kind: str, name: str, namespace: str = "") -> None:
        """Request that a source or a Kustomization is reconciled now."""
        now = {_REQUESTED: f"{time.time():.6f}"}
        home = namespace or self.namespace
        self._plane.client.patch(kind, name, home, {"metadata": {"annotations": now}})

    def fetch_all(self, labels: str = "") -> None:
        """Request that all sources with these labels are fetched now."""
        for kind in (GIT_REPOSITORY, OCI_REPOSITORY):
            for found in self._plane.client.objects(kind, labels=labels):
                self.fetch(kind, found["metadata"]["name"], found["metadata"]["namespace"])

    # Kustomizations and HelmReleases

    def kustomization(self, name: str, source: str, path: str, namespace: str, *, prune: bool = True) -> Object:
        """A Kustomization that waits for its objects to be ready.

        Args:
            name: Its name.
            source: Name of the GitRepository.
            path: Folder in it.
            namespace: Where its objects go.
            prune: Whether what leaves the source is deleted.
        """
        return {
            "apiVersion": KUSTOMIZATION.rpartition("/")[0],
            "kind": "Kustomization",
            "metadata": {"name": name, "namespace": self.namespace},
            "spec": {
                "interval": "3s",
                "retryInterval": "3s",
                "timeout": "1m",
                "path": path,
                "prune": prune,
                "wait": True,
                "targetNamespace": namespace,
                "sourceRef": {"kind": "GitRepository", "name": source},
            },
        }

    def wait_ready(self, name: str, revision: str, timeout: float = PATIENCE, namespace: str = "") -> Object:
        """Wait until a Kustomization has a revision in the cluster, and ready.

        Args:
            name: Its name.
            revision: The revision.
            timeout: Seconds.
            namespace: Where it is; that of Flux by default.

        Returns:
            The Kustomization.

        Raises:
            TimeoutError: It was not ready in time.
        """
        check = partial(_at, revision=revision)
        home = namespace or self.namespace
        return self._plane.client.wait(KUSTOMIZATION, name, home, check, f"at {revision}", timeout)


def _at(kustomization: Object, revision: str) -> bool:
    applied = kustomization.get("status", {}).get("lastAppliedRevision")
    return applied == revision and is_true(kustomization, "Ready")
