"""The compiler of the kind `Model`: a volume or bucket, a Job that fills it, a marker that proves it complete."""

from __future__ import annotations

from kaigen.compile.app import Object
from kaigen.compile.builders.access import download_access
from kaigen.compile.builders.jobs import Run, job, test_hook
from kaigen.compile.builders.network import network_policy
from kaigen.compile.builders.weights import PERMANENT_EXIT_CODES
from kaigen.compile.kind_compiler import Description, KindCompiler
from kaigen.compile.model.checks import check_model
from kaigen.compile.model.pod import FETCH, download_pod, verification_pod
from kaigen.compile.model.resolution import ModelResolution, resolve_model
from kaigen.compile.model.store import WAVE
from kaigen.compile.model.volume import mount_annotations
from kaigen.kinds.blocks import Source
from kaigen.kubernetes.queues import QUEUE_LABEL


def model_objects(resolution: ModelResolution) -> list[Object]:
    """Return the objects of a Model, in the order of values.yaml."""
    spec, frame = resolution.spec, resolution.frame
    queue = spec.placement.queue
    download = job(
        Run(
            frame,
            role="job",
            component="download",
            wave=WAVE,
            pod=download_pod(resolution),
            retries=spec.retries,
            deadline=spec.deadline,
            origin=("spec",),
            permanent={FETCH: PERMANENT_EXIT_CODES},
            labels={QUEUE_LABEL: queue} if queue else None,
        )
    )
    test = test_hook(frame, verification_pod(resolution), annotations=mount_annotations(resolution.model))
    return [
        *resolution.store.objects,
        *download_access(spec, frame, resolution.store.account),
        network_policy(frame),
        download,
        test,
    ]


def describe_model(resolution: ModelResolution) -> Description:
    """Return summary and version."""
    source, store = _title(resolution.spec.source), resolution.store.title
    return Description(
        summary=f"Fetches {source} into {store} and verifies that it is complete.",
        pod_security=resolution.spec.security.pod_security,
        app_version=resolution.commit,
    )


def _title(source: Source) -> str:
    if source.hugging_face:
        return f"{source.hugging_face.repo} from the Hugging Face Hub"
    files = source.http.files if source.http else []
    return "a file" if len(files) == 1 else f"{len(files)} files"


compile_model = KindCompiler(
    resolve=resolve_model,
    check=check_model,
    objects=model_objects,
    describe=describe_model,
    default_naming=None,
    settings_order=("storage", "download", "serviceAccount", "retries", "deadlineSeconds", "networkPolicy"),
)
