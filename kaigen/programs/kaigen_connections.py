"""A middleware of vLLM that closes the connection after each response of a pod that drains.

Clients keep connections, which Kubernetes leaves at the pod that stops, and vLLM refuses their requests after SIGTERM.
"""

import os
from typing import Any

DRAINING = "/tmp/kaigen/draining"


class Connections:
    """The middleware, for `--middleware=kaigen_connections.Connections`."""

    def __init__(self, app: Any) -> None:
        self.app = app

    async def __call__(self, scope: dict[str, Any], receive: Any, send: Any) -> None:
        """Answer a request, with a header that ends the connection while the pod drains."""

        async def respond(message: dict[str, Any]) -> None:
            if message["type"] == "http.response.start" and os.path.exists(DRAINING):
                message = {**message, "headers": [*message.get("headers", ()), (b"connection", b"close")]}
            await send(message)

        await self.app(scope, receive, respond if scope["type"] == "http" else send)
