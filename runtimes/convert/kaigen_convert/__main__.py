"""`python -m kaigen_convert`."""

from kaigen_convert.cli import run

run()
