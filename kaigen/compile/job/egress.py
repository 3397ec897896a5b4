"""Egress of Jobs that download their inputs or weights."""

from __future__ import annotations

from kaigen.compile.app import Object
from kaigen.compile.builders.access import account_of
from kaigen.compile.builders.egress import Server, check_egress, egress_policy, input_servers, source_servers
from kaigen.compile.job.datasets import input_origin
from kaigen.compile.job.resolution import JobResolution, Workload
from kaigen.compile.problems import Problems
from kaigen.kinds.job import JobSpec, ModelUse


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
        api=resolution.build is not None or (account is not None and account.automount_token),
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
    return found


def _proxy(spec: JobSpec) -> str | None:
    """Return the proxy of the downloads, if the spec has one for all of them."""
    transfers = [spec.model.transfer] if isinstance(spec.model, ModelUse) and spec.model.source else []
    if spec.inputs is not None and not isinstance(spec.inputs, list):
        transfers.append(spec.inputs.transfer)
    proxies = {transfer.proxy for transfer in transfers}
    return proxies.pop() if len(proxies) == 1 else None
