"""Findings for objects that reach outside their namespace where kaigen.yaml does not allow it."""

from __future__ import annotations

from collections.abc import Iterator

from kaigen.check import codes
from kaigen.config.block_settings import Allowed, matches_glob
from kaigen.config.grants import WantedVolume, find_ungranted, wanted_volume
from kaigen.core.json_types import FieldPath
from kaigen.diagnostics.problem import Problem
from kaigen.kubernetes.manifest import Object, entries, mapping, text, type_of
from kaigen.kubernetes.names import is_system_namespace
from kaigen.kubernetes.pods import pod_templates

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
                path = template.place(("volumes", number, "csi"))
                yield from _source_findings(wanted, path, allow)


def _volume_findings(spec: Object, namespace: str, allow: Allowed) -> Iterator[Problem]:
    claim = mapping(spec.get("claimRef")).get("namespace") or namespace
    if "hostPath" in spec or "local" in spec:
        path: FieldPath = ("spec", "hostPath" if "hostPath" in spec else "local")
        yield Problem(
            codes.VOLUME_NOT_ALLOWED, "a PersistentVolume must not be a folder of a node", path, "use a claim"
        )
    yield from _source_findings(wanted_volume(spec, str(claim)), ("spec", "csi"), allow)


def _source_findings(wanted: WantedVolume, path: FieldPath, allow: Allowed) -> Iterator[Problem]:
    if missing := find_ungranted(wanted, allow):
        message = f"kaigen.yaml does not allow {', '.join(map(str, missing))}"
        yield Problem(codes.VOLUME_NOT_ALLOWED, message, path, _DRIVER_HINT)
