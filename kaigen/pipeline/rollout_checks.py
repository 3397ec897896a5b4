"""Checks of versions side by side: weights that nothing applies, and pools that do not fit next to each other."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from kaigen.catalog.gpus import is_gpu_resource
from kaigen.config.tenant_settings import tenant_of_namespace
from kaigen.kubernetes.quantities import NANO, nano
from kaigen.pipeline.queue_checks import queues_of, workloads_of

if TYPE_CHECKING:
    from kaigen.config.settings import Config
    from kaigen.core.json_types import FieldPath
    from kaigen.diagnostics.diagnostic import Diagnostic
    from kaigen.pipeline.unit import RunApp

_CANARY: FieldPath = ("spec", "canary")
_REQUESTS = "requests."


def rollout_problems(apps: Sequence[RunApp], config: Config) -> Iterator[Diagnostic]:
    """Return what keeps versions side by side from working.

    Args:
        apps: every app of the run, with its file.
        config: has the quotas of namespaces.
    """
    yield from _unsplit(apps)
    yield from _full_queues(apps)
    yield from _full_quotas(apps, config)


def gpu_quota(config: Config, namespace: str) -> int | None:
    """Return how many GPUs the ResourceQuota of a namespace allows, by kaigen.yaml; None for any number."""
    tenancy = config.gitops.tenancy if config.gitops is not None else None
    tenant = tenant_of_namespace(namespace, config.tenants)
    quotas = {**(tenancy.quota if tenancy is not None else {}), **(tenant.quotas.get(namespace, {}) if tenant else {})}
    limits = [
        amount // NANO
        for name, value in quotas.items()
        if is_gpu_resource(name.removeprefix(_REQUESTS), config.catalog) and (amount := nano(value)) is not None
    ]
    return sum(limits) if limits else None


def _unsplit(apps: Sequence[RunApp]) -> Iterator[Diagnostic]:
    split = {key for _, app in apps if app.kind == "Endpoint" for key in app.needs}
    for unit, app in apps:
        if unit is not None and app.rollout is not None and app.rollout.unsplit and app.key not in split:
            share = f"{app.rollout.unsplit} % of the requests"
            message = f"nothing sends {share} to the canary: a Service and an Ingress have one pool"
            hint = "set `route.gateway`, add the Topology to the `models` of an Endpoint, or set the weight to 0 or 100"
            yield unit.diagnostic(app, "KG0431", message, (*_CANARY, "weight"), hint)


def _full_queues(apps: Sequence[RunApp]) -> Iterator[Diagnostic]:
    queues = queues_of(app for _, app in apps)
    by_key = {app.key: app for _, app in apps}
    for unit, app in apps:
        if unit is None or app.rollout is None:
            continue
        pools = [by_key[app.namespace, name] for name in app.rollout.pools if (app.namespace, name) in by_key]
        for verdict in queues.verdicts([each for pool in pools for each in workloads_of(pool)]):
            if verdict.waits and not verdict.never:
                workload = verdict.workload
                message = f"the queue `{workload.queue}` cannot hold both versions: {workload.name} would wait"
                hint = "give the queue more, or set `canary.replicas`; `kaigen plan` shows its quota"
                yield unit.diagnostic(app, "KG0434", message, _CANARY, hint)


def _full_quotas(apps: Sequence[RunApp], config: Config) -> Iterator[Diagnostic]:
    for unit, app in apps:
        limit = gpu_quota(config, app.namespace) if app.rollout is not None else None
        if unit is None or limit is None:
            continue
        used = sum(
            each.most(0)
            for _, other in apps
            if other.namespace == app.namespace and other.gpus is not None
            for each in other.gpus.objects
        )
        if used > limit:
            message = f"the quota of namespace `{app.namespace}` cannot hold both versions: {used} GPUs of {limit}"
            hint = "raise `quota` in kaigen.yaml, or set `canary.replicas`"
            yield unit.diagnostic(app, "KG0434", message, _CANARY, hint)
