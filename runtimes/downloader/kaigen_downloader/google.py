"""Google Cloud Storage with tokens: its XML API, in which botocore's requests have other headers.

The API is that of S3, with parts that are uploaded at the same time. With a token in place of a signature, the names
of headers begin with `x-goog-`, a condition compares the generation of an object, and the server compares a CRC32C with
each body (sources: Cloud Storage, migration from Amazon S3; XML API, request headers, upload of parts).
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from kaigen_downloader.digest import CRC32C, crc32c
from kaigen_downloader.s3_answers import send_bounded

if TYPE_CHECKING:
    from botocore.awsrequest import AWSPreparedRequest, AWSResponse

    from kaigen_downloader.tokens import Tokens

SERVER = "https://storage.googleapis.com"
_AMAZON, _GOOGLE = "x-amz-", "x-goog-"
_WITHOUT_MEANING = ("x-amz-checksum-", "x-amz-sdk-", "x-amz-content-sha256", "x-amz-date")
_HASH = "x-goog-hash"
_UNCHANGED = "x-goog-if-generation-match"
_GENERATION = ("x-goog-generation", "x-amz-version-id")
_UNAUTHORIZED = 401


def send(session: Any, tokens: Tokens, request: AWSPreparedRequest, **_: object) -> AWSResponse:
    """Send a request with a token, and once more with another one if it is rejected: a handler of `before-send`.

    Args:
        session: botocore's HTTP session.
        tokens: of the identity.
        request: the request, as for S3 and not signed.

    Returns:
        The answer, as one of S3.

    Raises:
        Failure: there is no token.
    """
    _translate_request(request)
    request.headers["Authorization"] = tokens.header()
    answer = send_bounded(session, request)
    if answer.status_code == _UNAUTHORIZED and tokens.renewed():
        request.reset_stream()
        request.headers["Authorization"] = tokens.header()
        answer = send_bounded(session, request)
    _translate_answer(answer)
    return answer


def _translate_request(request: AWSPreparedRequest) -> None:
    headers = request.headers
    for name in [name for name in headers if name.lower().startswith(_AMAZON)]:
        text = headers[name]
        del headers[name]
        if not name.lower().startswith(_WITHOUT_MEANING):
            headers[_GOOGLE + name[len(_AMAZON) :].lower()] = text
    if request.method != "PUT":
        return
    if "If-None-Match" in headers:
        del headers["If-None-Match"]
        headers[_UNCHANGED] = "0"
    if "If-Match" in headers:
        headers[_UNCHANGED] = headers["If-Match"]
        del headers["If-Match"]
    view = getattr(request.body, "view", None)
    if view is not None:
        headers[_HASH] = "crc32c=" + base64.b64encode(crc32c(view).to_bytes(4, "big")).decode()


def _translate_answer(answer: AWSResponse) -> None:
    for name in [name for name in answer.headers if name.lower().startswith(f"{_GOOGLE}meta-")]:
        answer.headers[_AMAZON + name[len(_GOOGLE) :]] = answer.headers[name]
    generation, version = _GENERATION
    if generation in answer.headers:
        answer.headers[version] = answer.headers[generation]


def checksum(head: Mapping[str, object]) -> str:
    """Return the checksum of an object: its MD5 in hex, else `CRC32C` and the checksum in hex; empty for none.

    Args:
        head: what the server says of it.
    """
    about = head.get("ResponseMetadata")
    headers = about.get("HTTPHeaders") if isinstance(about, dict) else None
    text = headers.get(_HASH) if isinstance(headers, dict) else None
    sums: dict[str, str] = {}
    for part in text.split(",") if isinstance(text, str) else ():
        name, _, encoded = part.strip().partition("=")
        try:
            sums[name] = base64.b64decode(encoded, validate=True).hex()
        except (binascii.Error, ValueError):
            continue
    if len(sums.get("md5", "")) == 32:
        return sums["md5"]
    return CRC32C + sums["crc32c"] if len(sums.get("crc32c", "")) == 8 else ""
