"""`python -m kaigen_notebook`."""

from kaigen_notebook.server import run

run()
