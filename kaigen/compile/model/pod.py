"""The pods of a Model: one that downloads the weights, and one that verifies them in `helm test`."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from kaigen.compile.builders import settings
from kaigen.compile.builders.access import account_fields, download_account, token_mount, token_volume
from kaigen.compile.builders.pod_options import extended_pod
from kaigen.compile.builders.pods import pull_secrets
from kaigen.compile.builders.settings import variables_of
from kaigen.compile.builders.sources import identity
from kaigen.compile.builders.weights import (
    METRICS,
    METRICS_PORT,
    Fetch,
    fetch_container,
    marker_container,
    stage_container,
    upload_container,
)
from kaigen.compile.expressions import Joined, Release, Setting, Tree
from kaigen.compile.field_expressions import Items
from kaigen.compile.model.conversion import Conversion, convert_container, converted_folder
from kaigen.compile.model.job_source import (
    bucket_command,
    bucket_variables,
    output_mounts,
    output_volumes,
    wait_for_job,
)
from kaigen.compile.model.mounted import conversion, mounted_bucket, mounted_folder, mounted_identity, mounted_root
from kaigen.compile.model.resolution import ModelResolution
from kaigen.compile.model.store import FOLDER
from kaigen.compile.model.volume import claim_suffix

FETCH = "fetch"
"""Name of the downloader's container."""

UPLOAD = "upload"
"""Name of the container that stores converted files in a bucket."""

_STAGE = "stage"
_RECORD = "record"
_FACTS = Joined(("--facts=", Release("-facts")))
"""Option with the name of the ConfigMap with the facts."""


def download_pod(resolution: ModelResolution) -> dict[str, Tree]:
    """Return the spec of the pod that downloads the weights, and converts them if the spec says so."""
    pod = extended_pod(own_pod(resolution), resolution.spec, resolution.context)
    return _with_conversion(pod, resolution)


def own_pod(resolution: ModelResolution) -> dict[str, Tree]:
    """Return the spec of that pod without what the fields about pods add."""
    convert = resolution.conversion
    output = resolution.output
    volumes = [
        *resolution.store.volumes,
        *(convert.volumes if convert else []),
        *(output_volumes(output) if output else []),
    ]
    init = [wait_for_job(resolution.spec, output, resolution.context)] if output else []
    return {
        "restartPolicy": "Never",
        **account_fields(resolution.spec),
        "serviceAccountName": download_account(resolution.spec),
        "enableServiceLinks": False,
        **_common_fields(resolution),
        **({"initContainers": init} if init else {}),
        "containers": [_fetch(resolution)],
        "volumes": [*volumes, token_volume()],
    }


def _with_conversion(pod: dict[str, Tree], resolution: ModelResolution) -> dict[str, Tree]:
    """Return the pod with the downloader and the converter as init containers of what records or uploads the result."""
    convert = resolution.conversion
    if convert is None:
        return pod
    init, main = pod.get("initContainers", []), pod["containers"]
    assert isinstance(main, list)
    spec, context = resolution.spec, resolution.context
    steps: list[Tree] = [main[0]]
    if spec.store.bucket is not None:
        steps.append(
            stage_container(
                spec.store.bucket,
                FOLDER,
                identity(spec.source),
                spec.transfer,
                context,
                name=_STAGE,
                keys=resolution.store.env,
                env=variables_of(spec.env),
                mounts=_mounted(convert, FOLDER),
            )
        )
    steps += [convert_container(spec, convert, context), _record(resolution, convert)]
    if convert.upload is not None:
        steps.append(_upload(resolution, convert, convert.upload))
    *before, last = steps
    containers = [last, *main[1:]]
    if isinstance(init, Items):
        first: Tree = replace(init, fixed=(*init.fixed, *before))
    else:
        assert isinstance(init, list)
        first = [*init, *before]
    rest = {key: value for key, value in pod.items() if key not in ("initContainers", "containers")}
    return {**rest, "initContainers": first, "containers": containers}


def _upload(resolution: ModelResolution, convert: Conversion, arguments: Sequence[Tree]) -> dict[str, Tree]:
    """Return the container that stores the converted files in a bucket."""
    spec, bucket = resolution.spec, mounted_bucket(resolution.spec)
    assert bucket is not None
    return upload_container(
        bucket,
        converted_folder(spec, convert),
        mounted_folder(spec),
        mounted_identity(spec),
        spec.transfer,
        resolution.context,
        arguments=[*arguments, Joined(("--keep-revisions=", _kept(resolution)))],
        name=UPLOAD,
        env=[*convert.env, {"name": "KAIGEN_APP", "value": Release()}, *variables_of(spec.env)],
        # Before it removes old revisions, it asks the API server which of them pods read.
        mounts=[*_mounted(convert, convert.folder), token_mount()],
    )


