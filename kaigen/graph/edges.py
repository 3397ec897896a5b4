"""The edges of the graph: references, selected pods, and what containers wait for: completion markers and Jobs."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from kaigen.compile.builders.bucket_access import folder_of
from kaigen.compile.builders.frame import LOCATION, READS
from kaigen.graph.model import AppNode, Edge, ExternalNode, ObjectNode, Relation
from kaigen.kubernetes.kind_table import KINDS
from kaigen.kubernetes.manifest import Identity, Object, entries, mapping
from kaigen.kubernetes.pods import containers, pod_templates
from kaigen.kubernetes.references import references_of
from kaigen.kubernetes.secrets import CERT_MANAGER, made_secrets
from kaigen.kubernetes.selectors import pods_of, select_pods, selector_of

if TYPE_CHECKING:
    from kaigen.config.external import ExternalEntry


_HOST = re.compile(r"\{address: ([a-z0-9-]+), port_value: [0-9]+\}")


class Marker(NamedTuple):
    """A completion marker that a container waits for or writes.

    Attributes:
        location: the claim that stores it, or the folder of a bucket, `BUCKET/FOLDER`.
        identity: the content of the marker.
    """

    location: str
    identity: str


def _filled_buckets(objects: Iterable[Object]) -> Mapping[str, str]:
    """Return the claims on bucket volumes that kaigen made, by the folder that the downloader writes to."""
    return {folder: claim for claim, folder in _folders(objects, LOCATION)}


def _read_buckets(objects: Iterable[Object]) -> Mapping[str, str]:
    """Return the folders that apps of other namespaces fill, by the claim of the app that reads them."""
    return dict(_folders(objects, READS))


def _folders(objects: Iterable[Object], annotation: str) -> Iterator[tuple[str, str]]:
    for obj in objects:
        metadata = mapping(obj.get("metadata"))
        location = mapping(metadata.get("annotations")).get(annotation)
        claim = mapping(mapping(obj.get("spec")).get("claimRef")).get("name")
        if isinstance(location, str) and isinstance(claim, str):
            yield claim, folder_of(location)


def _markers(obj: Object, command: str) -> Iterator[Marker]:
    """Yield the completion markers of the containers of an object.

    Args:
        obj: the object.
        command: the downloader's command, as `kaigen.compile.builders.weights` writes it: `fetch` and `put` write a
            marker, and `wait` waits for it.
    """
    for template in pod_templates(obj):
        claims = {
            volume.get("name"): mapping(volume.get("persistentVolumeClaim")).get("claimName")
            for _, volume in entries(template.spec.get("volumes"))
        }
        for container in containers(template):
            arguments = container.body.get("args")
            if not isinstance(arguments, list) or not arguments or arguments[0] != command:
                continue
            identity, folder = (_option(arguments, name) for name in ("--identity=", "--dest="))
            claim = next(
                (
                    claims.get(mount.get("name"))
                    for _, mount in entries(container.body.get("volumeMounts"))
                    if _contains(mount.get("mountPath"), folder)
                ),
                None,
            )
            # The volume of a bucket shows the folder above the revisions.
            location = folder_of(folder).removesuffix(f"/{identity}") if "://" in folder else claim
            if identity and isinstance(location, str):
                yield Marker(location, identity)


class AwaitedJob(NamedTuple):
    """A Job or JobSet that a container waits for, in its own namespace.

    Attributes:
        kind: its kind.
        name: its name.
    """

    kind: str
    name: str


def _awaited_jobs(obj: Object) -> Iterator[AwaitedJob]:
    """Yield the Jobs that the containers of an object wait for, as `kaigen.compile.builders.job_gate` writes them."""
    for template in pod_templates(obj):
        for container in containers(template):
            arguments = container.body.get("args")
            if isinstance(arguments, list) and arguments[:1] == ["wait-job"]:
                yield AwaitedJob(_option(arguments, "--kind="), _option(arguments, "--name="))


def _asked_services(obj: Object) -> Iterator[str]:
    """Yield the Services that an Envoy asks, as `kaigen.compile.builders.envoy` writes them into its arguments."""
    for template in pod_templates(obj):
        for container in containers(template):
            arguments = container.body.get("args")
            if isinstance(arguments, list) and "--config-yaml" in arguments:
                yield from _HOST.findall(str(arguments[arguments.index("--config-yaml") + 1]))


def _option(arguments: list[object], name: str) -> str:
    found = (text for text in arguments if isinstance(text, str) and text.startswith(name))
    return next(found, "").removeprefix(name)


def _contains(mount: object, folder: str) -> bool:
    return isinstance(mount, str) and f"{folder}/".startswith(f"{mount.rstrip('/')}/")


Key = tuple[str, str, str]
"""Kind, namespace and name of an object."""


def find_edges(
    apps: Sequence[AppNode], bodies: Mapping[str, Object], declared: Sequence[ExternalEntry] = ()
) -> tuple[tuple[Edge, ...], tuple[ExternalNode, ...]]:
    """Return the edges between the objects of all apps, and the objects that no app makes.

    Args:
        apps: every app.
        bodies: the objects by the ids of their nodes.
        declared: objects that clusters have although no app makes them.

    Returns:
        Edges in the order of the apps, and external nodes by id.
    """
    return _Edges(apps, bodies, declared).find()


class _Edges:
    """The makers of all objects and markers, by which references are resolved."""

    def __init__(
        self, apps: Sequence[AppNode], bodies: Mapping[str, Object], declared: Sequence[ExternalEntry]
    ) -> None:
        self._apps = apps
        self._declared = declared
        self._bodies = bodies
        self._makers: dict[Key, str] = {}
        self._writers: dict[tuple[str, str, str], str] = {}
        self._read: dict[tuple[str, str], str] = {}
        for app in apps:
            buckets = _filled_buckets(bodies[node.id] for node in app.objects)
            read = _read_buckets(bodies[node.id] for node in app.objects)
            self._read |= {(app.namespace, claim): folder for claim, folder in read.items()}
            for node in app.objects:
                body = bodies[node.id]
                self._makers.setdefault((node.kind, node.namespace, node.name), node.id)
                for marker in (*_markers(body, "fetch"), *_markers(body, "put")):
                    claim = buckets.get(marker.location, marker.location)
                    self._writers.setdefault((node.namespace, claim, marker.identity), node.id)
                    if marker.location in buckets:
                        self._writers.setdefault(("", *marker), node.id)
                for secret in made_secrets(body):
                    # What cert-manager makes for an Ingress is an object that the repository does not have.
                    if secret.source != CERT_MANAGER:
                        self._makers.setdefault(("Secret", node.namespace, secret.name), node.id)

    def find(self) -> tuple[tuple[Edge, ...], tuple[ExternalNode, ...]]:
        """Return every edge and every external node once."""
        edges: dict[Edge, None] = {}
        externals: dict[str, ExternalNode] = {}
        for app in self._apps:
            for node in app.objects:
                edges |= dict.fromkeys(self._references(node, app, externals))
                edges |= dict.fromkeys(self._gates(node, externals))
                edges |= dict.fromkeys(self._selections(node, app))
        return tuple(edges), tuple(sorted(externals.values(), key=lambda node: node.id))

    def _maker_of(self, target: Identity) -> str | None:
        kind, namespace, name = target.kind, target.namespace, target.name
        found = self._makers.get((kind, namespace, name))
        return found if found is not None else self._makers.get((kind, "", name))

    def _references(self, node: ObjectNode, app: AppNode, externals: dict[str, ExternalNode]) -> Iterator[Edge]:
        for reference in references_of(self._bodies[node.id], app.namespace):
            target = self._maker_of(reference.target)
            if target is None:
                row = KINDS.get(reference.target.type)
                if row is not None and row.has_built_in(reference.target.name):
                    continue
                external = self._external(reference.target)
                target = externals.setdefault(external.id, external).id
            if target != node.id:
                yield Edge(node.id, target, Relation(reference.use))
        for name in _asked_services(self._bodies[node.id]):
            service = self._maker_of(Identity("Service", node.namespace, name))
            if service is not None:
                yield Edge(node.id, service, Relation.ASKS)

    def _gates(self, node: ObjectNode, externals: dict[str, ExternalNode]) -> Iterator[Edge]:
        for target, known in self._awaited(node):
            if known is None:
                missing = self._external(target)
                known = externals.setdefault(missing.id, missing).id
            if known != node.id:
                yield Edge(node.id, known, Relation.WAITS)

    def _awaited(self, node: ObjectNode) -> Iterator[tuple[Identity, str | None]]:
        """Yield what the pods of an object wait for, with the id of the node that makes it."""
        for marker in _markers(self._bodies[node.id], "wait"):
            target = Identity("Marker", node.namespace, " ".join(marker))
            folder = self._read.get((node.namespace, marker.location))
            place = (node.namespace, *marker) if folder is None else ("", folder, marker.identity)
            yield target, self._writers.get(place)
        for job in _awaited_jobs(self._bodies[node.id]):
            target = Identity(job.kind, node.namespace, job.name)
            yield target, self._maker_of(target)

    def _selections(self, node: ObjectNode, app: AppNode) -> Iterator[Edge]:
        selector = selector_of(self._bodies[node.id])
        if selector is None:
            return
        for other in app.objects:
            pods = pods_of([self._bodies[other.id]])
            if pods and select_pods(pods, node.namespace, selector):
                yield Edge(node.id, other.id, Relation.SELECTS)

    def _external(self, target: Identity) -> ExternalNode:
        kind, namespace, name = target.kind, target.namespace, target.name
        declared = any(item.is_named(kind, namespace, name) for item in self._declared)
        return ExternalNode(f"external/{kind}/{namespace}/{name}", kind, namespace, name, declared=declared)
