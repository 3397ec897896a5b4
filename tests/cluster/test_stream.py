"""`kaigen render --stdout | kubectl apply --server-side -f -`, as the documentation shows it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from tests.cluster.apps import JOB, add_gpu_node, demo_specs
from tests.cluster.client import Object, is_true, kind_of
from tests.cluster.faults import webhook_down
from tests.cluster.plane import Plane

MANAGER = "kubectl"


@pytest.fixture
def specs(tmp_path: Path, namespace: str, plane: Plane) -> Path:
    """A folder with the demo's specs, rendered for the test's namespace."""
    add_gpu_node(plane)
    folder = tmp_path / "team"
    (folder / "specs").mkdir(parents=True)
    for name, spec in demo_specs().items():
        (folder / "specs" / f"{name}.yaml").write_text(yaml.safe_dump(spec))
    (folder / "kaigen.yaml").write_text(f"kind: Config\nprofile: k3s\nnamespace: {namespace}\n")
    return folder


def pipe(plane: Plane, specs: Path) -> tuple[int, str, int, str]:
    """Run the two commands with a real pipe between them.

    Returns:
        Exit code and standard error of kaigen, then of kubectl.
    """
    root = str(Path(__file__).parents[2])
    with subprocess.Popen(
        [sys.executable, "-m", "kaigen", "-q", "render", "--stdout"],
        cwd=specs,
        env={**os.environ, "PYTHONPATH": root},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as kaigen:
        kubectl = subprocess.run(
            [plane.program("kubectl"), "apply", "--server-side", "-f", "-"],
            env={**os.environ, "KUBECONFIG": str(plane.kubeconfig)},
            stdin=kaigen.stdout,
            capture_output=True,
            text=True,
            check=False,
        )
        assert kaigen.stdout is not None
        assert kaigen.stderr is not None
        kaigen.stdout.close()
        said = kaigen.stderr.read()
    return kaigen.returncode, said, kubectl.returncode, kubectl.stderr


def managed(plane: Plane, specs: Path, namespace: str) -> dict[tuple[str, str], object]:
    """Uid, generation, and when kubectl last changed what, of every object that is rendered."""
    done = subprocess.run(
        [sys.executable, "-m", "kaigen", "-q", "render", "--stdout"],
        cwd=specs,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])},
        capture_output=True,
        text=True,
        check=True,
    )
    found: dict[tuple[str, str], object] = {}
    for obj in yaml.safe_load_all(done.stdout):
        kept: Object = plane.client.get(kind_of(obj), obj["metadata"]["name"], namespace)["metadata"]
        fields = [each for each in kept["managedFields"] if each["manager"] == MANAGER]
        found[obj["kind"], obj["metadata"]["name"]] = (kept["uid"], kept.get("generation"), fields)
    return found


def test_what_is_piped_is_taken_strictly_and_a_second_time_changes_nothing(
    plane: Plane, specs: Path, namespace: str
) -> None:
    # kubectl validates strictly by default: an unknown field would be an error, and any warning would be printed.
    assert pipe(plane, specs) == (0, "", 0, "")
    first = managed(plane, specs, namespace)
    assert {kind for kind, _ in first} >= {"Job", "PersistentVolumeClaim", "Role", "NetworkPolicy"}
    jobs = [name for kind, name in first if kind == "Job"]
    for name in jobs:
        plane.client.wait(JOB, name, namespace, lambda found: is_true(found, "Complete"), "complete", 60)
    assert pipe(plane, specs) == (0, "", 0, "")
    assert managed(plane, specs, namespace) == first
    assert sorted(found["metadata"]["name"] for found in plane.client.objects(JOB, namespace)) == sorted(jobs)


def test_a_pipe_into_a_cluster_that_fails_is_finished_by_the_next(plane: Plane, specs: Path, namespace: str) -> None:
    with webhook_down(plane, namespace):
        code, said, failed, why = pipe(plane, specs)
        assert (code, said, failed) == (0, "", 1)
        assert "down.kaigen.dev" in why
        assert plane.client.objects(JOB, namespace) == []
    plane.processes.stop("kube-apiserver", kill=True)
    code, said, failed, why = pipe(plane, specs)
    plane.processes.start_again("kube-apiserver")
    plane.wait_ready()
    # kaigen does not use the cluster: it prints, or stops silently when the pipe is closed.
    assert (code, said, failed) == (0, "", 1)
    assert "refused" in why
    assert pipe(plane, specs) == (0, "", 0, "")
    assert len(plane.client.objects(JOB, namespace)) == 3
