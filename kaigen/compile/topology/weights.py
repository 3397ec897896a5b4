"""Weights and LoRA adapters of a Topology."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from msgspec.structs import replace

from kaigen.compile.builders import settings
from kaigen.compile.builders.job_output import mount_output
from kaigen.compile.builders.mounts import Mounted, MountPoint, mount_claim, mount_image, read_only_mount
from kaigen.compile.builders.settings import key
from kaigen.compile.builders.weights import Fetch, fetch_container
from kaigen.compile.engines.launch import Weights
from kaigen.compile.known_model import KnownModel
from kaigen.compile.model.mounted import conversion
from kaigen.compile.model.volume import FORM, find_used, mount_model
from kaigen.compile.problems import Problems, report_ignored_field
from kaigen.compile.topology.hub import COMMIT, Consumer, check_commit, hub_weights, preset_bytes, preset_weights
from kaigen.core.json_types import FieldPath
from kaigen.diagnostics.problem import ProblemError
from kaigen.kinds.blocks import FileSource, HubRepository
from kaigen.kinds.model import Model
from kaigen.kinds.serving import Adapter, ServedModel, WeightsVolume
from kaigen.kinds.topology import TopologySpec


def topology_weights(spec: TopologySpec, model: KnownModel | None, consumer: Consumer, problems: Problems) -> Weights:
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
        weights = _with_file(spec.model, _model_weights(spec.model, consumer, problems), problems)
        return weights if model is None else replace(weights, size=model.weights_bytes)
    if model is not None and model.preset is not None:
        return preset_weights(spec, model.preset, consumer, problems)
    if spec.preset is not None or not consumer.engine.requires_model:
        return Weights()
    raise ProblemError(
        "KG0341",
        "the spec names no model",
        ("spec",),
        "set `model` to the name of a Model, or to another source of weights",
    )


def _with_file(use: str | ServedModel, weights: Weights, problems: Problems) -> Weights:
    """Return weights of which the engine loads the file that the spec names."""
    if isinstance(use, str) or use.file is None:
        return weights
    if use.hugging_face is not None:
        at: FieldPath = ("spec", "model", "file")
        hint = "set `huggingFace.gguf` to the quantization of the file"
        report_ignored_field(problems, "file", at, "on `huggingFace`, which the engine pulls", hint)
        return weights
    return replace(weights, reference=f"{weights.reference.rstrip('/')}/{use.file}")


def _model_weights(use: str | ServedModel, consumer: Consumer, problems: Problems) -> Weights:
    """Return the weights of the model that a spec names.

    Raises:
        ProblemError: the engine cannot load them.
    """
    at: FieldPath = ("spec", "model")
    if isinstance(use, str):
        model = find_used(Model, use, None, at, consumer, FORM)
        return _from_model(model, _point(consumer.folders.model, consumer), at, consumer, problems)
    if use.mount_path is not None and (use.hugging_face is not None or use.folder is not None):
        kind = "huggingFace" if use.hugging_face is not None else "folder"
        problems.error(
            "KG0340", f"`mountPath` has no effect on `{kind}`: nothing is mounted", (*at, "mountPath"), "leave it out"
        )
    folder = (use.mount_path or consumer.folders.model).rstrip("/") or "/"
    point = _point(folder, consumer)
    if use.namespace is not None and use.name is None:
        where, hint = "without the name of a Model", "leave it out, or set `name` to a Model in it"
        report_ignored_field(problems, "namespace", (*at, "namespace"), where, hint)
    if use.name is not None:
        model = find_used(Model, use.name, use.namespace, (*at, "name"), consumer, FORM)
        return _from_model(model, point, (*at, "name"), consumer, problems, use.namespace)
    if use.image is not None:
        setting = f"{point.settings}image"
        image = mount_image(use.image, point, consumer, (*at, "image"), problems, setting)
        return Weights(folder, image, source="image")
    if use.job is not None:
        point = replace(point, gate="wait-for-job")
        output = mount_output(use.job, point, consumer, (*at, "job"), problems, adapter=False)
        return Weights(folder, output, size=output.room)
    if use.volume is not None:
        return _from_volume(use.volume, point, (*at, "volume"))
    if use.folder is not None:
        return Weights(use.folder, source="image")
    assert use.hugging_face is not None
    return hub_weights(use.hugging_face, (*at, "huggingFace"), consumer, problems)


def _point(folder: str, consumer: Consumer) -> MountPoint:
    return MountPoint("model", folder, "wait-for-model", "model.", consumer.own_downloader)


def _from_model(
    model: Model,
    point: MountPoint,
    origin: FieldPath,
    consumer: Consumer,
    problems: Problems,
    namespace: str | None = None,
) -> Weights:
    name = model.metadata.name
    # A user's own container may read any files.
    if conversion(model.spec) is not None and consumer.engine.requires_model and not consumer.engine.is_ring:
        message = f"Model `{name}` is converted for distributed-llama, and {consumer.engine.label} cannot read it"
        hint = "use `engine: distributedLlama`, or a Model without `convert`"
        problems.error("KG0398", message, origin, hint)
    existing = model.spec.source.volume
    mounted = mount_model(model, point, consumer, origin, problems, namespace)
    hub = model.spec.source.hugging_face
    return Weights(
        point.folder,
        # An existing volume may be one of one node.
        replace(mounted, pinned=mounted.pinned or existing is not None),
        source="volume" if model.spec.store.volume or existing else "bucket",
        # Without an entry in the catalogue, the size of the volume is an upper bound.
        size=(preset_bytes(hub.repo, consumer.context.catalog) if hub else None) or mounted.room,
        revision=hub.revision if hub and COMMIT.fullmatch(hub.revision) else "",
        files=existing.files if existing else {},
        stored=model.spec.source,
    )


def _from_volume(use: WeightsVolume, point: MountPoint, at: FieldPath) -> Weights:
    """Return weights that are in an existing volume.

    It may be a volume of one node, so a rollout stops the old pod before the new one needs the volume elsewhere.
    """
    claim = settings.text(
        f"{point.settings}claimName",
        use.claim_name,
        "PersistentVolumeClaim with the weights.",
        origin=(*at, "claimName"),
    )
    mounted = replace(mount_claim(claim, point, use.path), pinned=True)
    return Weights(point.folder, mounted, files=use.files)


def adapter_mounts(adapters: Sequence[Adapter], consumer: Consumer, problems: Problems) -> list[Mounted]:
    """Return how each adapter of a spec reaches the engine's container."""
    taken: dict[str, int] = {}
    found = []
    for index, adapter in enumerate(adapters):
        at: FieldPath = ("spec", "adapters", index)
        if taken.setdefault(adapter.name, index) != index:
            problems.error(
                "KG0342", f"two adapters have the name `{adapter.name}`", (*at, "name"), "rename one of them"
            )
            continue
        found.append(problems.attempt(partial(_mount_adapter, adapter, at, consumer, problems), Mounted()))
    return found


