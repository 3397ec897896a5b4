"""Argo CD on a plane: its application controller, its repository server and their shared cache."""

from __future__ import annotations

import os
import secrets
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

from tests.cluster.client import Object
from tests.cluster.patience import PATIENCE
from tests.cluster.plane import Plane
from tests.cluster.processes import free_ports
from tests.cluster.tools import debian

APPLICATION = "argoproj.io/v1alpha1/Application"
_GROUP = "argoproj.io/v1alpha1"
_HOST = "127.0.0.1"
# Required at start.
_CONFIG_MAPS = (
    "argocd-rbac-cm",
    "argocd-ssh-known-hosts-cm",
    "argocd-tls-certs-cm",
    "argocd-gpg-keys-cm",
    "argocd-cmd-params-cm",
)


_AGAIN_S = 20.0
"""Seconds after which `wait` requests another refresh."""


class ArgoCD:
    """Running controllers of Argo CD.

    Attributes:
        user: User of the application controller in the audit log.
        keys: Folder of the public GnuPG keys that it knows, in files with the names of their IDs.
    """

    user = "argocd-application-controller"

    def __init__(self, plane: Plane, namespace: str = "argocd", resync: int = 5) -> None:
        """Start the controllers. They end with the plane.

        Args:
            plane: Where.
            namespace: Namespace of the Applications.
            resync: Seconds between two polls of the repository.
        """
        self._plane = plane
        self._resync = resync
        self.namespace = namespace
        self._folder = plane.folder / "argocd"
        self._links = self._make_links()
        self._has_sets = False
        self._plugins = self._folder / "plugins"
        self._plugins.mkdir()
        self.keys = self._folder / "keys"
        self.keys.mkdir()
        self._key_ring = self._folder / "gnupg"
        self._key_ring.mkdir(mode=0o700)
        debian.install("gpg")
        redis, repo, repo_metrics, metrics = free_ports(4)
        self._repo, self._redis = f"{_HOST}:{repo}", f"{_HOST}:{redis}"
        plane.make_namespace(namespace)
        self._configure()
        plane.start(
            "redis",
            str(plane.program("redis-server")),
            *("--port", str(redis), "--bind", _HOST, "--save", "", "--appendonly", "no"),
            *("--dir", str(self._folder)),
        )
        self._start(
            "argocd-repo-server",
            f"--address={_HOST}",
            f"--port={repo}",
            f"--metrics-address={_HOST}",
            f"--metrics-port={repo_metrics}",
            f"--redis={self._redis}",
            # No certificate authority, since TLS is off.
            "--disable-tls",
            "--client-ca-path=",
        )
        self._start(
            self.user,
            f"--namespace={namespace}",
            f"--repo-server={self._repo}",
            "--repo-server-plaintext",
            f"--redis={self._redis}",
            f"--metrics-port={metrics}",
            f"--app-resync={resync}",
            "--app-resync-jitter=0",
            # The longest delay of self-healing, which grows with each attempt.
            "--self-heal-backoff-cap-seconds=5",
        )
        for port in (repo, metrics):
            plane.processes.wait_until(partial(plane.listens, port), "Argo CD listens")

    def _make_links(self) -> Path:
        """Link one program under several names: Argo CD selects the component to run by argv[0]."""
        folder = self._folder / "bin"
        folder.mkdir(parents=True)
        for name in (
            # Git's askpass program.
            "argocd",
            "argocd-application-controller",
            "argocd-repo-server",
            "argocd-applicationset-controller",
            "argocd-cmp-server",
        ):
            (folder / name).symlink_to(self._plane.program("argocd"))
        for name in ("helm", "kustomize"):
            (folder / name).symlink_to(self._plane.program(name))
        # As in Argo CD's image: it reads what they print, whatever the result.
        for name, command in (("git-verify-wrapper.sh", "git verify-commit"), ("gpg-wrapper.sh", "gpg")):
            (folder / name).write_text(f'#!/bin/sh\n{command} "$@" 2>&1\nexit 0\n')
            (folder / name).chmod(0o755)
        return folder

    def _configure(self) -> None:
        labels = {"app.kubernetes.io/part-of": "argocd"}

        def metadata(name: str) -> Object:
            return {"name": name, "namespace": self.namespace, "labels": labels}

        maps: list[Object] = [
            {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata(name)} for name in _CONFIG_MAPS
        ]
        maps.append(
            {
                "apiVersion": "v1",
                "kind": "ConfigMap",
                "metadata": metadata("argocd-cm"),
                "data": {"timeout.reconciliation": f"{self._resync}s", "timeout.reconciliation.jitter": "0s"},
            }
        )
        secret: Object = {
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": metadata("argocd-secret"),
            "stringData": {"server.secretkey": secrets.token_hex(16)},
        }
        project: Object = {
            "apiVersion": _GROUP,
            "kind": "AppProject",
            "metadata": {"name": "default", "namespace": self.namespace},
            "spec": {
                "sourceRepos": ["*"],
                "destinations": [{"namespace": "*", "server": "*"}],
                "clusterResourceWhitelist": [{"group": "*", "kind": "*"}],
            },
        }
        for obj in [*maps, secret, project]:
            self._plane.client.create(obj)

    def _start(self, name: str, *arguments: str) -> None:
        folder = self._plane.folder / "data" / name
        folder.mkdir()
        env = {
            "ARGOCD_FAKE_IN_CLUSTER": "true",
            "ARGOCD_GNUPGHOME": str(self._key_ring),
            "ARGOCD_GPG_DATA_PATH": str(self.keys),
            "ARGOCD_TLS_DATA_PATH": str(self._folder),
            "ARGOCD_SSH_DATA_PATH": str(self._folder),
            "ARGOCD_PLUGINSOCKFILEPATH": str(self._plugins),
            "ARGOCD_ASK_PASS_SOCK": str(self._folder / f"{name}.sock"),
            "KUBECONFIG": str(self._plane.kubeconfig_for(name)),
            "HOME": str(folder),
            "TMPDIR": str(folder),
            "PATH": f"{self._links}{os.pathsep}{os.environ['PATH']}",
        }
        self._plane.start(name, str(self._links / name), *arguments, env=env)

    def start_application_sets(self) -> None:
        """Start the controller of ApplicationSets unless it is running."""
        if self._has_sets:
            return
        self._has_sets = True
        metrics, probe, webhook = free_ports(3)
        self._start(
            "argocd-applicationset-controller",
            f"--namespace={self.namespace}",
            f"--metrics-addr={_HOST}:{metrics}",
            f"--probe-addr={_HOST}:{probe}",
            f"--webhook-addr={_HOST}:{webhook}",
            f"--argocd-repo-server={self._repo}",
            "--repo-server-plaintext",
            "--enable-leader-election=false",
        )
        self._plane.processes.wait_until(
            partial(self._plane.listens, probe), "the controller of ApplicationSets listens"
        )

    def start_plugin(self, config: Path, programs: Path) -> None:
        """Start a Config Management Plugin next to the repository server, like a sidecar.

        Args:
            config: Folder of its plugin.yaml.
            programs: Folder of the programs that it calls, in addition to those of the system.
        """
        folder = self._plane.folder / "data" / "argocd-cmp-server"
        folder.mkdir()
        env = {
            "ARGOCD_PLUGINSOCKFILEPATH": str(self._plugins),
            "ARGOCD_CMP_WORKDIR": str(folder),
            "HOME": "/nonexistent",
            "TMPDIR": str(folder),
            "PATH": f"{programs}{os.pathsep}/usr/bin{os.pathsep}/bin",
        }
        program = str(self._links / "argocd-cmp-server")
        self._plane.start("argocd-cmp-server", program, "--config-dir-path", str(config), env=env)
        self._plane.processes.wait_until(lambda: any(self._plugins.glob("*.sock")), "the plugin listens")

    def application(
        self, name: str, repository: str, path: str, namespace: str, *, self_heal: bool = True, prune: bool = True
    ) -> Object:
        """Return an Application in the project without restrictions.

        Args:
            name: Its name.
            repository: URL.
            path: Folder in it.
            namespace: Namespace of its objects.
            self_heal: Whether to revert changes by others.
            prune: Whether to delete objects that are no longer in the repository.
        """
        return {
            "apiVersion": _GROUP,
            "kind": "Application",
            "metadata": {
                "name": name,
                "namespace": self.namespace,
                "finalizers": ["resources-finalizer.argocd.argoproj.io"],
            },
            "spec": {
                "project": "default",
                "source": {"repoURL": repository, "path": path, "targetRevision": "main"},
                "destination": {"server": "https://kubernetes.default.svc", "namespace": namespace},
                "syncPolicy": {"automated": {"prune": prune, "selfHeal": self_heal}},
            },
        }

    def refresh(self, name: str) -> None:
        """Refresh an Application from its repository and the cluster now."""
        annotations = {"argocd.argoproj.io/refresh": "normal"}
        self._plane.client.patch(APPLICATION, name, self.namespace, {"metadata": {"annotations": annotations}})

    def wait_synced(self, name: str, revision: str, *, healthy: bool = True, timeout: float = PATIENCE) -> Object:
        """Wait until an Application has synced a commit.

        Args:
            name: Its name.
            revision: The commit.
            healthy: Whether its objects must also be healthy.
            timeout: Seconds.

        Returns:
            The Application.

        Raises:
            TimeoutError: It did not sync in time.
        """
        check = partial(_synced, revision=revision, healthy=healthy)
        return self.wait(name, check, f"synced to {revision}", timeout)

    def wait(self, name: str, check: Callable[[Object], bool], what: str, timeout: float = PATIENCE) -> Object:
        """Wait until an Application passes a check, and refresh it repeatedly.

        An Application that is already polling the repository has not seen the newest commit, and drops the
        refresh request.

        Args:
            name: its name.
            check: whether it has the expected state.
            what: the expected state, for the error.
            timeout: seconds.

        Raises:
            TimeoutError: it did not reach the state in time.
        """
        deadline = time.monotonic() + timeout
        while True:
            self.refresh(name)
            left = deadline - time.monotonic()
            try:
                return self._plane.client.wait(APPLICATION, name, self.namespace, check, what, min(_AGAIN_S, left))
            except TimeoutError:
                if left <= _AGAIN_S:
                    raise


def _synced(application: Object, revision: str, healthy: bool) -> bool:
    status = application.get("status", {})
    sync = status.get("sync", {})
    operation = status.get("operationState", {})
    return (
        sync.get("status") == "Synced"
        and sync.get("revision") == revision
        and operation.get("phase") == "Succeeded"
        and (not healthy or status.get("health", {}).get("status") == "Healthy")
    )
