"""A client for the part of the OCI distribution specification 1.1 that pushing an artifact needs.

It uses Python's HTTP client: the available libraries work on files on disk, cannot attach to an existing manifest,
and bring a second HTTP stack. Credentials go only to the registry and the token service that it names, never along
a redirect to another host, and only over TLS or to this machine.
"""

from __future__ import annotations

import base64
import hashlib
import http.client
import json
import random
import re
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Mapping
from email.message import Message
from time import sleep
from typing import Any

from msgspec import Struct

from kaigen import __version__
from kaigen.diagnostics.errors import SystemFailure
from kaigen.git.failures import mask
from kaigen.publish.credentials import Credentials, find_credentials
from kaigen.publish.reference import Reference

MANIFEST = "application/vnd.oci.image.manifest.v1+json"
INDEX = "application/vnd.oci.image.index.v1+json"
ATTEMPTS = 5
TIMEOUT_S = 60.0
_LARGEST_BODY = 8 << 20
_LONGEST_PAUSE_S = 20.0
_RETRY_STATUSES = frozenset({408, 429, 500, 502, 503, 504})
_PARAMETER = re.compile(r'([a-zA-Z_]+)="([^"]*)"')


class Response(Struct, frozen=True):
    """A response of the registry; header names are in lower case."""

    status: int
    headers: Mapping[str, str]
    body: bytes


def _headers(message: Message) -> dict[str, str]:
    return {name.lower(): value for name, value in message.items()}


class _Redirects(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, req: Any, fp: Any, code: int, msg: str, headers: Any, newurl: str) -> Any:
        old, new = urllib.parse.urlsplit(req.full_url), urllib.parse.urlsplit(newurl)
        if old.scheme == "https" and new.scheme != "https":
            raise SystemFailure(f"{old.hostname} redirects to a URL without TLS")
        request = super().redirect_request(req, fp, code, msg, headers, newurl)
        if request is not None and new.netloc != old.netloc:
            request.remove_header("Authorization")
        return request


def _pause_after(attempt: int) -> float:
    return float(min(_LONGEST_PAUSE_S, 0.25 * 2**attempt) * random.uniform(0.5, 1.0))


class _Opener:
    """Sends requests, with one retry policy for all."""

    def __init__(self, pause: Callable[[float], object] | None) -> None:
        self._open = urllib.request.build_opener(_Redirects()).open
        self._pause = pause or sleep

    def wait(self, attempt: int) -> None:
        """Wait after a failed attempt, longer after each one."""
        self._pause(_pause_after(attempt))

    def send(
        self,
        method: str,
        url: str,
        headers: Mapping[str, str],
        body: bytes | None = None,
        *,
        retry: bool = True,
    ) -> Response:
        host = urllib.parse.urlsplit(url).netloc.rpartition("@")[2]
        for attempt in range(1, ATTEMPTS + 1):
            last = attempt == ATTEMPTS or not retry
            request = urllib.request.Request(url, data=body, headers=dict(headers), method=method)
            wait = _pause_after(attempt)
            try:
                with self._open(request, timeout=TIMEOUT_S) as stream:
                    return Response(stream.status, _headers(stream.headers), stream.read(_LARGEST_BODY))
            except urllib.error.HTTPError as error:
                with error:
                    response = Response(error.code, _headers(error.headers), error.read(_LARGEST_BODY))
                if error.code not in _RETRY_STATUSES or last:
                    return response
                retry_after = response.headers.get("retry-after", "")
                wait = min(float(retry_after), _LONGEST_PAUSE_S) if retry_after.isdigit() else wait
            except (urllib.error.URLError, http.client.HTTPException, OSError) as error:
                if last:
                    reason = getattr(error, "reason", None) or error
                    raise SystemFailure(f"cannot reach the registry {host}: {mask(str(reason))}") from None
            self._pause(wait)
        raise AssertionError("the last attempt returns or raises")


