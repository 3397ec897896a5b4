"""Put the package and the test helpers on the path, and separate the tests that need PyTorch."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
TRAINED = HERE / "trained"
sys.path[:0] = [str(HERE), str(HERE.parent)]


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leaves out the tests that need PyTorch unless they are named, as `make test-chat` does."""
    if collection_path != TRAINED:
        return None
    named = [Path(os.path.abspath(argument.split("::")[0])) for argument in config.args]
    return None if any(path.is_relative_to(TRAINED) for path in named) else True
