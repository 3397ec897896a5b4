"""No token of the user, and web servers on loopback."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.oci.conftest import make_web

__all__ = ["make_web"]


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The home folder of a user who has no token."""
    for name in ("HF_TOKEN", "HF_TOKEN_PATH", "HF_HOME", "HF_ENDPOINT", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setattr("kaigen.oci.http.sleep", lambda seconds: None)
    return tmp_path
