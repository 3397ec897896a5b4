"""Specs in, objects or diagnostics out: what unit tests need when they state behaviour and not internals."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from kaigen.config.settings import Config
from kaigen.diagnostics.diagnostic import Diagnostic
from kaigen.pipeline.result import Compilation
from kaigen.pipeline.run import compile_specs
from kaigen.pipeline.validate import validate

Object = dict[str, Any]


def compile_text(text: str, *, profile: str = "generic") -> Compilation:
    """Compile the spec documents in `text` for a profile."""
    with TemporaryDirectory() as folder:
        file = Path(folder, "spec.yaml")
        file.write_text(textwrap.dedent(text), encoding="utf-8")
        config = Config(root=Path(folder), profile=profile)
        return compile_specs([str(file)], config)


def diagnostics_of(text: str, *, profile: str = "generic") -> list[Diagnostic]:
    """Return the diagnostics of the spec documents in `text`."""
    with TemporaryDirectory() as folder:
        file = Path(folder, "spec.yaml")
        file.write_text(textwrap.dedent(text), encoding="utf-8")
        return validate([str(file)], Config(root=Path(folder), profile=profile))[0]


def objects_of(text: str, *, profile: str = "generic") -> list[Object]:
    """Return the objects of every app in apply order; the specs must have no problems."""
    compilation = compile_text(text, profile=profile)
    assert [item.message for item in compilation.diagnostics] == []
    return [item.body for app in compilation.apps for item in app.objects]


def of_kind(objects: Iterable[Object], kind: str) -> list[Object]:
    """Return the objects of one kind."""
    return [each for each in objects if each["kind"] == kind]


def pod_specs(objects: Iterable[Object]) -> dict[str, Object]:
    """Return every pod spec by a name: that of its workload, with the role inside a LeaderWorkerSet."""
    pods: dict[str, Object] = {}
    for each in objects:
        name, spec = each["metadata"]["name"], each.get("spec", {})
        if "leaderWorkerTemplate" in spec:
            for role in ("leader", "worker"):
                pods[f"{name} {role}"] = spec["leaderWorkerTemplate"][f"{role}Template"]["spec"]
        elif "template" in spec:
            pods[name] = spec["template"]["spec"]
    return pods


def secret_names(pod: Object) -> set[str]:
    """Return the names of the Secrets a pod reads, as variables or as volumes."""
    containers = [*pod.get("initContainers", []), *pod["containers"]]
    variables = [entry.get("valueFrom", {}) for each in containers for entry in each.get("env", [])]
    return {
        *(entry["secretKeyRef"]["name"] for entry in variables if "secretKeyRef" in entry),
        *(entry["secretRef"]["name"] for c in containers for entry in c.get("envFrom", []) if "secretRef" in entry),
        *(volume["secret"]["secretName"] for volume in pod.get("volumes", []) if "secret" in volume),
    }
