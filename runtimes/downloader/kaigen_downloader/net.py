"""The HTTP client for the Hub, its CDN and other servers.

It keeps connections, goes through proxies, has a deadline for every read, and sends the token to the Hub's own origin
and nowhere else.
"""

from __future__ import annotations

import base64
import contextlib
import email.utils
import functools
import http.client
import re
import socket
import ssl
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from http.client import HTTPMessage
from urllib.parse import SplitResult, quote, unquote, urljoin, urlsplit

from kaigen_downloader import __version__
from kaigen_downloader.errors import BadInput, Refused, Stopped, Transient, Unavailable
from kaigen_downloader.pace import DEFAULT, Pace
from kaigen_downloader.text import duration, size, whole_number

Origin = tuple[str, str, int]

_PORTS = {"http": 80, "https": 443}
_PASSING = {408, 425, 429, 500, 502, 503, 504, 520, 521, 522, 523, 524}
_REDIRECTS = {301, 302, 303, 307, 308}
_MOST_REDIRECTS = 8
_MOST_ORIGINS = 4
"""Origins to which one thread keeps its connections, such as a registry, its server of tokens and its CDN."""
_LONGEST_PAUSE = 24 * 3600
"""Most seconds that a server may ask for; a larger number is not a date that anybody waits for."""
_NOT_IN_HOST = re.compile(r"[\x00-\x20\x7f]")
"""Characters that http.client refuses in the name of a host."""
_RESET = re.compile(r"\bt\s*=\s*(\d+)")


def origin(url: str) -> Origin:
    """Return scheme, host and port of a URL.

    Raises:
        BadInput: not an http or https URL.
    """
    parts = _parse(url)
    return parts.scheme, parts.hostname or "", parts.port or _PORTS[parts.scheme]


def _parse(url: str) -> SplitResult:
    try:
        parts = urlsplit(url)
        _ = parts.port
    except ValueError:
        raise BadInput(f"not a URL: {url}") from None
    if parts.scheme not in _PORTS or not parts.hostname or _NOT_IN_HOST.search(parts.hostname):
        raise BadInput(f"not an http or https URL: {url}")
    return parts


def is_encrypted(url: str) -> bool:
    """Return whether requests for a URL go over TLS; schemes may be in capitals."""
    return urlsplit(url).scheme == "https"


def retry_after(headers: HTTPMessage | Mapping[str, str], now: float) -> float | None:
    """Return the seconds of `Retry-After`, a number or a date; if it is missing, those of the Hub's `RateLimit`."""
    value = (headers.get("Retry-After") or "").strip()
    if (number := whole_number(value)) is not None:
        return float(min(number, _LONGEST_PAUSE))
    if value:
        with contextlib.suppress(ValueError, TypeError, OverflowError):
            pause = email.utils.parsedate_to_datetime(value).timestamp() - now
            return min(max(0.0, pause), float(_LONGEST_PAUSE))
    reset = _RESET.search(headers.get("RateLimit") or "")
    number = whole_number(reset[1]) if reset else None
    return None if number is None else float(min(number, _LONGEST_PAUSE))


def referred(url: str, reference: str) -> str:
    """Return the URL that a server refers to in its answer for another one: a redirect, a next page, a login.

    Raises:
        Transient: that is not an http or https URL.
        Refused: it leaves TLS.
    """
    try:
        target = urljoin(url, reference)
        _parse(target)
    except (ValueError, BadInput):
        raise Transient(f"the server refers to {reference[:200]!r}, which is not an http or https URL") from None
    if is_encrypted(url) and not is_encrypted(target):
        raise Refused(f"{urlsplit(url).hostname} refers from https to http, which is not followed")
    return target


def _proxy(text: str, scheme: str) -> SplitResult:
    """Return the URL of the proxy for a scheme.

    Raises:
        BadInput: http.client cannot use it as the URL says: it has no TLS to a proxy, and no SOCKS.
    """
    try:
        found = _parse(text if "://" in text else f"http://{text}")
    except BadInput:
        found = None
    if found is None or found.scheme != "http":
        # It may contain a password.
        raise BadInput(f"the proxy in {scheme.upper()}_PROXY has no http URL: set it to http://HOST:PORT")
    return found


