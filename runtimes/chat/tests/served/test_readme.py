"""The README's example runs unchanged except for the port, the name of the model and a seed."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

from served.server import PACKAGE, Server

README = Path(__file__).parent.parent.parent / "README.md"


def test_the_example_in_python_prints_an_answer(server: Server) -> None:
    [code] = re.findall(r"```python\n(.*?)```", README.read_text(), re.DOTALL)
    code = code.replace("http://localhost:8000", server.url).replace('"qwen"', '"tiny"')
    # The weights are random: without a seed, one of 60 answers ends before its first word.
    code = code.replace("stream=True", "stream=True, seed=0")
    done = subprocess.run([sys.executable, "-X", "utf8", "-c", code], capture_output=True, cwd=PACKAGE)
    assert done.returncode == 0, done.stderr
    assert done.stdout


def test_the_example_for_curl_is_answered(server: Server) -> None:
    [(path, body)] = re.findall(r"curl localhost:8000(\S+) -d '(.*)'", README.read_text())
    assert server.request(path, body.encode())[0] == 200
