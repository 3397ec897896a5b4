"""Which apps hold Secrets that SOPS encrypted, and so need somebody in the cluster to decrypt them."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kaigen.compile.app import App


def has_sops(app: App) -> bool:
    """Whether an object of the app is encrypted with SOPS: Flux's `spec.decryption` must then be set."""
    return any("sops" in item.body for item in app.objects)
