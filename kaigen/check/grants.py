"""Findings for objects that reach outside their namespace where kaigen.yaml does not allow it."""

from __future__ import annotations

import re
from collections.abc import Iterator

from kaigen.check import codes
from kaigen.compile.builders.buckets import DRIVER_NAMES
from kaigen.config.block_settings import Allowed, matches_glob
from kaigen.config.globs import is_granted
from kaigen.config.grants import WantedVolume, ungranted
from kaigen.diagnostics.problem import Problem
from kaigen.kubernetes.manifest import Object, Path, entries, mapping, text, type_of
from kaigen.kubernetes.pods import pod_templates
from kaigen.kubernetes.reach import ATTRIBUTES, OPTIONS, S3_OPTIONS, location, mount_options
from kaigen.kubernetes.system_namespaces import is_system_namespace

_ENDPOINT = "endpoint-url "
_DRIVER_HINT = "add it to `allow.volumes` in kaigen.yaml"


def grant_findings(obj: Object, namespace: str, allow: Allowed) -> Iterator[Problem]:
    """Check the namespace of an object, and what PersistentVolumes and pods mount with CSI drivers.

    Args:
        obj: the object.
        namespace: of the app.
        allow: what kaigen.yaml allows.
    """
    metadata = mapping(obj.get("metadata"))
    field_name = "name" if type_of(obj) == "Namespace" else "namespace"
    place = metadata.get(field_name)
    if isinstance(place, str) and is_system_namespace(place) and not matches_glob(place, allow.namespaces):
        yield Problem(
            codes.SYSTEM_NAMESPACE,
            f"`{place}` is a namespace of Kubernetes or of a cluster service",
            ("metadata", field_name),
            "choose another namespace, or list it in `allow.namespaces` of kaigen.yaml",
        )
    if type_of(obj) == "PersistentVolume":
        yield from _volume_findings(mapping(obj.get("spec")), namespace, allow)
    for template in pod_templates(obj):
        for number, volume in entries(template.spec.get("volumes")):
            if "csi" in volume:
                wanted = wanted_volume(volume, text(metadata.get("namespace")) or namespace, inline=True)
                path = (*template.path, "spec", "volumes", number, "csi")
                yield from _source_findings(wanted, path, allow)


def _volume_findings(spec: Object, namespace: str, allow: Allowed) -> Iterator[Problem]:
    claim = mapping(spec.get("claimRef")).get("namespace") or namespace
    if "hostPath" in spec or "local" in spec:
        path: Path = ("spec", "hostPath" if "hostPath" in spec else "local")
        yield Problem(
            codes.VOLUME_NOT_ALLOWED, "a PersistentVolume must not be a folder of a node", path, "use a claim"
        )
    yield from _source_findings(wanted_volume(spec, str(claim)), ("spec", "csi"), allow)


def _source_findings(wanted: WantedVolume, path: Path, allow: Allowed) -> Iterator[Problem]:
    if missing := ungranted(wanted, allow):
        message = f"kaigen.yaml does not allow {', '.join(map(str, missing))}"
        yield Problem(codes.VOLUME_NOT_ALLOWED, message, path, _DRIVER_HINT)


def wanted_volume(spec: Object, namespace: str, *, inline: bool = False) -> WantedVolume:
    """Return what a CSI volume asks for, without what kaigen sets itself.

    Args:
        spec: of a PersistentVolume, or the volume of a pod.
        namespace: of the pods that mount it.
        inline: whether it is the volume of a pod; its Secret is one of the pod's namespace.
    """
    csi = mapping(spec.get("csi"))
    secrets = dict.fromkeys(
        f"{place}/{reference.get('name')}"
        for key, value in csi.items()
        if str(key).endswith("SecretRef") and not inline
        for reference in [mapping(value)]
        for place in [reference.get("namespace")]
        if place != namespace
    )
    driver = str(csi.get("driver") or "")
    given = mapping(csi.get("volumeAttributes"))
    attributes = [str(key) for key in given if key not in ATTRIBUTES]
    options = [str(each) for each in mount_options(spec, inline=inline)]
    if not inline and "mountOptions" in given:
        attributes.append("mountOptions")
    written = str(given.get("options") or S3_OPTIONS)
    if not written.startswith(S3_OPTIONS):
        attributes.append("options")
    else:
        options += re.split(r"\s+(?=-)", written.removeprefix(S3_OPTIONS).strip())
    servers = [each.removeprefix(_ENDPOINT) for each in options if each.startswith(_ENDPOINT)]
    uri = location(spec, inline=inline).removesuffix("/")
    return WantedVolume(
        namespace,
        " at ".join([uri, *(each.rstrip("/").partition("://")[2] for each in servers)]) if uri else "",
        "" if driver in DRIVER_NAMES.values() else driver,
        tuple(secrets),
        tuple(attributes),
        tuple(each for each in options if each and not is_granted(each, (*OPTIONS, f"{_ENDPOINT}*"))),
    )
