"""Resources of KAITO's for the tests: written as a few fields, compiled as a user's file would be."""

from __future__ import annotations

import io
from typing import Any

import pytest
import yaml

from kaigen.config.settings import Config
from kaigen.diagnostics.diagnostic import Severity
from kaigen.diagnostics.errors import InputError
from kaigen.pipeline.result import Compilation
from kaigen.pipeline.run import compile_specs

NAME = "it"
Object = dict[str, Any]
Said = list[tuple[str, str, str]]

A100 = "Standard_NC24ads_A100_v4"
LABELS: Object = {"matchLabels": {"pool": "gpu"}}


def workspace(
    *, version: str = "v1beta1", resource: Object | None = None, metadata: Object | None = None, **parts: Any
) -> Object:
    """Return a Workspace on one node with an A100, with the given changes."""
    return {
        "apiVersion": f"kaito.sh/{version}",
        "kind": "Workspace",
        "metadata": {"name": NAME, **(metadata or {})},
        "resource": {"instanceType": A100, "labelSelector": LABELS, **(resource or {})},
        **parts,
    }


def preset(name: str = "phi-4", /, *, version: str = "v1beta1", options: Object | None = None, **more: Any) -> Object:
    """Return a Workspace with a preset; `resource` and `metadata` belong to the Workspace, the rest to `inference`."""
    top = {key: more.pop(key) for key in ("resource", "metadata") if key in more}
    block: Object = {"name": name}
    if options is not None:
        block["presetOptions"] = options
    if "accessMode" in more:
        block["accessMode"] = more.pop("accessMode")
    return workspace(version=version, inference={"preset": block, **more}, **top)


def annotated(annotations: dict[str, str], name: str = "phi-4", **more: Any) -> Object:
    """Return a Workspace that serves a preset, with annotations."""
    return preset(name, metadata={"annotations": annotations}, **more)


def config_map(name: str, content: Object, key: str = "inference_config.yaml") -> Object:
    """Return a ConfigMap with YAML in one key."""
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {key: yaml.safe_dump(content)}}


def compiled(*documents: Object, profile: str = "generic") -> Compilation:
    """Compile a file with these documents."""
    text = yaml.safe_dump_all(documents, sort_keys=False, allow_unicode=True)
    config = Config(profile=profile)
    return compile_specs(["-"], config, stdin=io.BytesIO(text.encode()))


def objects(*documents: Object, profile: str = "generic") -> dict[str, Object]:
    """The objects of a file's only app, by kind; the first of each."""
    (app,) = compiled(*documents, profile=profile).apps
    found: dict[str, Object] = {}
    for item in app.objects:
        found.setdefault(item.body["kind"], item.body)
    return found


def pod(*documents: Object, profile: str = "generic") -> Object:
    """The spec of the pod that serves or tunes."""
    made = objects(*documents, profile=profile)
    for kind in ("Deployment", "StatefulSet", "Job"):
        if kind in made:
            spec: Object = made[kind]["spec"]["template"]["spec"]
            return spec
    group: Object = made["LeaderWorkerSet"]["spec"]["leaderWorkerTemplate"]["leaderTemplate"]["spec"]
    return group


def engine(*documents: Object, profile: str = "generic") -> Object:
    """The container that serves or tunes."""
    found: Object = pod(*documents, profile=profile)["containers"][0]
    return found


def warnings(*documents: Object, profile: str = "generic") -> Said:
    """Code, field and message of every warning."""
    return [(item.code, item.path, item.message) for item in compiled(*documents, profile=profile).diagnostics]


def errors(*documents: Object, profile: str = "generic") -> Said:
    """Code, field and message of every error."""
    with pytest.raises(InputError) as caught:
        compiled(*documents, profile=profile)
    return [
        (item.code, item.path, item.message) for item in caught.value.diagnostics if item.severity is Severity.ERROR
    ]


def hints(*documents: Object) -> list[str]:
    """Hint of every error."""
    with pytest.raises(InputError) as caught:
        compiled(*documents)
    return [item.hint for item in caught.value.diagnostics if item.severity is Severity.ERROR]