class Registry:
    """One repository of a registry, to push to."""

    def __init__(
        self,
        reference: Reference,
        *,
        plain_http: bool = False,
        pause: Callable[[float], object] | None = None,
    ) -> None:
        self.reference = reference
        self._is_plain = plain_http or reference.is_loopback
        host = "registry-1.docker.io" if reference.host == "docker.io" else reference.host
        self._base = f"{'http' if self._is_plain else 'https'}://{host}/v2/{reference.repository}"
        self._opener = _Opener(pause)
        self._authorization = ""
        self._credentials: Credentials | None = None
        self._credentials_read = False

    def manifest(self, name: str) -> bytes | None:
        """Return the manifest of a tag or digest; None when it does not exist.

        Raises:
            SystemFailure: the registry is unreachable or rejects the request.
        """
        accept = {"Accept": f"{MANIFEST}, {INDEX}"}
        response = self._send("GET", f"{self._base}/manifests/{name}", accept)
        if response.status == 404:
            return None
        self._expect(response, 200, "read")
        return response.body

    def push_blob(self, content: bytes) -> str:
        """Upload content unless the registry has it, and return its digest.

        Raises:
            SystemFailure: the registry is unreachable or rejects the request.
        """
        digest = digest_of(content)
        if self._send("HEAD", f"{self._base}/blobs/{digest}", {}).status == 200:
            return digest
        for attempt in range(1, ATTEMPTS + 1):
            started = self._send("POST", f"{self._base}/blobs/uploads/", {"Content-Length": "0"}, b"")
            self._expect(started, 202, "push to")
            url = urllib.parse.urljoin(f"{self._base}/blobs/uploads/", started.headers.get("location", ""))
            url += ("&" if urllib.parse.urlsplit(url).query else "?") + f"digest={urllib.parse.quote(digest)}"
            # An interrupted upload starts again with a new location: the old one has only half of the content.
            try:
                headers = {"Content-Type": "application/octet-stream"}
                response = self._send("PUT", url, headers, content, retry=False)
            except SystemFailure:
                if attempt == ATTEMPTS:
                    raise
                continue
            if (
                not (response.status in _RETRY_STATUSES or _is_digest_mismatch(response))
                or attempt == ATTEMPTS
            ):
                break
            if self._send("HEAD", f"{self._base}/blobs/{digest}", {}).status == 200:
                return digest
        self._expect(response, 201, "push to")
        return digest

    def push_manifest(self, name: str, content: bytes, media_type: str) -> bool:
        """Push a manifest with a tag or its digest as name.

        Returns:
            Whether the registry processed its subject and so lists it among the subject's referrers.

        Raises:
            SystemFailure: the registry is unreachable or rejects the request.
        """
        for attempt in range(1, ATTEMPTS + 1):
            response = self._send(
                "PUT", f"{self._base}/manifests/{name}", {"Content-Type": media_type}, content
            )
            if not _is_digest_mismatch(response) or attempt == ATTEMPTS:
                break
            self._opener.wait(attempt)
        self._expect(response, 201, "push to")
        return bool(response.headers.get("oci-subject"))

    def _expect(self, response: Response, status: int, verb: str) -> None:
        if response.status == status:
            return
        host = self.reference.host
        if response.status in (401, 403):
            what = f"{verb} {self.reference.repository}"
            raise SystemFailure(
                f"the registry {host} rejected the credentials to {what}"
                if self._credentials
                else f"the registry {host} requires credentials to {what}",
                hint=f"run `docker login {host}` or `helm registry login {host}`",
            )
        raise SystemFailure(
            f"the registry {host} did not let kaigen {verb} {self.reference.repository}: {_reason(response)}"
        )

    def _send(
        self,
        method: str,
        url: str,
        headers: Mapping[str, str],
        body: bytes | None = None,
        *,
        retry: bool = True,
    ) -> Response:
        ours = urllib.parse.urlsplit(url).netloc == urllib.parse.urlsplit(self._base).netloc
        for _ in range(2):
            own = {"Authorization": self._authorization} if ours and self._authorization else {}
            response = self._opener.send(
                method, url, {**headers, **own, "User-Agent": _agent()}, body, retry=retry
            )
            if response.status != 401 or not ours:
                return response
            authorization = self._authorize(response.headers.get("www-authenticate", ""))
            if not authorization or authorization == self._authorization:
                return response
            self._authorization = authorization
        return response

    def _authorize(self, challenge: str) -> str:
        """Return the value of `Authorization` for a challenge (RFC 9110, 11.6.1); empty without credentials."""
        if not self._credentials_read:
            self._credentials, self._credentials_read = find_credentials(self.reference.host), True
        login = self._credentials
        scheme, _, parameters = challenge.partition(" ")
        basic = ""
        if login and login.user:
            basic = "Basic " + base64.b64encode(f"{login.user}:{login.password}".encode()).decode()
        if scheme.lower() != "bearer":
            return basic if scheme.lower() == "basic" else ""
        challenged = dict(_PARAMETER.findall(parameters))
        realm = challenged.get("realm", "")
        if not realm.startswith("https://") and not (self._is_plain and realm.startswith("http://")):
            raise SystemFailure(f"the token service of {self.reference.host} does not use TLS")
        scope = f"repository:{self.reference.repository}:pull,push"
        query = {"service": challenged.get("service", ""), "scope": scope}
        headers = {"User-Agent": _agent()}
        if login and login.identity_token:
            form = {
                **query,
                "grant_type": "refresh_token",
                "refresh_token": login.identity_token,
                "client_id": "kaigen",
            }
            headers["Content-Type"] = "application/x-www-form-urlencoded"
            response = self._opener.send("POST", realm, headers, urllib.parse.urlencode(form).encode())
        else:
            headers |= {"Authorization": basic} if basic else {}
            response = self._opener.send("GET", f"{realm}?{urllib.parse.urlencode(query)}", headers)
        if response.status != 200:
            return ""
        try:
            data = json.loads(response.body)
            token = data.get("token") or data.get("access_token")
        except (ValueError, AttributeError):
            token = None
        if not isinstance(token, str):
            raise SystemFailure(f"the token service of {self.reference.host} returned no token")
        return f"Bearer {token}"


def digest_of(content: bytes) -> str:
    """Return the digest of content: `sha256:` and hexadecimal digits."""
    return f"sha256:{hashlib.sha256(content).hexdigest()}"


def _agent() -> str:
    return f"kaigen/{__version__}"


def _is_digest_mismatch(response: Response) -> bool:
    """Return whether the registry rejected the digest.

    Docker's registry does so when another writer uploads the same content at the same time.
    """
    return response.status == 400 and b"DIGEST_INVALID" in response.body


def _reason(response: Response) -> str:
    """Return the registry's reason for a failure."""
    try:
        first = json.loads(response.body)["errors"][0]
        reason = f"{first.get('code', '')}: {first.get('message', '')}".strip(": ")
    except (ValueError, KeyError, IndexError, TypeError, AttributeError):
        reason = ""
    return mask(reason)[:300] or f"HTTP {response.status}"
