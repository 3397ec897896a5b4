"""`python -m kaigen_classify`."""

from kaigen_classify.cli import run

run()
