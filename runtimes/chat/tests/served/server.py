"""The server as a process of its own, on loopback."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Callable
from pathlib import Path
from types import TracebackType

import openai
from prometheus_client.parser import text_string_to_metric_families

PACKAGE = Path(__file__).parent.parent.parent
PATIENCE = 120.0  # seconds, for what takes far less
_ADDRESS = re.compile(r"listening on (\S+):(\d+)")


class Server:
    """A server, from its start until it is ready, and to its end.

    Args:
        model: folder of the model.
        flags: further arguments.
        program: what Python runs.
        env: further environment.
    """

    def __init__(self, model: Path, *flags: str, program: tuple[str, ...] = ("-m", "kaigen_chat"), **env: str) -> None:
        self.lines: list[str] = []
        environ = {"PATH": os.environ["PATH"], "PYTHONPATH": str(PACKAGE), "HOME": "/nonexistent"}
        self.process = subprocess.Popen(
            [sys.executable, *program, "--model", str(model), "--host", "127.0.0.1", "--port", "0", *flags],
            env=environ | {"PYTHONDONTWRITEBYTECODE": "1"} | env,
            stderr=subprocess.PIPE,
            text=True,
            errors="replace",
        )
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        try:
            until(lambda: self.process.poll() is not None or self._address() is not None)
            address = self._address()
            assert address is not None, self.log
            self.url = "http://{}:{}".format(*address)
            until(lambda: self.status("/readyz") == 200)
        except BaseException:
            self.kill()
            raise

    def _read(self) -> None:
        assert self.process.stderr is not None
        for line in self.process.stderr:
            self.lines.append(line)

    def _address(self) -> tuple[str, str] | None:
        match = _ADDRESS.search(self.log)
        return None if match is None else (match[1], match[2])

    @property
    def log(self) -> str:
        """What it printed."""
        return "".join(self.lines)

    def client(self, key: str = "none") -> openai.OpenAI:
        """OpenAI's own client, which tries once."""
        return openai.OpenAI(base_url=f"{self.url}/v1", api_key=key, max_retries=0, timeout=PATIENCE)

    def request(self, path: str, body: bytes | None = None, **headers: str) -> tuple[int, bytes, dict[str, str]]:
        """Status, body and headers of an answer."""
        asked = urllib.request.Request(self.url + path, body, {"Content-Type": "application/json", **headers})
        try:
            with urllib.request.urlopen(asked, timeout=PATIENCE) as answer:
                return answer.status, answer.read(), dict(answer.headers)
        except urllib.error.HTTPError as error:
            with error:
                return error.code, error.read(), dict(error.headers)

    def status(self, path: str) -> int:
        """Return the status of a GET; 0 without a response."""
        try:
            return self.request(path)[0]
        except OSError:
            return 0

    def metric(self, name: str, **labels: str) -> float:
        """The value of a metric: the sum of its samples with these labels."""
        text = self.request("/metrics")[1].decode()
        return sum(
            float(sample.value)
            for family in text_string_to_metric_families(text)
            for sample in family.samples
            if sample.name == name and labels.items() <= sample.labels.items()
        )

    def stop(self) -> int:
        """Sends SIGTERM; the exit code."""
        self.process.send_signal(signal.SIGTERM)
        return self.wait()

    def wait(self) -> int:
        """The exit code, when it has ended."""
        code = self.process.wait(PATIENCE)
        self._reader.join(PATIENCE)
        return code

    def kill(self) -> None:
        """Ends it at once, if it runs."""
        if self.process.poll() is None:
            self.process.kill()
        self.wait()
        assert self.process.stderr is not None
        self.process.stderr.close()

    def __enter__(self) -> Server:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.kill()


def until(condition: Callable[[], object], seconds: float = PATIENCE) -> None:
    """Waits for something that another process does."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it did not happen in time"
        time.sleep(0.01)
