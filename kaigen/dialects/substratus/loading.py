"""Lowers `Model` and `Dataset`: a Job that runs the container, and a Model or Dataset that stores what it writes.

kaigen keeps the meaning of fields and fixes bugs of the operator (source: its Go code at commit 7352fb0):

- A change of the image, the parameters or the data is a new run; the operator ignores it once the first run is done.
- Readers wait for the files of exactly that run, and never see half of them.
- The container writes to a volume of its own; the operator mounts the whole bucket into it.
"""

from __future__ import annotations

from typing import Any

from kaigen.core.json_types import FieldPath
from kaigen.dialects.draft import Draft
from kaigen.dialects.substratus.container import CONTENT, Folders, put_container
from kaigen.dialects.substratus.image import put_image, refuse_local
from kaigen.dialects.substratus.kinds import ContainerSpec, Dataset, Files, Model, ModelSpec, Run, Trainer
from kaigen.dialects.substratus.names import artifact_hash, plural
from kaigen.dialects.substratus.resource import GROUP, SPEC, SubstratusLowering, one_of
from kaigen.kinds import model as kinds_model
from kaigen.kinds.block import Block
from kaigen.kinds.compat import Naming
from kaigen.kinds.job import Job
from kaigen.kinds.lowering import Lowered, LoweringContext, LoweringResult
from kaigen.kinds.positioned import Positioned

_DEFAULT_SIZE = "100Gi"
"""The local disk that the operator gives to the cache of a bucket."""

_STORE: FieldPath = ("spec", "store")


def _put_store(draft: Draft, lowering: SubstratusLowering) -> None:
    """Put the bucket or the volume of a Model or a Dataset.

    Args:
        draft: the Model or Dataset.
        lowering: of the resource.
    """
    artifacts = lowering.settings.get("artifacts")
    at = lowering.size_at()
    if artifacts is None:
        volume: dict[str, Any] = {"size": lowering.size or _DEFAULT_SIZE, "retain": True}
        draft.put((*_STORE, "volume"), volume | _shared(lowering), at)
        return
    draft.hints["KG0317"] = "in kaigen.yaml, make `dialects.substratus.artifacts` a block with `uri` and `credentials`"
    bucket: dict[str, Any] = {"uri": artifacts} if isinstance(artifacts, str) else dict(artifacts)
    draft.put((*_STORE, "bucket"), bucket | {"uri": _uri(str(bucket["uri"]), lowering)}, at)


def _shared(lowering: SubstratusLowering) -> dict[str, Any]:
    """Return the fields of a volume that pods of several nodes mount; none without such a class."""
    storage_class = lowering.settings.get("storageClassName")
    if not storage_class:
        return {}
    return {"storageClassName": storage_class, "accessModes": ["ReadWriteMany"]}


def _uri(root: str, lowering: SubstratusLowering) -> str:
    """Return the folder of the files: a readable one, or with `compat` the operator's hash."""
    cluster, root = lowering.settings.get("clusterName"), root.rstrip("/")
    kind, namespace, name = lowering.kind, lowering.namespace, lowering.name
    if not lowering.compat:
        return "/".join(part for part in (root, cluster, namespace, plural(kind), name) if part)
    if not cluster:
        lowering.error(
            "KG0412",
            "the operator's folder in the bucket depends on the name of the cluster, which nothing says",
            lowering.directive_at("compat"),
            "set `dialects.substratus.clusterName` in kaigen.yaml",
        )
    return f"{root}/{artifact_hash(str(cluster), namespace, kind, name)}"


DIRECTIVES = ("claim", "size")

_LOADER: FieldPath = (*SPEC, "loader")
_TRAINER: FieldPath = (*SPEC, "trainer")

_OF_MODEL = Folders("/base-model/saved", "/data", "/model/saved")
_OF_DATASET = Folders("", "", "/data")
"""Folders of the first releases, which had the shape of the design."""

_JOBS = {"Model": ("modeller", "model", 0), "Dataset": ("data-loader", "load", 2)}
"""By kind: suffix of the operator's Job, name of its container, and retries."""


def lower_model(model: Model, document: Positioned, context: LoweringContext) -> LoweringResult:
    """Return a `Model` as a Job and a Model, or as a Model alone if no container writes its files.

    Args:
        model: the validated document.
        document: the document with positions.
        context: what else the lowering may read.
    """
    return _lower(model, "Model", document, context)


def lower_dataset(dataset: Dataset, document: Positioned, context: LoweringContext) -> LoweringResult:
    """Return a `Dataset` as a Job and a Dataset, or as a Dataset alone if no container writes its files.

    Args:
        dataset: the validated document.
        document: the document with positions.
        context: what else the lowering may read.
    """
    return _lower(dataset, "Dataset", document, context)


