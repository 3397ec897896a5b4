"""Fixtures of this folder."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.secrets.repository import Repository


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    """An empty repository whose specs go to the namespace `ml`."""
    made = Repository(tmp_path)
    made.configure()
    return made
