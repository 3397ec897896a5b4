"""No field of Koldun's resources is silent: without it, objects or messages change, or a message names it."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from kaigen.diagnostics.errors import InputError
from kaigen.diagnostics.problem import dotted_path
from kaigen.dialects.koldun.ingress_kinds import Ingress
from kaigen.dialects.koldun.model_kinds import Model
from kaigen.dialects.koldun.ring_kinds import Dllama, Root, Worker
from kaigen.kinds.block import Block
from kaigen.kinds.block_schema import block_schema
from tests.unit.dialects.koldun_case import (
    IMAGE,
    STORAGE,
    Object,
    annotated,
    converted,
    dllama,
    loaded,
    model,
    resource,
)

Step = str | int
Path = tuple[Step, ...]

OPTIONS = {
    "max-seq-len": "2048",
    "nthreads": "3",
    "buffer-float-type": "f32",
    "temperature": "0.3",
    "topp": "0.4",
    "seed": "5",
    "chat-template": "llama3",
    "net-turbo": "1",
    "gpu-index": "0",
    "gpu-segments": "0:1",
    "model": "/model/a.m",
    "tokenizer": "/model/b.t",
    "workers": "x:1",
    "port": "1",
    "host": "0.0.0.0",
    "steps": "3",
    "prompt": "x",
    "role": "root",
    "slot": "1",
    "root": "x",
}
ARGS = [word for name, value in OPTIONS.items() for word in (f"--{name}", value)]
OTHER_BUFFERS = [word if word != "f32" else "q80" for word in ARGS]
"""The same for weights of type f32: the type of their own buffers says nothing."""
CLUSTER: Object = {
    "creationTimestamp": "2025-01-01T00:00:00Z",
    "deletionTimestamp": "2025-01-01T00:00:00Z",
    "generation": 3,
    "resourceVersion": "12",
    "uid": "x",
    "selfLink": "/x",
    "finalizers": ["wrangler.cattle.io/m"],
    "ownerReferences": [{"uid": "u"}],
    "managedFields": [{"manager": "m"}],
    "labels": {"team": "a", "koldun.gorizond.io/model": "x", "objectset.rio.cattle.io/hash": "h"},
}
OPERATOR_NOTES = {
    "note": "n",
    "koldun.gorizond.io/ttl-seconds": "3",
    "koldun.gorizond.io/unknown": "3",
    "objectset.rio.cattle.io/id": "i",
}
DOWNLOAD: Object = {
    "image": "python:3.11",
    "huggingFaceTokenSecretRef": {"name": "hf", "namespace": "ml2"},
    "memory": "2Gi",
    "chunkMaxMiB": 200,
    "concurrency": 6,
}
PROGRAM: Object = {"command": ["sh"], "args": ["x"]}
CONVERSION: Object = {
    "image": "p",
    "weightsFloatType": "f32",
    "outputPath": "s3://ccc/k",
    "memory": "6Gi",
    "rcloneImage": "r",
    "toolsImage": "t",
    "converterVersion": "v0.16.4",
    "dependencies": {"torch": "1"},
}
PV: Object = {
    "storageClassName": "csi-s3",
    "capacity": "11Gi",
    "accessModes": ["ReadOnlyMany"],
    "reclaimPolicy": "Delete",
    "csiDriver": "s3.example.com",
    "csiMounter": "rclone",
    "csiOptions": "--a 1 --b",
    "volumeAttributes": {"retries": "3", "bucket": "x"},
    "csiSecretName": "s",
    "csiSecretNamespace": "n",
    "pvcCapacity": "12Gi",
    "pvcAccessModes": ["ReadWriteMany"],
}
FULL: Object = {"download": DOWNLOAD, "conversion": CONVERSION, "pv": PV, "launchOptions": OTHER_BUFFERS}
EXISTING: Object = {
    "preConverted": True,
    "preConvertedPVCName": "w",
    "preConvertedSizeBytes": 5,
    "preConvertedSizeHuman": "x",
}
OTHER_SECRET = {**STORAGE, "secretRef": {"name": "minio-creds", "namespace": "other"}}
ON_DEMAND = annotated(prometheus="http://p:9090", query="up", idle_after="9m")
RESOURCES = annotated(
    context_length="1024",
    cpu="5",
    memory="9Gi",
    engine_version="0.16.2",
    version="1.2.3",
    groups="statefulSet",
    replicas="2",
    compat="true",
    gpus="1",
    node_selector="accelerator=nvidia",
    api_key_secret="key",
)
NATS: Object = {"url": "nats://n:1", "credentialsSecret": {"name": "n", "namespace": "m"}}
CACHE: Object = {"endpoint": "e", "bucket": "b", "secretRef": {"name": "n", "namespace": "m"}}
BACKEND: Object = {
    "rootImage": IMAGE,
    "workerImage": IMAGE,
    "replicaPower": 2,
    "image": "i",
    "dispatcherImage": "d",
    "nats": {
        "url": "nats://n:1",
        "kvBucket": "a",
        "modelsBucket": "b",
        "tokensBucket": "c",
        "modelPrefix": "d",
        "tokenPrefix": "e",
        "ttlPrefix": "f",
    },
    "conversationTTL": "3m",
    "responseTimeout": "4m",
    "dispatcherMetricsListen": ":1",
    "allowAnonymous": True,
    "extraArgs": ["--backend-disable-think-filter=true"],
    "hashSecret": "x",
    "imagePullPolicy": "Always",
    "resources": {"limits": {"cpu": "1"}},
    "rootMemory": {"overheadMaxRatio": 1.3},
}
SCALING: Object = {"minDllamas": 0, "maxDllamas": 5, "scaleUpBacklog": 3, "scaleDownIdleSeconds": 99}
OUTSIDE: Object = {
    "service": {"port": 8080, "type": "NodePort"},
    "route": {
        "host": "a.example.com",
        "path": "/v1",
        "pathType": "Exact",
        "ingressClassName": "nginx",
        "annotations": {"a.example.com/b": "c"},
        "tls": [{"hosts": ["a.example.com"], "secretName": "t"}],
    },
}


def root(changes: Object | None = None, **metadata: Any) -> Object:
    """Return a Root of the Model `it`."""
    spec = {"modelRef": "it-s3-output-pvc", "image": IMAGE} | (changes or {})
    return resource("Root", spec, "chat", **metadata)


def worker(changes: Object | None = None, **metadata: Any) -> Object:
    """Return the only Worker of the Root `chat`."""
    spec = {"modelRef": "it-s3-output-pvc", "image": IMAGE, "rootRef": "chat", "slot": 0} | (changes or {})
    return resource("Worker", spec, "worker", **metadata)


def ingress(scaling: Object | None, **annotations: str) -> Object:
    """Return an Ingress of the Model `it` with every field."""
    backend = {**BACKEND, **({"sessionScaling": scaling} if scaling else {})}
    return resource("Ingress", {"backend": backend, **OUTSIDE}, "public", annotations={**OPERATOR_NOTES, **annotations})


CASES: Mapping[str, tuple[Object, ...]] = {
    "Model in buckets": (
        model(
            {
                **FULL,
                "objectStorage": OTHER_SECRET,
                "pipProxy": "http://p",
                "localPath": "s3://source2/a",
                "replicaPower": 2,
            },
            annotations={**OPERATOR_NOTES, "kaigen.dev/version": "1.2.3", "kaigen.dev/sha256": "a" * 64},
            **CLUSTER,
        )
        | {"status": {"outputPVCName": "x"}},
        dllama(1),
    ),
    "Model with the later name of the type": (converted({"conversion": {"convertWeights": "f32"}}), dllama(1)),
    "Model without conversion": (
        model({"download": DOWNLOAD, "pv": PV, "launchOptions": ARGS, "preConvertedPVCName": "w"}),
    ),
    "Model in a volume": (
        model({**FULL, "pv": {**PV, "pvcStorageClassName": "fast"}, "objectStorage": None}),
        dllama(1),
    ),
    "Model of converted files": (
        model(
            {**FULL, **EXISTING, "download": {**DOWNLOAD, **PROGRAM}, "conversion": {**CONVERSION, **PROGRAM}},
        ),
        dllama(1),
    ),
    "Model of converted files that state no type": (
        model({"launchOptions": ARGS, **EXISTING}, annotations=annotated(sha256="a" * 64)),
        dllama(1),
    ),
    "Model of converted files without a claim": (model({**FULL, "preConverted": True, "preConvertedSizeBytes": 5}),),
    "Model of a file": (
        model(
            {"sourceUrl": "https://example.com/x.safetensors", "download": DOWNLOAD, "conversion": CONVERSION},
            annotations=annotated(sha256="a" * 64),
        ),
    ),
    "Dllama": (
        dllama(
            1,
            changes={
                "modelRef": {"kind": "Model", "name": "it", "namespace": "zz"},
                "nats": NATS,
            },
            annotations={**RESOURCES, **OPERATOR_NOTES},
            **CLUSTER,
        )
        | {"status": {"readyRoot": True}},
        converted(namespace="zz"),
    ),
    "Dllama on demand": (dllama(1, annotations=ON_DEMAND, namespace="a"), converted(namespace="a")),
    "Root": (
        root(
            {"args": ARGS, "cacheSpec": CACHE, "workerSelector": {"a": "b"}},
            annotations={**RESOURCES, **OPERATOR_NOTES},
            **CLUSTER,
        )
        | {"status": {"endpoint": "x"}},
        converted({"conversion": {"weightsFloatType": "q40"}}),
        worker(),
    ),
    "Root of a claim": (root({"modelRef": "w", "args": ARGS}, namespace="a"), worker({"modelRef": "w"}, namespace="a")),
    "Worker of a namespace": (worker(namespace="a"), converted(namespace="a"), root(namespace="a")),
    "Worker": (
        worker(
            {"modelRef": "zz", "args": ARGS, "cacheSpec": CACHE, "nats": NATS},
            annotations={**OPERATOR_NOTES, "kaigen.dev/version": "9.9.9"},
            **CLUSTER,
        )
        | {"status": {"conditions": []}},
        converted(),
        root(),
    ),
    "Ingress on demand": (
        ingress(SCALING, **annotated(model="it", prometheus="http://p:9090", query="up")),
        converted(),
        converted({"localPath": "models/other"}, name="other"),
    ),
    "Ingress on demand with annotations": (ingress(SCALING, **ON_DEMAND), converted()),
    "Ingress of a cluster": (
        resource(
            "Ingress",
            {"backend": {name: BACKEND[name] for name in ("rootImage", "workerImage", "replicaPower")}},
            "public",
            namespace="a",
            **CLUSTER,
        )
        | {"status": {"conditions": []}},
        converted(namespace="a"),
    ),
    "Ingress with the workers of its Model": (
        converted({"replicaPower": 2, "conversion": {"weightsFloatType": "f32"}}),
        resource("Ingress", {"backend": {"rootImage": IMAGE, "workerImage": IMAGE}}, "public"),
    ),
    "Ingress with a key": (ingress(None, **annotated(api_key_secret="key")), converted()),
    "Ingress without a query": (ingress(SCALING), converted()),
    "Ingress with a number of rings": (ingress(SCALING, **annotated(replicas="3")), converted()),
}
"""Documents by name; the first one is searched for silent fields."""

NAMES_OF_TYPES = {("apiVersion",), ("kind",)}


def state(documents: tuple[Object, ...]) -> tuple[list[tuple[str, str, str]], str]:
    """Return what is reported of documents, and the objects that they become."""
    try:
        found = loaded(*documents)
        apps = found.apps()
    except InputError as error:
        return [(item.code, item.path, item.message) for item in error.diagnostics], ""
    objects = [(app.app.version, [item.body for item in app.objects]) for app in apps]
    reported = [(item.code, item.path, item.message) for item in found.load_diagnostics]
    return reported, json.dumps(objects, default=str, sort_keys=True)


def parts(value: Any, path: Path = ()) -> Iterator[Path]:
    """Yield the path of everything in a document that can be deleted; of options, that of the name."""
    if isinstance(value, dict):
        for key, item in value.items():
            yield (*path, key)
            yield from parts(item, (*path, key))
    elif isinstance(value, list):
        step = 2 if is_options(path) else 1
        for index in range(0, len(value), step):
            yield (*path, index)


def is_options(path: Path) -> bool:
    """Return whether a list has options and their values in turn."""
    return path in {("spec", "args"), ("spec", "launchOptions")}


def without(document: Object, path: Path) -> Object:
    """Return a document without a field, or without an option and its value."""
    changed = copy.deepcopy(document)
    here: Any = changed
    for step in path[:-1]:
        here = here[step]
    del here[path[-1]]
    if is_options(path[:-1]):
        del here[path[-1]]
    return changed


def is_named(path: Path, reported: list[tuple[str, str, str]]) -> bool:
    """Return whether a message is about a field, or about one that contains it, but not the whole spec."""
    names = {dotted_path(path[:length]) for length in range(1, len(path) + 1)} - {"spec"}
    if is_options(path[:-1]):
        names.add(dotted_path((*path[:-1], int(path[-1]) + 1)))
    return not names.isdisjoint(place for _, place, _ in reported)


@pytest.mark.parametrize("case", CASES)
def test_no_field_is_silent(case: str) -> None:
    document, *others = CASES[case]
    reported, objects = state((document, *others))
    assert objects, reported
    messages = sorted((code, message) for code, _, message in reported)
    silent = []
    for path in parts(document):
        if path in NAMES_OF_TYPES or is_named(path, reported):
            continue
        now, changed = state((without(document, path), *others))
        if changed == objects and sorted((code, message) for code, _, message in now) == messages:
            silent.append(dotted_path(path))
    assert silent == []


def fields(schema: Any, definitions: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """Yield the path of every field of a schema."""
    for option in (schema, *schema.get("anyOf", ())):
        found = definitions[option["$ref"].rpartition("/")[2]] if "$ref" in option else option
        for name, item in found.get("properties", {}).items():
            yield (*path, name)
            yield from fields(item, definitions, (*path, name))


@pytest.mark.parametrize("kind", [Model, Dllama, Root, Worker, Ingress])
def test_the_documents_have_every_field(kind: type[Block]) -> None:
    schema = block_schema(kind)
    expected = set(fields(schema, schema.get("$defs", {})))
    given = {
        path
        for documents in CASES.values()
        for document in documents
        if document["kind"] == kind.__name__
        for path in parts(document)
    }
    # A group of Models that is written out has the meaning of none.
    assert expected - given == {("spec", "modelRef", "apiGroup")} & expected
