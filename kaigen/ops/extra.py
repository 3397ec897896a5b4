"""Checks that the packages of the extra `kaigen[cluster]` are installed."""

from __future__ import annotations

from importlib.util import find_spec

from kaigen.diagnostics.errors import SystemFailure

_PACKAGES = ("kubernetes", "pathspec")


def require_extra() -> None:
    """Check that the packages are installed.

    Raises:
        SystemFailure: one is missing; the message is the command that installs it.
    """
    if any(find_spec(name) is None for name in _PACKAGES):
        raise SystemFailure("working on a cluster needs more packages: pip install 'kaigen[cluster]'")
