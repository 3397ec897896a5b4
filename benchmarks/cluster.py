"""`python -m benchmarks.cluster`: measure the load of many apps on a cluster, synced by Argo CD and by Flux.

Uses the control plane of the cluster tests: build it first with `make cluster-tools` (`make bench-cluster` does).
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import yaml

from benchmarks.workload import Object, write_repository
from kaigen.config.load import load_config
from kaigen.pipeline.run import render
from tests.cluster import world
from tests.cluster.argocd import APPLICATION, ArgoCD
from tests.cluster.client import is_true, kind_of
from tests.cluster.flux import GIT_REPOSITORY, KUSTOMIZATION, SECRET, Flux
from tests.cluster.git import Repository
from tests.cluster.plane import Plane

NAMESPACE = "ml"


@dataclass(frozen=True, slots=True)
class Pass:
    """One sync of the whole repository.

    Attributes:
        seconds: time until every app was in the cluster and healthy.
        requests: requests of the syncer to the API server, without leases and events.
        writes: requests that may have changed something.
        objects: writes to the apps' objects.
    """

    seconds: float
    requests: int
    writes: int
    objects: int


@dataclass(frozen=True, slots=True)
class Result:
    """The measurements of one syncer.

    Attributes:
        syncer: its name.
        apps: number of apps.
        rendered: number of rendered objects, including those of the syncer.
        kept: number of objects in the cluster at the end, by kind.
        first: the sync into an empty cluster.
        second: the sync of another commit that changes no app.
    """

    syncer: str
    apps: int
    rendered: int
    kept: Mapping[str, int]
    first: Pass
    second: Pass


class Tree:
    """A repository of many apps, rendered for one of the syncers.

    Attributes:
        apps: number of apps.
        namespace: the namespace of the apps.
        labels: label selector of the syncer's objects for them.
        files: content by path.
    """

    def __init__(self, folder: Path, apps: int, namespace: str, gitops: Object) -> None:
        write_repository(folder, apps)
        config = yaml.safe_load((folder / "kaigen.yaml").read_text())
        label = {"bench": namespace}
        config |= {"namespace": namespace}
        config["gitops"] = {"project": namespace, "labels": label, "tenancy": {"namespaces": True}, **gitops}
        (folder / "kaigen.yaml").write_text(yaml.safe_dump(config))
        made = render((), load_config(folder))
        self.apps, self.namespace = apps, namespace
        self.labels = f"bench={namespace}"
        self.files = {f"rendered/{path}": data.decode() for path, data in made.items()}

    def read(self, start: str = "") -> list[Object]:
        """Return the objects of the files whose path in the tree starts with `start`."""
        return [
            yaml.safe_load(text)
            for path, text in self.files.items()
            if path.startswith(f"rendered/{start}") and not path.endswith(("kustomization.yaml", "-index"))
        ]


def measure_argocd(plane: Plane, argocd: ArgoCD, scratch: Path, apps: int, namespace: str, timeout: float) -> Result:
    """Sync a repository of many apps with Argo CD, twice.

    Args:
        plane: the control plane.
        argocd: the syncer.
        scratch: folder for specs and repository.
        apps: number of apps.
        namespace: the namespace of the apps; the sync creates it.
        timeout: longest time of a sync in seconds.

    Raises:
        TimeoutError: a sync took longer.
    """
    repository = Repository(scratch / "argocd-git")
    tree = Tree(scratch / "argocd", apps, namespace, {"repository": repository.url, "argocd": {}})

    def sync(number: int) -> tuple[Callable[[], int], Callable[[], None]]:
        revision = repository.commit({**tree.files, "NUMBER": str(number)})

        def begin() -> None:
            for obj in tree.read("_argocd/bootstrap/"):
                plane.client.apply(obj)
            for obj in tree.read("_argocd/argocd-cm.yaml"):
                plane.client.apply(obj, manager="kaigen")
            for found in plane.client.objects(APPLICATION, argocd.namespace, tree.labels):
                argocd.refresh(found["metadata"]["name"])

        def ready() -> int:
            return sum(
                found.get("status", {}).get("sync", {}).get("status") == "Synced"
                and found["status"]["sync"].get("revision") == revision
                and found["status"].get("health", {}).get("status") == "Healthy"
                # An object can exist and be healthy before the operation that created it has finished.
                and found["status"].get("operationState", {}).get("phase") == "Succeeded"
                and "operation" not in found
                for found in plane.client.objects(APPLICATION, argocd.namespace, tree.labels)
            )

        return ready, begin

    # One Application per app, one for the namespace, and the root.
    return _measure(plane, "Argo CD", argocd.user, tree, apps + 2, sync, timeout)


def measure_flux(plane: Plane, flux: Flux, scratch: Path, apps: int, namespace: str, timeout: float) -> Result:
    """Do the same as `measure_argocd` with Flux."""
    gitops = {"repository": flux.url(namespace), "flux": {"interval": "1h", "secret": SECRET}}
    tree = Tree(scratch / "flux", apps, namespace, gitops)

    def sync(number: int) -> tuple[Callable[[], int], Callable[[], None]]:
        revision = flux.commit(namespace, {**tree.files, "NUMBER": str(number)})

        def begin() -> None:
            for obj in tree.read("_flux/bootstrap/"):
                plane.client.apply(obj)
            flux.fetch(GIT_REPOSITORY, namespace)

        def ready() -> int:
            return sum(
                found.get("status", {}).get("lastAppliedRevision") == revision and is_true(found, "Ready")
                for found in plane.client.objects(KUSTOMIZATION, flux.namespace, tree.labels)
            )

        return ready, begin

    # One Kustomization per app, one for the namespace, and two of the bootstrap.
    return _measure(plane, "Flux", flux.user, tree, apps + 3, sync, timeout)


def run(name: str, apps: int, timeout: float) -> Result:
    """Measure one syncer on a control plane of its own that has room for every Job at once."""
    with tempfile.TemporaryDirectory(prefix="kaigen-bench-") as scratch, Plane() as plane:
        capacity = {"cpu": "20k", "memory": "200Ti", "ephemeral-storage": "9Ti", "pods": "5000"}
        plane.add_node(world.node("large", capacity={**capacity, "nvidia.com/gpu": "5000"}))
        if name == "argocd":
            return measure_argocd(plane, ArgoCD(plane, resync=600), Path(scratch), apps, NAMESPACE, timeout)
        flux = Flux(plane, concurrent=20)
        try:
            return measure_flux(plane, flux, Path(scratch), apps, NAMESPACE, timeout)
        finally:
            flux.close()


SYNCERS = ("argocd", "flux")
Sync = Callable[[int], tuple[Callable[[], int], Callable[[], None]]]
"""Commits a number; returns a function that counts the ready apps and one that starts the sync."""


def _measure(plane: Plane, name: str, user: str, tree: Tree, expected: int, sync: Sync, timeout: float) -> Result:
    passes = []
    for number in (1, 2):
        ready, begin = sync(number)
        mark, began = plane.audit.mark(), time.monotonic()
        begin()
        while (count := ready()) != expected:
            if time.monotonic() - began > timeout:
                raise TimeoutError(f"{name}: {count} of {expected} are ready after {timeout:g} s")
            time.sleep(0.1 if tree.apps < 100 else 1.0)
        seconds = time.monotonic() - began
        own = [request for request in plane.audit.requests(mark) if request.user == user]
        writes = [request for request in own if request.writes]
        passes.append(Pass(seconds, len(own), len(writes), sum(each.namespace == tree.namespace for each in writes)))
    kept = {
        kind.rpartition("/")[2]: len(plane.client.objects(kind, tree.namespace))
        for kind in sorted({kind_of(obj) for obj in tree.read(f"{tree.namespace}/")} | {"v1/Pod"})
        if kind != "v1/Namespace"
    }
    return Result(name, tree.apps, len(tree.read()), kept, *passes)


def as_text(result: Result) -> str:
    """A result for a terminal."""
    lines = [f"{result.syncer}: {result.apps} apps, {result.rendered} rendered objects"]
    lines.append("  in the cluster: " + ", ".join(f"{count} {kind}" for kind, count in result.kept.items()))
    for name, each in (("first sync", result.first), ("second sync", result.second)):
        lines.append(
            f"  {name}: {each.seconds:.0f} s, {each.requests} requests, {each.writes} writes, "
            f"{each.objects} of them to the apps' objects"
        )
    return "\n".join(lines)


def main() -> int:
    """Run the benchmark.

    Returns:
        0 if no second sync wrote to an object of an app, else 1.
    """
    parser = argparse.ArgumentParser(prog="python -m benchmarks.cluster", description=__doc__)
    parser.add_argument("--apps", type=int, default=500, metavar="N", help="number of apps (default: 500)")
    parser.add_argument("--syncers", nargs="+", choices=SYNCERS, default=SYNCERS)
    parser.add_argument("--timeout", type=float, default=1800, metavar="S", help="seconds per sync (default: 1800)")
    options = parser.parse_args()
    touched = 0
    for name in options.syncers:
        result = run(name, options.apps, options.timeout)
        print(as_text(result), flush=True)
        touched += result.second.objects
    return 1 if touched else 0


if __name__ == "__main__":
    sys.exit(main())
