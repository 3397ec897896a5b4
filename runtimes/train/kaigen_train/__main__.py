"""`python -m kaigen_train`."""

from kaigen_train.cli import run

run()
