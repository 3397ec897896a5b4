"""Compute a digest of a repository's kinds and patches, for the cache."""

from __future__ import annotations

import os
from hashlib import sha256
from stat import S_ISREG
from typing import TYPE_CHECKING

from kaigen.files import walk

LARGEST_FILE = 16 << 20
"""Bytes of a file that are read; links, devices and pipes are not read at all."""

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
        for base, inner, names in walk(top):
            inner.sort()
            paths += [os.path.join(base, each) for each in sorted(names)]
        for path in paths:
            total.update(f"{os.path.relpath(path, config.root)}\0".encode("utf-8", "surrogateescape"))
            try:
                found = os.lstat(path)
                if S_ISREG(found.st_mode) and found.st_size <= LARGEST_FILE:
                    with open(path, "rb") as file:
                        total.update(sha256(file.read()).digest())
                else:
                    total.update(f"{found.st_mode} {found.st_size} {found.st_mtime_ns}".encode())
            except OSError:
                continue
    return total.hexdigest()
