"""A repository with environments and clusters, rendered for one of them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from kaigen.config.load import load_config
from kaigen.pipeline.run import render
from tests import plain_yaml

Object = dict[str, Any]
Rendered = dict[str, Object]

MODEL = """\
apiVersion: kaigen.dev/v1alpha1
kind: Model
metadata: {name: qwen}
spec:
  source: {huggingFace: {repo: Qwen/Qwen2.5-0.5B-Instruct}}
  store: {volume: {size: 2Gi}}
"""
JOB = """\
apiVersion: kaigen.dev/v1alpha1
kind: Job
metadata: {name: tune}
spec:
  image: docker.io/acme/tune:1.0
  model: {name: qwen}
  deadline: 2h
"""


def merged(low: Object, high: Object) -> Object:
    both = dict(low)
    for key, value in high.items():
        both[key] = merged(low[key], value) if isinstance(value, dict) and isinstance(low.get(key), dict) else value
    return both


@pytest.fixture
def rendered(tmp_path: Path) -> Callable[..., Rendered]:
    """Renders specs for an environment; gives the objects by path, all files of it being YAML."""

    def make(
        environment: str = "prod",
        specs: tuple[str, ...] = (MODEL, JOB),
        config: Object | None = None,
        form: str = "manifests",
        **gitops: Any,
    ) -> Rendered:
        whole: Object = {
            "apiVersion": "kaigen.dev/v1alpha1",
            "kind": "Config",
            "namespace": "ml",
            "format": form,
            "clusters": {"near": {"server": "https://near.example.com"}, "far": {}},
            "gitops": {"repository": "https://git.example.com/ml.git", "project": "ml", **gitops},
            "environments": {"dev": {}, "prod": {"clusters": ["near"]}, "wide": {"clusters": ["near", "far"]}},
        }
        (tmp_path / "kaigen.yaml").write_text(yaml.safe_dump(merged(whole, config or {})))
        (tmp_path / "specs").mkdir(exist_ok=True)
        for index, spec in enumerate(specs):
            (tmp_path / "specs" / f"{index}.yaml").write_text(spec)
        files = render((), load_config(tmp_path, environment))
        return {
            path: plain_yaml.load(data)
            for path, data in files.items()
            if path.endswith(".yaml") and "/chart/templates/" not in path
        }

    return make
