"""What may go wrong between this machine and an API server; exit code 3."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from kaigen.diagnostics.errors import SystemFailure


class ApiError(SystemFailure):
    """The API server refused a request.

    Attributes:
        code: HTTP status.
        reason: the server's word for it, such as `NotFound`.
        repeated: whether the request was sent more than once: the server may have carried out an earlier one.
    """

    repeated = False

    def __init__(self, code: int, status: Mapping[str, Any]) -> None:
        self.code = code
        self.reason = str(status.get("reason", ""))
        hint = "check the rights of the user of the kubeconfig" if code in (401, 403) else ""
        super().__init__(str(status.get("message") or f"the API server answered {code}"), hint=hint)

    @classmethod
    def of_answer(cls, code: int, body: bytes | str | None) -> ApiError:
        """Return the error for an answer: a `Status` of Kubernetes, or a text of something in between."""
        data = body.encode() if isinstance(body, str) else body or b""
        try:
            status = json.loads(data)
        except ValueError:
            status = None
        if not isinstance(status, dict):
            status = {"message": data.decode(errors="replace").strip()[:500]}
        return (Forbidden if code == 403 else cls)(code, status)


class Forbidden(ApiError):
    """The user may not do it."""


class Unreachable(SystemFailure):
    """The cluster does not answer. It may do so a moment later."""


class StreamBroken(Unreachable):
    """A connection ended before the server ended its answer."""


def unreachable(host: str, error: BaseException) -> Unreachable:
    """Return the error for an API server that does not answer.

    Args:
        host: its address.
        error: what the connection ended with.
    """
    reason = getattr(error, "reason", None) or error
    text = str(reason).partition(") ")[2] or str(reason).partition(": ")[2] or str(reason)
    hint = "check that the cluster runs, and select another with --context"
    return Unreachable(f"cannot reach the cluster at {host}: {text}", hint=hint)
