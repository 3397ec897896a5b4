"""LoRA adapters of a served model."""

from __future__ import annotations

from collections.abc import Sequence

from kaigen.compile.builders.job_gate import job_gate
from kaigen.compile.builders.job_output import check_result, check_sharing_of_output, job_output
from kaigen.compile.builders.settings import key
from kaigen.compile.builders.volumes import check_image_volumes, image_volume, read_only_mount
from kaigen.compile.builders.weights import fetch_container
from kaigen.compile.engines.launch import Weights
from kaigen.compile.expressions import SpecPath, Tree
from kaigen.compile.model.volume import (
    check_sharing,
    find_model,
    gates,
    is_shared,
    model_claim,
    mount_annotations,
    weights_mount,
)
from kaigen.compile.problems import Problems
from kaigen.compile.topology.consumer import Consumer
from kaigen.compile.topology.pulled import COMMIT
from kaigen.kinds.block import set_fields
from kaigen.kinds.blocks import FileSource
from kaigen.kinds.serving import Adapter


def adapter_weights(adapters: Sequence[Adapter], consumer: Consumer, problems: Problems) -> list[Weights]:
    """Return the LoRA adapters of a spec; the reference of each is `NAME=FOLDER`."""
    taken: dict[str, int] = {}
    weights = []
    for index, adapter in enumerate(adapters):
        at: SpecPath = ("spec", "adapters", index)
        if taken.setdefault(adapter.name, index) != index:
            problems.error(
                "KG0342", f"two adapters have the name `{adapter.name}`", (*at, "name"), "rename one of them"
            )
            continue
        empty = Weights()
        weights.append(
            problems.attempt(
                lambda adapter=adapter, at=at: _adapter(adapter, at, consumer, problems),  # type: ignore[misc]
                empty,
            )
        )
    return weights


def _adapter(adapter: Adapter, at: SpecPath, consumer: Consumer, problems: Problems) -> Weights:
    folder = f"{consumer.folders.adapters}/{adapter.name}"
    reference, volume = f"{adapter.name}={folder}", f"adapter-{adapter.name}"
    if adapter.model is not None:
        origin = (*at, "model")
        model = find_model(consumer.context, consumer.namespace, adapter.model, origin)
        pods = consumer.nodes * consumer.replicas
        check_sharing(
            model,
            problems,
            pods=pods,
            what=f"{pods} pods",
            origin=origin,
            certain=consumer.nodes > 1,
        )
        claimed = model_claim(f"adapters.{key(adapter.name)}.claimName", model, origin)
        claim: Tree = {"claimName": claimed, "readOnly": True}
        return Weights(
            reference=reference,
            init=gates(
                model,
                consumer.context,
                name=f"wait-for-{adapter.name}",
                volume=volume,
                folder=folder,
                transfer=consumer.own_downloader,
            ),
            mounts=[weights_mount(model, volume=volume, folder=folder)],
            volumes=[{"name": volume, "persistentVolumeClaim": claim}],
            annotations=mount_annotations(model),
            pinned=not is_shared(model),
        )
    if adapter.job is not None:
        job, origin = adapter.job.name, (*at, "job", "name")
        prefix = f"adapters.{key(adapter.name)}."
        output = job_output(consumer.context, consumer.namespace, job, origin, prefix)
        check_result(output, job, adapter.job.path, adapter=True, origin=origin)
        check_sharing_of_output(output, job, consumer.nodes * consumer.replicas, origin, problems)
        wait = job_gate(
            output.run,
            consumer.context,
            name=f"wait-for-{adapter.name}",
            transfer=consumer.own_downloader,
        )
        return Weights(
            reference=reference,
            init=[wait],
            runs=[output.run],
            mounts=[read_only_mount(volume, folder, adapter.job.path)],
            volumes=[
                {"name": volume, "persistentVolumeClaim": {"claimName": output.claim, "readOnly": True}}
            ],
        )
    if adapter.volume is not None:
        claim = {"claimName": adapter.volume.claim_name, "readOnly": True}
        return Weights(
            reference=reference,
            mounts=[read_only_mount(volume, folder, adapter.volume.path)],
            volumes=[{"name": volume, "persistentVolumeClaim": claim}],
        )
    if adapter.image is not None:
        check_image_volumes(consumer.context, problems, (*at, "image"))
        return Weights(
            reference=reference,
            mounts=[read_only_mount(volume, folder, adapter.image.path)],
            volumes=[image_volume(volume, adapter.image, "", (*at, "image"))],
            pull_secrets=adapter.image.pull_secrets,
        )
    assert adapter.hugging_face is not None
    hub = adapter.hugging_face
    if not COMMIT.fullmatch(hub.revision):
        problems.warning(
            "KG0310",
            f"`{hub.revision}` is not a commit, so its content may change without review",
            (*at, "huggingFace", "revision" if "revision" in set_fields(hub) else "repo"),
            "set `revision` to a commit, 40 hex digits",
        )
    init = fetch_container(
        FileSource(hugging_face=hub),
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
        downloaded=True,
    )
