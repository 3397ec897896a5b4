"""`kaigen job` over a line that is cut, stalls and is slow: nothing is lost, and nothing is left without a word."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import time
from functools import partial
from pathlib import Path

import pytest
import yaml

from tests.cluster.apps import CLAIM, spec
from tests.cluster.bad_line import BadLine
from tests.cluster.images import BASE
from tests.cluster.live import SMALL, call, objects, start
from tests.cluster.node import Node
from tests.cluster.processes import wait_until

pytestmark = pytest.mark.engine

_SIZE = 40_000_000
_RATE = 8e6


def _project(folder: Path) -> Path:
    """Return a project with a large file between two small ones."""
    project = folder / "project"
    project.mkdir()
    (project / "a.txt").write_text("first")
    (project / "large.bin").write_bytes(os.urandom(_SIZE))
    (project / "z.txt").write_text("last")
    return project


@pytest.mark.promise("Ephemeral GPU", "Graceful error handling and retry logic")
def test_an_upload_goes_on_after_the_line_was_cut(node: Node, node_namespace: str, tmp_path: Path) -> None:
    project = _project(tmp_path)
    with BadLine(node, tmp_path) as line:
        line.rate = _RATE
        where = ("-n", node_namespace, "--kubeconfig", str(line.kubeconfig))
        work = ("--image", BASE, "--command", "sha256sum /artifacts/large.bin", *SMALL)
        create = ("kaigen", "job", "create", "cut", *where, "--project-dir", str(project), *work)
        with start(node, *create) as process:
            line.await_bytes(_SIZE // 2)
            line.cut(8)
            printed = process.communicate(timeout=120)[0]
        assert process.returncode == 0, printed
        assert "going on" in printed
        assert "3 files uploaded" in printed
        # Half of the file had arrived, and is not sent again.
        assert line.passed < 1.4 * _SIZE
        line.rate = 1e12
        watch = ("kaigen", "job", "watch", "cut", *where)
        with start(node, *watch) as process:
            time.sleep(1)
            line.cut(8)
            printed = process.communicate(timeout=120)[0]
        assert process.returncode == 0, printed
        assert printed.endswith("[Succeeded] Job completed successfully\n")
        expected = subprocess.run(["sha256sum", project / "large.bin"], capture_output=True, text=True, check=True)
        assert call(node, "kaigen", "job", "logs", "cut", *where).split()[0] == expected.stdout.split()[0]


COUNT = "python -uc 'import time; [(print(number), time.sleep(0.2)) for number in range(80)]'"


def test_logs_and_copies_go_on_after_the_line_was_cut(node: Node, node_namespace: str, tmp_path: Path) -> None:
    project = _project(tmp_path)
    with BadLine(node, tmp_path) as line:
        where = ("-n", node_namespace, "--kubeconfig", str(line.kubeconfig))
        job = partial(call, node, "kaigen", "job")
        job("create", "count", *where, "--image", BASE, "--command", COUNT, *SMALL)
        with start(node, "kaigen", "job", "logs", "count", "-f", *where) as process:
            assert process.stdout is not None
            printed = process.stdout.readline()
            while not printed.endswith("3\n"):
                printed += process.stdout.readline()
            line.cut(8)
            printed += process.communicate(timeout=120)[0]
        assert process.returncode == 0, printed
        assert [each for each in printed.splitlines() if each.isdecimal()] == [str(number) for number in range(80)]
        line.rate = _RATE
        before = line.passed
        with start(node, "kaigen", "job", "cp", str(project), "count:/artifacts/copy", *where) as process:
            line.await_bytes(_SIZE // 2)
            line.cut(8)
            printed = process.communicate(timeout=120)[0]
        assert process.returncode == 0, printed
        assert "going on" in printed
        assert "3 files" in printed
        assert line.passed - before < 1.4 * _SIZE
        back = tmp_path / "back"
        with start(node, "kaigen", "job", "cp", "count:/artifacts/copy", str(back), *where) as process:
            wait_until(lambda: any(back.rglob("*large*")) or process.poll() is not None, "it downloads")
            line.cut(8)
            printed = process.communicate(timeout=120)[0]
        assert process.returncode == 0, printed
        assert "going on" in printed
        for name in ("a.txt", "large.bin", "z.txt"):
            assert (back / name).read_bytes() == (project / name).read_bytes()
        wait_until(lambda: not any("copy-count" in name for name in objects(node, node_namespace)), "no pod is left")


ANSWERED_S = 2
"""Seconds within which a command answers Ctrl-C."""


def _interrupted(process: subprocess.Popen[str], line: BadLine, answer: str) -> str:
    """Press Ctrl-C on a stalled line; return the lines after the answer, which must come in time."""
    assert process.stdout is not None
    with line.stalled():
        time.sleep(1)
        process.send_signal(signal.SIGINT)
        began = time.monotonic()
        lines = iter(process.stdout.readline, "")
        found = next((each for each in lines if answer in each), "")
        assert found
        assert time.monotonic() - began < ANSWERED_S
        printed = found + "".join(lines)
        process.wait(30)
    return printed


def test_ctrl_c_is_answered_on_a_stalled_line(node: Node, node_namespace: str, tmp_path: Path) -> None:
    (tmp_path / "large.bin").write_bytes(os.urandom(_SIZE))
    with BadLine(node, tmp_path) as line:
        where = ("-n", node_namespace, "--kubeconfig", str(line.kubeconfig))
        job = partial(call, node, "kaigen", "job")
        work = ("--image", BASE, "--command", "sh -c 'echo working; sleep 600'", *SMALL)
        job("create", "long", *where, *work)
        wait_until(lambda: "working" in job("logs", "long", *where, code=None), "it works")
        for words, first, answer in (
            (("watch", "long"), "[Running]", "stopped watching; Job long goes on"),
            (("logs", "long", "-f"), "working", "interrupted"),
        ):
            with start(node, "kaigen", "job", *words, *where) as process:
                assert process.stdout is not None
                assert any(first in each for each in iter(process.stdout.readline, ""))
                _interrupted(process, line, answer)
            assert process.returncode == 130
        line.rate = _RATE
        copy = ("cp", str(tmp_path / "large.bin"), "long:/artifacts/large.bin")
        with start(node, "kaigen", "job", *copy, *where) as process:
            line.await_bytes(_SIZE // 4)
            printed = _interrupted(process, line, "deleting what was created: pod/copy-long-")
        assert process.returncode == 130
        (command,) = re.findall(r"delete what is left with: (kubectl delete .*)", printed)
        node.run(*command.split())


SERVER = """\
import http.server
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b'{"type": "directory", "content": []}')
http.server.ThreadingHTTPServer(("", 8888), Handler).serve_forever()
"""
"""Answers the probes of a Notebook, and that it has no files."""


def test_ctrl_c_suspends_a_notebook_or_says_how(node: Node, node_namespace: str, tmp_path: Path) -> None:
    fields: dict[str, object] = {"image": {"ref": BASE}, "command": ["python", "-c", SERVER]}
    resources = {"cpu": "50m", "memory": "64Mi"}
    lab = spec("Notebook", "lab", storage={"size": "1Gi", "retain": False}, resources=resources, **fields)
    (tmp_path / "lab.yaml").write_text(yaml.safe_dump(lab))
    settings = {"apiVersion": "kaigen.dev/v1alpha1", "kind": "Config", "profile": "k3s", "namespace": node_namespace}
    (tmp_path / "kaigen.yaml").write_text(yaml.safe_dump(settings))

    def replicas() -> object:
        return node.client.get("apps/v1/StatefulSet", "lab", node_namespace)["spec"]["replicas"]

    with BadLine(node, tmp_path) as line:
        where = ("-n", node_namespace, "--kubeconfig", str(line.kubeconfig))
        (tmp_path / "work").mkdir()
        opening = ("kaigen", "notebook", "open", "-f", "lab.yaml", "--folder", "work", "--no-browser", *where)
        with start(node, *opening, folder=tmp_path) as process:
            assert process.stdout is not None
            assert any("press Ctrl-C" in each for each in iter(process.stdout.readline, ""))
            printed = _interrupted(process, line, "synchronizing a last time")
        assert process.returncode == 3
        assert "error: not synchronized: the Jupyter server does not answer" in printed
        assert f"synchronize with: kaigen notebook sync lab work -n {node_namespace} --kubeconfig" in printed
        assert "error: Notebook lab keeps running" in printed
        (command,) = re.findall(r"suspend it with: (kaigen notebook suspend lab .*)", printed)
        assert replicas() == 1
        call(node, *command.split())
        assert replicas() == 0
        with start(node, *opening, folder=tmp_path) as process:
            assert process.stdout is not None
            assert any("press Ctrl-C" in each for each in iter(process.stdout.readline, ""))
            process.send_signal(signal.SIGINT)
            printed = process.communicate(timeout=60)[0]
        assert process.returncode == 0
        assert "Notebook lab suspended" in printed
        assert replicas() == 0


def test_ctrl_c_on_a_stalled_line_names_what_is_left(node: Node, node_namespace: str, tmp_path: Path) -> None:
    project = _project(tmp_path)
    with BadLine(node, tmp_path) as line:
        line.rate = _RATE
        where = ("-n", node_namespace, "--kubeconfig", str(line.kubeconfig))
        create = ("kaigen", "job", "create", "held", *where, "--project-dir", str(project), "--image", BASE)
        with start(node, *create, "--command", "true", *SMALL) as process:
            line.await_bytes(_SIZE // 4)
            with line.stalled():
                time.sleep(1)
                process.send_signal(signal.SIGINT)
                began = time.monotonic()
                assert process.stdout is not None
                lines = iter(process.stdout.readline, "")
                assert any("deleting what was created" in each for each in lines)
                assert time.monotonic() - began < 2
                printed = "".join(lines)
                process.wait(30)
                assert time.monotonic() - began < 15
        assert process.returncode == 130, printed
        (command,) = re.findall(r"delete what is left with: (kubectl delete .*)", printed)
        assert "persistentvolumeclaim/artifacts-held" in command
        assert re.search(r"pod/upload-held-[0-9a-f]{6}", command)
        node.run(*command.split())
        wait_until(lambda: objects(node, node_namespace) == set(), "nothing is left")


def test_a_dead_line_is_noticed(node: Node, node_namespace: str, tmp_path: Path) -> None:
    with BadLine(node, tmp_path) as line:
        where = ("-n", node_namespace, "--kubeconfig", str(line.kubeconfig))
        job = partial(call, node, "kaigen", "job")
        job("create", "still", *where, "--image", BASE, "--command", "true", *SMALL)
        wait_until(lambda: node.client.find(CLAIM, "artifacts-still", node_namespace) is not None, "the claim is there")
        debug = ("kaigen", "job", "debug", "still", *where, "--", "sleep", "600")
        with start(node, *debug) as process:
            wait_until(lambda: any("debug-still" in name for name in objects(node, node_namespace)), "the pod is there")
            time.sleep(25)
            assert process.poll() is None, process.communicate()[0]
            with line.stalled():
                began = time.monotonic()
                while process.poll() is None and time.monotonic() - began < 90:
                    time.sleep(0.5)
            printed = process.communicate(timeout=100)[0]
        assert process.returncode == 3
        assert "was silent for 40 s" in printed
