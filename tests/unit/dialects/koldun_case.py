"""Resources of Koldun's for the tests: written as a few fields, compiled as a user's file would be."""

from __future__ import annotations

import io
from typing import Any

import pytest
import yaml

from kaigen.config.block_settings import Allowed, VolumeGrant
from kaigen.config.settings import Config
from kaigen.diagnostics.diagnostic import Diagnostic, Severity
from kaigen.diagnostics.errors import InputError
from kaigen.pipeline.result import Compilation
from kaigen.pipeline.run import Run

Object = dict[str, Any]

IMAGE = "registry.example.com/dllama:0.16.4"
COMMIT = "0123456789abcdef0123456789abcdef01234567"
SOURCE = f"https://huggingface.co/Qwen/Qwen3-0.6B/tree/{COMMIT}"
STORAGE: Object = {
    "endpoint": "http://minio:9000",
    "bucketForSource": "source",
    "bucketForConvert": "converted",
    "secretRef": {"name": "minio-creds"},
}
ALLOWED = Allowed(volumes=(VolumeGrant(drivers=("*",), secrets=("*",), attributes=("*",), options=("*",)),))


def resource(kind: str, spec: Object, name: str = "it", **metadata: Any) -> Object:
    """Return a resource."""
    return {"apiVersion": "koldun.gorizond.io/v1", "kind": kind, "metadata": {"name": name, **metadata}, "spec": spec}


def model(changes: Object | None = None, name: str = "it", **metadata: Any) -> Object:
    """Return a Model of a commit of the Hub in a bucket, with the given changes; None takes a field out."""
    spec = {"sourceUrl": SOURCE, "localPath": "models/qwen", "objectStorage": STORAGE} | (changes or {})
    return resource("Model", {key: value for key, value in spec.items() if value is not None}, name, **metadata)


def converted(changes: Object | None = None, name: str = "it", **metadata: Any) -> Object:
    """Return a Model that is converted to q40."""
    return model({"conversion": {"weightsFloatType": "q40"}} | (changes or {}), name, **metadata)


def dllama(power: int = 2, name: str = "chat", changes: Object | None = None, **metadata: Any) -> Object:
    """Return a Dllama that serves the Model `it`."""
    spec = {
        "modelRef": {"kind": "Model", "name": "it"},
        "replicaPower": power,
        "rootImage": IMAGE,
        "workerImage": IMAGE,
    }
    return resource("Dllama", spec | (changes or {}), name, **metadata)


def annotated(**directives: str) -> Object:
    """Return annotations of kaigen."""
    return {f"kaigen.dev/{name.replace('_', '-')}": value for name, value in directives.items()}


DEFAULTS = Config(allow=ALLOWED)


def loaded(*documents: Object, config: Config = DEFAULTS) -> Run:
    """Return a file with these documents, lowered."""
    text = yaml.safe_dump_all(documents, sort_keys=False)
    return Run.load(["-"], config, stdin=io.BytesIO(text.encode()), use_cache=False)


def compiled(*documents: Object, config: Config = DEFAULTS) -> Compilation:
    """Compile a file with these documents."""
    return loaded(*documents, config=config).compilation()


def specs(*documents: Object) -> list[Any]:
    """Return the specs that documents are lowered to."""
    found = loaded(*documents)
    assert not [item for item in found.load_diagnostics if item.severity is Severity.ERROR], found.load_diagnostics
    return [spec.block for spec in found.specs]


def warnings(*documents: Object) -> list[tuple[str, str]]:
    """Return the code and field of every warning of the lowering."""
    return [(item.code, item.path) for item in loaded(*documents).load_diagnostics]


def errors(*documents: Object, config: Config = DEFAULTS) -> list[tuple[str, str]]:
    """Return the code and field of every error."""
    return [(item.code, item.path) for item in failures(*documents, config=config)]


def failures(*documents: Object, config: Config = DEFAULTS) -> list[Diagnostic]:
    """Return every error."""
    with pytest.raises(InputError) as caught:
        compiled(*documents, config=config)
    return [item for item in caught.value.diagnostics if item.severity is Severity.ERROR]
