"""Weights of a served model: what the engine loads, and what its pod mounts, waits for or fetches."""

from __future__ import annotations

import re

from msgspec import Struct
from msgspec.structs import replace

from kaigen.catalog.presets import Preset, find_preset
from kaigen.compile.builders import settings
from kaigen.compile.builders.job_gate import job_gate
from kaigen.compile.builders.job_output import check_sharing_of_output, job_output
from kaigen.compile.builders.volumes import check_image_volumes, image_volume, read_only_mount
from kaigen.compile.builders.weights import fetch_container
from kaigen.compile.context import Context
from kaigen.compile.engines.base import Engine, HubAccess
from kaigen.compile.engines.launch import Weights
from kaigen.compile.expressions import SpecPath, Tree
from kaigen.compile.ignored_fields import report_ignored_field
from kaigen.compile.known_model import KnownModel, of_preset
from kaigen.compile.model.served import conversion
from kaigen.compile.model.volume import (
    check_sharing,
    find_model,
    gates,
    is_shared,
    model_claim,
    mount_annotations,
    warn_of_pinned_volume,
    weights_mount,
)
from kaigen.compile.problems import Problems
from kaigen.diagnostics.problem import ProblemError
from kaigen.kinds.base import TokenSecret
from kaigen.kinds.block import set_fields
from kaigen.kinds.blocks import HuggingFace, Source, Transfer
from kaigen.kinds.compat import Folders
from kaigen.kinds.serving import JobOutput, PulledModel, ServedModel, WeightsVolume
from kaigen.kinds.topology import TopologySpec
from kaigen.kubernetes.quantities import units

CACHE_VOLUME = "cache"
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
"""Files that kaigen's own server does not read: the same weights in other formats.

Falcon 7B has 13 GiB of safetensors, as much in pickles, and as much for Core ML.
"""

COMMIT = re.compile("[0-9a-f]{40}")


class Consumer(Struct, frozen=True):
    """The pods that read weights.

    Attributes:
        context: what they are compiled for.
        namespace: namespace of the app.
        engine: the engine that loads the weights.
        nodes: pods of one replica.
        replicas: greatest number of replicas.
        has_gpu: whether the pods have GPUs.
        transfer: settings of kaigen's downloader.
        folders: folders in the engine's container.
    """

    context: Context
    namespace: str
    engine: Engine
    nodes: int
    replicas: int
    has_gpu: bool
    transfer: Transfer
    folders: Folders

    @property
    def own_downloader(self) -> Transfer | None:
        """Settings of the downloader if the spec names an image of it, which waiting containers use too."""
        return self.transfer if self.transfer.image is not None else None


def served_weights(
    spec: TopologySpec, model: KnownModel | None, consumer: Consumer, problems: Problems
) -> Weights:
    """Return the weights of the model: those that the spec names, or those of its preset.

    Args:
        spec: the spec.
        model: the model; None when its size is unknown.
        consumer: the pods that read them.
        problems: collects what is wrong with them.

    Raises:
        ProblemError: the spec names no model, or one that the engine cannot load.
    """
    if not consumer.engine.builds_pods:
        return Weights()
    if spec.token_secret is not None and (spec.preset is None or spec.model is not None):
        hint = "set it next to the weights in `model`" if spec.model is not None else "leave it out"
        at = ("spec", "tokenSecret")
        report_ignored_field(problems, "tokenSecret", at, "without a `preset` that is pulled", hint)
    if spec.model is not None:
        weights = _model_weights(spec.model, consumer, problems)
        return weights if model is None else replace(weights, size=model.weights_bytes)
    if model is not None and model.preset is not None:
        return _preset_weights(spec, model.preset, consumer, problems)
    if spec.preset is not None or not consumer.engine.requires_model:
        return Weights()
    raise ProblemError(
        "KG0341",
        "the spec names no model",
        ("spec",),
        "set `model` to the name of a Model, or to another source of weights",
    )


