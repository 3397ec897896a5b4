"""The Secrets that apps read, as data and as ExternalSecrets."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from kaigen.secrets.commands import comment
from kaigen.secrets.expected import ExpectedSecret
from kaigen.secrets.external import skeleton
from kaigen.secrets.facts import Use
from kaigen.secrets.provider import External
from kaigen.yaml.dump import dump


def secret_data(secret: ExpectedSecret) -> dict[str, Any]:
    """Return a Secret as plain data."""
    maker = secret.maker
    return {
        "namespace": secret.namespace,
        "name": secret.name,
        "type": secret.type,
        "keys": list(secret.keys),
        "allKeys": secret.whole,
        "optional": secret.optional,
        "madeBy": (
            {"kind": maker.source, "app": maker.app, **({"place": str(maker.mark)} if maker.mark else {})}
            if maker
            else None
        ),
        "uses": [_use(use) for use in secret.uses],
    }


def _use(use: Use) -> dict[str, Any]:
    return {
        "app": use.app,
        "object": use.object,
        "keys": list(use.keys),
        "purpose": use.purpose,
        "optional": use.optional,
        **({"place": str(use.mark)} if use.mark else {}),
        **({"field": use.field} if use.field else {}),
    }


def render_json(secrets: Iterable[ExpectedSecret]) -> str:
    """Return the Secrets as a JSON list."""
    return json.dumps([secret_data(secret) for secret in secrets], indent=2, ensure_ascii=False) + "\n"


def render_yaml(secrets: Iterable[ExpectedSecret]) -> str:
    """Return the Secrets as a YAML list."""
    return dump([secret_data(secret) for secret in secrets])


def render_external(secrets: Iterable[ExpectedSecret], external: External) -> str:
    """Return an ExternalSecret for each Secret as one YAML stream; a comment marks those with unknown keys."""
    parts = []
    for secret in secrets:
        lines = comment(secret)
        if secret.whole and external.by_key:
            lines.append("# kaigen does not know its keys: add an entry to `spec.data` for each.")
        parts.append("---\n" + "".join(f"{line}\n" for line in lines) + dump(skeleton(secret, external)))
    return "".join(parts)
