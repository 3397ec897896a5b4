"""What the tests of attacks share."""

from __future__ import annotations

from tests.unit.oci.conftest import make_web
from tests.unit.security.hostile import repository

__all__ = ["make_web", "repository"]
