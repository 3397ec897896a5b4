"""Runs all checks."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from kaigen.doctor.apps import (
    check_reaper,
    check_registries,
    check_repository,
    check_requirements,
    check_servers,
    expiring,
    servers_of,
)
from kaigen.doctor.cluster import check_nodes, check_rights, check_server, check_storage
from kaigen.doctor.model import Check
from kaigen.requirements.cluster import findings_of
from kaigen.requirements.collect import collect

if TYPE_CHECKING:
    from kaigen.cluster.client import Cluster
    from kaigen.config.settings import Config
    from kaigen.pipeline.result import Compilation


def examine(
    connect: Callable[[], Cluster], config: Config, compilation: Compilation | None, namespace: str
) -> Iterator[Check]:
    """Yield the checks of a cluster; only the first one if the cluster cannot be reached.

    Args:
        connect: returns the cluster.
        config: the settings of the environment.
        compilation: its apps; None outside a repository.
        namespace: where the rights of the user are checked; empty for the namespaces of the apps.

    Raises:
        SystemFailure: the cluster cannot be reached any more.
    """
    server, cluster = check_server(connect)
    yield server
    if cluster is None:
        return
    yield from check_nodes(cluster)
    yield check_storage(cluster)
    apps = compilation.apps if compilation is not None else ()
    namespaces = [namespace] if namespace else sorted({item.app.namespace for item in apps}) or [config.namespace]
    for each in namespaces:
        yield from check_rights(cluster, each)
    yield check_reaper(cluster, namespaces, expiring(apps))
    yield from check_servers(servers_of(apps, config) if compilation is not None else None)
    if compilation is not None:
        yield from check_repository(config)
        yield from check_registries(compilation.apps)
        yield from check_requirements(findings_of(collect(compilation, config), cluster))
