"""`python -m kaigen_chat`."""

from kaigen_chat.cli import run

run()
