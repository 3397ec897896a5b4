"""Weights of a served model: what the engine is told, and what its pod must mount, wait for or fetch."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from kaigen.catalog.presets import find_preset
from kaigen.compile.builders import settings
from kaigen.compile.builders.volumes import check_image_volumes, image_volume, read_only_mount
from kaigen.compile.builders.weights import fetch_container
from kaigen.compile.context import Context
from kaigen.compile.expressions import SpecPath, Tree
from kaigen.compile.model.volume import (
    check_sharing,
    claim_name,
    find_model,
    gate,
    is_shared,
    mount_annotations,
    warn_of_pinned_volume,
)
from kaigen.compile.problems import Problems
from kaigen.diagnostics.problem import ProblemError
from kaigen.kinds.base import TokenSecret
from kaigen.kinds.blocks import HuggingFace, Source, Transfer
from kaigen.kinds.serving import Adapter, PulledModel, ServedModel
from kaigen.kubernetes.quantities import units

MODEL_FOLDER = "/model"
ADAPTERS_FOLDER = "/adapters"
CACHE_FOLDER = "/cache"
FETCHED_FOLDER = f"{CACHE_FOLDER}/model"
CACHE = "cache"
UNREAD = (
    *(
        "*.bin",
        "*.ckpt",
        "*.gguf",
        "*.h5",
        "*.msgpack",
        "*.onnx",
        "*.onnx_data",
        "*.ot",
        "*.pt",
        "*.pth",
        "*.tflite",
    ),
    *("coreml/*", "onnx/*", "original/*"),
)
"""Weights in forms that kaigen's own server does not read, beside those that it does: often as large again.

