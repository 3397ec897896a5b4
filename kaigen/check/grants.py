"""Findings for objects that reach outside their namespace where kaigen.yaml does not allow it."""

from __future__ import annotations

from collections.abc import Iterator

from kaigen.check import codes
from kaigen.compile.builders.buckets import DRIVER_NAMES
from kaigen.config.block_settings import Allowed, matches_glob
from kaigen.config.grants import WantedVolume, ungranted
from kaigen.diagnostics.problem import Problem
from kaigen.kubernetes.manifest import Object, Path, mapping, type_of
from kaigen.kubernetes.system_namespaces import is_system_namespace

_DRIVER_HINT = "add it to `allow.volumes` in kaigen.yaml"


def grant_findings(obj: Object, namespace: str, allow: Allowed) -> Iterator[Problem]:
    """Check the namespace of an object, and what a PersistentVolume mounts.

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


def _volume_findings(spec: Object, namespace: str, allow: Allowed) -> Iterator[Problem]:
    claim = mapping(spec.get("claimRef")).get("namespace") or namespace
    if "hostPath" in spec or "local" in spec:
        path: Path = ("spec", "hostPath" if "hostPath" in spec else "local")
        yield Problem(
            codes.VOLUME_NOT_ALLOWED, "a PersistentVolume must not be a folder of a node", path, "use a claim"
        )
    csi = mapping(spec.get("csi"))
    secrets = dict.fromkeys(
        f"{place}/{reference.get('name')}"
        for key, value in csi.items()
        if str(key).endswith("SecretRef")
        for reference in [mapping(value)]
        for place in [reference.get("namespace")]
        if place != claim
    )
    driver = str(csi.get("driver") or "")
    wanted = WantedVolume(
        str(claim), driver="" if driver in DRIVER_NAMES.values() else driver, secrets=tuple(secrets)
    )
    if missing := ungranted(wanted, allow):
        message = f"kaigen.yaml does not allow {', '.join(missing)}"
        yield Problem(codes.VOLUME_NOT_ALLOWED, message, ("spec", "csi"), _DRIVER_HINT)
