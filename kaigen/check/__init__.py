"""Checks of Kubernetes objects against schemas, policies and each other: plain dicts in, findings out."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kaigen.check.policy import check_policy
from kaigen.check.schema_check import check_object

if TYPE_CHECKING:
    from kaigen.check.app_references import check_references

__all__ = [
    "check_object",
    "check_policy",
    "check_references",
]


def __getattr__(name: str) -> object:
    """Import `check_references` at its first use: not every command needs it."""
    if name == "check_references":
        from kaigen.check.app_references import check_references

        return check_references
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