def _lower(files: Files, kind: str, document: Positioned, context: LoweringContext) -> LoweringResult:
    spec = files.spec
    lowering = SubstratusLowering(files, kind, document, context, DIRECTIVES)
    refuse_local(spec, lowering)
    trainer = spec.trainer if isinstance(spec, ModelSpec) else None
    if trainer is not None and spec.loader is not None and (spec.loader.params or spec.loader.resources):
        message = "`loader` and `trainer` exclude each other: a Model is loaded or trained"
        lowering.error("KG0412", message, _LOADER, "keep one of the two", key=True)
    run = (trainer, _TRAINER) if trainer is not None else (spec.loader, _LOADER) if spec.loader else None
    suffix, container, retries = _JOBS[kind]
    job = lowering.draft(f"{lowering.name}-{suffix}")
    has_image = put_image(job, spec, lowering)
    if _is_location(spec, lowering, run, has_image=has_image):
        return _location(files, lowering, has_image=has_image)
    script = "train.sh" if trainer is not None else "load.sh"
    put_container(job, spec, lowering, run=run, script=script)
    folders = CONTENT if not lowering.is_design else _OF_MODEL if kind == "Model" else _OF_DATASET
    _put_inputs(job, spec, folders, lowering)
    volume = {"size": lowering.size or _DEFAULT_SIZE, "mountPath": folders.output, "retain": False}
    job.put(("spec", "output", "volume"), volume | _shared(lowering), lowering.size_at())
    reads = job.get(("spec", "model")) is not None or job.get(("spec", "inputs")) is not None
    job.put(("spec", "retries"), retries if lowering.compat or reads else 2)
    stored = lowering.draft(lowering.app_name())
    # What a Model waits for is what its Job reads.
    waits_at = job.origins.get(("spec", "model"), ("metadata", "name"))
    stored.put(("spec", "source", "job", "name"), f"{lowering.name}-{suffix}", waits_at)
    stored.hints["KG0301"] = "first correct what is wrong with its container"
    _put_store(stored, lowering)
    if lowering.pod_security != "restricted":
        # The group of what the container wrote.
        stored.put(("spec", "security", "fsGroup"), GROUP)
    naming = Naming(container=container, volume="artifacts", plain=True) if lowering.compat else None
    return _result(lowering, ((job, Job, naming), (stored, _target(kind), None)))


def _target(kind: str) -> type[kinds_model.Model] | type[kinds_model.Dataset]:
    return kinds_model.Model if kind == "Model" else kinds_model.Dataset


def _result(lowering: SubstratusLowering, drafts: tuple[tuple[Draft, type[Any], Naming | None], ...]) -> LoweringResult:
    if lowering.failed:
        return lowering.result()
    specs: list[Lowered] = []
    for draft, kind, naming in drafts:
        block = draft.finish(kind, lowering)
        if block is None:
            return lowering.result()
        specs.append(draft.lowered(block, naming))
    return lowering.result(*specs)


def _is_location(
    spec: ContainerSpec, lowering: SubstratusLowering, run: tuple[Run, FieldPath] | None, *, has_image: bool
) -> bool:
    """Return whether no container writes files: there is no image in the design, or its loader is empty."""
    if lowering.failed:
        return False
    if has_image:
        is_empty = run is None or (not isinstance(run[0], Trainer) and not run[0].params)
        return spec.container is not None and is_empty and not spec.command and not spec.params
    if lowering.is_design or lowering.failed:
        return True
    message = "neither `image` nor `build` names an image, so the operator waits forever"
    lowering.error("KG0412", message, SPEC if lowering.has_spec else ("metadata", "name"), "set `image` or `build`")
    return False


def _location(files: Files, lowering: SubstratusLowering, *, has_image: bool) -> LoweringResult:
    """Return a Model or Dataset whose files nothing writes: those of a claim, or a place for them."""
    metadata = files.metadata
    if has_image:
        reason = "an empty `loader` runs nothing, and makes only a place for files"
        lowering.without_effect((*SPEC, "container"), reason, "delete it, or set `loader.params`")
    if lowering.has("trainer"):
        reason = "`container` names no image that could train"
        lowering.without_effect(_TRAINER, reason, "set `container.image`, or delete `trainer`")
    claim = lowering.given.get("claim", metadata.name)
    at = lowering.directive_at("claim") if "claim" in lowering.given else ("metadata", "name")
    draft = lowering.draft(lowering.app_name())
    unused = {"pod-security": "nothing runs"}
    if lowering.find_object("v1", "PersistentVolumeClaim", claim) is not None or "claim" in lowering.given:
        draft.put(("spec", "source", "volume", "claimName"), claim, at)
        unused["size"] = "nothing is made, because the claim exists"
    else:
        draft.put(("spec", "source", "empty"), {}, at)
        _put_store(draft, lowering)
    for name, reason in unused.items():
        if name in lowering.given:
            lowering.without_effect(lowering.directive_at(name), reason)
    return _result(lowering, ((draft, _target(lowering.kind), None),))


def _put_inputs(draft: Draft, spec: ContainerSpec, folders: Folders, lowering: SubstratusLowering) -> None:
    """Put the Model and the Dataset that the container reads."""
    if not isinstance(spec, ModelSpec):
        return
    trainer = spec.trainer
    models = [("model", spec.model, SPEC), ("baseModel", spec.base_model, SPEC)]
    datasets: list[tuple[str, Block | None, FieldPath]] = [
        ("dataset", spec.dataset, SPEC),
        ("trainingDataset", spec.training_dataset, SPEC),
    ]
    if trainer is not None:
        models += [("baseModel", trainer.base_model, _TRAINER), ("sourceModel", trainer.source_model, _TRAINER)]
        datasets.append(("dataset", trainer.dataset, _TRAINER))
    model = one_of(models, lowering)
    named = lowering.reference("Model", model[0]) if model is not None else {}
    if model is not None and named:
        draft.put(("spec", "model"), {**named, "mountPath": folders.model}, model[1])
        lowering.put_origins(draft, ("spec", "model"), *model)
    dataset = one_of(datasets, lowering)
    named = lowering.reference("Dataset", dataset[0], "dataset") if dataset is not None else {}
    if dataset is not None and named:
        parent, _, folder = folders.data.rpartition("/")
        inputs: FieldPath = ("spec", "inputs")
        draft.put((*inputs, "files"), [{**named, "path": folder}], dataset[1])
        lowering.put_origins(draft, (*inputs, "files", 0), *dataset, field="dataset")
        draft.put((*inputs, "mountPath"), parent or "/")
