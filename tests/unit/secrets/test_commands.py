"""The script that makes Secrets, run by a real shell on a terminal, with a real kubectl."""

from __future__ import annotations

import base64
import fcntl
import json
import os
import pty
import subprocess
import termios
from collections.abc import Sequence
from pathlib import Path
from shlex import quote
from typing import Any

import pytest

from kaigen.kubernetes.secrets import DOCKER_CONFIG, DOCKER_CONFIG_KEY, TLS, TLS_KEYS
from kaigen.secrets.expected import ExpectedSecret
from kaigen.secrets.facts import Use
from kaigen.secrets.listing import script


def secret(name: str, *keys: str, type: str = "Opaque", whole: bool = False, as_file: bool = False) -> ExpectedSecret:
    """A Secret that one app reads."""
    use = Use("ml/app", "Job/app", keys, "variable X of run", as_file=as_file)
    return ExpectedSecret("ml", name, type, tuple(sorted(keys)), whole, False, (use,))


class Terminal:
    """A folder in which scripts run on a terminal, with a kubectl that makes nothing."""

    def __init__(self, folder: Path, kubectl: Path) -> None:
        self.folder = folder
        self.shown = b""
        programs = folder / "programs"
        programs.mkdir()
        wrapper = programs / "kubectl"
        wrapper.write_text(
            f'#!/bin/sh\nprintf "%s\\n" "$@" >>{quote(str(folder))}/arguments\n'
            f'exec {quote(str(kubectl))} "$@" --dry-run=client -o json >>{quote(str(folder))}/made\n'
        )
        wrapper.chmod(0o755)
        self._env = {
            "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}",
            "HOME": str(folder),
            "KUBECONFIG": os.devnull,
        }

    def run(self, text: str, answers: Sequence[str] = (), shell: str = "sh") -> list[dict[str, Any]]:
        """Run a script, answer each question, and give the objects that kubectl was about to make."""
        path = self.folder / "script.sh"
        path.write_text(text)
        master, slave = pty.openpty()
        process = subprocess.Popen(
            [shell, str(path)],
            cwd=self.folder,
            env=self._env,
            stdin=slave,
            stdout=slave,
            stderr=slave,
            start_new_session=True,
            preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
        )
        os.close(slave)
        for answer in answers:
            # The question ends in ": ", and only then is the terminal silent.
            self._until(master, b": ")
            while termios.tcgetattr(master)[3] & termios.ECHO:
                pass
            os.write(master, answer.encode() + b"\n")
        self._until(master, None)
        assert process.wait(timeout=30) == 0, self.shown
        os.close(master)
        decoder = json.JSONDecoder()
        made, found, at = (self.folder / "made").read_text(), [], 0
        while at < len(made):
            item, at = decoder.raw_decode(made, at)
            found.append(item)
            at += len(made[at:]) - len(made[at:].lstrip())
        return found

    def _until(self, master: int, end: bytes | None) -> None:
        new = b""
        while end is None or not new.endswith(end):
            try:
                part = os.read(master, 1)
            except OSError:
                part = b""
            if not part:
                assert end is None, self.shown
                return
            new += part
            self.shown += part

    def arguments(self) -> str:
        """Return all command lines of kubectl."""
        return (self.folder / "arguments").read_text()


@pytest.fixture
def terminal(tmp_path: Path, kubectl: Path) -> Terminal:
    """A terminal."""
    return Terminal(tmp_path, kubectl)


def data(made: dict[str, Any]) -> dict[str, str]:
    """The values of a Secret."""
    return {key: base64.b64decode(value).decode() for key, value in made["data"].items()}


def test_a_value_is_prompted_for_without_echo_and_stored_unchanged(terminal: Terminal) -> None:
    value = '  it\'s $HOME `id` \\n "quoted" #x  '
    (made,) = terminal.run(script([secret("hf-token", "token")]), [value])
    assert (made["kind"], made["metadata"]["name"], made["metadata"]["namespace"]) == ("Secret", "hf-token", "ml")
    assert data(made) == {"token": value}
    assert b"hf-token, token: " in terminal.shown
    assert b"quoted" not in terminal.shown
    assert "quoted" not in terminal.arguments()


