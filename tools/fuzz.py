"""Run every property test again and again with new examples, for as long as there is time.

    python -m tools.fuzz [--minutes 60] [PATH ...]

A failure prints the example and the seed that repeats it. The tests of the chat server run if `make test-chat` has
installed what they need. `make test` and its siblings run the same tests with few examples, which
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
CHAT = ROOT / "runtimes/chat/tests/served"
_CHAT_PYTHON = ROOT / "runtimes/chat/.venv/bin/python"
_EXAMPLES = "200"
"""Examples of a test that starts servers, in each round."""
_PYTEST = ("-m", "pytest", "-q", "-m", "hypothesis")
_NOTHING_RAN = 5
"""Exit code of pytest when no test was selected."""


def main() -> int:
    """Run the tests until the time is over or one fails."""
    options = argparse.ArgumentParser(description="Run the property tests with new examples.")
    options.add_argument("--minutes", type=float, default=60)
    options.add_argument("paths", nargs="*", help="files or folders of tests (all)")
    given = options.parse_args()
    chat = [path for path in given.paths if (ROOT / path).is_relative_to(CHAT)]
    others = [path for path in given.paths if path not in chat]
    commands = []
    if others or not given.paths:
        commands.append([sys.executable, *_PYTEST, "-n", "auto", *others])
    if chat or not given.paths:
        if _CHAT_PYTHON.parent.with_name(".done").exists():
            commands.append([str(_CHAT_PYTHON), *_PYTEST, *(chat or [str(CHAT)])])
        else:
            print("without the chat server: `make test-chat` installs what its tests need")
    if not commands:
        return 2
    until = time.monotonic() + 60 * given.minutes
    rounds = 0
    while rounds == 0 or time.monotonic() < until:
        seed = random.SystemRandom().randrange(2**32)
        rounds += 1
        print(f"round {rounds}: --hypothesis-seed={seed}", flush=True)
        for command in commands:
            done = subprocess.run(
                [*command, f"--hypothesis-seed={seed}"],
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
