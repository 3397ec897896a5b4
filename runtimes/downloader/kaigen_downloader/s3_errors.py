"""Turns errors of S3 and its client into one line and an exit code."""

from __future__ import annotations

import datetime
import time
from typing import TYPE_CHECKING

from kaigen_downloader.errors import BadInput, Failure, NoSpace, Refused, Transient, Unavailable
from kaigen_downloader.net import retry_after
from kaigen_downloader.text import duration

if TYPE_CHECKING:
    from botocore.exceptions import ClientError

    from kaigen_downloader.s3 import Address

# Amazon's codes; those with the prefix `XMinio` are MinIO's own.
_DENIED = {"AccessDenied", "AllAccessDisabled", "Forbidden", "403", "401", "Unauthorized", "AccountProblem"}
_BAD_KEYS = {
    "InvalidAccessKeyId",
    "SignatureDoesNotMatch",
    "InvalidToken",
    "ExpiredToken",
    "ExpiredTokenException",
    "TokenRefreshRequired",
    "InvalidSecurity",
    "InvalidClientTokenId",
    # Google's.
    "AuthenticationRequired",
}
_ELSEWHERE = {
    "PermanentRedirect",
    "TemporaryRedirect",
    "Redirect",
    "AuthorizationHeaderMalformed",
    "IllegalLocationConstraintException",
    "IncorrectEndpoint",
}
_SKEWED = {"RequestTimeTooSkewed", "RequestInTheFuture", "RequestExpired"}
_FULL = {"XMinioStorageFull", "InsufficientStorage", "QuotaExceeded", "XMinioAdminBucketQuotaExceeded", "507"}
_PASSING = {
    "SlowDown",
    "SlowDownRead",
    "SlowDownWrite",
    "Throttling",
    "ThrottlingException",
    "RequestLimitExceeded",
    "TooManyRequests",
    "RequestTimeout",
    "InternalError",
    "ServiceUnavailable",
    "OperationAborted",
    "BadDigest",
    "XAmzContentSHA256Mismatch",
    "XAmzContentChecksumMismatch",
    "IncompleteBody",
}
_BAD_NAMES = {"InvalidBucketName", "KeyTooLongError", "KeyTooLong", "InvalidObjectName", "XMinioInvalidObjectName"}
_ABSENT = {"NoSuchKey", "NoSuchUpload", "NotFound", "404"}
_CONFLICT = {"PreconditionFailed", "ConditionalRequestConflict", "412"}
_OF_BUCKETS = {"ListObjectsV2", "ListMultipartUploads"}
# Permissions that are not called as the operation is.
_PERMISSIONS = {
    "ListObjectsV2": "s3:ListBucket",
    "ListMultipartUploads": "s3:ListBucketMultipartUploads",
    "HeadObject": "s3:GetObject",
    "CreateMultipartUpload": "s3:PutObject",
    "UploadPart": "s3:PutObject",
    "CompleteMultipartUpload": "s3:PutObject",
}
# Source: Cloud Storage, IAM permissions for XML requests. Whatever is there already can be replaced with `delete` only.
_GOOGLE_PERMISSIONS = {
    "ListObjectsV2": "storage.objects.list",
    "ListMultipartUploads": "storage.multipartUploads.list",
    "AbortMultipartUpload": "storage.multipartUploads.abort",
    "HeadObject": "storage.objects.get",
    "GetObject": "storage.objects.get",
    "DeleteObject": "storage.objects.delete",
    "PutObject": "storage.objects.create or storage.objects.delete",
    "CopyObject": "storage.objects.create or storage.objects.get",
}
_GOOGLE_PARTS = "storage.multipartUploads.create, storage.objects.create or storage.objects.delete"


class Absent(Failure):
    """The object or the upload does not exist. Caught where that is expected."""

    code = 10


class Conflict(Failure):
    """The object has changed since it was read. Caught where a request has such a condition."""


def explain(error: Exception, operation: str, where: Address, server: str) -> Failure:
    """Return the failure for an error of botocore.

    Args:
        error: what it raised.
        operation: what was asked, or empty before anything was.
        where: of the bucket.
        server: the server's name.
    """
    from botocore.exceptions import ClientError

    if isinstance(error, ClientError):
        return _answered(error, operation, where, server)
    return _unanswered(error, operation, where, server)


