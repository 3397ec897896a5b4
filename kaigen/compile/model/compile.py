"""The kind `Model`: a volume or a folder of a bucket, a Job that fills it, and a marker that proves it complete."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from kaigen.compile.app import App, Object, collect_settings
from kaigen.compile.builders import settings
from kaigen.compile.builders.access import facts_access
from kaigen.compile.builders.buckets import bucket_volume, check_bucket, destination, transfer_arguments
from kaigen.compile.builders.frame import Frame
from kaigen.compile.builders.jobs import job, test_hook
from kaigen.compile.builders.network import network_policy
from kaigen.compile.builders.pods import placement_fields, pod_security, pull_secrets
from kaigen.compile.builders.storage import claim
from kaigen.compile.builders.weights import (
    PERMANENT_EXIT_CODES,
    check_paths,
    fetch_container,
    identity,
    marker_container,
)
from kaigen.compile.context import Context
from kaigen.compile.expressions import Release, SpecPath, Tree
from kaigen.compile.finish import finish, frame_of
from kaigen.compile.model.volume import claim_suffix, mount_annotations
from kaigen.compile.problems import Problems
from kaigen.kinds.blocks import HuggingFace, ImageBlock, Source
from kaigen.kinds.bucket import Bucket
from kaigen.kinds.model import Model, ModelVolume

FOLDER = "/model"
_WAVE = 1
_ORDER = ("storage", "download", "retries", "deadlineSeconds", "networkPolicy")

_STORAGE: SpecPath = ("spec", "store")


@dataclass(frozen=True, slots=True)
class _Store:
    """Where the weights rest, as the downloader fills it and as others mount it.

    Attributes:
        objects: what makes it.
        words: what it is, in a sentence.
        destination: what the downloader is told of it.
        arguments: more that it is told.
        env: variables with its keys.
        mounts: of the downloader's container.
        volumes: of its pod.
        account: annotations of its service account.
    """

    objects: list[Object]
    words: str
    destination: str
    arguments: Sequence[str] = ()
    env: Sequence[Tree] = ()
    mounts: Sequence[Tree] = ()
    volumes: Sequence[Tree] = ()
    account: Mapping[str, str] = field(default_factory=dict)


def _volume_store(volume: ModelVolume, frame: Frame, context: Context) -> _Store:
    held = claim(
        frame,
        context,
        volume,
        what="storage",
        suffix="-weights",
        retain=volume.retain,
        origin=(*_STORAGE, "volume"),
        role="persistentvolumeclaim",
        wave=_WAVE,
    )
    return _Store(
        [held],
        "a volume",
        FOLDER,
        mounts=[{"name": "weights", "mountPath": FOLDER}],
        volumes=[{"name": "weights", "persistentVolumeClaim": {"claimName": Release("-weights")}}],
    )


def _bucket_store(bucket: Bucket, frame: Frame, problems: Problems) -> _Store:
    check_bucket(bucket, (*_STORAGE, "bucket"), problems)
    arguments, env = transfer_arguments(bucket)
    account = bucket.credentials.service_account if bucket.credentials else None
    return _Store(
        bucket_volume(frame, bucket),
        "a bucket",
        destination(bucket),
        arguments,
        env,
        account=account.annotations if account else {},
    )


def _field(path: str) -> dict[str, Tree]:
    return {"fieldRef": {"fieldPath": path}}


def _words(source: Source) -> str:
    if source.hugging_face:
        return f"{source.hugging_face.repo} from the Hugging Face Hub"
    files = source.http.files if source.http else []
    return "a file" if len(files) == 1 else f"{len(files)} files"


def _commit(hub: HuggingFace, problems: Problems) -> str:
    """The commit that is fetched; empty, with a warning, when the revision is not one."""
    if re.fullmatch("[0-9a-f]{40}", hub.revision):
        return hub.revision
    problems.warning(
        "KG0310",
        f"`{hub.revision}` is not a commit, so what it stands for may change without review",
        ("spec", "source", "huggingFace", "revision" if "revision" in hub.model_fields_set else "repo"),
        "name the commit, 40 hex digits, in `revision`",
    )
    return ""


def compile_model(model: Model, context: Context, problems: Problems) -> App:
    """The app of a Model.

    Args:
        model: the spec.
        context: what it is compiled for.
        problems: takes what is wrong with it.
    """
    spec, metadata = model.spec, model.metadata
    frame = frame_of(metadata)
    if spec.store.bucket:
        store = _bucket_store(spec.store.bucket, frame, problems)
    else:
        assert spec.store.volume is not None
        store = _volume_store(spec.store.volume, frame, context)
    fetch = fetch_container(
        spec.source,
        spec.transfer,
        context,
        name="fetch",
        destination=store.destination,
        arguments=store.arguments,
        mounts=[*store.mounts],
        origin=("spec", "source"),
        transfer_origin=("spec", "transfer"),
        facts=Release("-facts"),
        env=[
            *store.env,
            {"name": "KAIGEN_APP", "value": Release()},
            {"name": "JOB_NAME", "valueFrom": _field("metadata.labels['batch.kubernetes.io/job-name']")},
            {"name": "JOB_UID", "valueFrom": _field("metadata.labels['batch.kubernetes.io/controller-uid']")},
        ],
    )
    nothing: dict[str, Tree] = {}
    security = problems.attempt(lambda: pod_security(spec.security), nothing)
    placement = problems.attempt(lambda: placement_fields(frame, spec.placement, context, None), nothing)
    image = spec.transfer.image
    secrets: dict[str, Tree] = {
        "imagePullSecrets": settings.objects(
            "download.imagePullSecrets",
            pull_secrets(image) if isinstance(image, ImageBlock) else [],
            "Secrets to pull the downloader's image with.",
        )
    }
    pod: dict[str, Tree] = {
        "restartPolicy": "Never",
        "serviceAccountName": Release("-download"),
        "automountServiceAccountToken": True,
        "enableServiceLinks": False,
        **secrets,
        **placement,
        "securityContext": security,
        "containers": [fetch],
        **({"volumes": [*store.volumes]} if store.volumes else {}),
    }
    queue = spec.placement.queue
    run = job(
        frame,
        pod,
        role="job",
        component="download",
        wave=_WAVE,
        retries=spec.retries,
        deadline=spec.deadline,
        origin=("spec",),
        permanent={"fetch": PERMANENT_EXIT_CODES},
        labels={"kueue.x-k8s.io/queue-name": queue} if queue else None,
    )
    checked: Tree = {
        "name": "weights",
        "persistentVolumeClaim": {"claimName": Release(claim_suffix(model)), "readOnly": True},
    }
    verify = marker_container(
        "verify",
        context,
        name="test",
        folder=FOLDER,
        expected=identity(spec.source),
        mounts=[{"name": "weights", "mountPath": FOLDER, "readOnly": True}],
        transfer=spec.transfer,
    )
    test = test_hook(
        frame,
        {
            "restartPolicy": "Never",
            "automountServiceAccountToken": False,
            "enableServiceLinks": False,
            **secrets,
            **placement,
            "securityContext": security,
            "containers": [verify],
            "volumes": [checked],
        },
        annotations=mount_annotations(model),
    )
    objects: list[Object] = [
        *store.objects,
        *facts_access(frame, store.account),
        network_policy(frame),
        run,
        test,
    ]
    hub = spec.source.hugging_face
    commit = _commit(hub, problems) if hub else ""
    if spec.source.http:
        check_paths(spec.source.http.files, ("spec", "source", "http", "files"), problems)
    return finish(
        "Model",
        metadata,
        frame,
        context,
        objects,
        collect_settings(objects, _ORDER),
        problems,
        pod_security=spec.security.pod_security,
        summary=f"Fetches {_words(spec.source)} into {store.words} and proves it complete.",
        app_version=commit,
    )