def _record(resolution: ModelResolution, convert: Conversion) -> dict[str, Tree]:
    """Return the container that writes the size of the converted files to the ConfigMap with the facts.

    The converter reads files that others wrote, and has no token of the API server.
    """
    spec = resolution.spec
    container = marker_container(
        "verify",
        resolution.context,
        name=_RECORD,
        folder=convert.folder,
        expected=mounted_identity(spec),
        mounts=[*_mounted(convert, convert.folder), token_mount()],
        arguments=[_FACTS],
        transfer=spec.transfer,
    )
    return {**container, "env": _owner()}


def _owner() -> list[Tree]:
    """Return the variables with the app and the Job, to which the ConfigMap with the facts belongs."""
    name, uid = "batch.kubernetes.io/job-name", "batch.kubernetes.io/controller-uid"
    return [
        {"name": "KAIGEN_APP", "value": Release()},
        {"name": "JOB_NAME", "valueFrom": _label(name)},
        {"name": "JOB_UID", "valueFrom": _label(uid)},
    ]


def _mounted(convert: Conversion, folder: str) -> list[Tree]:
    """Return the volume mount of the conversion that has a folder."""
    mounts = [mount for mount in convert.mounts if isinstance(mount, dict)]
    return [mount for mount in mounts if f"{folder}/".startswith(f"{mount['mountPath']}/")]


def verification_pod(resolution: ModelResolution) -> dict[str, Tree]:
    """Return the spec of the pod that verifies the stored weights."""
    root = mounted_root(resolution.spec)
    mount: Tree = {"name": "weights", "mountPath": FOLDER, "readOnly": True}
    claim: Tree = {"claimName": Release(claim_suffix(resolution.model)), "readOnly": True}
    verify = marker_container(
        "verify",
        resolution.context,
        name="test",
        folder=f"{FOLDER}/{root}" if root else FOLDER,
        expected=mounted_identity(resolution.spec),
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
    convert = conversion(resolution.spec)
    images = [resolution.spec.transfer.image, convert.converter.image if convert is not None else None]
    return {
        "imagePullSecrets": settings.pull_secrets(
            "download.imagePullSecrets",
            pull_secrets(*(image for image in images if image is not None), spec=resolution.spec),
            "Secrets for pulling the downloader's image.",
        ),
        **resolution.scheduling,
        "securityContext": dict(resolution.security),
    }


def _fetch(resolution: ModelResolution) -> dict[str, Tree]:
    spec, store = resolution.spec, resolution.store
    convert = resolution.conversion
    in_volume = convert is not None and convert.upload is None
    derived = [f"--derived={converted_folder(spec, convert)}"] if convert is not None and in_volume else []
    metrics = spec.monitoring is not None
    container = fetch_container(
        Fetch(
            source=spec.source,
            origin=("spec", "source"),
            destination=f"{store.destination}/{identity(spec.source)}",
            transfer=spec.transfer,
        ),
        resolution.context,
        name=FETCH,
        about_destination=[*store.arguments, Joined(("--keep-revisions=", _kept(resolution))), *derived],
        about_run=[_FACTS, *([f"--metrics-port={METRICS_PORT}"] if metrics else [])],
        mounts=[
            *(convert.mounts if convert is not None and in_volume else store.mounts),
            *output_mounts(resolution.output),
            token_mount(),
        ],
        command=bucket_command(spec.source, resolution.output),
        env=[
            *store.env,
            *bucket_variables(resolution.output),
            *_owner(),
            *variables_of(spec.env),
        ],
    )
    if metrics:
        container["ports"] = [{"name": METRICS, "containerPort": METRICS_PORT, "protocol": "TCP"}]
    return container


def _kept(resolution: ModelResolution) -> Setting:
    return settings.count(
        "download.keepRevisions",
        resolution.spec.store.keep_revisions,
        "Number of earlier revisions that stay stored next to the current one.",
        origin=("spec", "store", "keepRevisions"),
    )


def _label(name: str) -> dict[str, Tree]:
    return {"fieldRef": {"fieldPath": f"metadata.labels['{name}']"}}
