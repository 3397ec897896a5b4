"""A client of the OCI distribution specification 1.1: as much of it as pushing an artifact takes.

On Python's own HTTP client: what there is as a library works on files of the disk, attaches nothing to what is
there, and brings a second HTTP stack. Credentials go to the registry and to the token service that it names,
never along a redirection to another host, and only over TLS or to this machine.
"""

from __future__ import annotations

import hashlib
import http.client
import json
import random
import re
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from email.message import Message
from typing import Any

from kaigen.diagnostics.diagnostic import SystemFailure
from kaigen.git.failures import mask
from kaigen.publish.credentials import Credentials, find_credentials
from kaigen.publish.reference import Reference

MANIFEST = "application/vnd.oci.image.manifest.v1+json"
INDEX = "application/vnd.oci.image.index.v1+json"
ATTEMPTS = 5
TIMEOUT_S = 60.0
_LARGEST_ANSWER = 8 << 20
_LONGEST_PAUSE_S = 20.0
_AGAIN = frozenset({408, 429, 500, 502, 503, 504})
_PARAMETER = re.compile(r'([a-zA-Z_]+)="([^"]*)"')


@dataclass(frozen=True, slots=True)
class Answer:
    """What a registry said; names of headers are in lower case."""

    status: int
    headers: Mapping[str, str]
    body: bytes


def _headers(message: Message) -> dict[str, str]:
    return {name.lower(): value for name, value in message.items()}


class _Redirects(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, req: Any, fp: Any, code: int, msg: str, headers: Any, newurl: str) -> Any:
        old, new = urllib.parse.urlsplit(req.full_url), urllib.parse.urlsplit(newurl)
        if old.scheme == "https" and new.scheme != "https":
            raise SystemFailure(f"{old.hostname} redirects to an address without TLS")
        made = super().redirect_request(req, fp, code, msg, headers, newurl)
        if made is not None and new.netloc != old.netloc:
            made.remove_header("Authorization")
        return made


def _pause_after(attempt: int) -> float:
    return float(min(_LONGEST_PAUSE_S, 0.25 * 2**attempt) * random.uniform(0.5, 1.0))


