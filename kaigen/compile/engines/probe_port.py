"""The port at which kaigen's own servers answer probes, apart from the one for requests.

Whatever clients do at the port for requests, they do not reach this one: no Service leads to it, and the NetworkPolicy
does not open it. Probes reach it all the same, because policies never restrict traffic from the node of a pod
(https://kubernetes.io/docs/concepts/services-networking/network-policies/, "Network traffic filtering").
"""

from __future__ import annotations

from itertools import count

from kaigen.catalog.engines import Version
from kaigen.compile.expressions import Tree
from kaigen.kinds.topology import TopologySpec

PROBE_PORT = 9992
"""The port, or the first one after it that nothing else in the pod uses."""

SINCE: Version = (0, 1, 0)
"""First version of `chat` and `ringproxy` with the flag. An older one would end on it."""


def probe_port(version: Version | None, spec: TopologySpec, *used: int) -> int | None:
    """Return the port for probes; None for a server without one, which answers probes at the port for requests.

    Args:
        version: version of the server's image; None when it is unknown, as of an image that only a digest names.
        spec: the spec.
        used: ports of the engine, other than the spec's.
    """
    if version is None or version < SINCE:
        return None
    taken = {spec.port, *used, *(port for sidecar in spec.sidecars.values() for port in sidecar.ports.values())}
    return next(port for port in count(PROBE_PORT) if port not in taken)


def http_probe(given: str | None, path: str, port: int | None) -> dict[str, Tree]:
    """Return how a probe asks: a path that the spec gives at the port of requests, since the other has no such path.

    Args:
        given: the path of the spec.
        path: the engine's own path; empty for a probe that opens the port.
        port: the port for probes; None for none.
    """
    if not given and not path:
        return {"tcpSocket": {"port": "http"}}
    return {"httpGet": {"path": given or path, "port": "http" if given or port is None else port}}


def probe_flags(port: int | None) -> list[str]:
    """Return the flag of the server that opens the port."""
    return [] if port is None else [f"--probe-port={port}"]
