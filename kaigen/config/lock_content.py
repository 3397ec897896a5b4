"""The bytes of `kaigen.lock`, without the models that its parsing needs."""

from __future__ import annotations

from pathlib import Path

from kaigen.config.settings import LOCK_NAME
from kaigen.files import read_file
from kaigen.system.limits import GENERATED_FILE_BYTES

RESTORE = "restore it from Git, or delete it and run `kaigen lock`"


def read_lock(root: Path) -> bytes | None:
    """Return the content of a repository's lock; None without one.

    Raises:
        InputError: it cannot be read, is too large, or is a link that leads out of the repository.
    """
    return read_file(root / LOCK_NAME, root, GENERATED_FILE_BYTES, RESTORE)
