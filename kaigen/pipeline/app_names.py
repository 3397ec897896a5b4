"""Names of apps on the command line, and the error of a name that no app has."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from kaigen.diagnostics.errors import InputError
from kaigen.diagnostics.suggest import did_you_mean

_MOST_LISTED = 20


def unknown_app(name: str, apps: Iterable[tuple[str, str]]) -> InputError:
    """Return the error of a name on the command line that no app has.

    Args:
        name: `NAME` or `NAMESPACE/NAME`.
        apps: namespace and name of every app.
    """
    every = sorted(set(apps))
    full = [f"{namespace}/{own}" for namespace, own in every]
    names = sorted({own for _, own in every})
    listed = ", ".join((full if "/" in name else names)[:_MOST_LISTED]) or "none"
    hint = did_you_mean(name, full if "/" in name else names) or f"apps: {listed}"
    return InputError.of("KG0716", f"no app `{name}`", hint=hint)


def check_names(names: Iterable[str], apps: Sequence[tuple[str, str]]) -> None:
    """Check that each name on the command line is that of an app.

    Args:
        names: each `NAME` or `NAMESPACE/NAME`.
        apps: namespace and name of every app.

    Raises:
        InputError: there is no such app.
    """
    for name in names:
        if not any(name in (own, f"{namespace}/{own}") for namespace, own in apps):
            raise unknown_app(name, apps)