def _mount_adapter(adapter: Adapter, at: FieldPath, consumer: Consumer, problems: Problems) -> Mounted:
    point = MountPoint(
        volume=f"adapter-{adapter.name}",
        folder=f"{consumer.folders.adapters}/{adapter.name}",
        gate=f"wait-for-{adapter.name}",
        settings=f"adapters.{key(adapter.name)}.",
        transfer=consumer.own_downloader,
    )
    if adapter.model is not None:
        origin = (*at, "model")
        model = find_used(Model, adapter.model, None, origin, consumer, "")
        return mount_model(model, point, consumer, origin, problems)
    if adapter.job is not None:
        return mount_output(adapter.job, point, consumer, (*at, "job"), problems, adapter=True)
    if adapter.volume is not None:
        return mount_claim(adapter.volume.claim_name, point, adapter.volume.path)
    if adapter.image is not None:
        return mount_image(adapter.image, point, consumer, (*at, "image"), problems)
    assert adapter.hugging_face is not None
    check_commit(adapter.hugging_face, (*at, "huggingFace"), "set", problems)
    return _mount_downloaded(adapter, adapter.hugging_face, point, at, consumer)


def _mount_downloaded(
    adapter: Adapter, hub: HubRepository, point: MountPoint, at: FieldPath, consumer: Consumer
) -> Mounted:
    """Return the mount of a repository that the downloader fetches into a folder of the pod."""
    fetch = Fetch(
        source=FileSource(hugging_face=hub),
        origin=at,
        destination=point.folder,
        transfer=consumer.transfer,
        own_token=False,
    )
    mount = {"name": point.volume, "mountPath": point.folder}
    return Mounted(
        folder=point.folder,
        init=[fetch_container(fetch, consumer.context, name=f"fetch-{adapter.name}", mounts=[mount])],
        mounts=[read_only_mount(point.volume, point.folder, None)],
        volumes=[{"name": point.volume, "emptyDir": {}}],
        downloaded=True,
    )
