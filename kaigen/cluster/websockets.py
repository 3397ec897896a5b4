"""Connections with messages in both directions: to commands in containers, and to ports of pods."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kubernetes.stream import ws_client
from websocket import WebSocket, WebSocketBadStatusException, WebSocketException

from kaigen.cluster.errors import ApiError, unreachable

if TYPE_CHECKING:
    from kaigen.cluster.client import Cluster, Query


def open_websocket(cluster: Cluster, path: str, query: Query, protocol: str = "") -> WebSocket:
    """Return a new WebSocket of the API server.

    Args:
        cluster: the cluster.
        path: path of the request.
        query: its parameters.
        protocol: what the messages mean; empty for those of commands.

    Raises:
        ApiError: the API server refused.
        SystemFailure: it cannot be reached.
    """
    url, headers = cluster.signed("GET", path, query)
    headers |= {"sec-websocket-protocol": protocol} if protocol else {}
    try:
        return ws_client.create_websocket(cluster.configuration, ws_client.get_websocket_url(url), headers)
    except WebSocketBadStatusException as error:
        raise ApiError.of_answer(error.status_code, error.resp_body) from None
    except (WebSocketException, OSError) as error:
        raise unreachable(cluster.configuration.host, error) from None


def has_input(socket: WebSocket) -> bool:
    """Return whether TLS has data of a connection that its socket no longer has."""
    pending = getattr(socket.sock, "pending", None)
    return bool(pending and pending())
