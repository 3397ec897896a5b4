"""The kind `Model`: a volume, a Job that fills it, and a marker that proves it complete."""

from __future__ import annotations

import re

from kaigen.compile.app import App, Object, Release, Tree, collect_settings
from kaigen.compile.bricks import settings
from kaigen.compile.bricks.access import facts_access
from kaigen.compile.bricks.jobs import job, test_hook
from kaigen.compile.bricks.network import network_policy
from kaigen.compile.bricks.pods import placement_fields, pod_security, pull_secrets
from kaigen.compile.bricks.storage import claim
from kaigen.compile.bricks.weights import (
    PERMANENT_EXIT_CODES,
    check_paths,
    fetch_container,
    identity,
    marker_container,
)
from kaigen.compile.context import Context
from kaigen.compile.finish import finish, frame_of
from kaigen.compile.problems import Problems
from kaigen.kinds.blocks import HuggingFace, ImageBlock, Source
from kaigen.kinds.model import Model

FOLDER = "/model"
_WAVE = 1
_ORDER = ("storage", "download", "retries", "deadlineSeconds", "networkPolicy")


def claim_name(model: str) -> str:
    """Name of the volume that a Model of that name rests in."""
    return f"{model}-weights"


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
    volume = spec.store.volume
    store = claim(
        frame,
        context,
        volume,
        what="storage",
        suffix="-weights",
        retain=volume.retain,
        origin=("spec", "store", "volume"),
        role="persistentvolumeclaim",
        wave=_WAVE,
    )
    mount: Tree = {"name": "weights", "mountPath": FOLDER}
    weights: Tree = {"name": "weights", "persistentVolumeClaim": {"claimName": Release("-weights")}}
    fetch = fetch_container(
        spec.source,
        spec.transfer,
        context,
        name="fetch",
        destination=FOLDER,
        mounts=[mount],
        origin=("spec", "source"),
        transfer_origin=("spec", "transfer"),
        facts=Release("-facts"),
        env=[
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
        "volumes": [weights],
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
        "persistentVolumeClaim": {"claimName": Release("-weights"), "readOnly": True},
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
    )
    objects: list[Object] = [store, *facts_access(frame), network_policy(frame), run, test]
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
        summary=f"Fetches {_words(spec.source)} into a volume and proves it complete.",
        app_version=commit,
    )
