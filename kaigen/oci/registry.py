"""The client of registries: the part of the OCI distribution specification 1.1 that kaigen needs.

It uses Python's HTTP client: the available libraries work on files on disk, cannot attach to an existing manifest,
and bring a second HTTP stack. Credentials go only to the registry and a token service of its domain, never along
a redirect to another host, and only over TLS or to this machine.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
import urllib.parse
from collections.abc import Callable, Mapping
from typing import IO, Any

from kaigen.core.credentials import mask_urls
from kaigen.diagnostics.errors import SystemFailure
from kaigen.kubernetes.images import ImageName
from kaigen.oci.credentials import Credentials, find_credentials, listed_registries
from kaigen.oci.http import ATTEMPTS, RETRY_STATUSES, Body, Opener, Response, user_agent
from kaigen.oci.realms import is_own_realm
from kaigen.oci.reference import Reference, registry_url

MANIFEST = "application/vnd.oci.image.manifest.v1+json"
INDEX = "application/vnd.oci.image.index.v1+json"
_IMAGES = (
    INDEX,
    MANIFEST,
    "application/vnd.docker.distribution.manifest.list.v2+json",
    "application/vnd.docker.distribution.manifest.v2+json",
)
LATEST = "latest"
"""Tag of an image without tag and digest."""
_RANGE = 4 << 20
"""Bytes of a request for a range: less than the largest body that is read."""
_PARAMETER = re.compile(r'([a-zA-Z_]+)="([^"]*)"')


class LoginRequired(SystemFailure):
    """A registry requires credentials, or rejects those of this machine."""


class Registry:
    """One repository of a registry."""

    def __init__(
        self,
        reference: Reference,
        *,
        plain_http: bool = False,
        pause: Callable[[float], object] | None = None,
        access: str = "pull,push",
        attempts: int = 0,
        timeout: float = 0.0,
    ) -> None:
        self.reference = reference
        self._access = access
        self._is_plain = plain_http or reference.is_loopback
        url = registry_url(reference.host, plain_http=self._is_plain)
        self._base = f"{url}/v2/{reference.repository}"
        self._opener = Opener(pause, "the registry", attempts=attempts, timeout=timeout)
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

    def digest(self, name: str) -> str | None:
        """Return the digest of the image or index with a tag or digest; like `named`."""
        found = self.named(name)
        return found[0] if found is not None else None

    def named(self, name: str) -> tuple[str, bytes] | None:
        """Return digest and content of the image or index with a tag or digest; None when it does not exist.

        Raises:
            SystemFailure: the registry is unreachable, rejects the request, or names another digest.
        """
        response = self._send("GET", f"{self._base}/manifests/{name}", {"Accept": ", ".join(_IMAGES)})
        if response.status == 404:
            return None
        self._expect(response, 200, "read")
        digest = digest_of(response.body)
        if response.headers.get("docker-content-digest", digest) != digest or (":" in name and name != digest):
            raise SystemFailure(
                f"the registry {self.reference.host} sent another manifest of {self.reference.repository}:{name} than "
                "it names"
            )
        return digest, response.body

    def blob_range(self, digest: str, start: int, end: int) -> bytes:
        """Return the bytes of a blob from a start to an end; fewer at its end.

        Raises:
            SystemFailure: the registry is unreachable, rejects the request, or sends another range.
        """
        content = b""
        while start + len(content) < end:
            first = start + len(content)
            last = min(end, first + _RANGE)
            response = self._send("GET", f"{self._base}/blobs/{digest}", {"Range": f"bytes={first}-{last - 1}"})
            if response.status == 200 and not content and start == 0:
                return response.body[:end]  # It ignores ranges, and sends the start of the blob, too.
            if response.status == 416:
                return content
            self._expect(response, 206, "read")
            if not response.headers.get("content-range", "").startswith(f"bytes {first}-"):
                raise SystemFailure(
                    f"the registry {self.reference.host} sent another range than bytes {first}-{last - 1}"
                )
            content += response.body
            if len(response.body) < last - first:
                return content
        return content

    def whole_blob(self, digest: str) -> bytes:
        """Return the content of a blob.

        Raises:
            SystemFailure: the registry is unreachable, rejects the request, or sends other content.
        """
        response = self._send("GET", f"{self._base}/blobs/{digest}", {})
        self._expect(response, 200, "read")
        if digest_of(response.body) != digest:
            raise SystemFailure(f"the registry {self.reference.host} sent other content for {digest}")
        return response.body

    def referrers(self, digest: str) -> list[dict[str, Any]]:
        """Return the descriptors of what is attached to a manifest.

        Asks the referrers API, and reads the tag that replaces it in registries without that API.

        Raises:
            SystemFailure: the registry is unreachable, rejects the request, or its answer is invalid.
        """
        response = self._send("GET", f"{self._base}/referrers/{digest}", {"Accept": INDEX})
        content: bytes | None = response.body
        if response.status != 200:
            content = self.manifest(digest.replace(":", "-"))
        if content is None:
            return []
        try:
            found = json.loads(content)["manifests"]
            return [each for each in found if isinstance(each, dict) and isinstance(each.get("digest"), str)]
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            raise SystemFailure(f"the registry {self.reference.host} sent an invalid index") from error

    def push_blob(self, content: bytes) -> str:
        """Upload content unless the registry has it, and return its digest.

        Raises:
            SystemFailure: the registry is unreachable or rejects the request.
        """
        return self._push_blob(content, digest_of(content), len(content))

    def push_file(self, file: IO[bytes], digest: str, size: int) -> str:
        """Upload the content of an open file unless the registry has it, and return its digest.

        Args:
            file: the content, which is not read into memory.
            digest: its digest.
            size: its bytes.

        Raises:
            SystemFailure: the registry is unreachable or rejects the request.
        """
        return self._push_blob(file, digest, size)

    def _push_blob(self, content: bytes | IO[bytes], digest: str, size: int) -> str:
        if self._send("HEAD", f"{self._base}/blobs/{digest}", {}).status == 200:
            return digest
        for attempt in range(1, ATTEMPTS + 1):
            started = self._send("POST", f"{self._base}/blobs/uploads/", {"Content-Length": "0"}, b"")
            self._expect(started, 202, "push to")
            url = urllib.parse.urljoin(f"{self._base}/blobs/uploads/", started.headers.get("location", ""))
            url += ("&" if urllib.parse.urlsplit(url).query else "?") + f"digest={urllib.parse.quote(digest)}"
            # An interrupted upload starts again with a new location: the old one has only half of the content.
            try:
                headers = {"Content-Type": "application/octet-stream", "Content-Length": str(size)}
                response = self._send("PUT", url, headers, content, retry=False)
            except SystemFailure:
                if attempt == ATTEMPTS:
                    raise
                continue
            if not (response.status in RETRY_STATUSES or _is_digest_mismatch(response)) or attempt == ATTEMPTS:
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
            response = self._send("PUT", f"{self._base}/manifests/{name}", {"Content-Type": media_type}, content)
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
            raise LoginRequired(
                f"the registry {host} rejected the credentials to {what}"
                if self._credentials
                else f"the registry {host} requires credentials to {what}",
                hint=f"run `docker login {host}` or `helm registry login {host}`",
            )
        raise SystemFailure(
            f"the registry {host} did not let kaigen {verb} {self.reference.repository}: {_reason(response)}"
        )

    def _send(
        self, method: str, url: str, headers: Mapping[str, str], body: Body = None, *, retry: bool = True
    ) -> Response:
        base, target = urllib.parse.urlsplit(self._base), urllib.parse.urlsplit(url)
        if base.scheme == "https" and target.scheme != "https":
            raise SystemFailure(f"the registry {self.reference.host} names an address without TLS for uploads")
        ours = (target.scheme, target.netloc) == (base.scheme, base.netloc)
        for _ in range(2):
            own = {"Authorization": self._authorization} if ours and self._authorization else {}
            response = self._opener.send(method, url, {**headers, **own, "User-Agent": user_agent()}, body, retry=retry)
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
        if login and not is_own_realm(self._base, realm, listed_registries()):
            host = urllib.parse.urlsplit(realm).hostname
            raise SystemFailure(
                f"the registry {self.reference.host} names a token service of another domain, {host}",
                hint=f"if that is right, add `{host}: {{}}` to `auths` in Docker's config.json",
            )
        scope = f"repository:{self.reference.repository}:{self._access}"
        query = {"service": challenged.get("service", ""), "scope": scope}
        headers = {"User-Agent": user_agent()}
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


def registry_of(image: ImageName, *, plain_http: bool, attempts: int = 0, timeout: float = 0.0) -> Registry:
    """Return a client that reads the repository of an image or an artifact.

    Args:
        image: the image.
        plain_http: connect without TLS to a registry that is not on this machine.
        attempts: how often a request is sent that fails; 0 for the default.
        timeout: seconds of silence that count as a failure; 0 for the default.
    """
    reference = Reference(image.registry, image.repository, image.tag or LATEST)
    return Registry(reference, plain_http=plain_http, access="pull", attempts=attempts, timeout=timeout)


def digest_of(content: bytes) -> str:
    """Return the digest of content: `sha256:` and hexadecimal digits."""
    return f"sha256:{hashlib.sha256(content).hexdigest()}"


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
    return mask_urls(reason)[:300] or f"HTTP {response.status}"
