"""Turns error answers of Azure Blob Storage into one line and an exit code."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import TYPE_CHECKING

from kaigen_downloader.errors import BadInput, Failure, Refused, Transient
from kaigen_downloader.net import retry_after
from kaigen_downloader.s3_errors import Absent, Conflict
from kaigen_downloader.text import duration

if TYPE_CHECKING:
    from kaigen_downloader.s3 import Address

# Codes of Azure Storage (source: REST API, common error codes and Blob service error codes).
_BAD_CREDENTIALS = {
    "AuthenticationFailed",
    "InvalidAuthenticationInfo",
    "NoAuthenticationInformation",
    "KeyBasedAuthenticationNotPermitted",
}
_PASSING = {"Md5Mismatch", "OperationTimedOut", "ServerBusy", "InternalError", "IncompleteBody"}
_CONFLICT = {"BlobAlreadyExists", "ConditionNotMet", "TargetConditionNotMet"}
_ABSENT = {"BlobNotFound", "ResourceNotFound", "InvalidBlockList"}
_BAD_NAMES = {"InvalidResourceName", "OutOfRangeInput", "InvalidUri"}
_READS = {"ListObjectsV2", "GetObject", "HeadObject"}


def explain_answer(status: int, headers: Mapping[str, str], operation: str, where: Address, server: str) -> Failure:
    """Return the failure for an answer that is an error.

    Args:
        status: of the answer.
        headers: of the answer; the code of the error is one of them, also of an answer without a body.
        operation: what was asked, as S3 calls it.
        where: of the container.
        server: the server's name.
    """
    code = headers.get("x-ms-error-code", "")
    name = f" {code}" if code else ""
    if code == "ContainerNotFound" or (status == 404 and operation == "ListObjectsV2"):
        return Refused(f"container {where.bucket} does not exist on {server}")
    if code in _PASSING or status in (408, 429) or status >= 500:
        wait = retry_after(headers, time.time())
        return Transient(f"{server} answers {status}{name}" + (f", wait {duration(wait)}" if wait else ""), wait)
    if code in _CONFLICT or status == 412:
        return Conflict(f"{where.name}: {operation}: the blob has changed ({code or status})")
    if code in _ABSENT or status == 404:
        return Absent(f"{where.name}: {operation}: does not exist ({code or status})")
    if code in _BAD_CREDENTIALS or status == 401:
        return Refused(f"{server} rejects the credentials: {code or status}")
    if status == 403:
        role = "Storage Blob Data Reader" if operation in _READS else "Storage Blob Data Contributor"
        return Refused(f"access denied: the credentials lack the role {role!r} on {where.name} ({code or status})")
    if code in _BAD_NAMES:
        return BadInput(f"{where.name}: {server} rejects the name: {code}")
    if 300 <= status < 400:
        return BadInput(f"{server} redirects ({status}): set the right --s3-endpoint")
    return Refused(f"{where.name}: {server} answers {status} to {operation}:{name}")
