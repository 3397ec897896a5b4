"""Conditions of claims of volumes."""

from __future__ import annotations

from msgspec import Struct

from kaigen.config.tenant_settings import Tenant
from kaigen.kubernetes.manifest import mapping
from kaigen.tenancy.cel import at
from kaigen.tenancy.condition import Refusal

_ANNOTATION = "volume.beta.kubernetes.io/storage-class"
"""The annotation that overrides the storage class of a claim (source: Kubernetes, well-known annotations)."""


class NamedVolume(Struct, frozen=True):
    """A claim that names its volume if its storage class is empty: it would get any volume that no claim has."""

    grant: str = ""

    def refusals(self, value: object, tenant: Tenant) -> list[Refusal]:
        """Refuse an empty class without a volume."""
        claim = mapping(value)
        spec = mapping(claim.get("spec"))
        noted = mapping(mapping(claim.get("metadata")).get("annotations")).get(_ANNOTATION)
        if "" not in (spec.get("storageClassName"), noted) or spec.get("volumeName"):
            return []
        path = ("spec", "storageClassName") if spec.get("storageClassName") == "" else ("metadata", "annotations")
        return [Refusal("", path)]

    def passes(self, value: str, tenant: Tenant) -> str:
        """Compare the class and the volume."""
        classes = (
            f"{at(value, ('spec', 'storageClassName'))}.orValue('x')",
            f"{at(value, ('metadata', 'annotations', _ANNOTATION))}.orValue('x')",
        )
        named = " && ".join(f"{each} != ''" for each in classes)
        return f"(({named}) || {at(value, ('spec', 'volumeName'))}.orValue('') != '')"