Falcon 7B has 13 GiB of safetensors, as much in pickles, and as much for Core ML.
"""

_COMMIT = re.compile("[0-9a-f]{40}")


@dataclass(frozen=True, slots=True)
class Weights:
    """How weights, or adapters, reach an engine.

    Attributes:
        reference: folder or repository that the engine is told; empty for none.
        arguments: flags that belong to it.
        env: variables that the engine needs for it.
        init: containers that run before the engine's.
        mounts: of the engine.
        volumes: of the pod.
        pull_secrets: names of Secrets to pull image volumes with.
        annotations: of the pod, without which it cannot mount them.
        source: where the bytes come from, for the time that it takes: `hub`, `bucket`, `volume` or `image`.
        size: bytes, as far as they are known; None for unknown.
        revision: commit, when it is known.
        offline: the engine needs no Hub.
        pinned: they rest in a volume of one node.
    """

    reference: str = ""
    arguments: Sequence[Tree] = ()
    env: Sequence[Tree] = ()
    init: Sequence[Tree] = ()
    mounts: Sequence[dict[str, Tree]] = ()
    volumes: Sequence[Tree] = ()
    pull_secrets: Sequence[str] = ()
    annotations: Mapping[str, str] = field(default_factory=dict)
    source: str = "volume"
    size: int | None = None
    revision: str = ""
    offline: bool = True
    pinned: bool = False


@dataclass(frozen=True, slots=True)
class Consumer:
    """Who reads weights.

    Attributes:
        context: what it is compiled for.
        problems: takes what is wrong.
        namespace: of the app.
        engine: name of the engine.
        nodes: pods of one copy.
        replicas: most copies.
        has_gpu: whether its pods have GPUs.
        transfer: how kaigen's downloader moves what it fetches.
    """

    context: Context
    problems: Problems
    namespace: str
    engine: str
    nodes: int
    replicas: int
    has_gpu: bool
    transfer: Transfer = field(repr=False)


def known_bytes(repo: str) -> int | None:
    """Bytes of the weights of a Hub repository; None when the catalogue does not have it."""
    preset = find_preset(repo)
    return int(preset.weights_gib * 2**30) if preset is not None else None


def model_weights(use: str | ServedModel, consumer: Consumer) -> Weights:
    """Weights of the model that a spec names.

    Raises:
        ProblemError: when they cannot be had.
    """
    at: SpecPath = ("spec", "model")
    if isinstance(use, str):
        return _from_model(use, MODEL_FOLDER, at, consumer)
    if use.mount_path is not None and (use.hugging_face is not None or use.folder is not None):
        kind = "huggingFace" if use.hugging_face is not None else "folder"
        consumer.problems.error(
            "KG0340",
            f"`mountPath` has no effect on `{kind}`: nothing is mounted",
            (*at, "mountPath"),
            "leave it out",
        )
    folder = (use.mount_path or MODEL_FOLDER).rstrip("/") or "/"
    if use.name is not None:
        return _from_model(use.name, folder, (*at, "name"), consumer)
    if use.image is not None:
        check_image_volumes(consumer.context, consumer.problems, (*at, "image"))
        return Weights(
            reference=folder,
            mounts=[read_only_mount("model", folder, use.image.path)],
            volumes=[image_volume("model", use.image, "model.image", (*at, "image"))],
            pull_secrets=use.image.pull_secrets,
            source="image",
        )
    if use.folder is not None:
        return Weights(reference=use.folder, source="image")
    assert use.hugging_face is not None
    return pulled(use.hugging_face, (*at, "huggingFace"), consumer)


def _from_model(name: str, folder: str, origin: SpecPath, consumer: Consumer) -> Weights:
    model = find_model(consumer.context, consumer.namespace, name, origin)
    problems, nodes, replicas = consumer.problems, consumer.nodes, consumer.replicas
    if nodes > 1:
        check_sharing(model, problems, pods=nodes, what=f"{nodes} nodes", origin=origin)
    else:
        what = f"{replicas} replicas"
        check_sharing(model, problems, pods=replicas, what=what, origin=origin, certain=False)
    warn_of_pinned_volume(model, problems, has_gpu=consumer.has_gpu, consumer="Topology", origin=origin)
    mount = read_only_mount("model", folder, None)
    claimed = settings.text(
        "model.claimName", claim_name(model), "Volume that holds the weights.", origin=origin
    )
    hub, volume = model.spec.source.hugging_face, model.spec.store.volume
    return Weights(
        reference=folder,
        init=[gate(model, consumer.context, name="wait-for-model", folder=folder, mounts=[mount])],
        mounts=[mount],
        volumes=[{"name": "model", "persistentVolumeClaim": {"claimName": claimed, "readOnly": True}}],
        annotations=mount_annotations(model),
        source="volume" if volume else "bucket",
        # Of a model that is in no catalogue: the volume is not smaller than what it holds.
        size=(known_bytes(hub.repo) if hub else None) or (units(volume.size) or 0 if volume else None),
        revision=hub.revision if hub and _COMMIT.fullmatch(hub.revision) else "",
        pinned=not is_shared(model),
    )


def pulled(
    hub: PulledModel, origin: SpecPath, consumer: Consumer, *, size: int | None = None, chosen: bool = True
) -> Weights:
    """Weights from the Hub, pulled when the engine starts.

    Args:
        hub: the repository.
        origin: where it stands in the spec.
        consumer: who reads them.
        size: bytes, when they are known.
        chosen: the spec names the repository, not a catalogue.

    Raises:
        ProblemError: for a container, of which nobody knows how it pulls.
    """
    size = known_bytes(hub.repo) if size is None else size
    commit = hub.revision if _COMMIT.fullmatch(hub.revision) else ""
    if not commit and chosen:
        consumer.problems.warning(
            "KG0310",
            f"`{hub.revision}` is not a commit, so what it stands for may change without review",
            (*origin, "revision") if "revision" in hub.model_fields_set else (*origin, "repo"),
            "name the commit, 40 hex digits, in `revision`",
        )
    if consumer.engine == "container":
        raise ProblemError(
            "KG0341",
            "a container pulls its weights in a way of its own",
            origin,
            "make them a Model and name it, or say in `env` and `args` what it shall pull",
        )
    if consumer.engine == "transformers":
        return _fetched(hub, origin, consumer, commit, size, chosen=chosen)
    token_at: SpecPath = (*origin, "tokenSecret") if chosen else ("spec", "tokenSecret")
    env: list[Tree] = [_token(hub.token_secret, token_at)] if hub.token_secret else []
    if hub.endpoint:
        env.append({"name": "HF_ENDPOINT", "value": hub.endpoint})
    return Weights(
        reference=hub.repo,
        arguments=[
            f"--revision={hub.revision}",
            f"--tokenizer-revision={hub.revision}",
            f"--code-revision={hub.revision}",
        ],
        env=env,
        source="hub",
        size=size,
        revision=commit,
        offline=False,
    )


def _token(secret: TokenSecret, origin: SpecPath) -> Tree:
    return {
        "name": "HF_TOKEN",
        "valueFrom": {
            "secretKeyRef": {
                "name": settings.text(
                    "model.tokenSecret.name",
                    secret.name,
                    "Secret that holds the Hub token.",
                    origin=(*origin, "name"),
                ),
                "key": settings.text(
                    "model.tokenSecret.key", secret.key, "Key of that Secret.", origin=(*origin, "key")
                ),
            }
        },
    }


def _fetched(
    hub: PulledModel, origin: SpecPath, consumer: Consumer, commit: str, size: int | None, *, chosen: bool
) -> Weights:
    """For an engine that reads a folder: kaigen's downloader fills one before it starts."""
    source = Source(
        hugging_face=HuggingFace(
            repo=hub.repo,
            revision=hub.revision,
            exclude=list(UNREAD),
            token_secret=hub.token_secret,
            endpoint=hub.endpoint,
        )
    )
    init = fetch_container(
        source,
        consumer.transfer,
        consumer.context,
        name="fetch-model",
        destination=FETCHED_FOLDER,
        mounts=[{"name": CACHE, "mountPath": CACHE_FOLDER}],
        origin=origin[:-1],
        transfer_origin=("spec", "transfer"),
        own_token=chosen,
    )
    return Weights(reference=FETCHED_FOLDER, init=[init], size=size, revision=commit)


