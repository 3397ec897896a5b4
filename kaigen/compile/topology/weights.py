"""Weights of a served model: what the engine loads, and what its pod mounts, waits for or fetches."""

from __future__ import annotations

from msgspec.structs import replace

from kaigen.compile.builders import settings
from kaigen.compile.builders.buckets import bucket_volume, check_grant, volume_suffix
from kaigen.compile.builders.job_gate import job_gate
from kaigen.compile.builders.job_output import check_result, check_sharing_of_output, job_output
from kaigen.compile.builders.volumes import check_image_volumes, image_volume, read_only_mount
from kaigen.compile.engines.launch import Weights
from kaigen.compile.expressions import Release, SpecPath, Tree
from kaigen.compile.ignored_fields import report_ignored_field
from kaigen.compile.known_model import KnownModel
from kaigen.compile.model.served import conversion, served_bucket
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
from kaigen.compile.topology.consumer import Consumer
from kaigen.compile.topology.pulled import COMMIT, known_bytes, preset_weights, pulled_weights
from kaigen.diagnostics.problem import ProblemError
from kaigen.kinds.model import Model
from kaigen.kinds.serving import JobOutput, ServedModel, WeightsVolume
from kaigen.kinds.topology import TopologySpec
from kaigen.kubernetes.quantities import units


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
        return preset_weights(spec, model.preset, consumer, problems)
    if spec.preset is not None or not consumer.engine.requires_model:
        return Weights()
    raise ProblemError(
        "KG0341",
        "the spec names no model",
        ("spec",),
        "set `model` to the name of a Model, or to another source of weights",
    )


def _model_weights(use: str | ServedModel, consumer: Consumer, problems: Problems) -> Weights:
    """Return the weights of the model that a spec names.

    Raises:
        ProblemError: the engine cannot load them.
    """
    at: SpecPath = ("spec", "model")
    if isinstance(use, str):
        model = _same_namespace(use, at, consumer)
        return _from_model(model, consumer.folders.model, at, consumer, problems)
    if use.mount_path is not None and (use.hugging_face is not None or use.folder is not None):
        kind = "huggingFace" if use.hugging_face is not None else "folder"
        problems.error(
            "KG0340",
            f"`mountPath` has no effect on `{kind}`: nothing is mounted",
            (*at, "mountPath"),
            "leave it out",
        )
    folder = (use.mount_path or consumer.folders.model).rstrip("/") or "/"
    if use.namespace is not None and use.name is None:
        where, hint = "without the name of a Model", "leave it out, or set `name` to a Model in it"
        report_ignored_field(problems, "namespace", (*at, "namespace"), where, hint)
    if use.name is not None:
        if use.namespace in (None, consumer.namespace):
            model = _same_namespace(use.name, (*at, "name"), consumer)
            return _from_model(model, folder, (*at, "name"), consumer, problems)
        assert use.namespace is not None
        model = find_model(consumer.context, use.namespace, use.name, (*at, "name"))
        return _from_bucket(model, use.namespace, folder, at, consumer, problems)
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
    return pulled_weights(use.hugging_face, (*at, "huggingFace"), consumer, problems)


def _same_namespace(name: str, origin: SpecPath, consumer: Consumer) -> Model:
    """Return a Model of the app's namespace.

    Raises:
        ProblemError: there is none.
    """

    def elsewhere(place: str) -> str:
        found = consumer.context.specs.find(Model, place, name)
        in_bucket = found is not None and served_bucket(found.spec) is not None
        return f"its weights are in a bucket: set `model: {{name: {name}, namespace: {place}}}`" * in_bucket

    return find_model(consumer.context, consumer.namespace, name, origin, elsewhere=elsewhere)


def _from_bucket(
    model: Model, namespace: str, folder: str, at: SpecPath, consumer: Consumer, problems: Problems
) -> Weights:
    """Return the weights of a Model of another namespace, whose bucket this app mounts with a volume of its own.

    Raises:
        ProblemError: they are in a volume.
    """
    bucket, name = served_bucket(model.spec), model.metadata.name
    if bucket is None:
        raise ProblemError(
            "KG0389",
            f"Model `{name}` of namespace `{namespace}` is stored in a volume, and a pod can mount volumes of its own "
            "namespace only",
            (*at, "namespace"),
            f"store it in a bucket, or write a Model in namespace `{consumer.namespace}`",
        )
    check_grant(bucket, consumer.namespace, consumer.context.allow, (*at, "namespace"), problems)
    weights = _from_model(model, folder, (*at, "name"), consumer, problems)
    claim: Tree = {"claimName": Release(volume_suffix(bucket)), "readOnly": True}
    return replace(
        weights,
        volumes=[{"name": "model", "persistentVolumeClaim": claim}],
        objects=bucket_volume(consumer.frame, bucket, fills=False),
    )


def _from_model(
    model: Model, folder: str, origin: SpecPath, consumer: Consumer, problems: Problems
) -> Weights:
    name = model.metadata.name
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
        size=(known_bytes(hub.repo) if hub else None) or (units(volume.size) or 0 if volume else None),
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
    check_result(output, use.name, use.path, adapter=False, origin=at)
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
