"""What the pods of a Job connect to, for namespaces that deny egress."""

from __future__ import annotations

from kaigen.compile.builders.egress import bucket_servers
from kaigen.compile.builders.pools import pods_behind
from kaigen.compile.connections import Connections
from kaigen.compile.job.gate import judged_topology
from kaigen.compile.job.inputs import download_servers
from kaigen.compile.job.resolution import JobResolution
from kaigen.compile.job.upload import AT, output_bucket


def connections_of(resolution: JobResolution) -> Connections:
    """Return the Topology that is judged, and servers that `network.downloadEgress` does not allow already."""
    spec, context = resolution.spec, resolution.context
    namespace = resolution.metadata.namespace or context.config.namespace
    judged = judged_topology(spec, namespace, context)
    pods = () if judged is None else (pods_behind(context, namespace, judged.metadata.name),)
    if context.config.network is not None and context.config.network.download_egress is not None:
        return Connections(pods)
    bucket = output_bucket(spec)
    uploads = bucket_servers(bucket, AT) if bucket is not None else []
    return Connections(pods, (*download_servers(resolution), *uploads))
