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

from tests.cluster.apps import CLAIM
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
