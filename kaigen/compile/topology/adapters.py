"""LoRA adapters of a served model."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from kaigen.compile.builders.job_output import mount_output
from kaigen.compile.builders.mounts import Mounted, MountPoint, mount_claim, mount_image
from kaigen.compile.builders.settings import key
from kaigen.compile.builders.volumes import read_only_mount
from kaigen.compile.builders.weights import Fetch, fetch_container
from kaigen.compile.model.volume import find_used, mount_model
from kaigen.compile.problems import Problems
from kaigen.compile.topology.consumer import Consumer
from kaigen.compile.topology.hub import check_commit
from kaigen.core.json_types import FieldPath
from kaigen.kinds.blocks import FileSource, HubRepository
from kaigen.kinds.model import Model
from kaigen.kinds.serving import Adapter


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
