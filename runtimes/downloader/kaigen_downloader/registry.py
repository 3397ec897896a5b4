"""Files of an OCI artifact, or of the layers of an image, as a source."""

from __future__ import annotations

import base64
import hashlib
import json
import re
import threading
import time
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlencode, urlsplit

from kaigen_downloader.errors import BadInput, Corrupt, Failure, Refused, Transient, Unavailable
from kaigen_downloader.globs import chosen, duplicates, report_skipped
from kaigen_downloader.listing import LARGEST_ANSWER
from kaigen_downloader.net import Net, referred
from kaigen_downloader.ranges import Served
from kaigen_downloader.realms import is_own_realm
from kaigen_downloader.remote import LAYERS, Layer, RemoteFile, Snapshot, check_names
from kaigen_downloader.retry import Retry
from kaigen_downloader.store import Work
from kaigen_downloader.text import file_size, hide, shown

_REFERENCE = re.compile(
    r"(?P<host>[A-Za-z0-9.-]+(?::[0-9]+)?|\[[0-9a-f:]+\](?::[0-9]+)?)/(?P<repository>[a-z0-9]+(?:[._/-]+[a-z0-9]+)*)"
    r"(?::(?P<tag>[A-Za-z0-9_][A-Za-z0-9._-]{0,127}))?(?:@(?P<digest>sha256:[0-9a-f]{64}))?"
)
_DIGEST = re.compile(r"sha256:[0-9a-f]{64}")
_INDEXES = {"application/vnd.oci.image.index.v1+json", "application/vnd.docker.distribution.manifest.list.v2+json"}
_MANIFESTS = {"application/vnd.oci.image.manifest.v1+json", "application/vnd.docker.distribution.manifest.v2+json"}
_IMAGE_CONFIGS = {"application/vnd.oci.image.config.v1+json", "application/vnd.docker.container.image.v1+json"}
_NAMES = ("org.opencontainers.image.title", "org.cncf.model.filepath")
"""Annotations with the name of a layer's file (source: OCI image specification; CNCF model specification)."""
_EMPTY = "application/vnd.oci.empty.v1+json"
_CHALLENGE = re.compile(r'\b([a-z]+)="([^"]*)"', re.IGNORECASE)
_DOCKER = {"docker.io": "registry-1.docker.io", "index.docker.io": "registry-1.docker.io"}
_SOON = 30.0
"""Seconds before its end at which a token is replaced."""
_USUAL_LIFE = 60.0
"""Seconds of a token whose server does not say how long it is valid (source: Docker's token specification)."""
_LONGEST_LIFE = 366 * 86400


@dataclass(frozen=True, slots=True)
class Reference:
    """Where an artifact is: host of the registry, repository, and a tag or a digest."""

    host: str
    repository: str
    version: str

    @property
    def digest(self) -> str:
        """Return the digest, if the version is one."""
        return self.version if ":" in self.version else ""


def parse(text: str) -> Reference:
    """Return a reference; a short name is one of Docker Hub.

    Raises:
        BadInput: it is none.
    """
    first, _, rest = text.partition("/")
    if not rest or not ("." in first or ":" in first or first == "localhost"):
        text = f"docker.io/{text if rest else f'library/{text}'}"
    found = _REFERENCE.fullmatch(text)
    if found is None:
        raise BadInput(f"--ref {text}: not REGISTRY/REPOSITORY with a tag or a digest")
    return Reference(found["host"], found["repository"], found["digest"] or found["tag"] or "latest")


@dataclass(frozen=True, slots=True)
class Login:
    """What a registry may be asked with.

    Attributes:
        header: with user and password; empty for none.
        listed: names of all registries in the file that it is from.
    """

    header: str = ""
    listed: tuple[str, ...] = ()