def test_several_values_make_one_secret(terminal: Terminal) -> None:
    text = script([secret("s3", "access-key", "AWS_SECRET"), secret("hf", "token")])
    first, second = terminal.run(text, ["c=d #x", "a b", "t"])
    assert data(first) == {"AWS_SECRET": "c=d #x", "access-key": "a b"}
    assert data(second) == {"token": "t"}


def test_a_pull_secret_uses_the_file_of_docker_login(terminal: Terminal) -> None:
    config = '{"auths": {"example.com": {"auth": "dXNlcjpwYXNz"}}}'
    (terminal.folder / ".docker").mkdir()
    (terminal.folder / ".docker" / "config.json").write_text(config)
    (made,) = terminal.run(script([secret("pull", DOCKER_CONFIG_KEY, type=DOCKER_CONFIG, as_file=True)]))
    assert made["type"] == DOCKER_CONFIG
    assert json.loads(data(made)[DOCKER_CONFIG_KEY]) == json.loads(config)


def test_files_become_secrets_from_files(terminal: Terminal) -> None:
    (terminal.folder / "ca.crt").write_text("one\ntwo\n")
    (terminal.folder / "folder").mkdir()
    (terminal.folder / "folder" / "a").write_text("b")
    (terminal.folder / "env.env").write_text("A=1\nB=2\n")
    text = script(
        [
            secret("certs", "ca.crt", as_file=True),
            secret("folder", whole=True, as_file=True),
            secret("env", "A", whole=True),
        ]
    )
    assert "ask()" not in text
    assert [data(made) for made in terminal.run(text)] == [{"ca.crt": "one\ntwo\n"}, {"a": "b"}, {"A": "1", "B": "2"}]


def test_a_certificate_is_a_tls_secret() -> None:
    text = script([secret("web", *TLS_KEYS, type=TLS, as_file=True)])
    assert text.rstrip().endswith("kubectl create secret tls web --namespace ml --cert=tls.crt --key=tls.key")


HOSTILE = "x'; touch hacked; '$(touch hacked)`touch hacked`\n\x1b[31mtouch hacked"


def test_hostile_names_are_quoted(tmp_path: Path) -> None:
    use = Use(HOSTILE, "Job/x", (HOSTILE,), HOSTILE)
    hostile = ExpectedSecret(HOSTILE, HOSTILE, HOSTILE, (HOSTILE, "b"), False, False, (use,))
    whole = ExpectedSecret(HOSTILE, HOSTILE, HOSTILE, (HOSTILE,), True, False, (use,))
    one = ExpectedSecret(HOSTILE, HOSTILE, HOSTILE, (HOSTILE,), False, False, (use,))
    text = script([hostile, whole, one])
    assert "\x1b" not in "".join(line for line in text.splitlines() if line.startswith("#"))
    programs = tmp_path / "programs"
    programs.mkdir()
    for name in ("kubectl", "stty"):
        (programs / name).write_text("#!/bin/sh\nexit 0\n")
        (programs / name).chmod(0o755)
    subprocess.run(
        ["sh", "-c", text.replace("/dev/tty", "/dev/null")],
        cwd=tmp_path,
        env={"PATH": f"{programs}{os.pathsep}{os.environ['PATH']}", "HOME": str(tmp_path)},
        capture_output=True,
        check=False,
        timeout=30,
    )
    assert not (tmp_path / "hacked").exists()


def test_no_secrets_give_no_script() -> None:
    assert script([]) == ""


def test_the_script_runs_in_any_posix_shell() -> None:
    text = script([secret("hf", "token"), secret("s3", "a", "b"), secret("w", whole=True)])
    assert subprocess.run(["sh", "-n"], input=text, text=True, check=False).returncode == 0