def adapter_weights(adapters: Sequence[Adapter], consumer: Consumer) -> list[Weights]:
    """The LoRA adapters of a spec; the reference of each is `NAME=FOLDER`."""
    taken: dict[str, int] = {}
    found = []
    for index, adapter in enumerate(adapters):
        at: SpecPath = ("spec", "adapters", index)
        if taken.setdefault(adapter.name, index) != index:
            consumer.problems.error(
                "KG0342", f"two adapters are called `{adapter.name}`", (*at, "name"), "rename one of them"
            )
            continue
        empty = Weights()
        found.append(
            consumer.problems.attempt(
                lambda adapter=adapter, at=at: _adapter(adapter, at, consumer),  # type: ignore[misc]
                empty,
            )
        )
    return found


def _adapter(adapter: Adapter, at: SpecPath, consumer: Consumer) -> Weights:
    folder = f"{ADAPTERS_FOLDER}/{adapter.name}"
    reference, volume = f"{adapter.name}={folder}", f"adapter-{adapter.name}"
    if adapter.model is not None:
        origin = (*at, "model")
        model = find_model(consumer.context, consumer.namespace, adapter.model, origin)
        pods = consumer.nodes * consumer.replicas
        check_sharing(
            model,
            consumer.problems,
            pods=pods,
            what=f"{pods} pods",
            origin=origin,
            certain=consumer.nodes > 1,
        )
        mount = read_only_mount(volume, folder, None)
        claim: Tree = {"claimName": claim_name(model), "readOnly": True}
        return Weights(
            reference=reference,
            init=[
                gate(
                    model,
                    consumer.context,
                    name=f"wait-for-{adapter.name}",
                    folder=folder,
                    mounts=[mount],
                )
            ],
            mounts=[mount],
            volumes=[{"name": volume, "persistentVolumeClaim": claim}],
            annotations=mount_annotations(model),
            pinned=not is_shared(model),
        )
    if adapter.volume is not None:
        claim = {"claimName": adapter.volume.claim_name, "readOnly": True}
        return Weights(
            reference=reference,
            mounts=[read_only_mount(volume, folder, adapter.volume.path)],
            volumes=[{"name": volume, "persistentVolumeClaim": claim}],
        )
    if adapter.image is not None:
        check_image_volumes(consumer.context, consumer.problems, (*at, "image"))
        return Weights(
            reference=reference,
            mounts=[read_only_mount(volume, folder, adapter.image.path)],
            volumes=[image_volume(volume, adapter.image, "", (*at, "image"))],
            pull_secrets=adapter.image.pull_secrets,
        )
    assert adapter.hugging_face is not None
    hub = adapter.hugging_face
    if not _COMMIT.fullmatch(hub.revision):
        consumer.problems.warning(
            "KG0310",
            f"`{hub.revision}` is not a commit, so what it stands for may change without review",
            (*at, "huggingFace", "revision" if "revision" in hub.model_fields_set else "repo"),
            "name the commit, 40 hex digits, in `revision`",
        )
    init = fetch_container(
        Source(hugging_face=hub),
        consumer.transfer,
        consumer.context,
        name=f"fetch-{adapter.name}",
        destination=folder,
        mounts=[{"name": volume, "mountPath": folder}],
        origin=at,
        transfer_origin=("spec", "transfer"),
        own_token=False,
    )
    return Weights(
        reference=reference,
        init=[init],
        mounts=[read_only_mount(volume, folder, None)],
        volumes=[{"name": volume, "emptyDir": {}}],
    )
