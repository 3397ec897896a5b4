"""The pods of a Model: one that downloads the weights, and one that verifies them in `helm test`."""

from __future__ import annotations

from kaigen.compile.builders import settings
from kaigen.compile.builders.access import download_account
from kaigen.compile.builders.pod_options import extended_pod
from kaigen.compile.builders.pods import pull_secrets
from kaigen.compile.builders.variables import variables_of
from kaigen.compile.builders.weights import fetch_container, identity, marker_container
from kaigen.compile.expressions import Joined, Release, Setting, Tree
from kaigen.compile.model.resolution import ModelResolution
from kaigen.compile.model.store import FOLDER
from kaigen.compile.model.volume import claim_suffix

FETCH = "fetch"
"""Name of the downloader's container."""


def download_pod(resolution: ModelResolution) -> dict[str, Tree]:
    """Return the spec of the pod that downloads the weights."""
    return extended_pod(own_pod(resolution), resolution.spec, resolution.context)


def own_pod(resolution: ModelResolution) -> dict[str, Tree]:
    """Return the spec of that pod without what the fields about pods add."""
    volumes = resolution.store.volumes
    return {
        "restartPolicy": "Never",
        "serviceAccountName": download_account(resolution.spec),
        "automountServiceAccountToken": True,
        "enableServiceLinks": False,
        **_common_fields(resolution),
        "containers": [_fetch(resolution)],
        **({"volumes": list(volumes)} if volumes else {}),
    }


def verification_pod(resolution: ModelResolution) -> dict[str, Tree]:
    """Return the spec of the pod that verifies the stored weights."""
    mount: Tree = {"name": "weights", "mountPath": FOLDER, "readOnly": True}
    claim: Tree = {"claimName": Release(claim_suffix(resolution.model)), "readOnly": True}
    verify = marker_container(
        "verify",
        resolution.context,
        name="test",
        folder=FOLDER,
        expected=identity(resolution.spec.source),
        mounts=[mount],
        transfer=resolution.spec.transfer,
    )
    return {
        "restartPolicy": "Never",
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        **_common_fields(resolution),
        "containers": [verify],
        "volumes": [{"name": "weights", "persistentVolumeClaim": claim}],
    }


def _common_fields(resolution: ModelResolution) -> dict[str, Tree]:
    image = resolution.spec.transfer.image
    return {
        "imagePullSecrets": settings.objects(
            "download.imagePullSecrets",
            pull_secrets(*([image] if image else []), spec=resolution.spec),
            "Secrets for pulling the downloader's image.",
        ),
        **resolution.scheduling,
        "securityContext": dict(resolution.security),
    }


def _fetch(resolution: ModelResolution) -> dict[str, Tree]:
    spec, store = resolution.spec, resolution.store
    name, uid = "batch.kubernetes.io/job-name", "batch.kubernetes.io/controller-uid"
    return fetch_container(
        spec.source,
        spec.transfer,
        resolution.context,
        name=FETCH,
        destination=f"{store.destination}/{identity(spec.source)}",
        arguments=[*store.arguments, Joined(("--keep-revisions=", _kept(resolution)))],
        mounts=list(store.mounts),
        origin=("spec", "source"),
        transfer_origin=("spec", "transfer"),
        facts=Release("-facts"),
        env=[
            *store.env,
            {"name": "KAIGEN_APP", "value": Release()},
            {"name": "JOB_NAME", "valueFrom": _label(name)},
            {"name": "JOB_UID", "valueFrom": _label(uid)},
            *variables_of(spec.env),
        ],
    )


def _kept(resolution: ModelResolution) -> Setting:
    return settings.count(
        "download.keepRevisions",
        resolution.spec.store.keep_revisions,
        "Number of earlier revisions that stay stored next to the current one.",
        origin=("spec", "store", "keepRevisions"),
    )


def _label(name: str) -> dict[str, Tree]:
    return {"fieldRef": {"fieldPath": f"metadata.labels['{name}']"}}
