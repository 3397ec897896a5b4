"""`python -m kaigen_ringproxy`."""

from kaigen_ringproxy.cli import run

run()
