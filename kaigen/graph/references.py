"""What an object names: claims, config, accounts, pods, and the markers that it waits for or writes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from kaigen.check.pods import Object, PodTemplate, containers, entries, group_of, mapping, pod_templates
from kaigen.check.relations import relations_of
from kaigen.compile.builders.buckets import destination_of
from kaigen.compile.builders.frame import LOCATION
from kaigen.graph.model import Relation


class Reference(NamedTuple):
    """One object that another names.

    Attributes:
        kind: of the object that is named.
        namespace: of that object; None for the naming object's own, empty for none.
        name: of that object.
        relation: what it is named for.
    """

    kind: str
    namespace: str | None
    name: str
    relation: Relation


class Marker(NamedTuple):
    """A completion marker that a container waits for or writes.

    Attributes:
        place: where it lies: the claim that is mounted there, or a folder of a bucket, `s3://…`.
        identity: what it says.
    """

    place: str
    identity: str


def references(obj: Object) -> Iterator[Reference]:
    """Every object that an object names; one as often as it is named."""
    for template in pod_templates(obj):
        yield from _pod(template)
    for relation in relations_of(obj):
        yield Reference(relation.kind, relation.namespace, relation.name, Relation.REFERS)
    spec = mapping(obj.get("spec"))
    if obj.get("kind") == "PersistentVolumeClaim":
        yield from _named("PersistentVolume", spec.get("volumeName"), Relation.REFERS)
    elif obj.get("kind") == "PersistentVolume":
        for field, secret in mapping(spec.get("csi")).items():
            if field.endswith("SecretRef"):
                yield from _secret_of_driver(mapping(secret))


def _secret_of_driver(secret: Object) -> Iterator[Reference]:
    name, namespace = secret.get("name"), secret.get("namespace")
    if isinstance(name, str) and isinstance(namespace, str):
        yield Reference("Secret", namespace, name, Relation.READS)


def filled_buckets(objects: Iterable[Object]) -> Mapping[str, str]:
    """The claims on volumes of buckets that kaigen made, by the folder that the downloader is told."""
    found = {}
    for obj in objects:
        metadata = mapping(obj.get("metadata"))
        location = mapping(metadata.get("annotations")).get(LOCATION)
        claim = mapping(mapping(obj.get("spec")).get("claimRef")).get("name")
        if isinstance(location, str) and isinstance(claim, str):
            found[destination_of(location)] = claim
    return found


def _pod(template: PodTemplate) -> Iterator[Reference]:
    spec = template.spec
    yield from _named("ServiceAccount", spec.get("serviceAccountName"), Relation.RUNS_AS)
    for _, secret in entries(spec.get("imagePullSecrets")):
        yield from _named("Secret", secret.get("name"), Relation.PULLS)
    for _, claim in entries(spec.get("resourceClaims")):
        yield from _named("ResourceClaim", claim.get("resourceClaimName"), Relation.REFERS)
        yield from _named("ResourceClaimTemplate", claim.get("resourceClaimTemplateName"), Relation.REFERS)
    for _, volume in entries(spec.get("volumes")):
        yield from _volume(volume)
    for container in containers(template):
        for _, source in entries(container.body.get("envFrom")):
            yield from _named("ConfigMap", mapping(source.get("configMapRef")).get("name"), Relation.READS)
            yield from _named("Secret", mapping(source.get("secretRef")).get("name"), Relation.READS)
        for _, variable in entries(container.body.get("env")):
            source = mapping(variable.get("valueFrom"))
            yield from _named("ConfigMap", mapping(source.get("configMapKeyRef")).get("name"), Relation.READS)
            yield from _named("Secret", mapping(source.get("secretKeyRef")).get("name"), Relation.READS)


def _volume(volume: Object) -> Iterator[Reference]:
    claim = mapping(volume.get("persistentVolumeClaim"))
    yield from _named("PersistentVolumeClaim", claim.get("claimName"), Relation.MOUNTS)
    sources = [volume, *(source for _, source in entries(mapping(volume.get("projected")).get("sources")))]
    for source in sources:
        yield from _named("ConfigMap", mapping(source.get("configMap")).get("name"), Relation.READS)
        secret = mapping(source.get("secret"))
        # A volume names its Secret otherwise than every other field does.
        yield from _named("Secret", secret.get("secretName", secret.get("name")), Relation.READS)


def _named(kind: str, name: object, relation: Relation) -> Iterator[Reference]:
    if isinstance(name, str) and name:
        yield Reference(kind, None, name, relation)


def made_secret(obj: Object) -> str | None:
    """Name of the Secret that a controller makes of an object, as of an ExternalSecret; None for others."""
    name = mapping(obj.get("metadata")).get("name")
    spec = mapping(obj.get("spec"))
    match group_of(obj), obj.get("kind"):
        case "external-secrets.io", "ExternalSecret":
            name = mapping(spec.get("target")).get("name") or name
        case "bitnami.com", "SealedSecret":
            name = mapping(mapping(spec.get("template")).get("metadata")).get("name") or name
        case _:
            return None
    return name if isinstance(name, str) else None


def markers(obj: Object, command: str) -> Iterator[Marker]:
    """The completion markers of an object's containers.

    Args:
        obj: the object.
        command: the downloader's command, as `kaigen.compile.builders.weights` writes it: `fetch` writes a
            marker, `wait` waits for it.
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
                    if _holds(mount.get("mountPath"), folder)
                ),
                None,
            )
            place = folder if folder.startswith("s3://") else claim
            if identity and isinstance(place, str):
                yield Marker(place, identity)


def _option(arguments: list[object], name: str) -> str:
    found = (text for text in arguments if isinstance(text, str) and text.startswith(name))
    return next(found, "").removeprefix(name)


def _holds(mount: object, folder: str) -> bool:
    return isinstance(mount, str) and f"{folder}/".startswith(f"{mount.rstrip('/')}/")
