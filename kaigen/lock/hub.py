"""Ask the Hub what a revision of a repository contains. huggingface_hub makes the requests, kaigen sends them."""

from __future__ import annotations

import hashlib
import os
import re
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlsplit

from msgspec import Struct

from kaigen.config.lock_file import LockedFile, LockedModel
from kaigen.diagnostics.errors import SystemFailure
from kaigen.kinds.blocks import HubDataset
from kaigen.kinds.build import COMMIT
from kaigen.lock.answers import NotFound, Shapes, all_at_once, architecture_of, parse_config, weight_files
from kaigen.oci.http import Opener, user_agent
from kaigen.pin.resolve import HUB, is_trusted

if TYPE_CHECKING:
    from huggingface_hub import HfApi

_LARGEST_FILE = 64 << 20
"""Bytes of a response: files that are not in large-file storage have at most 10 MiB."""
_HEX = re.compile(r"[0-9a-f]+")
_KEPT = frozenset({"content-range", "content-type", "link", "x-error-code", "x-error-message"})


class Hub:
    """A client of Hubs that asks about each revision once."""

    def __init__(self, endpoint: str = "", *, pause: Callable[[float], object] | None = None) -> None:
        """Ask nothing yet.

        Args:
            endpoint: URL of the Hub for specs that name none; empty for the environment variable or the public Hub.
            pause: waits some seconds after a failed attempt; None for `sleep`.
        """
        self._endpoint = endpoint or os.environ.get("HF_ENDPOINT") or HUB
        self._token = os.environ.get("HF_TOKEN", "").strip()
        self._opener = Opener(pause, "the Hub", _LARGEST_FILE)
        self._is_ready = False

    def model(self, repo: str, revision: str, endpoint: str | None) -> LockedModel:
        """Return what a revision of a repository contains.

        Args:
            repo: `OWNER/NAME`, or `datasets/OWNER/NAME`.
            revision: branch, tag or commit.
            endpoint: URL of the Hub; None for that of the client.

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

        url = (endpoint or self._endpoint).rstrip("/")
        host = urlsplit(url).netloc.rpartition("@")[2]
        token = self._token if self._token and is_trusted(url) else None
        api = HfApi(endpoint=url, token=token or False, library_name="kaigen")
        try:
            return _Revision(api, repo, revision).locked()
        except HFValidationError as error:
            raise NotFound(f"{repo} is not a name on the Hub: {error}") from None
        except HfHubHTTPError as error:
            code = error.response.headers.get("X-Error-Code", "")
            raise _refusal(repo, revision, host, error.response.status_code, code, bool(token)) from None
        except SafetensorsParsingError as error:
            raise SystemFailure(f"the Hub {host} has a damaged file in {repo}: {error}") from None
        except (httpx2.HTTPError, ValueError, KeyError, TypeError, AttributeError) as error:
            reason = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
            raise SystemFailure(f"the Hub {host} gives no valid answer about {repo} ({reason})") from None

    def content(self, repo: str, commit: str, path: str, endpoint: str | None) -> bytes:
        """Return the content of a file.

        Args:
            repo: `OWNER/NAME`, or `datasets/OWNER/NAME`.
            commit: the commit.
            path: the file.
            endpoint: URL of the Hub; None for that of the client.

        Raises:
            NotFound: the Hub does not show the file.
            SystemFailure: the Hub cannot be reached.
        """
        base = (endpoint or self._endpoint).rstrip("/")
        token = self._token if self._token and is_trusted(base) else None
        url = f"{base}/{repo}/resolve/{commit}/{quote(path)}"
        answer = self._opener.send("GET", url, _headers(token))
        if answer.status != 200:
            host, code = urlsplit(base).netloc.rpartition("@")[2], answer.headers.get("x-error-code", "")
            raise _refusal(repo, commit, host, answer.status, code, bool(token))
        return answer.body


def _refusal(repo: str, revision: str, host: str, status: int, code: str, token: bool) -> Exception:
    """Return the failure for a status of the Hub and its `X-Error-Code`."""
    if code == "RevisionNotFound":
        return NotFound(f"the Hub {host} has no `{revision}` of {repo}")
    way = "use a token in HF_TOKEN that may read it" if token else "set HF_TOKEN to a token that may read it"
    if code == "GatedRepo":
        return NotFound(f"{repo} is gated", hint=f"accept its terms on the Hub, and {way}")
    if status in (401, 403, 404):
        return NotFound(f"the Hub {host} does not have {repo}, or does not show it", hint=way)
    return SystemFailure(f"the Hub {host} answered HTTP {status} for {repo}")


_clients = threading.Lock()


def _use_client(opener: Opener) -> None:
    """Make huggingface_hub send its requests with our retries, redirects and proxies.

    Raises:
        SystemFailure: it is not installed.
    """
    # Read when the package is imported. Only HF_TOKEN is a token: nothing is read from the user's files.
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


class _Listed(Struct, frozen=True):
    """A file as the Hub lists it.

    Attributes:
        path: in the repository.
        size: bytes.
        blob: Git's name of the content, or of the pointer to it.
        sha256: of the content; empty if the file is not in large-file storage.
    """

    path: str
    size: int
    blob: str
    sha256: str


class _Revision:
    """A revision of a repository."""

    def __init__(self, api: HfApi, repo: str, revision: str) -> None:
        self._api = api
        self._type = "dataset" if repo.startswith(HubDataset.namespace) else None
        self._repo = repo.removeprefix(HubDataset.namespace)
        about = api.dataset_info if self._type else api.model_info
        info = about(self._repo, revision=revision, files_metadata=True)
        if not info.sha or len(info.sha) != 40 or not _HEX.fullmatch(info.sha):
            raise ValueError("it names no commit")
        if COMMIT.fullmatch(revision) and info.sha != revision:
            raise ValueError(f"it names commit {info.sha} for commit {revision}")
        self._info = info
        self._commit = info.sha

    def locked(self) -> LockedModel:
        """Return what it contains."""
        files = [_listed(each) for each in self._info.siblings or ()]
        small = [file for file in files if not file.sha256]
        contents = dict(zip((file.path for file in small), all_at_once(self._content, small), strict=True))
        config = parse_config(None if self._type else contents.get("config.json"))
        weights = [] if self._type else weight_files([file.path for file in files])
        headers = all_at_once(self._header, weights)
        shapes = Shapes.of(headers)
        return LockedModel(
            commit=self._commit,
            licence=_licence(self._info.card_data),
            gated=bool(self._info.gated),
            architecture=architecture_of(config),
            parameters=shapes.parameters,
            weights=shapes.bytes,
            config=config,
            files={
                file.path: LockedFile(
                    size=file.size,
                    sha256=file.sha256 or hashlib.sha256(contents[file.path]).hexdigest(),
                )
                for file in sorted(files, key=lambda file: file.path)
            },
        )

    def _content(self, file: _Listed) -> bytes:
        """Return the content of a small file, which must be what Git names."""
        from huggingface_hub import get_session, hf_hub_url
        from huggingface_hub.errors import HfHubHTTPError

        url = hf_hub_url(
            self._repo,
            file.path,
            repo_type=self._type,
            revision=self._commit,
            endpoint=self._api.endpoint,
        )
        answer = get_session().get(url, headers=_headers(self._api.token))
        if answer.status_code != 200:
            raise HfHubHTTPError(f"HTTP {answer.status_code}", response=answer)
        content: bytes = answer.content
        name = hashlib.sha1(b"blob %d\0" % len(content) + content, usedforsecurity=False).hexdigest()
        if name != file.blob:
            raise ValueError(f"{file.path} is not the file that it lists")
        return content

    def _header(self, path: str) -> Shapes:
        """Return the tensors of a file, from its header."""
        found = self._api.parse_safetensors_file_metadata(
            self._repo, path, revision=self._commit, repo_type=self._type
        )
        offsets = (tensor.data_offsets for tensor in found.tensors.values())
        counts = {str(dtype): count for dtype, count in found.parameter_count.items()}
        return Shapes(counts, sum(end - start for start, end in offsets))


def _headers(token: object) -> dict[str, str]:
    headers = {"User-Agent": user_agent()}
    return headers | {"Authorization": f"Bearer {token}"} if token else headers


def _listed(sibling: Any) -> _Listed:
    lfs = sibling.lfs
    size, blob = int(lfs.size if lfs else sibling.size), str(sibling.blob_id)
    sha256 = str(lfs.sha256) if lfs else ""
    length = 64 if lfs else 40
    if size < 0 or len(sha256 or blob) != length or not _HEX.fullmatch(sha256 or blob):
        raise ValueError(f"it has no usable checksum of {sibling.rfilename}")
    return _Listed(str(sibling.rfilename), size, blob, sha256)


def _licence(card: Any) -> str:
    """Return the licence of a model card: its identifier, or the name of one that has none."""
    data = card.to_dict() if card is not None else {}
    licence = data.get("license")
    if isinstance(licence, list):
        licence = licence[0] if licence else ""
    if licence == "other":
        licence = data.get("license_name") or licence
    return licence if isinstance(licence, str) else ""
