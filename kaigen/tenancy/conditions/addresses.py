"""The condition of the addresses of Services in the cluster."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct

from kaigen.config.tenant_settings import Tenant
from kaigen.core.json_types import FieldPath
from kaigen.kubernetes.manifest import mapping
from kaigen.tenancy.cel import at, texts
from kaigen.tenancy.condition import Refusal

_FREE = ("", "None")
"""Addresses that name none: the API server chooses one, or the Service has none."""


class ChosenAddress(Struct, frozen=True):
    """A Service, or a template of one, whose address in the cluster the API server chooses.

    Another one could be that of a deleted Service, whose clients still connect to it.
    """

    grant: str = ""

    def refusals(self, value: object, tenant: Tenant) -> Iterator[Refusal]:
        """Refuse each address."""
        spec = mapping(mapping(value).get("spec"))
        for field in ("clusterIP", "clusterIPs"):
            found = spec.get(field)
            listed = found if isinstance(found, list) else [found or ""]
            for number, address in enumerate(listed):
                if address not in _FREE:
                    path: FieldPath = ("spec", field, number) if isinstance(found, list) else ("spec", field)
                    yield Refusal(f"`{address}`", path)

    def passes(self, value: str, tenant: Tenant) -> str:
        """Look for a manager of the field: policies see a Service after the API server chose its address.

        An update may keep the address that it has. No client can hide a field that it sets from `managedFields` of an
        object; those of a template are the client's own.
        """
        spec = at(value, ("spec",))
        free = (
            f"{at(spec, ('clusterIP',))}.orValue('') in {texts(_FREE)}"
            f" && {at(spec, ('clusterIPs',))}.orValue([]).all(a, a in {texts(_FREE)})"
        )
        if value != "object":
            return f"({free})"
        managers = f"{at(value, ('metadata', 'managedFields'))}.orValue([])"
        named = " || ".join(
            f"{at('m', ('fieldsV1', 'f:spec', f'f:{field}'))}.hasValue()" for field in ("clusterIP", "clusterIPs")
        )
        kept = " && ".join(
            f"{at(spec, (field,))} == {at('oldObject', ('spec', field))}" for field in ("clusterIP", "clusterIPs")
        )
        chosen = f"{managers}.size() > 0 && !{managers}.exists(m, {named})"
        return f"(({free}) || ({chosen}) || (request.operation == 'UPDATE' && {kept}))"
