"""Keys that an app reads and the source of their Secret does not make."""

from __future__ import annotations

from collections.abc import Iterator

from kaigen.diagnostics.diagnostic import Diagnostic, Severity
from kaigen.diagnostics.suggest import did_you_mean
from kaigen.secrets.expected import ExpectedSecret


def missing_keys(secrets: list[ExpectedSecret]) -> Iterator[Diagnostic]:
    """Yield a warning (KG0330) for each key that is read and not made."""
    for secret in secrets:
        maker = secret.maker
        if maker is None or maker.keys is None:
            continue
        where = f" at {maker.mark}" if maker.mark else f" of {maker.app}"
        source = "Secret encrypted with SOPS" if maker.source == "SOPS" else maker.source
        for use in secret.uses:
            for key in use.keys:
                if key in maker.keys or use.optional:
                    continue
                yield Diagnostic(
                    "KG0330",
                    f"`{secret.name}` has no key `{key}`: the {source}{where} does not make it",
                    use.mark,
                    did_you_mean(key, maker.keys) or f"its keys: {', '.join(sorted(maker.keys)) or 'none'}",
                    Severity.WARNING,
                    use.field,
                )
