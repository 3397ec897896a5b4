"""Options and fixtures of every test."""

from __future__ import annotations

import gc
import os
from pathlib import Path

import hypothesis
import pytest

from tests import tools
from tests.goldens import Goldens

_APART = tuple(Path(__file__).parent / name for name in ("cluster", "gpu", "site"))
"""Tests that run only if they are named: the cluster takes minutes and gigabytes, `gpu` a GPU, the site MkDocs."""

EXAMPLES = 100 if "KAIGEN_FUZZ_EXAMPLES" in os.environ else 40
"""Examples of a property test: `make fuzz` has more of them, and other ones in each round."""

# No deadline, because the time of an example depends on the machine. CI always uses the same examples, so that a run
# can be repeated. `--hypothesis-profile=thorough` tries more examples.
hypothesis.settings.register_profile("local", deadline=None, max_examples=EXAMPLES)
hypothesis.settings.register_profile("ci", deadline=None, max_examples=EXAMPLES, derandomize=True, print_blob=True)
hypothesis.settings.register_profile("thorough", deadline=None, max_examples=5000)
hypothesis.settings.load_profile("ci" if os.environ.get("CI") else "local")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--update", action="store_true", help="rewrite the golden files instead of comparing")


def pytest_configure(config: pytest.Config) -> None:
    # A process of the tests has a million objects that stay, and Python would search all of them every few thousand new
    # ones for cycles: a quarter of the time of tests that make many. kaigen's own process does without, see `cli.main`.
    gc.set_threshold(100_000, 20, 100)
    if config.getoption("--update") and os.environ.get("CI"):
        raise pytest.UsageError("--update cannot be used in CI")


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers(config: pytest.Config) -> int:
    """Return the number of processes for `-n auto`: one more than there are cores, because many tests wait."""
    return (os.cpu_count() or 1) + 1


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Skip the tests that run only if they are named."""
    if collection_path not in _APART:
        return None
    named = [Path(os.path.abspath(argument.split("::")[0])) for argument in config.args]
    return None if any(path.is_relative_to(collection_path) for path in named) else True


def pytest_collection_finish() -> None:
    """Exclude the tests themselves from garbage collections: they stay until the end."""
    gc.freeze()


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Goldens:
    """Golden files next to the test's own file."""
    return Goldens(request.path.parent, update=request.config.getoption("--update"))


@pytest.fixture(scope="session")
def helm() -> Path:
    """A real Helm, 3.14 or newer."""
    return tools.helm()


@pytest.fixture(scope="session")
def kubectl() -> Path:
    """A real kubectl, 1.35 or newer."""
    return tools.kubectl()
