"""Ask the Hub. kaigen sends all requests, with one token and one translation of errors.

huggingface_hub makes those about the content of a revision. Without it, only commits and files can be asked for.
"""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar
from urllib.parse import quote, urlsplit

from msgspec import Struct

from kaigen.diagnostics.errors import NotFound, SystemFailure
from kaigen.hub.revision import Revision
from kaigen.kinds.blocks import HubDataset
from kaigen.kinds.build import COMMIT
from kaigen.oci.http import Opener, user_agent

HUB = "https://huggingface.co"
_LARGEST_FILE = 64 << 20
"""Bytes of a response: files that are not in large-file storage have at most 10 MiB."""
_ATTEMPTS = 4
_TIMEOUT_S = 15.0
"""Seconds of silence of the Hub, after which it is asked again: a person waits for `kaigen lock`."""
_KEPT = frozenset({"content-range", "content-type", "link", "x-error-code", "x-error-message"})
_LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})

T = TypeVar("T")


class Server(Struct, frozen=True):
    """A Hub, and the token that it gets. `repr` shows no field.

    Attributes:
        url: its URL, without a slash at the end.
        token: empty for none.
        withheld: there is a token, which is not sent without TLS.
    """

    url: str
    token: str
    withheld: bool = False

    def __repr__(self) -> str:
        return "Server()"

    @property
    def host(self) -> str:
        """Its host and port."""
        return urlsplit(self.url).netloc.rpartition("@")[2]

    @property
    def headers(self) -> dict[str, str]:
        """Headers of a request."""
        own = {"Authorization": f"Bearer {self.token}"} if self.token else {}
        return {"User-Agent": user_agent(), **own}

    def refusal(self, repo: str, revision: str, status: int, code: str) -> NotFound | SystemFailure:
        """Return the failure for a status and an `X-Error-Code`."""
        if code == "RevisionNotFound":
            return NotFound(f"the Hub {self.host} has no `{revision}` of {repo}")
        way = "use a token in HF_TOKEN that may read it" if self.token else "set HF_TOKEN to a token that may read it"
        if self.withheld:
            way = "name the Hub with https://: the token of this machine is not sent without TLS"
        if code == "GatedRepo":
            return NotFound(f"{repo} is gated", hint=f"accept its terms on the Hub, and {way}")
        if status in (401, 403, 404):
            return NotFound(f"the Hub {self.host} does not have {repo}, or does not show it", hint=way)
        return SystemFailure(f"the Hub {self.host} answered HTTP {status} for {repo}")


