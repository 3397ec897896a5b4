"""Without libyaml kaigen cannot read YAML and says how to install it."""

from __future__ import annotations

import subprocess
import sys

WITHOUT_LIBYAML = """
import sys
sys.modules["yaml._yaml"] = None
from kaigen.cli import main
sys.argv = ["kaigen", "validate", "-"]
main()
"""


def test_validate_fails_in_one_line_with_a_hint_and_exit_code_3() -> None:
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_LIBYAML], input="a: 1\n", capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (3, "")
    assert done.stderr == (
        "error: PyYAML was built without libyaml, which kaigen needs to read YAML\n"
        "  = hint: install a PyYAML wheel: pip install --force-reinstall --only-binary :all: PyYAML\n"
    )