def login_of(config: str, host: str) -> Login:
    """Return the user and password of a registry, if the file has one.

    Args:
        config: content of Docker's `config.json`.
        host: the registry.

    Raises:
        BadInput: it is not such a file.
    """
    if not config:
        return Login()
    names = {host, f"https://{host}", f"http://{host}"}
    if host in _DOCKER:
        names |= {"https://index.docker.io/v1/", "index.docker.io"}
    try:
        entries = json.loads(config)["auths"]
        entry = next((entries[name] for name in entries if name.rstrip("/") in names or name in names), None)
        if entry is None:
            return Login()
        given = entry.get("auth") or base64.b64encode(f"{entry['username']}:{entry['password']}".encode()).decode()
        hide(given)
        hide(base64.b64decode(given).decode().partition(":")[2])
    except (ValueError, KeyError, TypeError, AttributeError):
        raise BadInput("REGISTRY_AUTH is not the content of a Secret of type dockerconfigjson") from None
    return Login(f"Basic {given}", tuple(map(str, entries)))


@dataclass(slots=True)
class _Token:
    """A header that the registry accepts, when it was issued, and until when it is valid."""

    header: str = ""
    issued: float = float("-inf")
    ends: float = float("inf")


@dataclass(slots=True)
class Registry:
    """The files of an artifact.

    Attributes:
        reference: where it is.
        login: user and password.
        path: folder of the files in the layers of an image.
        include: globs over the whole path, `*` crossing slashes; none means all files.
        exclude: globs of files left out.
        skip_duplicates: whether weights that are there as safetensors are not fetched in other formats as well.
        plain: whether the registry has no TLS.
        is_context: whether the layers are a build context.
    """

    reference: Reference
    login: Login = Login()
    path: str = ""
    include: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    skip_duplicates: bool = False
    plain: bool = False
    is_context: bool = False
    _net: Net | None = None
    _challenge: Mapping[str, str] = field(default_factory=dict)
    _token: _Token = field(default_factory=_Token)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def endpoint(self) -> str:
        """Return the URL of the registry."""
        host = _DOCKER.get(self.reference.host, self.reference.host)
        return f"{'http' if self.plain else 'https'}://{host}"

    @property
    def name(self) -> str:
        """Return `REGISTRY/REPOSITORY:TAG`, or with a digest."""
        mark = "@" if self.reference.digest else ":"
        return f"{self.reference.host}/{self.reference.repository}{mark}{self.reference.version}"

    @property
    def facts(self) -> Mapping[str, str]:
        """Return the source for the marker."""
        return {"type": "oci", "ref": f"{self.reference.host}/{self.reference.repository}"}

    def selection(self, paths: Collection[str]) -> set[str]:
        """Return the files that the globs select."""
        found = {path for path in paths if self._chosen(path)}
        return found - self._skipped(found)

    def _skipped(self, paths: Collection[str]) -> set[str]:
        return duplicates(paths) if self.skip_duplicates and not self.include else set()

    def sign(self, url: str, headers: Mapping[str, str]) -> Mapping[str, str]:
        """Return the header with a token, a new one shortly before the old one ends."""
        with self._lock:
            if self._challenge and time.monotonic() > self._token.ends - _SOON:
                self._token = self._issued()
            return {"Authorization": self._token.header} if self._token.header else {}

    def served(self, remote: RemoteFile, work: Work) -> Served:
        """Return the bytes of a file."""
        return Served(remote, work.net, work.meter, work.retry, work.refusal)

    def refusal(self, path: str, status: int, code: str, message: str, token: bool) -> Failure:
        """Return the failure for a status; a token that is refused is replaced once."""
        if status == 401 and self._challenge:
            with self._lock:
                is_old = time.monotonic() - self._token.issued > 1.0
                self._token.ends = float("-inf") if is_old else self._token.ends
            if is_old:
                return Transient(f"{self.reference.host} does not accept the token any more, asking for a new one")
        return self._refused(status)

    def _refused(self, status: int) -> Refused:
        have = "the credentials have no access" if self.login.header else "no credentials are given"
        if status in (401, 403):
            return Refused(f"{self.reference.host} refuses {self.name} (status {status}): {have}")
        return Refused(f"{self.name} is not in the registry, or {have} (status {status})")

    def _issued(self) -> _Token:
        """Return a token of the server that the registry names.

        Raises:
            Refused: it gives none.
            Transient: it cannot be reached.
        """
        assert self._net is not None
        asked = {name: self._challenge[name] for name in ("service", "scope") if name in self._challenge}
        asked.setdefault("scope", f"repository:{self.reference.repository}:pull")
        realm = referred(self.endpoint, self._challenge.get("realm", ""))
        parts = urlsplit(realm)
        if self.login.header and not is_own_realm(self.endpoint, realm, self.login.listed):
            raise Refused(
                f"{self.reference.host} refers to {parts.hostname} for its login, which is another domain: if that is "
                f"right, add an entry {parts.hostname} to `auths` of REGISTRY_AUTH"
            )
        url = parts._replace(query="&".join(filter(None, (parts.query, urlencode(asked)))), fragment="").geturl()
        with self._net.get(url, {"Accept": "application/json"}, login=self.login.header) as answer:
            body = answer.small_body(1 << 20)
        if answer.status != 200:
            raise self._refused(answer.status)
        try:
            found = json.loads(body)
            token = str(found.get("token") or found["access_token"])
            lasts = found.get("expires_in")
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            raise Unavailable(f"{realm} does not respond like a server of tokens") from None
        hide(token)
        now = time.monotonic()
        seconds = lasts if isinstance(lasts, int | float) and 0 < lasts < _LONGEST_LIFE else _USUAL_LIFE
        return _Token(f"Bearer {token}", now, now + max(seconds, _SOON + 1))

    def snapshot(self, net: Net, retry: Retry, token: bool) -> Snapshot:
        """Ask for the manifest.

        Raises:
            Refused: not there, or no access.
            BadInput: layers that cannot be used, or globs that choose nothing.
            Corrupt: the manifest is not the one of the digest.
            Unavailable: the registry cannot be reached.
        """
        self._net = net
        digest, manifest = self._manifest(self.reference.version, retry)
        if str(manifest.get("mediaType")) in _INDEXES or "manifests" in manifest:
            digest, manifest = self._manifest(_platform(manifest, self.name), retry)
        try:
            files, layers = self._files(manifest)
        except (KeyError, TypeError, AttributeError, ValueError):
            raise Corrupt(f"{self.name} has no manifest that this program knows") from None
        if not files:
            raise BadInput(f"{self.name}: the globs select none of its files, or it has none")
        check_names([file.path for file in files if not file.path.startswith(f"{LAYERS}/")])
        ordered = tuple(sorted(files, key=lambda file: file.path))
        return Snapshot(digest.removeprefix("sha256:")[:40], ordered, tuple(layers))

    def find(self, net: Net, retry: Retry) -> tuple[str, str]:
        """Return the digest of the reference and an empty text, or no digest and why the registry does not show it.

        Raises:
            Unavailable: the registry cannot be reached.
        """
        self._net = net
        try:
            return self._manifest(self.reference.version, retry)[0], ""
        except Refused as error:
            return "", str(error)

    def _files(self, manifest: Mapping[str, Any]) -> tuple[list[RemoteFile], list[Layer]]:
        is_image = str(manifest["config"]["mediaType"]) in _IMAGE_CONFIGS
        root = self.path if is_image else ""
        files: dict[str, RemoteFile] = {}
        layers: dict[str, Layer] = {}
        for entry in manifest["layers"]:
            kind, annotations = str(entry["mediaType"]), entry.get("annotations") or {}
            name = next((str(annotations[each]) for each in _NAMES if each in annotations), "")
            if kind == _EMPTY:
                continue
            if "tar" in kind or (is_image and "rootfs" in kind):
                if "zstd" in kind:
                    raise BadInput(f"{self.name} has layers compressed with zstd: push them with gzip, or as plain tar")
                path = f"{LAYERS}/{self._hex(entry)}"
                files[path] = self._remote(entry, path)
                # Of a layer that comes twice, the last one has the final content, and deletes what the first one did.
                layers.pop(path, None)
                layers[path] = Layer(
                    path, kind.endswith("gzip"), root, self._chosen, self.is_context, skipped=self._skipped
                )
            elif name and self._chosen(name):
                if name in files:
                    raise BadInput(f"{self.name} has {shown(name)} twice")
                files[name] = self._remote(entry, name)
            elif not name:
                raise BadInput(f"{self.name} has a layer of type {kind} without a name of its file")
        skipped = self._skipped(files.keys() - layers.keys())
        report_skipped(skipped)
        return [file for path, file in files.items() if path not in skipped], list(layers.values())

    def _chosen(self, path: str) -> bool:
        return chosen(path, self.include, self.exclude)

    def _hex(self, entry: Mapping[str, Any]) -> str:
        digest = str(entry["digest"])
        if not _DIGEST.fullmatch(digest):
            raise BadInput(f"{self.name} has a layer with the digest {digest[:80]!r}: only sha256 is known")
        return digest.removeprefix("sha256:")

    def _remote(self, entry: Mapping[str, Any], path: str) -> RemoteFile:
        size, sha256 = file_size(entry["size"]), self._hex(entry)
        if size is None:
            raise ValueError
        url = f"{self.endpoint}/v2/{self.reference.repository}/blobs/sha256:{sha256}"
        return RemoteFile(path, size, sha256, None, url)

    def _manifest(self, version: str, retry: Retry) -> tuple[str, Mapping[str, Any]]:
        """Return the digest of a manifest, and its content."""
        url = f"{self.endpoint}/v2/{self.reference.repository}/manifests/{version}"
        body = self._asked(url, ", ".join(sorted(_INDEXES | _MANIFESTS)), retry)
        digest = f"sha256:{hashlib.sha256(body).hexdigest()}"
        if ":" in version and digest != version:
            raise Corrupt(f"{self.reference.host} sends another manifest than {version}")
        try:
            found = json.loads(body)
        except (ValueError, RecursionError):
            found = None
        if not isinstance(found, dict):
            raise Unavailable(f"{self.reference.host} does not respond like a registry")
        return digest, found

    def _asked(self, url: str, accept: str, retry: Retry) -> bytes:
        assert self._net is not None
        attempts = retry.attempts(f"asking for {self.name}")
        while True:
            try:
                with self._net.get(url, {"Accept": accept}) as answer:
                    body = answer.small_body(LARGEST_ANSWER)
                if answer.status == 200:
                    return body
                if answer.status != 401 or not self._log_in(answer.headers.get("WWW-Authenticate", "")):
                    raise self._refused(answer.status)
            except Transient as error:
                attempts.failed(error)

    def _log_in(self, challenge: str) -> bool:
        """Use the way to log in that the registry names; return False if it was used in vain."""
        if self._token.header:
            return False
        kind = challenge.partition(" ")[0].lower()
        if kind == "bearer":
            self._challenge = {name.lower(): value for name, value in _CHALLENGE.findall(challenge)}
            self._token = self._issued()
        elif kind == "basic" and self.login.header:
            self._token = _Token(self.login.header)
        return bool(self._token.header)


def _platform(index: Mapping[str, Any], name: str) -> str:
    """Return the digest of the manifest for linux/amd64, or of the first one: files do not depend on the platform."""
    try:
        entries = [entry for entry in index["manifests"] if _DIGEST.fullmatch(entry["digest"])]
        fitting = [
            entry
            for entry in entries
            if (entry.get("platform") or {}).get("os") == "linux" and entry["platform"].get("architecture") == "amd64"
        ]
        return str((fitting or entries)[0]["digest"])
    except (KeyError, TypeError, AttributeError, IndexError):
        raise Corrupt(f"{name} has no manifest that this program knows") from None
