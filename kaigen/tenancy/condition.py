"""What a condition is: the check of a value, and the CEL expression that says the same."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple, Protocol

from kaigen.config.tenant_settings import Tenant
from kaigen.core.json_types import FieldPath


class Refusal(NamedTuple):
    """Something that a tenant is not granted.

    Attributes:
        shown: the value in messages, after what the row of the table says.
        path: its place below the checked value.
        what: in place of what the row says; empty for that.
        can_be_granted: by the field of the condition.
        hint: what to do, for what nobody can be granted; empty to add it to what the tenant is granted.
    """

    shown: str
    path: FieldPath = ()
    what: str = ""
    can_be_granted: bool = True
    hint: str = ""


class Condition(Protocol):
    """What the value at the end of a path must be.

    `refusals` and `passes` must agree: the real API server compares them in `tests/cluster/test_tenants.py`.
    """

    @property
    def grant(self) -> str:
        """The field of a tenant that lists what is granted; empty where nothing can be."""

    def refusals(self, value: object, tenant: Tenant) -> Iterable[Refusal]:
        """Return what a value reaches and the tenant is not granted; nothing for a value that it may have."""

    def passes(self, value: str, tenant: Tenant) -> str:
        """Return the expression that the tenant may have the value of an expression."""


def refuse_value(value: object) -> list[Refusal]:
    """Return the refusal of a whole value."""
    return [Refusal(f"`{value}`")]
