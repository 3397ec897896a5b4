"""Argo CD and Flux with one interface: each syncs the manifests of apps from a repository of a test."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import partial
from pathlib import Path

import pytest

from kaigen.pipeline.result import Compiled
from tests.cluster.argocd import APPLICATION, ArgoCD
from tests.cluster.client import Object
from tests.cluster.flux import KUSTOMIZATION, Flux
from tests.cluster.git import Repository
from tests.cluster.plane import Plane
from tests.cluster.processes import wait_until


class Syncer:
    """One of the two GitOps controllers, syncing a repository of the test."""

    user = ""

    def __init__(self, plane: Plane, namespace: str) -> None:
        self.plane, self.namespace = plane, namespace
        self.synced: set[str] = set()
        self._round = 0

    def _name(self, app: str) -> str:
        return f"{self.namespace}-{app}"

    def begin(self, apps: Mapping[str, Compiled]) -> str:
        """Commit only the apps' manifests, and start to sync them.

        Returns:
            The revision.
        """
        raise NotImplementedError

    def wait(self, app: str, revision: str) -> None:
        """Wait until an app is synced to a revision and healthy."""
        raise NotImplementedError

    def publish(self, apps: Mapping[str, Compiled]) -> None:
        """Like ``begin``, and wait for every app."""
        revision = self.begin(apps)
        for app in apps:
            self.wait(app, revision)

    def reconcile(self, app: str, number: int) -> None:
        """Request a comparison of an app with the cluster now."""
        raise NotImplementedError

    def has_reconciled(self, app: str, number: int) -> bool:
        """Return whether that comparison is done."""
        raise NotImplementedError

    def remove(self, app: str) -> None:
        """Delete an app and its objects, and wait until they are gone."""
        raise NotImplementedError

    def writes(self, mark: int) -> list[str]:
        """Return its changes in the apps' namespace since a mark."""
        found = self.plane.audit.writes_since(mark, namespace=self.namespace, user=self.user)
        return [f"{entry.verb} {entry.resource}/{entry.name}" for entry in found]

    def let_pass(self, apps: Iterable[str], rounds: int) -> None:
        """Compare each app with the cluster that many more times."""
        waiting = list(apps)
        for _ in range(rounds):
            self._round += 1
            for app in waiting:
                self.reconcile(app, self._round)
            for app in waiting:
                wait_until(partial(self.has_reconciled, app, self._round), f"{app} was compared")


def _manifests(apps: Mapping[str, Compiled]) -> dict[str, str]:
    return {path: data.decode() for item in apps.values() for path, data in item.files("manifests").items()}


def _folder(namespace: str, app: str) -> str:
    return f"{namespace}/{app}/manifests"


class ArgoSyncer(Syncer):
    """Argo CD: one Application per app."""

    user = ArgoCD.user

    def __init__(self, plane: Plane, namespace: str, argocd: ArgoCD, tmp_path: Path) -> None:
        super().__init__(plane, namespace)
        self.argocd = argocd
        self.repository = Repository(tmp_path / "repository")

    def begin(self, apps: Mapping[str, Compiled]) -> str:
        """See ``Syncer``."""
        revision = self.repository.commit(_manifests(apps))
        for app in apps:
            path = _folder(self.namespace, app)
            self.plane.client.apply(self.argocd.application(self._name(app), self.repository.url, path, self.namespace))
            self.synced.add(app)
        return revision

    def wait(self, app: str, revision: str) -> None:
        """See ``Syncer``."""
        self.argocd.wait_synced(self._name(app), revision)

    def reconcile(self, app: str, number: int) -> None:
        """See ``Syncer``."""
        # A hard one forgets the manifests that were built before.
        how = {"argocd.argoproj.io/refresh": "hard" if number % 2 else "normal"}
        self.plane.client.patch(APPLICATION, self._name(app), self.argocd.namespace, {"metadata": {"annotations": how}})

    def has_reconciled(self, app: str, number: int) -> bool:
        """See ``Syncer``."""
        metadata = self.plane.client.get(APPLICATION, self._name(app), self.argocd.namespace)["metadata"]
        return "argocd.argoproj.io/refresh" not in metadata.get("annotations", {})

    def remove(self, app: str) -> None:
        """See ``Syncer``."""
        self.synced.discard(app)
        self.plane.client.delete(APPLICATION, self._name(app), self.argocd.namespace)
        self.plane.client.wait_gone(APPLICATION, self._name(app), self.argocd.namespace)


class FluxSyncer(Syncer):
    """Flux: one Kustomization per app."""

    user = Flux.user

    def __init__(self, plane: Plane, namespace: str, flux: Flux) -> None:
        super().__init__(plane, namespace)
        self.flux = flux
        self.checks: list[Object] = []
        """Health checks of kinds that Flux does not know, or knows otherwise."""

    def begin(self, apps: Mapping[str, Compiled]) -> str:
        """See ``Syncer``."""
        revision = self.flux.publish(self.namespace, _manifests(apps))
        for app in apps:
            path = _folder(self.namespace, app)
            body = self.flux.kustomization(self._name(app), self.namespace, path, self.namespace)
            body["spec"]["healthCheckExprs"] = self.checks
            self.plane.client.apply(body)
            self.synced.add(app)
        return revision

    def wait(self, app: str, revision: str) -> None:
        """See ``Syncer``."""
        self.flux.wait_ready(self._name(app), revision)

    def reconcile(self, app: str, number: int) -> None:
        """See ``Syncer``."""
        how = {"reconcile.fluxcd.io/requestedAt": f"round-{number}"}
        self.plane.client.patch(KUSTOMIZATION, self._name(app), self.flux.namespace, {"metadata": {"annotations": how}})

    def has_reconciled(self, app: str, number: int) -> bool:
        """See ``Syncer``."""
        status = self.plane.client.get(KUSTOMIZATION, self._name(app), self.flux.namespace)["status"]
        return bool(status.get("lastHandledReconcileAt") == f"round-{number}")

    def remove(self, app: str) -> None:
        """See ``Syncer``."""
        self.synced.discard(app)
        self.plane.client.delete(KUSTOMIZATION, self._name(app), self.flux.namespace)
        self.plane.client.wait_gone(KUSTOMIZATION, self._name(app), self.flux.namespace)


def make_syncer(request: pytest.FixtureRequest, name: str, plane: Plane, namespace: str, folder: Path) -> Syncer:
    """Return a syncer by name.

    Args:
        request: of the fixture that asks; the controllers are fixtures themselves.
        name: ``argocd`` or ``flux``.
        plane: where it works.
        namespace: where the apps go.
        folder: for the repository.
    """
    running = request.getfixturevalue(name)
    if isinstance(running, ArgoCD):
        return ArgoSyncer(plane, namespace, running, folder)
    return FluxSyncer(plane, namespace, running)
