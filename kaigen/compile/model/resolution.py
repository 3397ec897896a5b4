"""The resolution of a Model or a Dataset: every decision that its spec leaves open."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING

from msgspec import Struct

from kaigen.compile.builders.egress import Server, bucket_servers, source_servers
from kaigen.compile.builders.frame import Frame
from kaigen.compile.builders.pods import placement_fields, pod_security
from kaigen.compile.builders.sources import job_files, moving_revision
from kaigen.compile.context import Context
from kaigen.compile.expressions import Tree
from kaigen.compile.finish import frame_of
from kaigen.compile.model.conversion import AT, Conversion, resolve_conversion
from kaigen.compile.model.job_source import WAVE as AFTER_JOBS
from kaigen.compile.model.job_source import reported_output, with_run
from kaigen.compile.model.mounted import mounted_bucket
from kaigen.compile.model.store import STORE, WAVE, Store, resolve_store
from kaigen.compile.problems import Problems
from kaigen.kinds.base import Metadata
from kaigen.kinds.block import set_fields
from kaigen.kinds.blocks import FileSource, HubRepository
from kaigen.kinds.model import Downloaded, DownloadSpec
from kaigen.kubernetes.images import parse_image

if TYPE_CHECKING:
    from kaigen.compile.builders.job_output import Output


class ModelResolution(Struct, frozen=True):
    """A Model or a Dataset with every decision that its spec leaves open.

    Attributes:
        metadata: metadata of the spec.
        spec: the spec.
        model: metadata and spec together, as other specs refer to them.
        context: what it is compiled for.
        frame: names and labels of its objects.
        store: where the weights are stored.
        wave: sync wave of the Job that stores them.
        output: the output of the Job that writes them; None for another source.
        conversion: how they are converted; None for not at all.
        commit: commit that is fetched; empty when unknown.
        scheduling: fields of the pods that decide where they run.
        security: security context of the pods.
    """

    metadata: Metadata
    spec: DownloadSpec
    model: Downloaded
    context: Context
    frame: Frame
    store: Store
    wave: int
    output: Output | None
    conversion: Conversion | None
    commit: str
    scheduling: Mapping[str, Tree]
    security: Mapping[str, Tree]


def resolve_model(model: Downloaded, context: Context, problems: Problems, naming: None) -> ModelResolution:
    """Decide what a Model or a Dataset leaves open.

    Args:
        model: the spec.
        context: what it is compiled for.
        problems: collects what cannot be decided.
        naming: None; no dialect has names for a Model.
    """
    namespace = model.metadata.namespace or context.config.namespace
    output = reported_output(model, namespace, context, problems)
    model = with_run(model, output)
    spec, frame = model.spec, frame_of(model.metadata, context, model.spec)
    hub = spec.source.hugging_face
    _warn_of_moving(spec.source, problems)
    nothing: dict[str, Tree] = {}
    is_served = mounted_bucket(spec) is spec.store.bucket
    wave = WAVE if job_files(spec.source) is None else AFTER_JOBS
    store = resolve_store(spec.store, frame, context, is_served=is_served, wave=wave)
    return ModelResolution(
        metadata=model.metadata,
        spec=spec,
        model=model,
        context=context,
        frame=frame,
        store=store,
        wave=wave,
        output=output,
        conversion=resolve_conversion(spec, frame, context, store, problems, wave=wave),
        commit=_commit(hub, problems) if hub else "",
        scheduling=problems.attempt(lambda: placement_fields(frame, spec.placement, context, None), nothing),
        security=problems.attempt(lambda: pod_security(spec.security), nothing),
    )


def _warn_of_moving(source: FileSource, problems: Problems) -> None:
    """Warn of a bucket or an artifact whose content may change without review."""
    if source.s3 and source.s3.revision is None:
        problems.warning(
            "KG0310",
            f"nothing fixes the files of `{source.s3.uri}`, so they may change without review",
            ("spec", "source", "s3", "uri"),
            "run `kaigen lock`, or set `revision` to what the downloader prints",
        )
    if source.oci and not parse_image(source.oci.ref).digest:
        problems.warning(
            "KG0310",
            f"`{source.oci.ref}` has no digest, so its content may change without review",
            ("spec", "source", "oci", "ref"),
            "run `kaigen lock` or `kaigen pin`, or add `@sha256:…`",
        )


def _commit(hub: HubRepository, problems: Problems) -> str:
    """Return the commit that is fetched; empty, with a warning, when the revision is not a commit."""
    if re.fullmatch("[0-9a-f]{40}", hub.revision):
        return hub.revision
    written = "revision" in set_fields(hub)
    problems.warning(
        "KG0310",
        moving_revision(hub.revision, written=written),
        ("spec", "source", "huggingFace", "revision" if written else "repo"),
        "run `kaigen lock`, or set `revision` to a commit, 40 hex digits",
    )
    return ""


def download_servers(resolution: ModelResolution) -> list[Server]:
    """Return the servers of the source, of the bucket that stores its files, and of that of converted files."""
    spec = resolution.spec
    found = [*source_servers(spec.source, ("spec", "source"), resolution.context)]
    if resolution.output is not None and resolution.output.bucket is not None:
        found.extend(bucket_servers(resolution.output.bucket, ("spec", "source", "job")))
    bucket, served = spec.store.bucket, mounted_bucket(spec)
    if bucket is not None:
        found.extend(bucket_servers(bucket, (*STORE, "bucket")))
    if served is not None and served is not bucket:
        found.extend(bucket_servers(served, (*AT, "store", "bucket")))
    return found
