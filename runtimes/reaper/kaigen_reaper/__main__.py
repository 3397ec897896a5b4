"""`python -m kaigen_reaper`."""

from kaigen_reaper.cli import run

run()
