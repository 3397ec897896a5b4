"""`python hasty.py`: the server with short deadlines."""

from __future__ import annotations

from kaigen_chat import http
from kaigen_chat.cli import run
from kaigen_chat.connections import Connection

DEADLINE = 1.0
"""Seconds for headers, for a body, for reading an answer, and for the rest of a body that was refused."""

if __name__ == "__main__":
    Connection.headers_s = Connection.read_s = Connection.linger_s = DEADLINE
    defaults = http.Guard.__init__.__kwdefaults__
    assert defaults is not None
    defaults["deadline"] = defaults["linger"] = DEADLINE
    run()
