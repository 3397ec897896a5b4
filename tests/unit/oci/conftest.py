"""Web servers on loopback."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from tests.unit.oci.web import Web, webs


@pytest.fixture
def make_web() -> Iterator[Callable[[], Web]]:
    """Starts web servers whose answers the test chooses."""
    with webs() as make:
        yield make
