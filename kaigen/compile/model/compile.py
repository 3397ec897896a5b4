"""The compiler of the kinds `Model` and `Dataset`: a store, a Job that fills it, and a marker."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kaigen.compile.app import Note, Object
from kaigen.compile.builders.access import download_access
from kaigen.compile.builders.alerts import prometheus_rule
from kaigen.compile.builders.bucket_access import location
from kaigen.compile.builders.egress import egress_policy, identity_labels
from kaigen.compile.builders.frame import LOCATION
from kaigen.compile.builders.job_gate import run_rule
from kaigen.compile.builders.jobs import Run, job, test_hook
from kaigen.compile.builders.network import network_policy, pod_monitor
from kaigen.compile.builders.queueing import queue_labels
from kaigen.compile.builders.sources import job_files, repository_name, source_account
from kaigen.compile.builders.weights import METRICS, METRICS_PORT, PERMANENT_EXIT_CODES
from kaigen.compile.connections import Connections
from kaigen.compile.kind_compiler import Description, KindCompiler
from kaigen.compile.model.checks import check_model
from kaigen.compile.model.conversion import AT, CONVERT
from kaigen.compile.model.conversion import PERMANENT_EXIT_CODES as CONVERT_EXIT_CODES
from kaigen.compile.model.job_source import bucket_account
from kaigen.compile.model.mounted import mounted_bucket
from kaigen.compile.model.pod import FETCH, UPLOAD, download_pod, verification_pod
from kaigen.compile.model.resolution import ModelResolution, download_servers, resolve_model
from kaigen.compile.model.store import record
from kaigen.compile.model.volume import mount_annotations
from kaigen.kinds.blocks import FileSource
from kaigen.kinds.model import Model
from kaigen.sizing.distributed_llama import conversion_text

if TYPE_CHECKING:
    from kaigen.kinds.operation import DownloadMonitoring

_COMPONENT = "download"


def model_objects(resolution: ModelResolution) -> list[Object]:
    """Return the objects of a Model or a Dataset, in the order of values.yaml."""
    spec, frame = resolution.spec, resolution.frame
    if spec.source.volume is not None:
        return [record(frame, spec.source.volume)]
    if spec.source.empty is not None:
        return [*resolution.store.objects]
    labels, convert = queue_labels(spec.placement), resolution.conversion
    download = job(
        Run(
            frame,
            role="job",
            component=_COMPONENT,
            wave=resolution.wave,
            pod=download_pod(resolution),
            retries=spec.retries,
            deadline=spec.deadline,
            origin=("spec",),
            permanent=_permanent(resolution),
            labels=labels or None,
            pod_labels=identity_labels(download_servers(resolution)),
            annotations=_location_annotation(resolution),
        )
    )
    monitoring = spec.monitoring
    test = test_hook(frame, verification_pod(resolution), annotations=mount_annotations(resolution.model))
    return [
        *resolution.store.objects,
        *(convert.objects if convert else []),
        *download_access(
            spec, frame, _account(resolution), [run_rule(resolution.output.run)] if resolution.output else []
        ),
        network_policy(frame, port=METRICS_PORT if monitoring else None),
        *egress_policy(frame, _COMPONENT, download_servers(resolution), resolution.context, proxy=spec.transfer.proxy),
        *(
            [pod_monitor(frame, _COMPONENT, monitoring, "/metrics", port=METRICS, wave=resolution.wave)]
            if monitoring
            else []
        ),
        *_alerts(resolution, monitoring, download),
        download,
        test,
    ]


def _alerts(resolution: ModelResolution, block: DownloadMonitoring | None, download: Object) -> list[Object]:
    if block is None or block.alerts is None:
        return []
    return prometheus_rule(
        resolution.frame,
        resolution.context,
        resolution.metadata.namespace or resolution.context.config.namespace,
        block.alerts,
        block.labels,
        [download],
        wave=resolution.wave,
        downloads=True,
    )


def _account(resolution: ModelResolution) -> dict[str, str]:
    """Return the annotations by which a cloud identifies the service account."""
    convert = resolution.conversion
    own = convert.account if convert is not None else {}
    read = {**source_account(resolution.spec.source), **bucket_account(resolution.output)}
    return {**read, **resolution.store.account, **own}


def _location_annotation(resolution: ModelResolution) -> dict[str, str] | None:
    """Return the annotation with the bucket's folder that only this app may fill, if no volume has it."""
    bucket = resolution.spec.store.bucket
    is_served = bucket is mounted_bucket(resolution.spec)
    return {LOCATION: location(bucket)} if bucket is not None and not is_served else None


def _permanent(resolution: ModelResolution) -> dict[str, tuple[int, ...]]:
    """Return the exit codes after which a retry cannot succeed, by container."""
    found: dict[str, tuple[int, ...]] = {FETCH: PERMANENT_EXIT_CODES}
    convert = resolution.conversion
    if convert is not None:
        found[CONVERT] = CONVERT_EXIT_CODES
    if convert is not None and convert.upload is not None:
        found[UPLOAD] = PERMANENT_EXIT_CODES
    return found


def describe_model(resolution: ModelResolution) -> Description:
    """Return summary and version."""
    source, store = resolution.spec.source, resolution.store.title
    summary = f"Fetches {_title(source)} into {store}{_converts(resolution)} and verifies that it is complete."
    if source.volume is not None:
        summary = f"Names {_files(resolution)} in the volume {source.volume.claim_name}."
    elif source.empty is not None:
        summary = f"Makes {store} for {_files(resolution)}, which somebody else stores there."
    return Description(
        summary=summary,
        pod_security=resolution.spec.security.pod_security,
        app_version=resolution.commit,
        notes=(Note(text, AT),) if (text := conversion_text(resolution.spec, resolution.context.catalog)) else (),
    )


def _converts(resolution: ModelResolution) -> str:
    convert = resolution.conversion
    return f", converts it to {convert.format.weights} for distributed-llama" if convert else ""


def _title(source: FileSource) -> str:
    if source.hugging_face:
        return f"{repository_name(source.hugging_face)} from the Hugging Face Hub"
    if source.s3:
        return f"files of {source.s3.location}"
    if source.oci:
        return f"the files of {source.oci.ref}"
    job = job_files(source)
    if job:
        return f"the files that Job `{job.name}` writes"
    files = source.http.files if source.http else []
    return "a file" if len(files) == 1 else f"{len(files)} files"


def _files(resolution: ModelResolution) -> str:
    return "weights" if isinstance(resolution.model, Model) else "files"


def connections_of(resolution: ModelResolution) -> Connections:
    """Return the servers of the files, where `network.downloadEgress` of kaigen.yaml does not allow them already."""
    network = resolution.context.config.network
    allowed = network is not None and network.download_egress is not None
    return Connections(servers=() if allowed else tuple(download_servers(resolution)))


compile_model = KindCompiler(
    resolve=resolve_model,
    check=check_model,
    objects=model_objects,
    describe=describe_model,
    connections=connections_of,
    default_naming=None,
    settings_order=(
        "source",
        "storage",
        "converted",
        "download",
        "convert",
        "upload",
        "serviceAccount",
        "retries",
        "deadlineSeconds",
        "networkPolicy",
    ),
)
