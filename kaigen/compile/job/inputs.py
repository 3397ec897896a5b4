"""Inputs of a Job: files that init containers download, files that they wait for, and the egress of downloads."""

from __future__ import annotations

from kaigen.compile.app import Object
from kaigen.compile.builders.access import account_of
from kaigen.compile.builders.egress import Server, check_egress, egress_policy, input_servers, source_servers
from kaigen.compile.builders.jobs import seconds
from kaigen.compile.builders.pods import NO_NETWORK, container_security
from kaigen.compile.builders.sources import file_path, source_account
from kaigen.compile.builders.weights import (
    PERMANENT_EXIT_CODES,
    SMALL_RESOURCES,
    bucket_input_container,
    check_paths,
    downloader_image,
    inputs_container,
)
from kaigen.compile.connections import denies_egress
from kaigen.compile.expressions import Tree
from kaigen.compile.job.mounts import check_datasets, input_origin
from kaigen.compile.job.resolution import JobResolution, Workload
from kaigen.compile.job.restore import restored_bucket, restored_servers
from kaigen.compile.job.schedule import run_folder, run_name
from kaigen.compile.problems import Problems, report_ignored_field
from kaigen.core.json_types import FieldPath
from kaigen.kinds.block import set_fields
from kaigen.kinds.gate import GATES
from kaigen.kinds.job import Input, InputBucket, Inputs, JobSpec, ModelUse
from kaigen.kinds.model import DatasetSource
from kaigen.system.lazy_import import lazy_imports

with lazy_imports():
    from kaigen.compile.job import gate

FETCH_INPUTS = "fetch-inputs"
FETCH_BUCKET = "fetch-bucket"
WAIT_FOR_UPLOAD = "wait-for-upload"
_VOLUME = "inputs"
_TIMED_OUT = 20
"""Exit code of the downloader when the time is over (source: its README)."""


def own_volume(resolution: JobResolution) -> str:
    """Return the name of the pod's own volume for inputs; empty where it needs none."""
    inputs = resolution.inputs
    files = _files(inputs) if inputs is not None and inputs.into is None else []
    return _VOLUME if files else ""


def _files(inputs: Inputs) -> list[Input]:
    """Return the inputs that are not Datasets."""
    return [file for file in inputs.files if file.dataset is None]


def input_containers(resolution: JobResolution) -> list[dict[str, Tree]]:
    """Return the containers that download the inputs and wait for uploads."""
    inputs = resolution.inputs
    if inputs is None:
        return []
    files, mount = _files(inputs), _mount(resolution, inputs)
    origin: FieldPath = ("spec", "inputs", "transfer") if isinstance(resolution.spec.inputs, Inputs) else ()
    fetched = [file for file in files if file.url or file.secret]
    made: list[dict[str, Tree]] = []
    if fetched:
        fetch = inputs_container(
            fetched,
            inputs.transfer,
            resolution.context,
            name=FETCH_INPUTS,
            destination=inputs.mount_path,
            mounts=[mount],
            origin=origin,
        )
        made.append(fetch)
    made += [
        bucket_input_container(
            DatasetSource(s3=bucket),
            inputs.transfer,
            resolution.context,
            name=name,
            destination=f"{inputs.mount_path.rstrip('/')}/{file_path(file)}",
            chosen=_recent_arguments(bucket),
            mounts=[mount],
            origin=origin,
        )
        for name, file, bucket in _buckets(inputs)
    ]
    if any(file.wait for file in files):
        made.append(_upload_gate(resolution, inputs, mount, origin))
    if "subPathExpr" in mount:
        made = [_in_run(each) for each in made]
    return made


def _in_run(container: dict[str, Tree]) -> dict[str, Tree]:
    """Return a container with the variable that its mount of the run's folder needs."""
    env = container.get("env", [])
    assert isinstance(env, list)
    return {**container, "env": [run_name(), *env]}


