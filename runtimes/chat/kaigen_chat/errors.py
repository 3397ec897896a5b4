"""What may go wrong: before the server listens, and in answer to a request."""

from __future__ import annotations


class Failure(Exception):
    """The server cannot start: told in one line, without a traceback.

    Attributes:
        code: exit code of the process.
    """

    code = 1


class BadSettings(Failure):
    """A flag, an environment variable or a file they name cannot be used."""

    code = 2


class BadModel(Failure):
    """The folder holds no model that this server reads, or that it may read."""

    code = 3


class NotComplete(Failure):
    """The folder was not marked complete in time: starting again helps."""

    code = 20


class Refused(Exception):
    """A request that gets an error for an answer.

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
        """The answer in the shape that OpenAI's clients read."""
        return {
            "error": {"message": str(self), "type": self.kind, "param": self.param, "code": self.code},
        }

    def headers(self) -> dict[str, str]:
        """What goes with it."""
        return {} if self.retry_after is None else {"Retry-After": str(self.retry_after)}


def bad_request(message: str, param: str | None = None, code: str | None = None) -> Refused:
    """400: the request can never be answered as it is."""
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
    """503: not ready yet, not any more, or broken."""
    return Refused(503, message, kind="server_error", code="unavailable", retry_after=retry_after)
