"""Compute a digest of a repository's kinds and patches, for the cache."""

from __future__ import annotations

import os
from hashlib import sha256
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kaigen.config.settings import Config


def extension_digest(config: Config) -> str:
    """Return the digest of all files of the repository's kinds and patches; empty when it has neither."""
    folders = (*config.kinds, *config.patch_files)
    if not folders:
        return ""
    total = sha256()
    for name in sorted(set(folders)):
        top = os.path.join(config.root, name)
        paths = [top]
        for base, inner, names in os.walk(top):
            inner.sort()
            paths += [os.path.join(base, each) for each in sorted(names)]
        for path in paths:
            total.update(f"{os.path.relpath(path, config.root)}\0".encode("utf-8", "surrogateescape"))
            try:
                with open(path, "rb") as file:
                    total.update(sha256(file.read()).digest())
            except OSError:
                continue
    return total.hexdigest()