class Hub:
    """A client of Hubs."""

    def __init__(self, endpoint: str = "") -> None:
        """Ask nothing yet.

        Args:
            endpoint: URL of the Hub for specs that name none; empty for the environment variable or the public Hub.
        """
        self._endpoint = endpoint or os.environ.get("HF_ENDPOINT") or HUB
        self._token = os.environ.get("HF_TOKEN", "").strip()
        self._stored = "" if self._token else stored_token()
        self._opener = Opener(None, "the Hub", _LARGEST_FILE, attempts=_ATTEMPTS, timeout=_TIMEOUT_S)
        self._is_ready = False

    def commit(self, repo: str, name: str, endpoint: str | None) -> str:
        """Return the commit of a branch or a tag.

        Args:
            repo: `OWNER/NAME`, or `datasets/OWNER/NAME`.
            name: the branch or tag.
            endpoint: URL of the Hub; None or empty for that of the client.

        Raises:
            NotFound: there is no such repository, branch or tag, or it is not shown.
            SystemFailure: the Hub cannot be reached, or gives no valid answer.
        """
        server = self.server(endpoint)
        place = repo if repo.startswith(HubDataset.namespace) else f"models/{repo}"
        url = f"{server.url}/api/{quote(place)}/revision/{quote(name, safe='')}"
        body = self._get(server, url, repo, name)
        try:
            commit = json.loads(body)["sha"]
        except (ValueError, KeyError, TypeError):
            commit = None
        if not isinstance(commit, str) or not COMMIT.fullmatch(commit):
            raise SystemFailure(f"the Hub {server.host} named no commit for `{name}` of {repo}")
        return commit

    def content(self, repo: str, commit: str, path: str, endpoint: str | None) -> bytes:
        """Return the content of a file.

        Args:
            repo: `OWNER/NAME`, or `datasets/OWNER/NAME`.
            commit: the commit.
            path: the file.
            endpoint: URL of the Hub; None or empty for that of the client.

        Raises:
            NotFound: the Hub does not show the file.
            SystemFailure: the Hub cannot be reached.
        """
        server = self.server(endpoint)
        return self._get(server, f"{server.url}/{repo}/resolve/{commit}/{quote(path)}", repo, commit)

    def ask(self, repo: str, revision: str, endpoint: str | None, question: Callable[[Revision], T]) -> T:
        """Return the answer to a question about a revision of a repository.

        Args:
            repo: `OWNER/NAME`, or `datasets/OWNER/NAME`.
            revision: branch, tag or commit.
            endpoint: URL of the Hub; None or empty for that of the client.
            question: asks the revision.

        Raises:
            NotFound: there is no such repository or revision, or it is not shown.
            SystemFailure: the Hub cannot be reached, or gives no valid answer, or huggingface_hub is not installed.
        """
        if not self._is_ready:
            _use_client(self._opener)
            self._is_ready = True
        import httpx2
        from huggingface_hub import HfApi
        from huggingface_hub.errors import HfHubHTTPError, HFValidationError, SafetensorsParsingError

        server = self.server(endpoint)
        api = HfApi(endpoint=server.url, token=server.token or False, library_name="kaigen")
        try:
            return question(
                Revision(api, repo, revision, lambda commit, path: self.content(repo, commit, path, endpoint))
            )
        except HFValidationError as error:
            raise NotFound(f"{repo} is not a name on the Hub: {error}") from None
        except HfHubHTTPError as error:
            code = error.response.headers.get("X-Error-Code", "")
            raise server.refusal(repo, revision, error.response.status_code, code) from None
        except SafetensorsParsingError as error:
            raise SystemFailure(f"the Hub {server.host} has a damaged file in {repo}: {error}") from None
        except (httpx2.HTTPError, ValueError, KeyError, TypeError, AttributeError) as error:
            reason = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
            raise SystemFailure(f"the Hub {server.host} gives no valid answer about {repo} ({reason})") from None

    def server(self, endpoint: str | None) -> Server:
        """Return a Hub. The token is for one with TLS, or on this machine.

        A Hub that only a spec names gets HF_TOKEN and not the token that the user stored for another Hub.

        Args:
            endpoint: its URL; None or empty for that of the client.
        """
        own = self._endpoint.rstrip("/")
        url = endpoint.rstrip("/") if endpoint else own
        parts = urlsplit(url)
        is_trusted = parts.scheme == "https" or parts.hostname in _LOOPBACK
        token = self._token or (self._stored if url == own else "")
        return Server(url, token if is_trusted else "", withheld=bool(token) and not is_trusted)

    def _get(self, server: Server, url: str, repo: str, revision: str) -> bytes:
        answer = self._opener.send("GET", url, server.headers)
        if answer.status != 200:
            raise server.refusal(repo, revision, answer.status, answer.headers.get("x-error-code", ""))
        return answer.body


def stored_token() -> str:
    """Return the token that `hf auth login` stored; empty without one.

    The places are those of huggingface_hub (source: its utils/_auth.py and constants.py, 2.4), which `kaigen pin` does
    not need.
    """
    home = os.environ.get("HF_HOME") or os.path.join(
        os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"), "huggingface"
    )
    try:
        return Path(os.environ.get("HF_TOKEN_PATH") or os.path.join(home, "token")).read_text().strip()
    except (OSError, UnicodeDecodeError):
        return ""


_clients = threading.Lock()


def _use_client(opener: Opener) -> None:
    """Make huggingface_hub send its requests with our retries, redirects and proxies.

    Raises:
        SystemFailure: it is not installed.
    """
    # Read when the package is imported. The only token is the one that each call gives.
    os.environ["HF_HUB_DISABLE_TELEMETRY"] = "1"
    os.environ["HF_HUB_DISABLE_IMPLICIT_TOKEN"] = "1"
    os.environ["HF_HUB_DISABLE_PROGRESS_BARS"] = "1"
    try:
        import httpx2
        from huggingface_hub import close_session, set_client_factory
    except ImportError:
        raise SystemFailure(
            "`kaigen lock` requires huggingface_hub", hint='install it with `pip install "kaigen[lock]"`'
        ) from None

    class Transport(httpx2.BaseTransport):
        """Send requests with the opener."""

        def handle_request(self, request: httpx2.Request) -> httpx2.Response:
            names = ("authorization", "range", "user-agent", "accept")
            headers = {name: request.headers[name] for name in names if name in request.headers}
            answer = opener.send(request.method, str(request.url), headers)
            kept = {name: value for name, value in answer.headers.items() if name in _KEPT}
            return httpx2.Response(answer.status, headers=kept, content=answer.body, request=request)

    with _clients:
        close_session()
        set_client_factory(lambda: httpx2.Client(transport=Transport()))