def _mount(resolution: JobResolution, inputs: Inputs) -> dict[str, Tree]:
    """Return the mount of the folder for inputs: that of the pod, or that of the run in the output."""
    volume = own_volume(resolution)
    folder = {} if volume else run_folder(resolution.spec)
    return {"name": volume or resolution.naming.volume, "mountPath": inputs.mount_path, **folder}


def _buckets(inputs: Inputs) -> list[tuple[str, Input, InputBucket]]:
    """Return the inputs that are files of buckets, each with the name of its container."""
    found = [(file, file.s3) for file in inputs.files if file.s3 is not None]
    return [
        (f"{FETCH_BUCKET}-{number}" if number > 1 else FETCH_BUCKET, file, bucket)
        for number, (file, bucket) in enumerate(found, 1)
    ]


def _recent_arguments(bucket: InputBucket) -> list[Tree]:
    """Return the arguments of the downloader about the age of files."""
    within = seconds(bucket.modified_within)
    return [
        *([f"--modified-within={within}s"] if within else []),
        *([f"--newest={bucket.newest}"] if bucket.newest else []),
    ]


def _upload_gate(
    resolution: JobResolution, inputs: Inputs, mount: dict[str, Tree], origin: FieldPath
) -> dict[str, Tree]:
    """Return the container that waits for uploads, for the longest time that one of the files has."""
    files = [file for file in inputs.files if file.wait is not None]
    return {
        "name": WAIT_FOR_UPLOAD,
        **NO_NETWORK,
        **downloader_image(resolution.context, inputs.transfer, origin, "inputs"),
        "args": [
            "wait-files",
            f"--dest={inputs.mount_path}",
            *(f"--file={file_path(file)}" for file in files),
            *(f"--sha256={file_path(file)}={file.sha256}" for file in files if file.sha256),
            f"--timeout={max(seconds(file.wait) for file in files)}s",
        ],
        "resources": dict(SMALL_RESOURCES),
        "securityContext": container_security(read_only=True),
        "terminationMessagePolicy": "FallbackToLogsOnError",
        "volumeMounts": [{**mount, "readOnly": True}],
    }


def permanent_input_failures(resolution: JobResolution) -> dict[str, tuple[int, ...]]:
    """Return the exit codes of the containers after which a retry cannot succeed."""
    if resolution.inputs is None:
        return {}
    files = _files(resolution.inputs)
    fetched = any(file.url or file.secret for file in files)
    awaited = any(file.wait is not None for file in files)
    return {
        **({FETCH_INPUTS: PERMANENT_EXIT_CODES} if fetched else {}),
        **{name: PERMANENT_EXIT_CODES for name, _, _ in _buckets(resolution.inputs)},
        **({WAIT_FOR_UPLOAD: (*PERMANENT_EXIT_CODES, _TIMED_OUT)} if awaited else {}),
    }


def check_inputs(resolution: JobResolution, problems: Problems) -> None:
    """Report files without a path, files at one path, and files that nobody can upload."""
    inputs, given = resolution.inputs, resolution.spec.inputs
    if inputs is None:
        return
    origin = input_origin(resolution.spec)
    check_paths(inputs.files, origin, problems)
    check_datasets(resolution.spec, inputs, problems)
    _check_buckets(resolution.spec, inputs, problems)
    if inputs.into is None:
        for number, file in enumerate(inputs.files):
            if file.wait is not None:
                problems.error(
                    "KG0371",
                    "nobody can upload a file to a folder of the pod",
                    (*origin, number, "wait"),
                    "use a block with `files` and `into: output`, and add `output.volume`",
                )
        return
    if resolution.output is None:
        problems.error(
            "KG0371",
            "there is no volume for the files",
            ("spec", "inputs", "into"),
            "add `output.volume`, or leave `into` out",
        )
    if isinstance(given, Inputs) and "mount_path" in set_fields(given):
        where, hint = "with `into: output`", "set `output.volume.mountPath`"
        report_ignored_field(problems, "mountPath", ("spec", "inputs", "mountPath"), where, hint)


