"""Check that specs have a token for the gated repositories that they name."""

from __future__ import annotations

from collections.abc import Iterator

from kaigen.compile.context import Context
from kaigen.diagnostics.diagnostic import Diagnostic
from kaigen.kinds.blocks import HubRepository
from kaigen.kinds.repositories import blocks_in
from kaigen.kinds.serving import PulledModel
from kaigen.kinds.spec import Spec


def check_tokens(spec: Spec, context: Context) -> Iterator[Diagnostic]:
    """Yield a warning for each repository that the lock has as gated, and for which the spec has no token."""
    lock = context.lock
    if lock is None or _may_have_token(spec):
        return
    for path, block in blocks_in(spec.block):
        if not isinstance(block, HubRepository | PulledModel) or block.token_secret is not None:
            continue
        locked = lock.of(block)
        if locked is not None and locked.gated:
            yield spec.diagnostic(
                "KG0355",
                f"{block.repo} is gated, and the spec has no token for it",
                (*path, "repo"),
                "set `tokenSecret` to a Secret with a Hub token",
                warning=True,
            )


def _may_have_token(spec: Spec) -> bool:
    """Return whether variables of the pods may contain a token."""
    fields = getattr(spec.block, "spec", None)
    return "HF_TOKEN" in getattr(fields, "env", {}) or bool(getattr(fields, "env_from", ()))
