"""Whether a syncer fights what the API server and webhooks add to objects of custom kinds, and to objects in a queue.

The apps are those of the examples that have such objects, as many as it takes for every field that kaigen writes.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import yaml

from kaigen.config.gitops import ArgoCD as ArgoSettings
from kaigen.config.gitops import GitOps
from kaigen.config.settings import Config
from kaigen.gitops.delivery import facts_of
from kaigen.kubernetes.queues import is_queued
from kaigen.kubernetes.schemas import is_cluster_scoped
from kaigen.pipeline.output import sync_tree
from kaigen.pipeline.result import Compiled
from tests.cases import app_cases
from tests.cluster.argocd import APPLICATION, ArgoCD
from tests.cluster.client import Object, is_true
from tests.cluster.flux import KUSTOMIZATION, Flux
from tests.cluster.git import Repository
from tests.cluster.plane import Plane
from tests.cluster.processes import wait_until

API = "kueue.x-k8s.io/v1beta2"
ROUNDS = 3
_WAVE = "argocd.argoproj.io/sync-wave"
_OWN = frozenset(
    ("", "apps", "autoscaling", "batch", "networking.k8s.io", "policy", "rbac.authorization.k8s.io", "storage.k8s.io")
)
"""Groups of Kubernetes itself, which Argo CD knows the defaults of."""


def is_completed(body: Object) -> bool:
    """Return whether a webhook, or the definition of a custom kind, adds fields to an object."""
    return body["apiVersion"].rpartition("/")[0] not in _OWN or is_queued(body)


def fields(value: Any, place: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    """Yield the place of each field of an object, whatever the number of items in its lists."""
    if isinstance(value, dict):
        for key, child in value.items():
            if place[-1] not in ("labels", "annotations", "matchLabels"):
                yield (*place, key)
                yield from fields(child, (*place, key))
    elif isinstance(value, list):
        for child in value:
            yield from fields(child, place)


def chosen() -> dict[str, Compiled]:
    """Return apps that have together every field that any app has in such objects."""
    found: dict[str, tuple[Compiled, set[tuple[str, ...]]]] = {}
    for case in app_cases():
        bodies = [each.body for each in case.compiled.objects if is_completed(each.body)]
        written = {field for body in bodies for field in fields(body, (body["kind"],))}
        if case.compiled.app.name not in found or len(written) > len(found[case.compiled.app.name][1]):
            found[case.compiled.app.name] = (case.compiled, written)
    result: dict[str, Compiled] = {}
    seen: set[tuple[str, ...]] = set()
    for name, (app, written) in sorted(found.items(), key=lambda item: (-len(item[1][1]), item[0])):
        if written - seen:
            result[name] = app
            seen |= written
    return result


def moved(body: Object, namespace: str) -> Object:
    """Return an object in another namespace, and without its wave: no controller makes all kinds healthy here."""
    found: Object = json.loads(json.dumps(body))
    if not is_cluster_scoped(found["apiVersion"], found["kind"]):
        found["metadata"]["namespace"] = namespace
    found["metadata"].get("annotations", {}).pop(_WAVE, None)
    return found


def objects_of(namespace: str) -> dict[str, list[Object]]:
    """Return the objects of the chosen apps for a namespace."""
    return {name: [moved(each.body, namespace) for each in app.objects] for name, app in chosen().items()}


def queue_objects(name: str, queues: list[str]) -> Iterator[Object]:
    """Yield a ClusterQueue with room for everything, and LocalQueues of it."""
    amounts = {"cpu": "1k", "memory": "100Ti", "ephemeral-storage": "100Ti", "nvidia.com/gpu": "1k"}
    resources = [{"name": key, "nominalQuota": amount} for key, amount in amounts.items()]
    group = {"coveredResources": list(amounts), "flavors": [{"name": "default", "resources": resources}]}
    yield {"apiVersion": API, "kind": "ResourceFlavor", "metadata": {"name": "default"}}
    spec: Object = {"namespaceSelector": {}, "resourceGroups": [group]}
    yield {"apiVersion": API, "kind": "ClusterQueue", "metadata": {"name": name}, "spec": spec}
    for each in queues:
        metadata = {"name": each, "namespace": name}
        yield {"apiVersion": API, "kind": "LocalQueue", "metadata": metadata, "spec": {"clusterQueue": name}}


def short_name(namespace: str, app: str) -> str:
    """Return the name of what syncs an app: of the end of the namespace, which differs from test to test."""
    return f"{app}-{namespace[-6:]}"


def files_of(apps: Mapping[str, list[Object]]) -> dict[str, str]:
    """Return the files of a repository with a folder for each app."""
    return {
        f"{name}/{number}.yaml": json.dumps(body, ensure_ascii=False)
        for name, bodies in apps.items()
        for number, body in enumerate(bodies)
    }


def applications(names: Iterable[str], namespace: str, url: str) -> dict[str, Object]:
    """Return the Application that kaigen writes for each app of these names, in the project without restrictions."""
    settings = GitOps(repository=url, argocd=ArgoSettings())
    result, every = {}, chosen()
    for name in names:
        app = every[name]
        tree = sync_tree([facts_of(app.app, app.objects)], Config(root=Path(), gitops=settings), "manifests")
        (found,) = [
            yaml.safe_load(data)
            for path, data in tree.items()
            if path.startswith("_argocd/apps/") and yaml.safe_load(data).get("spec", {}).get("source")
        ]
        found["spec"]["project"] = "default"
        found["spec"]["source"] |= {"path": name, "targetRevision": "main"}
        found["spec"]["destination"]["namespace"] = namespace
        found["metadata"] |= {"name": short_name(namespace, name)}
        result[name] = found
    return result


def check_argocd(plane: Plane, argocd: ArgoCD, apps: Mapping[str, list[Object]], namespace: str, folder: Path) -> None:
    """Check that Argo CD sees what it synced as synced, and writes nothing more."""
    repository = Repository(folder / "repository")
    repository.commit(files_of(apps))
    bodies = applications(apps, namespace, repository.url)
    for body in bodies.values():
        plane.client.apply(body)
    names = {app: body["metadata"]["name"] for app, body in bodies.items()}

    def state(app: str) -> Object:
        found: Object = plane.client.get(APPLICATION, names[app], argocd.namespace).get("status", {})
        return found

    def has_synced(app: str) -> bool:
        return bool(state(app).get("operationState", {}).get("phase") == "Succeeded")

    for app in names:
        wait_until(partial(has_synced, app), f"{app} is synced", 180, every=0.5)
    settled = {app: refreshed(plane, argocd, name) for app, name in names.items()}
    mark = plane.audit.mark()
    for _ in range(ROUNDS):
        for name in names.values():
            refreshed(plane, argocd, name)
    differ = {
        app: [f"{each['kind']} {each['name']}" for each in state(app)["resources"] if each.get("status") != "Synced"]
        for app in names
        if state(app)["sync"]["status"] != "Synced"
    }
    assert differ == {}, f"Argo CD sees differences: {differ}"
    writes = [each for each in plane.audit.writes_since(mark, user=argocd.user) if each.namespace != argocd.namespace]
    assert [str(each) for each in writes if each.resource != "events"] == []
    assert {app: len(state(app)["history"]) for app in names} == {app: len(settled[app]["history"]) for app in names}
    for name in names.values():
        plane.client.delete(APPLICATION, name, argocd.namespace)
    for name in names.values():
        plane.client.wait_gone(APPLICATION, name, argocd.namespace)


def refreshed(plane: Plane, argocd: ArgoCD, name: str) -> Object:
    """Have Argo CD compare an Application with the cluster now, from the beginning; return its status."""
    plane.client.patch(
        APPLICATION, name, argocd.namespace, {"metadata": {"annotations": {"argocd.argoproj.io/refresh": "hard"}}}
    )

    def is_done() -> bool:
        metadata = plane.client.get(APPLICATION, name, argocd.namespace)["metadata"]
        return "argocd.argoproj.io/refresh" not in metadata.get("annotations", {})

    wait_until(is_done, f"{name} was compared", 60)
    found: Object = plane.client.get(APPLICATION, name, argocd.namespace)["status"]
    return found


def check_flux(plane: Plane, flux: Flux, apps: Mapping[str, list[Object]], namespace: str) -> None:
    """Check that Flux writes nothing more once it has applied what it syncs."""
    revision = flux.publish(namespace, files_of(apps))
    names = {app: short_name(namespace, app) for app in apps}
    for app, name in names.items():
        body = flux.kustomization(name, namespace, app, namespace)
        body["spec"]["wait"] = False
        plane.client.apply(body)
    for name in names.values():
        flux.wait_ready(name, revision, 180)
    rounds(plane, flux, list(names.values()), "settled")
    mark = plane.audit.mark()
    for number in range(ROUNDS):
        rounds(plane, flux, list(names.values()), f"round-{number}")
    writes = [each for each in plane.audit.writes_since(mark, user=flux.user) if each.namespace != flux.namespace]
    assert [str(each) for each in writes if each.resource != "events"] == []
    for name in names.values():
        plane.client.wait(
            KUSTOMIZATION, name, flux.namespace, partial(is_true, condition="Ready"), "ready between two rounds"
        )
        plane.client.delete(KUSTOMIZATION, name, flux.namespace)
        plane.client.wait_gone(KUSTOMIZATION, name, flux.namespace)


def rounds(plane: Plane, flux: Flux, names: list[str], request: str) -> None:
    """Have Flux compare Kustomizations with the cluster once."""

    def is_done(name: str) -> bool:
        status = plane.client.get(KUSTOMIZATION, name, flux.namespace)["status"]
        return bool(status.get("lastHandledReconcileAt") == request)

    for name in names:
        how = {"metadata": {"annotations": {"reconcile.fluxcd.io/requestedAt": request}}}
        plane.client.patch(KUSTOMIZATION, name, flux.namespace, how)
    for name in names:
        wait_until(partial(is_done, name), f"{name} was compared", 60)