def _preset_weights(spec: TopologySpec, preset: Preset, consumer: Consumer, problems: Problems) -> Weights:
    at = ("spec", "preset")
    if preset.gated and spec.token_secret is None and "HF_TOKEN" not in spec.env:
        problems.error(
            "KG0355",
            f"the repository of `{preset.name}` is gated, and the spec has no token for it",
            at,
            "set `tokenSecret` to a Secret with a Hub token, or download the weights as a Model",
        )
    locked = consumer.context.lock.find(preset.repo, "main", None) if consumer.context.lock else None
    revision = preset.revision or (locked.commit if locked else "")
    if not revision:
        problems.warning(
            "KG0310",
            f"the catalogue has no commit of {preset.repo}",
            at,
            "run `kaigen lock`, or set repository and commit in `model.huggingFace`",
        )
    hub = PulledModel(repo=preset.repo, revision=revision or "main", token_secret=spec.token_secret)
    return _pulled(hub, at, consumer, problems, size=_known_bytes(preset.repo), chosen=False)


def _known_bytes(repo: str) -> int | None:
    """Return the bytes of a Hub repository's weights; None when the catalogue does not have it."""
    preset = find_preset(repo)
    return of_preset(preset).weights_bytes if preset is not None else None


def _model_weights(use: str | ServedModel, consumer: Consumer, problems: Problems) -> Weights:
    """Return the weights of the model that a spec names.

    Raises:
        ProblemError: the engine cannot load them.
    """
    at: SpecPath = ("spec", "model")
    if isinstance(use, str):
        return _from_model(use, consumer.folders.model, at, consumer, problems)
    if use.mount_path is not None and (use.hugging_face is not None or use.folder is not None):
        kind = "huggingFace" if use.hugging_face is not None else "folder"
        problems.error(
            "KG0340",
            f"`mountPath` has no effect on `{kind}`: nothing is mounted",
            (*at, "mountPath"),
            "leave it out",
        )
    folder = (use.mount_path or consumer.folders.model).rstrip("/") or "/"
    if use.name is not None:
        return _from_model(use.name, folder, (*at, "name"), consumer, problems)
    if use.image is not None:
        check_image_volumes(consumer.context, problems, (*at, "image"))
        return Weights(
            reference=folder,
            mounts=[read_only_mount("model", folder, use.image.path)],
            volumes=[image_volume("model", use.image, "model.image", (*at, "image"))],
            pull_secrets=use.image.pull_secrets,
            source="image",
        )
    if use.job is not None:
        return _from_job(use.job, folder, (*at, "job"), consumer, problems)
    if use.volume is not None:
        return _from_volume(use.volume, folder, (*at, "volume"))
    if use.folder is not None:
        return Weights(reference=use.folder, source="image")
    assert use.hugging_face is not None
    return _pulled(use.hugging_face, (*at, "huggingFace"), consumer, problems)


def _from_model(name: str, folder: str, origin: SpecPath, consumer: Consumer, problems: Problems) -> Weights:
    model = find_model(consumer.context, consumer.namespace, name, origin)
    # A user's own container may read any files.
    if conversion(model.spec) is not None and consumer.engine.requires_model and not consumer.engine.is_ring:
        message = (
            f"Model `{name}` is converted for distributed-llama, and {consumer.engine.label} cannot read it"
        )
        hint = "use `engine: distributedLlama`, or a Model without `convert`"
        problems.error("KG0398", message, origin, hint)
    nodes, replicas = consumer.nodes, consumer.replicas
    if nodes > 1:
        check_sharing(model, problems, pods=nodes, what=f"{nodes} nodes", origin=origin)
    else:
        what = f"{replicas} replicas"
        check_sharing(model, problems, pods=replicas, what=what, origin=origin, certain=False)
    warn_of_pinned_volume(model, problems, has_gpu=consumer.has_gpu, consumer="Topology", origin=origin)
    claimed = model_claim("model.claimName", model, origin)
    hub, volume = model.spec.source.hugging_face, model.spec.store.volume
    return Weights(
        reference=folder,
        init=gates(
            model,
            consumer.context,
            name="wait-for-model",
            volume="model",
            folder=folder,
            transfer=consumer.own_downloader,
        ),
        mounts=[weights_mount(model, volume="model", folder=folder)],
        volumes=[{"name": "model", "persistentVolumeClaim": {"claimName": claimed, "readOnly": True}}],
        annotations=mount_annotations(model),
        source="volume" if volume or model.spec.source.volume else "bucket",
        # Without an entry in the catalogue, the size of the volume is an upper bound.
        size=(_known_bytes(hub.repo) if hub else None) or (units(volume.size) or 0 if volume else None),
        revision=hub.revision if hub and COMMIT.fullmatch(hub.revision) else "",
        files=model.spec.source.volume.files if model.spec.source.volume else {},
        pinned=not is_shared(model) or model.spec.source.volume is not None,
    )


