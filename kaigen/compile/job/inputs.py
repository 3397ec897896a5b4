"""Inputs of a Job: files that init containers download, files that they wait for, and the egress of downloads."""

from __future__ import annotations

from kaigen.compile.app import Object
from kaigen.compile.builders.access import account_of
from kaigen.compile.builders.egress import Server, check_egress, egress_policy, input_servers, source_servers
from kaigen.compile.builders.jobs import seconds
from kaigen.compile.builders.pods import NO_NETWORK, container_security
from kaigen.compile.builders.sources import file_path
from kaigen.compile.builders.weights import (
    PERMANENT_EXIT_CODES,
    SMALL_RESOURCES,
    check_paths,
    downloader_image,
    inputs_container,
)
from kaigen.compile.expressions import Tree
from kaigen.compile.job.mounts import check_datasets, input_origin
from kaigen.compile.job.resolution import JobResolution, Workload
from kaigen.compile.problems import Problems, report_ignored_field
from kaigen.core.json_types import FieldPath
from kaigen.kinds.block import set_fields
from kaigen.kinds.gate import GATES
from kaigen.kinds.job import Input, Inputs, JobSpec, ModelUse
from kaigen.system.lazy_import import lazy_imports

with lazy_imports():
    from kaigen.compile.job import gate

FETCH_INPUTS = "fetch-inputs"
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
    volume = own_volume(resolution) or resolution.naming.volume
    mount: dict[str, Tree] = {"name": volume, "mountPath": inputs.mount_path}
    long = isinstance(resolution.spec.inputs, Inputs)
    origin: FieldPath = ("spec", "inputs", "transfer") if long else ()
    files = _files(inputs)
    fetched = [file for file in files if file.wait is None]
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
    if len(fetched) < len(files):
        made.append(_upload_gate(resolution, inputs, mount, origin))
    return made


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
    files = _files(resolution.inputs) if resolution.inputs else []
    fetched = any(file.wait is None for file in files)
    awaited = any(file.wait is not None for file in files)
    return {
        **({FETCH_INPUTS: PERMANENT_EXIT_CODES} if fetched else {}),
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


def job_egress(resolution: JobResolution, component: str) -> list[Object]:
    """Return the policy for the pods of a Job that downloads; none if kaigen.yaml does not ask for it."""
    network = resolution.context.config.network
    egress = network.download_egress if network else None
    servers = _servers(resolution)
    if egress is None or not egress.jobs or not servers:
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
    """Return the servers of the inputs and of the weights that the pods download themselves."""
    spec, inputs = resolution.spec, resolution.inputs
    found = [*input_servers(inputs.files, input_origin(spec))] if inputs is not None else []
    if isinstance(spec.model, ModelUse) and spec.model.source is not None:
        found += source_servers(spec.model.source, ("spec", "model", "source"), resolution.context)
    if spec.workload in GATES:
        namespace = resolution.metadata.namespace or resolution.context.config.namespace
        found += gate.gate_servers(spec, namespace, resolution.context)
    return found


def _proxy(spec: JobSpec) -> str | None:
    """Return the proxy of the downloads, if the spec has one for all of them."""
    transfers = [spec.model.transfer] if isinstance(spec.model, ModelUse) and spec.model.source else []
    if spec.inputs is not None and not isinstance(spec.inputs, list):
        transfers.append(spec.inputs.transfer)
    proxies = {transfer.proxy for transfer in transfers}
    return proxies.pop() if len(proxies) == 1 else None
