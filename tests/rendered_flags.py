"""The command lines of vLLM that kaigen renders for every preset, and for every example and spec of the tests."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from kaigen.catalog.catalog import BUILT_IN
from kaigen.catalog.presets import Preset, presets
from kaigen.config.settings import Config
from kaigen.pipeline.run import compile_specs
from tests.cases import app_cases
from tests.rendering import pod_specs

_RANK = re.compile(r"\$\((LWS_WORKER_INDEX|NODE_RANK)\)")
_NODES = "p5en.48xlarge"
"""Instance type with room for every preset on two nodes."""


@cache
def command_lines() -> tuple[tuple[str, ...], ...]:
    """Return the arguments of `vllm serve`, each list once. Expressions of Kubernetes have a value."""
    found: dict[tuple[str, ...], None] = {}
    every = [*([item.body for item in case.compiled.objects] for case in app_cases()), *_presets()]
    for objects in every:
        for pod in pod_specs(objects).values():
            for container in pod.get("containers", []):
                if container.get("command", [])[-2:] == ["vllm", "serve"]:
                    # The kubelet replaces the variable with the number of the pod.
                    line = (_RANK.sub("1", argument) for argument in container["args"])
                    found[tuple(line)] = None
    return tuple(found)


def _presets() -> Iterator[list[Any]]:
    """Yield the objects of a Topology and of a Workspace for each preset."""
    with TemporaryDirectory() as folder:
        file, config = Path(folder, "presets.yaml"), Config(root=Path(folder))
        documents = [made for preset in presets(BUILT_IN) for made in (_topology(preset), _workspace(preset))]
        file.write_text("\n---\n".join(map(json.dumps, documents)))
        apps = compile_specs([str(file)], config).apps
        yield from ([item.body for item in app.objects] for app in apps)


def _name(preset: Preset) -> str:
    return preset.name.replace(".", "-")


def _topology(preset: Preset) -> Any:
    return {
        "apiVersion": "kaigen.dev/v1alpha1",
        "kind": "Topology",
        "metadata": {"name": f"t-{_name(preset)}"},
        "spec": {
            "preset": preset.name,
            "trustRemoteCode": True,
            "tokenSecret": {"name": "hub", "key": "token"},
            "resources": {"instanceType": _NODES},
        },
    }


def _workspace(preset: Preset) -> Any:
    return {
        "apiVersion": "kaito.sh/v1beta1",
        "kind": "Workspace",
        "metadata": {"name": f"w-{_name(preset)}", "annotations": {"kaito.sh/runtime": "vllm"}},
        "resource": {"instanceType": _NODES, "labelSelector": {"matchLabels": {"pool": "gpus"}}},
        "inference": {"preset": {"name": preset.name, "presetOptions": {"modelAccessSecret": "hub"}}},
    }
