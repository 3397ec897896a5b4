"""Models and Datasets that a container fills: the Job of that container, and the Model that stores its output."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

from kaigen.core.json_types import FieldPath
from kaigen.kinds.base import APP_NAME_MAX, AUTO, Metadata
from kaigen.kinds.block import derive_fields, set_fields
from kaigen.kinds.blocks import Security
from kaigen.kinds.lowering import Lowered, Lowering, origins_below
from kaigen.kinds.model import Downloaded, DownloadSpec, FilesOfLoader
from kaigen.system.lazy_import import lazy_imports

if TYPE_CHECKING:
    from kaigen.kinds.job import JobSpec, OutputVolume
    from kaigen.kinds.loader import Loader

with lazy_imports():
    from kaigen.kinds import job as jobs
    from kaigen.kinds import loader as loaders

M = TypeVar("M", bound=Downloaded)

LOADER: FieldPath = ("spec", "source", "loader")
"""The field of the container."""

SUFFIX = "-load"
"""What follows the name of the Model in that of its Job."""

_STORE: FieldPath = ("spec", "store", "volume")
_OWN = frozenset({"model", "dataset", "volume", "placement", "security", "image_pull_secrets"})
"""Fields that a Job has in another way."""


def specs_of(block: Downloaded, lowering: Lowering) -> list[Lowered]:
    """Return the specs of a Model or a Dataset: itself, and the Job of its container if a container fills it.

    Args:
        block: the document.
        lowering: collects what is wrong.
    """
    loader = block.spec.source.loader
    if loader is None:
        return [Lowered(block)]
    name = block.metadata.name + SUFFIX
    if len(name) > APP_NAME_MAX:
        lowering.error(
            "KG0204",
            f"the Job of the loader is `{name}`, which has more than {APP_NAME_MAX} characters",
            ("metadata", "name"),
            "choose a shorter name",
        )
    volume = _volume(block.spec, loader, lowering)
    if volume is None:
        return []
    job = jobs.Job(metadata=_metadata(block.metadata, name), spec=_job_spec(block.spec, loader, volume))
    return [Lowered(_stored_model(block, name)), Lowered(job, _origins(loader, lowering.document.data))]


def _stored_model(block: M, name: str) -> M:
    """Return the Model that stores what the Job writes."""
    source = derive_fields(block.spec.source, loader=None, job=FilesOfLoader(name=name))
    return derive_fields(block, spec=derive_fields(block.spec, source=source))


def _metadata(metadata: Metadata, name: str) -> Metadata:
    return Metadata(name=name, namespace=metadata.namespace, labels=metadata.labels, annotations=metadata.annotations)


def _volume(spec: DownloadSpec, loader: Loader, lowering: Lowering) -> OutputVolume | None:
    """Return the volume that the container writes to; None when its size is not known."""
    stored = spec.store.volume
    volume = loader.volume or stored
    if volume is None or volume.size == AUTO:
        where = "a volume whose size is computed" if stored else "no volume"
        lowering.error(
            "KG0203",
            f"`volume` is required: `store` has {where}, so nothing says what `{loaders.ARTIFACTS}` needs",
            LOADER,
            "add, for example, `volume: {size: 50Gi}`",
        )
        return None
    return jobs.OutputVolume(
        size=volume.size,
        storage_class_name=volume.storage_class_name,
        access_modes=volume.access_modes,
        mount_path=loaders.ARTIFACTS,
        # Its files are stored by the Model.
        retain=False,
    )


def _job_spec(spec: DownloadSpec, loader: Loader, volume: OutputVolume) -> JobSpec:
    given = {name: getattr(loader, name) for name in set_fields(loader) - _OWN}
    user = spec.security
    security = Security(pod_security=user.pod_security, run_as_user=user.run_as_user, fs_group=user.fs_group)
    read = (
        [jobs.Input(dataset=loader.dataset, path=loaders.DATA.removeprefix(f"{loaders.CONTENT}/"))]
        if loader.dataset
        else []
    )
    return jobs.JobSpec(
        **given,
        params_file=loaders.PARAMS,
        model=jobs.ModelUse(name=loader.model, mount_path=loaders.MODEL) if loader.model else None,
        inputs=jobs.Inputs(files=read, mount_path=loaders.CONTENT) if read else None,
        output=jobs.Output(volume=volume),
        placement=loader.placement if loader.placement is not None else spec.placement,
        security=loader.security if loader.security is not None else security,
        image_pull_secrets=[*dict.fromkeys([*loader.image_pull_secrets, *spec.image_pull_secrets])],
    )


def _origins(loader: Loader, data: Any) -> dict[FieldPath, FieldPath]:
    """Return where the fields of the Job are written in a document with this data."""
    written = _value(data, LOADER)
    origins: dict[FieldPath, FieldPath] = {
        **origins_below(data["metadata"], ("metadata",), ("metadata",)),
        ("spec",): LOADER,
        **origins_below(written, ("spec",), LOADER),
        ("spec", "model", "name"): (*LOADER, "model"),
        ("spec", "inputs"): (*LOADER, "dataset"),
    }
    volume: FieldPath = ("spec", "output", "volume")
    if loader.volume is not None:
        origins |= origins_below(written["volume"], volume, (*LOADER, "volume"))
    else:
        origins |= origins_below(_value(data, _STORE), volume, _STORE)
    for name in ("placement", "security"):
        if name not in set_fields(loader):
            origins |= origins_below(_value(data, ("spec", name)), ("spec", name), ("spec", name))
    return origins


def _value(data: Any, path: FieldPath) -> Any:
    for key in path:
        data = data.get(key, {})
    return data
