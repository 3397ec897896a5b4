"""The cache folder of the user. Every file in it can be deleted at any time."""

from __future__ import annotations

import os
from functools import cache
from hashlib import sha256
from pathlib import Path

import kaigen

OFF = "off"
"""Value of `KAIGEN_CACHE_DIR` that turns caches off."""


def cache_folder() -> Path | None:
    """Return the folder; None when caches are turned off."""
    chosen = os.environ.get("KAIGEN_CACHE_DIR", "")
    if chosen == OFF:
        return None
    if chosen:
        return Path(chosen)
    home = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    return Path(home) / "kaigen"


@cache
def build_id() -> str:
    """Return a digest of this installation of kaigen: its version, and the sizes and times of its files."""
    parts = [kaigen.__version__]
    waiting = [os.path.dirname(kaigen.__file__)]
    while waiting:
        with os.scandir(waiting.pop()) as entries:
            for entry in entries:
                if entry.is_dir():
                    if entry.name != "__pycache__":
                        waiting.append(entry.path)
                else:
                    found = entry.stat()
                    parts.append(f"{entry.path} {found.st_size} {found.st_mtime_ns}")
    return sha256("\n".join(sorted(parts)).encode("utf-8", "surrogateescape")).hexdigest()


def replace_file(path: Path, content: bytes) -> None:
    """Replace a file of the cache atomically. A failure to write is ignored."""
    temporary = path.with_name(f"{path.name}.{os.getpid()}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        temporary.write_bytes(content)
        temporary.replace(path)
    except OSError:
        return
