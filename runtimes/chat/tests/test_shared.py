"""Files that the images of several runtimes have: each is built from its own folder, so each has a copy."""

from __future__ import annotations

from pathlib import Path

import pytest

RUNTIMES = Path(__file__).parents[2]


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        ("chat/kaigen_chat/framing.py", "ringproxy/kaigen_ringproxy/framing.py"),
        ("chat/kaigen_chat/places.py", "ringproxy/kaigen_ringproxy/places.py"),
        ("chat/tests/smuggling.py", "ringproxy/tests/smuggling.py"),
    ],
)
def test_a_copy_is_equal(ours: str, theirs: str) -> None:
    assert (RUNTIMES / ours).read_bytes() == (RUNTIMES / theirs).read_bytes()
