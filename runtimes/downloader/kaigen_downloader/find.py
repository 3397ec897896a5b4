"""`find-image`: asks a registry whether it has an image."""

from __future__ import annotations

import contextlib
import threading

from kaigen_downloader.errors import Unavailable
from kaigen_downloader.net import Net
from kaigen_downloader.registry import Registry
from kaigen_downloader.retry import Patience, Retry
from kaigen_downloader.text import say

_TIMEOUT = 60.0
"""Seconds of a connect or a read."""


def find_image(registry: Registry, file: str, patience: Patience) -> None:
    """Write the digest of an image to a file; write nothing if the registry does not have it, or does not show it.

    Args:
        registry: the registry with the reference.
        file: path of the file.
        patience: how often to ask a registry that cannot be reached.

    Raises:
        Failure: the registry cannot be reached, or the file cannot be written.
    """
    retry = Retry(patience, threading.Event())
    net = Net(registry.endpoint, None, timeout=_TIMEOUT, stop=retry.stop, sign=registry.sign)
    with contextlib.closing(net):
        digest, reason = registry.find(net, retry)
    if not digest:
        say(f"not found: {reason}")
        return
    try:
        with open(file, "w", encoding="ascii") as target:
            target.write(f"{digest}\n")
    except OSError as error:
        raise Unavailable(f"cannot write {file}: {error.strerror}") from None
    say(f"found: {registry.name} is {digest}")
