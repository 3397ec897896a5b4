"""What the tests of pipelines share."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

CheckSchema = Callable[[str, Path], None]


@pytest.fixture
def check_schema() -> CheckSchema:
    """Holds a file against a schema that check-jsonschema ships."""

    def check(schema: str, path: Path) -> None:
        done = subprocess.run(
            [sys.executable, "-m", "check_jsonschema", "--builtin-schema", schema, str(path)],
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr

    return check
