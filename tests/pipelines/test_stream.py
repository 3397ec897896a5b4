"""`kaigen render --stdout | kubectl apply -f -`: one stream, what comes first first."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from kaigen import compile_specs, load_config
from kaigen.pipeline.run import Run
from tests.pipelines.checkout import write_repository


@pytest.fixture
def stream(tmp_path: Path) -> str:
    write_repository(tmp_path)
    config = load_config(tmp_path)
    return compile_specs((), config).stream()


def wave(obj: Mapping[str, Any]) -> int:
    return int(obj["metadata"].get("annotations", {}).get("argocd.argoproj.io/sync-wave", "0"))


def test_waves_never_go_back_across_all_apps(stream: str) -> None:
    objects = list(yaml.safe_load_all(stream))
    waves = [wave(obj) for obj in objects]
    assert waves == sorted(waves)
    assert len(set(waves)) > 1
    names = [obj["metadata"]["name"] for obj in objects if obj["kind"] == "PersistentVolumeClaim"]
    jobs = [place for place, obj in enumerate(objects) if obj["kind"] == "Job"]
    assert "qwen-weights" in names
    assert min(jobs) > max(place for place, obj in enumerate(objects) if wave(obj) == 0)


def test_kubectl_reads_every_object_of_the_stream(kubectl: Path, tmp_path: Path, stream: str) -> None:
    # Labelling files on this side alone is what kubectl does without a cluster.
    done = subprocess.run(
        [kubectl, "label", "--local", "--filename=-", "--output=name", "checked=yes"],
        input=stream,
        env={"HOME": str(tmp_path), "KUBECONFIG": "/dev/null"},
        capture_output=True,
        text=True,
        check=True,
    )
    wanted = [obj["kind"].lower() for obj in yaml.safe_load_all(stream)]
    assert [line.split("/")[0].split(".")[0] for line in done.stdout.splitlines()] == wanted


def test_the_stream_of_a_run_is_that_of_its_objects(tmp_path: Path, stream: str) -> None:
    assert Run.load((), load_config(tmp_path), use_cache=False).stream() == stream