def _answered(error: ClientError, operation: str, where: Address, server: str) -> Failure:
    details = error.response.get("Error", {})
    about = error.response.get("ResponseMetadata", {})
    status = int(about.get("HTTPStatusCode", 0))
    headers = {name.title(): str(value) for name, value in about.get("HTTPHeaders", {}).items()}
    code, message = str(details.get("Code", "")), str(details.get("Message", "")).rstrip(".")
    if error.operation_name != operation and status < 500:
        # Such as AssumeRoleWithWebIdentity, which botocore sends to get credentials at all.
        return Refused(f"{where.name}: no credentials: {error.operation_name} is refused: {code} {message}")
    if code == "NoSuchBucket" or (code in _ABSENT and operation in _OF_BUCKETS):
        return Refused(f"bucket {where.bucket} does not exist on {server}")
    if code in _SKEWED:
        return Unavailable(f"{server} rejects the time of this node{_skew(headers)}: fix its clock")
    if code in _PASSING or status in (408, 429) or (status >= 500 and code not in (*_FULL, "NotImplemented")):
        wait = retry_after(headers, time.time())
        name = f" {code}" if code and code != str(status) else ""
        return Transient(f"{server} answers {status}{name}" + (f", wait {duration(wait)}" if wait else ""), wait)
    if code in _CONFLICT:
        return Conflict(f"{where.name}: {operation}: the object has changed ({code})")
    if code in _BAD_KEYS:
        return Refused(f"{server} rejects the credentials: {code}")
    # An answer without a body, as to HeadObject, says no more than 400.
    region = headers.get("X-Amz-Bucket-Region") or str(details.get("Region", ""))
    if code in _ELSEWHERE or 300 <= status < 400 or (region and code == "400"):
        if region:
            return BadInput(f"bucket {where.bucket} is in region {region}: set --s3-region={region}")
        target = str(details.get("Endpoint", "")) or headers.get("Location", "")
        hint = f" to {target}" if target else ""
        return BadInput(f"{server} redirects{hint} ({status}): set the right --s3-endpoint and region")
    if code in _DENIED or status in (401, 403):
        action = _permission(operation, where)
        return Refused(f"access denied: the credentials lack {action} on {where.name}")
    if code in _FULL or status == 507:
        return NoSpace(f"{where.name}: the server has no space left ({code})")
    if code in _BAD_NAMES:
        return BadInput(f"{where.name}: {server} rejects the name: {code}")
    if code in _ABSENT:
        return Absent(f"{where.name}: {operation}: does not exist ({code})")
    return Refused(f"{where.name}: {server} answers {status} to {operation}: {code} {message}".rstrip())


def _permission(operation: str, where: Address) -> str:
    if where.scheme == "gs":
        return _GOOGLE_PERMISSIONS.get(operation, _GOOGLE_PARTS)
    return _PERMISSIONS.get(operation, f"s3:{operation}")


def _skew(headers: dict[str, str]) -> str:
    """Return the difference of the clocks, from the server's `Date`."""
    import email.utils

    try:
        there = email.utils.parsedate_to_datetime(headers["Date"])
        apart = abs((datetime.datetime.now(datetime.UTC) - there).total_seconds())
    except (KeyError, ValueError, TypeError, OverflowError):
        return ""
    return f", which is {duration(apart)} from its own"


def _unanswered(error: Exception, operation: str, where: Address, server: str) -> Failure:
    from botocore import exceptions
    from botocore.parsers import ResponseParserError

    name = where.name
    text = _cause(error)
    if isinstance(
        error, (exceptions.NoCredentialsError, exceptions.PartialCredentialsError, exceptions.NoAuthTokenError)
    ):
        return Refused(f"{name}: no credentials found: {text}")
    if isinstance(error, OSError) and not operation:
        # Such as the file of a web identity's token.
        return Refused(f"{name}: no credentials found: {text}")
    if isinstance(error, exceptions.SSLError):
        if "CERTIFICATE_VERIFY_FAILED" in text:
            return Unavailable(
                f"{server}: the certificate is not trusted; set SSL_CERT_FILE to a CA bundle if the server "
                "or a proxy has its own authority"
            )
        return Transient(f"{server}: TLS failed ({text})")
    if isinstance(error, (exceptions.ReadTimeoutError, exceptions.ConnectTimeoutError)) or "timed out" in text:
        return Transient(f"{server}: no data within the timeout")
    if isinstance(error, exceptions.EndpointConnectionError):
        return Transient(f"{server}: cannot connect")
    if isinstance(error, exceptions.ConnectionClosedError):
        return Transient(f"{server}: the connection was cut")
    if isinstance(error, ResponseParserError):
        return Unavailable(f"{server} does not respond like an S3 server")
    if isinstance(error, (exceptions.HTTPClientError, exceptions.IncompleteReadError, OSError)):
        return Transient(f"{server}: {text}")
    if isinstance(error, (exceptions.InvalidRegionError, exceptions.NoRegionError)):
        return BadInput(f"--s3-region: {text}")
    if isinstance(
        error,
        (
            exceptions.ParamValidationError,
            exceptions.InvalidConfigError,
            exceptions.ProfileNotFound,
            exceptions.ConfigNotFound,
            exceptions.ConfigParseError,
            ValueError,
        ),
    ):
        return BadInput(f"{name}: {text}")
    # Roles, web identities and node metadata are asked for over the network too.
    return Unavailable(f"{name}: {operation or 'credentials'}: {text}")


def _cause(error: Exception) -> str:
    """Return the cause inside an error of botocore, whose message contains the whole URL."""
    inner = getattr(error, "kwargs", {}).get("error")
    return " ".join(str(inner or error).split())[:300] or type(error).__name__