def _check_buckets(spec: JobSpec, inputs: Inputs, problems: Problems) -> None:
    """Report buckets that the pods cannot read, and files that each pod would choose for itself."""
    for number, file in enumerate(inputs.files):
        bucket, at = file.s3, (*input_origin(spec), number, "s3")
        if bucket is None:
            continue
        if source_account(DatasetSource(s3=bucket)):
            problems.error(
                "KG0317",
                "the pods of a Job have an account of their own, which has no annotations of a source",
                (*at, "credentials", "serviceAccount"),
                "set `credentials.secret`, or give `serviceAccount.create` the annotations and leave `credentials` out",
            )
        if bucket.revision and bucket.is_recent:
            problems.error(
                "KG0340",
                "`revision` names all files, and `newest` and `modifiedWithin` choose some of them when a run starts",
                (*at, "revision"),
                "leave it out",
            )
        if bucket.is_recent and inputs.into is None and max(spec.nodes, spec.shards) > 1:
            problems.error(
                "KG0371",
                "each pod would choose files for itself, and one that starts later may find others",
                (*at, "newest" if bucket.newest is not None else "modifiedWithin"),
                "set `into: output`, so that the pods of a run share the files",
            )
        if file.sha256:
            where = "on a bucket, whose files have their own checksums"
            report_ignored_field(problems, "sha256", (*at[:-1], "sha256"), where, "leave it out")


def job_egress(resolution: JobResolution, component: str) -> list[Object]:
    """Return the policy for the pods of a Job that downloads; none if kaigen.yaml does not ask for it."""
    network = resolution.context.config.network
    egress = network.download_egress if network else None
    if egress is None or not (egress.jobs or denies_egress(resolution.context)):
        return []
    servers = _servers(resolution) if egress.jobs else download_servers(resolution)
    if not servers:
        return []
    account = account_of(resolution.spec)
    return egress_policy(
        resolution.frame,
        component,
        servers,
        resolution.context,
        proxy=_proxy(resolution.spec),
        api=resolution.build is not None or bool(resolution.rules) or (account is not None and account.automount_token),
        among_themselves=resolution.workload is not Workload.JOB,
    )


def check_job_egress(resolution: JobResolution, problems: Problems) -> None:
    """Warn of servers that the pods of a Job may not reach."""
    network = resolution.context.config.network
    if network is not None and network.download_egress is not None and network.download_egress.jobs:
        check_egress(_servers(resolution), resolution.context, problems)


def _servers(resolution: JobResolution) -> list[Server]:
    """Return the servers of downloads, and the one that a gate asks."""
    found = download_servers(resolution)
    if resolution.spec.workload in GATES:
        namespace = resolution.metadata.namespace or resolution.context.config.namespace
        found += gate.gate_servers(resolution.spec, namespace, resolution.context)
    return found


def download_servers(resolution: JobResolution) -> list[Server]:
    """Return the servers of the inputs, of the weights that the pods download themselves, and of restored results."""
    spec, inputs = resolution.spec, resolution.inputs
    found = [*input_servers(inputs.files, input_origin(spec))] if inputs is not None else []
    if isinstance(spec.model, ModelUse) and spec.model.source is not None:
        found += source_servers(spec.model.source, ("spec", "model", "source"), resolution.context)
    return [*found, *restored_servers(spec)]


def _proxy(spec: JobSpec) -> str | None:
    """Return the proxy of the downloads, if the spec has one for all of them."""
    transfers = [spec.model.transfer] if isinstance(spec.model, ModelUse) and spec.model.source else []
    if spec.inputs is not None and not isinstance(spec.inputs, list):
        transfers.append(spec.inputs.transfer)
    bucket = restored_bucket(spec)
    if bucket is not None:
        transfers.append(bucket.transfer)
    proxies = {transfer.proxy for transfer in transfers}
    return proxies.pop() if len(proxies) == 1 else None
