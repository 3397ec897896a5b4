"""Errors, at startup and in requests."""

from __future__ import annotations


class Failure(Exception):
    """The server cannot start: printed in one line, without a traceback.

    Attributes:
        code: exit code of the process.
    """

    code = 1


class BadSettings(Failure):
    """A flag, an environment variable or a file that they name is invalid."""

    code = 2


class BadModel(Failure):
    """The folder has no model that this server supports or may load."""

    code = 3


class NotComplete(Failure):
    """The folder had no completion marker in time; a restart helps."""

    code = 20


class Refused(Exception):
    """A request that is answered with an error.

    Attributes:
        status: HTTP status.
        kind: `type` in OpenAI's error object.
        param: the field of the request that is wrong, when it is one.
        code: OpenAI's word for the error, when it has one.
        retry_after: seconds after which the same request may be accepted.
    """

    def __init__(
        self,
        status: int,
        message: str,
        *,
        kind: str = "invalid_request_error",
        param: str | None = None,
        code: str | None = None,
        retry_after: int | None = None,
    ) -> None:
        super().__init__(message)
        self.status = status
        self.kind = kind
        self.param = param
        self.code = code
        self.retry_after = retry_after

    def body(self) -> dict[str, dict[str, str | None]]:
        """Return the response in OpenAI's format."""
        return {"error": {"message": str(self), "type": self.kind, "param": self.param, "code": self.code}}

    def headers(self) -> dict[str, str]:
        """What goes with it."""
        return {} if self.retry_after is None else {"Retry-After": str(self.retry_after)}


def bad_request(message: str, param: str | None = None, code: str | None = None) -> Refused:
    """400: the request is invalid."""
    return Refused(400, message, param=param, code=code)


def too_busy(retry_after: int) -> Refused:
    """429: the queue is full."""
    return Refused(
        429,
        "The server has as many requests as it may queue. Try again later.",
        kind="rate_limit_error",
        code="queue_full",
        retry_after=retry_after,
    )


def not_serving(message: str, retry_after: int = 5) -> Refused:
    """503: not ready yet, shutting down, or broken."""
    return Refused(503, message, kind="server_error", code="unavailable", retry_after=retry_after)