class Answer:
    """The headers of a response, and its body as a stream. Use as a context manager."""

    def __init__(self, net: Net, connection: http.client.HTTPConnection, response: http.client.HTTPResponse) -> None:
        self._net = net
        self._connection = connection
        self._response = response
        self.status = response.status
        self.headers: HTTPMessage = response.headers

    def __enter__(self) -> Answer:
        return self

    def __exit__(self, *_: object) -> None:
        # A connection with an unread body cannot carry the next request.
        if not self._response.isclosed():
            self._connection.close()
            self._response.close()  # has the socket if the server announced that it closes the connection

    def readinto(self, view: memoryview) -> int:
        """Read the body into the view; return 0 at its end.

        Raises:
            Transient: the connection was cut or gave nothing for the time allowed.
        """
        with self._net.guard("reading"):
            return self._response.readinto(view)

    def small_body(self, limit: int) -> bytes:
        """The whole body.

        Raises:
            Transient: as `readinto`, or it is larger than `limit` bytes.
        """
        with self._net.guard("reading"):
            body = self._response.read(limit + 1)
        if len(body) > limit:
            raise Transient(f"the answer is larger than {size(limit)}")
        return body


class Net:
    """The connections of all threads; each thread has its own connection to each of the last few origins."""

    def __init__(
        self,
        hub: str,
        token: str | None,
        *,
        timeout: float,
        stop: threading.Event,
        sign: Callable[[str, Mapping[str, str]], Mapping[str, str]] | None = None,
        pace: Pace = DEFAULT,
    ) -> None:
        """Prepares; connects to nothing yet.

        Args:
            hub: the source's endpoint; its origin is the only one that gets the token. Empty for none.
            token: or None.
            timeout: seconds that one connect or read may take.
            stop: set when work is to end.
            sign: returns headers that prove who asks for a URL with some headers; only for URLs of the endpoint's
                origin.
            pace: the lowest speed of an answer.
        """
        self.hub = origin(hub) if hub else None
        self._sign = sign
        self._token = token
        self._timeout = timeout
        self._pace = pace
        self._stop = stop
        self._proxies = urllib.request.getproxies()
        self._mine = threading.local()
        self._lock = threading.Lock()
        self._all: set[http.client.HTTPConnection] = set()
        self._sockets: dict[http.client.HTTPConnection, socket.socket] = {}
        self._held: dict[Origin, float] = {}

    @functools.cached_property
    def _tls(self) -> ssl.SSLContext:
        return ssl.create_default_context()

    def get(self, url: str, headers: Mapping[str, str], *, login: str | None = None) -> Answer:
        """Sends one GET and returns the answer, whatever its status but those that pass by themselves.

        Args:
            url: http or https.
            headers: those about the content.
            login: header `Authorization` of this request in place of the token and of what `sign` returns; empty for
                none.

        Raises:
            Transient: no answer, or a status such as 429 or 503.
            Unavailable: the server's certificate is not trusted.
        """
        parts = _parse(url)
        where = origin(url)
        self._wait_if_held(where)
        target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        send = {"Accept-Encoding": "identity", "User-Agent": f"kaigen-downloader/{__version__}"}
        send |= {name: value for name, value in headers.items() if name.lower() not in ("authorization", "cookie")}
        if login is None and where == self.hub:
            if self._token:
                send["Authorization"] = f"Bearer {self._token}"
            if self._sign is not None:
                send |= self._sign(url, send)
        elif login:
            send["Authorization"] = login
        connection, via = self._connection(parts, where)
        if via is not None and parts.scheme == "http":
            target = f"http://{parts.netloc.rpartition('@')[2]}{target}"
            send |= via
        send["Host"] = parts.netloc.rpartition("@")[2]
        answer = self._send(connection, target, send, where[1])
        if answer.status in _PASSING:
            wait = retry_after(answer.headers, time.time())
            if wait is not None:
                self._pause_origin(where, wait)
            with answer:
                text = f"{where[1]} answers {answer.status} {answer._response.reason}".rstrip()
            raise Transient(text + (f", wait {duration(wait)}" if wait else ""), wait)
        return answer

    def follow(
        self, url: str, headers: Mapping[str, str], moved: Callable[[str, str], None] = lambda url, target: None
    ) -> tuple[str, Answer]:
        """Send a GET, and follow redirects.

        Args:
            url: http or https.
            headers: those about the content.
            moved: called with the URL that redirects, and where to.

        Returns:
            The URL of the answer, and the answer.

        Raises:
            Refused: the redirects have no end, or go from https to http.
            Transient: as `get`.
        """
        for _ in range(_MOST_REDIRECTS):
            answer = self.get(url, headers)
            if answer.status not in _REDIRECTS:
                return url, answer
            with answer:
                target = referred(url, answer.headers.get("Location", ""))
                answer.small_body(1 << 20)
            moved(url, target)
            url = target
        raise Refused(f"{urlsplit(url).hostname}: too many redirects")

    def _send(
        self, connection: http.client.HTTPConnection, target: str, headers: Mapping[str, str], host: str
    ) -> Answer:
        # The server may have closed a kept connection meanwhile. That is not a failure: reconnect, once.
        for kept in (connection.sock is not None, False):
            try:
                with self.guard(f"asking {host}"):
                    connection.request("GET", quote(target, safe="/%:?=&+,;@!$'()*~-._[]"), headers=dict(headers))
                    # Kept for `abort`: the connection forgets it if the server announces that it closes it.
                    with self._lock:
                        self._sockets[connection] = connection.sock
                    return Answer(self, connection, connection.getresponse())
            except Transient:
                connection.close()
                if not kept or self._stop.is_set():
                    raise
        raise AssertionError("unreachable")

    @contextlib.contextmanager
    def guard(self, doing: str) -> Iterator[None]:
        """Turns what sockets, TLS and HTTP raise into our own errors."""
        if self._stop.is_set():
            raise Stopped
        try:
            yield
        except ssl.SSLCertVerificationError as error:
            raise Unavailable(
                f"{doing}: the certificate is not trusted ({error.verify_message}); "
                "name a CA bundle in SSL_CERT_FILE if a proxy or mirror has its own"
            ) from None
        except TimeoutError:
            raise Transient(f"{doing}: nothing came for {duration(self._timeout)}") from None
        except (OSError, http.client.HTTPException, ValueError) as error:
            # ValueError: reading from a connection that `abort` closed under the reader.
            text = str(error) or type(error).__name__
            raise Transient(f"{doing}: {text}") from None

    def _connection(
        self, parts: SplitResult, where: Origin
    ) -> tuple[http.client.HTTPConnection, dict[str, str] | None]:
        """This thread's connection to an origin, and the headers for the proxy when one is used."""
        mine: dict[Origin, tuple[http.client.HTTPConnection, dict[str, str] | None]]
        mine = self._mine.__dict__.setdefault("connections", {})
        if where in mine:
            mine[where] = mine.pop(where)  # the last one
        else:
            if len(mine) == _MOST_ORIGINS:
                self._forget(mine.pop(next(iter(mine)))[0])
            scheme, host, port = where
            proxy = self._proxies.get(scheme)
            via: dict[str, str] | None = None
            at = (host, port)
            if proxy and not urllib.request.proxy_bypass(f"{host}:{port}"):
                found, via = _proxy(proxy, scheme), {}
                at = (found.hostname or "", found.port or 80)
                if found.username:
                    login = f"{unquote(found.username)}:{unquote(found.password or '')}"
                    via["Proxy-Authorization"] = "Basic " + base64.b64encode(login.encode()).decode()
            connection: http.client.HTTPConnection
            if scheme == "https":
                connection = http.client.HTTPSConnection(*at, timeout=self._timeout, context=self._tls)
                if via is not None:
                    connection.set_tunnel(host, port, headers=via)
            else:
                connection = http.client.HTTPConnection(*at, timeout=self._timeout)
            connection.response_class = self._pace.response_class()  # type: ignore[assignment]
            mine[where] = connection, via
            with self._lock:
                self._all.add(connection)
        return mine[where]

    def _forget(self, connection: http.client.HTTPConnection) -> None:
        """Close a connection that no answer uses any more."""
        connection.close()
        with self._lock:
            self._all.discard(connection)
            self._sockets.pop(connection, None)

    def _pause_origin(self, where: Origin, seconds: float) -> None:
        with self._lock:
            self._held[where] = max(self._held.get(where, 0.0), time.monotonic() + seconds)

    def _wait_if_held(self, where: Origin) -> None:
        """All threads keep away from an origin that asked one of them to."""
        with self._lock:
            seconds = self._held.get(where, 0.0) - time.monotonic()
        if seconds > 0 and self._stop.wait(seconds):
            raise Stopped

    def abort(self) -> None:
        """Cuts every connection, so that no thread sits in a read. Set `stop` first."""
        with self._lock:
            sockets = {*self._sockets.values(), *(connection.sock for connection in self._all)}
        for sock in sockets:
            if sock is not None:
                with contextlib.suppress(OSError):
                    sock.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        """Gives the sockets back."""
        with self._lock:
            for connection in self._all:
                connection.close()