class _Opener:
    """Sends requests; with one retry policy for all."""

    def __init__(self, pause: Callable[[float], object] | None) -> None:
        from time import sleep

        self._open = urllib.request.build_opener(_Redirects()).open
        self._pause = pause or sleep

    def wait(self, attempt: int) -> None:
        """Let some time pass after an attempt that failed, more after each."""
        self._pause(_pause_after(attempt))

    def send(
        self,
        method: str,
        url: str,
        headers: Mapping[str, str],
        body: bytes | None = None,
        *,
        again: bool = True,
    ) -> Answer:
        host = urllib.parse.urlsplit(url).netloc.rpartition("@")[2]
        for attempt in range(1, ATTEMPTS + 1):
            last = attempt == ATTEMPTS or not again
            request = urllib.request.Request(url, data=body, headers=dict(headers), method=method)
            wait = _pause_after(attempt)
            try:
                with self._open(request, timeout=TIMEOUT_S) as done:
                    return Answer(done.status, _headers(done.headers), done.read(_LARGEST_ANSWER))
            except urllib.error.HTTPError as error:
                with error:
                    answer = Answer(error.code, _headers(error.headers), error.read(_LARGEST_ANSWER))
                if error.code not in _AGAIN or last:
                    return answer
                asked = answer.headers.get("retry-after", "")
                wait = min(float(asked), _LONGEST_PAUSE_S) if asked.isdigit() else wait
            except (urllib.error.URLError, http.client.HTTPException, OSError) as error:
                if last:
                    why = getattr(error, "reason", None) or error
                    raise SystemFailure(f"the registry {host} cannot be reached: {mask(str(why))}") from None
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
        self._asked = False

    def manifest(self, name: str) -> bytes | None:
        """The manifest of a tag or digest; None when there is none.

        Raises:
            SystemFailure: the registry cannot be reached or refuses.
        """
        accept = {"Accept": f"{MANIFEST}, {INDEX}"}
        answer = self._send("GET", f"{self._base}/manifests/{name}", accept)
        if answer.status == 404:
            return None
        self._expect(answer, 200, "read")
        return answer.body

    def push_blob(self, content: bytes) -> str:
        """Upload content unless it is there; its digest.

        Raises:
            SystemFailure: the registry cannot be reached or refuses.
        """
        digest = digest_of(content)
        if self._send("HEAD", f"{self._base}/blobs/{digest}", {}).status == 200:
            return digest
        for attempt in range(1, ATTEMPTS + 1):
            begun = self._send("POST", f"{self._base}/blobs/uploads/", {"Content-Length": "0"}, b"")
            self._expect(begun, 202, "push to")
            place = urllib.parse.urljoin(f"{self._base}/blobs/uploads/", begun.headers.get("location", ""))
            place += (
                "&" if urllib.parse.urlsplit(place).query else "?"
            ) + f"digest={urllib.parse.quote(digest)}"
            # An upload that broke off begins anew: its place knows only half of it.
            try:
                headers = {"Content-Type": "application/octet-stream"}
                answer = self._send("PUT", place, headers, content, again=False)
            except SystemFailure:
                if attempt == ATTEMPTS:
                    raise
                continue
            if not (answer.status in _AGAIN or _is_spoilt(answer)) or attempt == ATTEMPTS:
                break
            if self._send("HEAD", f"{self._base}/blobs/{digest}", {}).status == 200:
                return digest
        self._expect(answer, 201, "push to")
        return digest

    def push_manifest(self, name: str, content: bytes, media_type: str) -> bool:
        """Put a manifest under a tag or its digest.

        Returns:
            Whether the registry took note of its subject, and so lists it among the subject's referrers.

        Raises:
            SystemFailure: the registry cannot be reached or refuses.
        """
        for attempt in range(1, ATTEMPTS + 1):
            answer = self._send(
                "PUT", f"{self._base}/manifests/{name}", {"Content-Type": media_type}, content
            )
            if not _is_spoilt(answer) or attempt == ATTEMPTS:
                break
            self._opener.wait(attempt)
        self._expect(answer, 201, "push to")
        return bool(answer.headers.get("oci-subject"))

    def _expect(self, answer: Answer, status: int, verb: str) -> None:
        if answer.status == status:
            return
        host = self.reference.host
        if answer.status in (401, 403):
            what = f"{verb} {self.reference.repository}"
            raise SystemFailure(
                f"the registry {host} refuses the credentials to {what}"
                if self._credentials
                else f"the registry {host} asks for credentials to {what}, and there are none",
                hint=f"`docker login {host}` or `helm registry login {host}`",
            )
        raise SystemFailure(
            f"the registry {host} does not let kaigen {verb} {self.reference.repository}: {_said(answer)}"
        )

    def _send(
        self,
        method: str,
        url: str,
        headers: Mapping[str, str],
        body: bytes | None = None,
        *,
        again: bool = True,
    ) -> Answer:
        ours = urllib.parse.urlsplit(url).netloc == urllib.parse.urlsplit(self._base).netloc
        for _ in range(2):
            own = {"Authorization": self._authorization} if ours and self._authorization else {}
            answer = self._opener.send(
                method, url, {**headers, **own, "User-Agent": _agent()}, body, again=again
            )
            if answer.status != 401 or not ours:
                return answer
            authorization = self._answer_to(answer.headers.get("www-authenticate", ""))
            if not authorization or authorization == self._authorization:
                return answer
            self._authorization = authorization
        return answer

    def _answer_to(self, challenge: str) -> str:
        """The value of `Authorization` that a challenge (RFC 9110, 11.6.1) asks for; empty when there is none."""
        import base64

        if not self._asked:
            self._credentials, self._asked = find_credentials(self.reference.host), True
        known = self._credentials
        scheme, _, rest = challenge.partition(" ")
        basic = ""
        if known and known.user:
            basic = "Basic " + base64.b64encode(f"{known.user}:{known.password}".encode()).decode()
        if scheme.lower() != "bearer":
            return basic if scheme.lower() == "basic" else ""
        asked = dict(_PARAMETER.findall(rest))
        realm = asked.get("realm", "")
        if not realm.startswith("https://") and not (self._is_plain and realm.startswith("http://")):
            raise SystemFailure(f"the registry {self.reference.host} names no token service with TLS")
        scope = f"repository:{self.reference.repository}:pull,push"
        query = {"service": asked.get("service", ""), "scope": scope}
        headers = {"User-Agent": _agent()}
        if known and known.identity_token:
            form = {
                **query,
                "grant_type": "refresh_token",
                "refresh_token": known.identity_token,
                "client_id": "kaigen",
            }
            headers["Content-Type"] = "application/x-www-form-urlencoded"
            answer = self._opener.send("POST", realm, headers, urllib.parse.urlencode(form).encode())
        else:
            headers |= {"Authorization": basic} if basic else {}
            answer = self._opener.send("GET", f"{realm}?{urllib.parse.urlencode(query)}", headers)
        if answer.status != 200:
            return ""
        try:
            data = json.loads(answer.body)
            token = data.get("token") or data.get("access_token")
        except (ValueError, AttributeError):
            token = None
        if not isinstance(token, str):
            raise SystemFailure(f"the token service of {self.reference.host} gives no token")
        return f"Bearer {token}"


def digest_of(content: bytes) -> str:
    """The digest of content, as registries name it: `sha256:` and hexadecimal digits."""
    return f"sha256:{hashlib.sha256(content).hexdigest()}"


def _agent() -> str:
    from kaigen import __version__

    return f"kaigen/{__version__}"


def _is_spoilt(answer: Answer) -> bool:
    """Whether another writer of the same content may have come between: Docker's registry then reads half of it."""
    return answer.status == 400 and b"DIGEST_INVALID" in answer.body


def _said(answer: Answer) -> str:
    """What the registry gave as its reason."""
    try:
        first = json.loads(answer.body)["errors"][0]
        words = f"{first.get('code', '')}: {first.get('message', '')}".strip(": ")
    except (ValueError, KeyError, IndexError, TypeError, AttributeError):
        words = ""
    return mask(words)[:300] or f"HTTP {answer.status}"