def _from_job(use: JobOutput, folder: str, at: SpecPath, consumer: Consumer, problems: Problems) -> Weights:
    """Return the weights that a Job writes to its output.

    Raises:
        ProblemError: there is no such Job, it has no output, or it has errors.
    """
    at = (*at, "name")
    output = job_output(consumer.context, consumer.namespace, use.name, at, "model.")
    check_sharing_of_output(output, use.name, consumer.nodes * consumer.replicas, at, problems)
    return Weights(
        reference=folder,
        init=[job_gate(output.run, consumer.context, name="wait-for-job", transfer=consumer.own_downloader)],
        runs=[output.run],
        mounts=[read_only_mount("model", folder, use.path)],
        volumes=[{"name": "model", "persistentVolumeClaim": {"claimName": output.claim, "readOnly": True}}],
        source="volume",
        size=units(output.volume.size) or 0,
    )


def _from_volume(use: WeightsVolume, folder: str, at: SpecPath) -> Weights:
    """Return weights that are in an existing volume.

    It may be a volume of one node, so a rollout stops the old pod before the new one needs the volume elsewhere.
    """
    claimed = settings.text(
        "model.claimName",
        use.claim_name,
        "PersistentVolumeClaim with the weights.",
        origin=(*at, "claimName"),
    )
    return Weights(
        reference=folder,
        mounts=[read_only_mount("model", folder, use.path)],
        volumes=[{"name": "model", "persistentVolumeClaim": {"claimName": claimed, "readOnly": True}}],
        source="volume",
        files=use.files,
        pinned=True,
    )


def _pulled(
    hub: PulledModel,
    origin: SpecPath,
    consumer: Consumer,
    problems: Problems,
    *,
    size: int | None = None,
    chosen: bool = True,
) -> Weights:
    """Return weights from the Hub, which the engine pulls when it starts.

    Args:
        hub: the repository.
        origin: the spec's field of the repository.
        consumer: the pods that read them.
        size: bytes; None when unknown.
        chosen: whether the spec names the repository, rather than a catalogue.

    Raises:
        ProblemError: kaigen does not know how the container pulls weights.
    """
    size = _known_bytes(hub.repo) if size is None else size
    commit = hub.revision if COMMIT.fullmatch(hub.revision) else ""
    if not commit and chosen:
        problems.warning(
            "KG0310",
            f"`{hub.revision}` is not a commit, so its content may change without review",
            (*origin, "revision") if "revision" in set_fields(hub) else (*origin, "repo"),
            "run `kaigen lock`, or set `revision` to a commit, 40 hex digits",
        )
    if consumer.engine.hub_access is HubAccess.UNKNOWN:
        raise ProblemError(
            "KG0341",
            "kaigen does not know how a container pulls weights",
            origin,
            "create a Model and set `model` to its name, or configure the pull in `env` and `args`",
        )
    if consumer.engine.hub_access is HubAccess.DOWNLOADER:
        return _fetched(hub, origin, consumer, commit, size, chosen=chosen)
    token_at: SpecPath = (*origin, "tokenSecret") if chosen else ("spec", "tokenSecret")
    env: list[Tree] = [_token(hub.token_secret, token_at)] if hub.token_secret else []
    if hub.endpoint:
        env.append({"name": "HF_ENDPOINT", "value": hub.endpoint})
    return Weights(
        reference=hub.repo,
        arguments=consumer.engine.hub_arguments(hub),
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
                    "Secret with the Hugging Face token.",
                    origin=(*origin, "name"),
                ),
                "key": settings.text(
                    "model.tokenSecret.key",
                    secret.key,
                    "Key of the token in the Secret.",
                    origin=(*origin, "key"),
                ),
            }
        },
    }


def _fetched(
    hub: PulledModel, origin: SpecPath, consumer: Consumer, commit: str, size: int | None, *, chosen: bool
) -> Weights:
    """Return weights that kaigen's downloader fetches into a folder before the engine starts."""
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
        destination=consumer.folders.downloaded,
        mounts=[{"name": CACHE_VOLUME, "mountPath": consumer.folders.cache}],
        origin=origin[:-1],
        transfer_origin=("spec", "transfer"),
        own_token=chosen,
    )
    return Weights(
        reference=consumer.folders.downloaded, init=[init], size=size, revision=commit, downloaded=True
    )
