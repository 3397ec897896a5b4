"""Keys that an app reads of a Secret which something in the tree makes without them."""

from __future__ import annotations

from collections.abc import Iterator

from kaigen.diagnostics.diagnostic import Diagnostic, Severity
from kaigen.secrets.expected import ExpectedSecret


def missing_keys(secrets: list[ExpectedSecret]) -> Iterator[Diagnostic]:
    """A warning for each key that is read and not made, at the place that reads it (KG0330)."""
    from kaigen.diagnostics.suggest import did_you_mean

    for secret in secrets:
        maker = secret.maker
        if maker is None or maker.keys is None:
            continue
        place = f" at {maker.mark}" if maker.mark else f" of {maker.app}"
        what = "Secret encrypted with SOPS" if maker.way == "SOPS" else maker.way
        for use in secret.uses:
            for key in use.keys:
                if key in maker.keys or use.optional:
                    continue
                yield Diagnostic(
                    "KG0330",
                    f"`{secret.name}` has no key `{key}`: the {what}{place} does not make it",
                    use.mark,
                    did_you_mean(key, maker.keys) or f"its keys: {', '.join(sorted(maker.keys)) or 'none'}",
                    Severity.WARNING,
                    use.field,
                )
