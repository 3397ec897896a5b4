"""Run every property test again and again with new examples, for as long as there is time.

    python -m tools.fuzz [--minutes 60] [PATH ...]

A failure prints the example and the seed that repeats it. `make test` runs the same tests with few examples, which
are always the same in CI.
"""

from __future__ import annotations

import argparse
import os
import random
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).parent.parent
_EXAMPLES = "200"
"""Examples of a test that starts servers, in each round."""
_NOTHING_RAN = 5
"""Exit code of pytest when no test was selected."""


def main() -> int:
    """Run the tests until the time is over or one fails."""
    options = argparse.ArgumentParser(description="Run the property tests with new examples.")
    options.add_argument("--minutes", type=float, default=60)
    options.add_argument("paths", nargs="*", help="files or folders of tests (all)")
    given = options.parse_args()
    until = time.monotonic() + 60 * given.minutes
    rounds = 0
    while rounds == 0 or time.monotonic() < until:
        seed = random.SystemRandom().randrange(2**32)
        rounds += 1
        print(f"round {rounds}: --hypothesis-seed={seed}", flush=True)
        command = [sys.executable, "-m", "pytest", "-q", "-m", "hypothesis", "-n", "auto"]
        done = subprocess.run(
            [*command, f"--hypothesis-seed={seed}", *given.paths],
            cwd=ROOT,
            env={"KAIGEN_FUZZ_EXAMPLES": _EXAMPLES} | os.environ,
            check=False,
        )
        if done.returncode:
            return done.returncode if done.returncode != _NOTHING_RAN else 2
    print(f"{rounds} rounds without a failure")
    return 0


if __name__ == "__main__":
    sys.exit(main())
