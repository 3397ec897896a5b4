"""The compiler of the kind `Endpoint`: one address for the models of many Topologies."""

from __future__ import annotations

from kaigen.compile.app import Note
from kaigen.compile.builders.egress import trace_servers
from kaigen.compile.builders.pools import pods_behind
from kaigen.compile.connections import Connections
from kaigen.compile.endpoint.checks import check_endpoint
from kaigen.compile.endpoint.objects import endpoint_objects
from kaigen.compile.endpoint.resolution import EndpointResolution, resolve_endpoint
from kaigen.compile.kind_compiler import Description, KindCompiler


def describe_endpoint(resolution: EndpointResolution) -> Description:
    """Return the summary, and which client may use what."""
    access = resolution.access
    models = "one model" if len(access.models) == 1 else f"{len(access.models)} models"
    clients = "one client" if len(access.clients) == 1 else f"{len(access.clients)} clients"
    return Description(
        summary=f"One address for {models}, which {clients} may use with keys of their own.",
        notes=tuple(
            Note(
                f"`{name}` may ask {', '.join(f'`{model}`' for model in client.models) or 'nothing'}, {client.pace}.",
                ("spec", "clients", name),
            )
            for name, client in access.clients.items()
        ),
    )


def connections_of(resolution: EndpointResolution) -> Connections:
    """Return the pods of the Topologies, and the collector of traces."""
    context, monitoring = resolution.context, resolution.spec.monitoring
    namespace = resolution.metadata.namespace or context.config.namespace
    names = [name for each in resolution.backends for name in (each.service, each.canary) if name]
    return Connections(
        tuple(pods_behind(context, namespace, name) for name in dict.fromkeys(names)),
        trace_servers(monitoring.traces if monitoring is not None else None),
    )


compile_endpoint = KindCompiler(
    resolve=resolve_endpoint,
    check=check_endpoint,
    objects=endpoint_objects,
    describe=describe_endpoint,
    default_naming=None,
    settings_order=(
        "envoy",
        "imagePullSecrets",
        "replicas",
        "keysSecret",
        "topologies",
        "serviceAccount",
        "networkPolicy",
        "service",
        "route",
    ),
    connections=connections_of,
)
