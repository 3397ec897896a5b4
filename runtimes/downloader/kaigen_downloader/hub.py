"""Lists the files of a repository on the Hub. huggingface_hub makes the requests, our HTTP client sends them."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from kaigen_downloader.errors import BadInput, Corrupt, Refused, Transient, Unavailable
from kaigen_downloader.globs import chosen, duplicates
from kaigen_downloader.net import Net
from kaigen_downloader.ranges import Served
from kaigen_downloader.remote import RemoteFile, Snapshot, check_names
from kaigen_downloader.retry import Retry
from kaigen_downloader.store import Work
from kaigen_downloader.text import plural, say

# Read by huggingface_hub when it is imported, which happens in `snapshot`.
os.environ["HF_HUB_DISABLE_XET"] = "1"
os.environ["HF_HUB_DISABLE_TELEMETRY"] = "1"
os.environ["HF_HUB_DISABLE_IMPLICIT_TOKEN"] = "1"

_MOST_PAGES = 2_000
"""Requests for one listing; a page has up to 1,000 files."""
_DATASETS = "datasets/"
_HEX = re.compile(r"[0-9a-f]+")


@dataclass(frozen=True, slots=True)
class Repository:
    """A repository of a Hub, and the selection of its files.

    Attributes:
        endpoint: URL of the Hub.
        repo: `OWNER/NAME`, or `datasets/OWNER/NAME`.
        revision: branch, tag or commit.
        include: globs over the whole path, `*` crossing slashes; none means all files.
        exclude: globs of files left out.
        duplicates: whether weights that the repository has as safetensors are fetched in other formats as well.
    """

    endpoint: str
    repo: str
    revision: str
    include: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    duplicates: bool = False

    @property
    def parts(self) -> tuple[str, str]:
        """Return the type of the repository and `OWNER/NAME`."""
        dataset = self.repo.removeprefix(_DATASETS)
        return ("model", self.repo) if dataset == self.repo else ("dataset", dataset)

    @property
    def name(self) -> str:
        """`OWNER/NAME@REVISION`."""
        return f"{self.repo}@{self.revision}"

    @property
    def facts(self) -> Mapping[str, str]:
        """Return the source for the marker."""
        return {"type": "huggingface", "repo": self.repo, "revision": self.revision}

    def snapshot(self, net: Net, retry: Retry, token: bool) -> Snapshot:
        """See `snapshot`."""
        return snapshot(self, net, retry, token)

    def sign(self, url: str) -> Mapping[str, str]:
        """Return no headers: the token is the client's."""
        return {}

    def served(self, remote: RemoteFile, work: Work) -> Served:
        """Return the bytes of a file."""
        return Served(remote, work.net, work.meter, work.retry, work.refusal)

    def refusal(self, path: str, status: int, code: str, message: str, token: bool) -> Refused:
        """See `refusal`."""
        return refusal(self, status, code, message, token)


def refusal(source: Repository, status: int, code: str, message: str, token: bool) -> Refused:
    """Return the permanent failure for a status of the Hub and its `X-Error-Code`."""
    where = f"{source.repo}@{source.revision}"
    if code == "GatedRepo":
        hint = "HF_TOKEN has no access" if token else "set HF_TOKEN"
        return Refused(f"{where} is gated: accept its terms on the Hub; {hint}")
    if code == "RevisionNotFound":
        return Refused(f"{source.repo} has no revision {source.revision!r}")
    if code == "EntryNotFound":
        return Refused(f"{where}: the Hub lists a file that it does not have")
    if code == "RepoNotFound" or status in (401, 404):
        hint = "or HF_TOKEN is invalid or has no access" if token else "or private, and HF_TOKEN is not set"
        return Refused(f"{source.repo} is not on {source.endpoint}, {hint} (status {status})")
    if status == 403:
        return Refused(f"{where}: the Hub forbids access{': ' + message if message else ''}")
    return Refused(f"{where}: the Hub answers {status}{': ' + message if message else ''}")


def snapshot(source: Repository, net: Net, retry: Retry, token: bool) -> Snapshot:
    """Ask the Hub for the commit of the revision and its files.

    Args:
        source: the repository and the choice of files.
        net: the client, which adds the token.
        retry: for failures that pass.
        token: whether one is given, for the messages.

    Raises:
        Refused: not found, gated, no access.
        BadInput: a malformed repository name, a file name that leads out, or globs that choose nothing.
        Corrupt: a file without a checksum.
        Unavailable: the Hub cannot be reached.
    """
    import httpx2
    from huggingface_hub import HfApi, RepoFile, hf_hub_url, set_client_factory
    from huggingface_hub.errors import HfHubHTTPError, HFValidationError

    class Transport(httpx2.BaseTransport):
        """Send huggingface_hub's requests with our proxies, timeouts, retries and token rules."""

        def handle_request(self, request: httpx2.Request) -> httpx2.Response:
            if request.method != "GET":
                raise AssertionError(f"huggingface_hub sends {request.method}")
            self.requests = getattr(self, "requests", 0) + 1
            if self.requests > _MOST_PAGES:
                raise Unavailable(f"{source.endpoint} returns an endless listing of {source.repo}")
            attempts = retry.attempts(f"listing {source.repo}")
            headers = {"Accept": "application/json"}
            while True:
                try:
                    with net.get(str(request.url), headers) as answer:
                        body = answer.small_body()
                        kept = [
                            (name, value) for name, value in answer.headers.items() if name.lower() in _KEPT
                        ]
                        return httpx2.Response(answer.status, headers=kept, content=body, request=request)
                except Transient as error:
                    attempts.failed(error)

    set_client_factory(lambda: httpx2.Client(transport=Transport(), follow_redirects=True))
    api = HfApi(endpoint=source.endpoint, token=False)
    kind, repo = source.parts
    try:
        commit = api.repo_info(repo, repo_type=kind, revision=source.revision).sha
        if not commit or not _HEX.fullmatch(commit):
            raise Unavailable(f"{source.endpoint} returns no commit for {source.repo}@{source.revision}")
        entries = [
            entry
            for entry in api.list_repo_tree(repo, repo_type=kind, recursive=True, revision=commit)
            if isinstance(entry, RepoFile)
        ]
        selected = _selected(source, kind, [entry.path for entry in entries])
        files = []
        for entry in entries:
            if entry.path not in selected:
                continue
            url = hf_hub_url(repo, entry.path, repo_type=kind, revision=commit, endpoint=source.endpoint)
            lfs = entry.lfs
            files.append(
                RemoteFile(
                    path=entry.path,
                    size=int(lfs.size if lfs else entry.size),
                    sha256=lfs.sha256 if lfs else None,
                    git_sha1=None if lfs else entry.blob_id,
                    url=url,
                )
            )
    except HFValidationError as error:
        raise BadInput(f"{source.repo!r} is not a repository name OWNER/NAME: {error}") from None
    except HfHubHTTPError as error:
        answer = error.response
        raise refusal(
            source,
            answer.status_code,
            answer.headers.get("X-Error-Code", ""),
            answer.headers.get("X-Error-Message", ""),
            token,
        ) from None
    except (httpx2.HTTPError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise Unavailable(f"{source.endpoint} does not respond like a Hub ({type(error).__name__})") from None
    if not files:
        some = ", ".join(entry.path for entry in entries[:5])
        raise BadInput(
            f"the globs select none of the {plural(len(entries), 'file')} of {source.repo}@{source.revision}"
            + (f", which has {some}, …" if some else "")
        )
    check(files)
    return Snapshot(commit, tuple(sorted(files, key=lambda file: file.path)))


def _selected(source: Repository, kind: str, paths: Sequence[str]) -> set[str]:
    """Return the files to fetch: all, those that the globs select, and not the same weights twice."""
    selected = {path for path in paths if chosen(path, source.include, source.exclude)}
    if kind != "model" or source.include or source.duplicates:
        return selected
    skipped = duplicates(selected)
    if skipped:
        some = ", ".join(sorted(skipped)[:3])
        say(
            f"{plural(len(skipped), 'file')} with the weights of safetensors files skipped: {some}"
            f"{', …' if len(skipped) > 3 else ''}"
        )
    return selected - skipped


_KEPT = {"content-type", "link", "location", "x-error-code", "x-error-message", "x-repo-commit"}


def check(files: Sequence[RemoteFile]) -> None:
    """Reject a listing that is dangerous or cannot be verified.

    Raises:
        BadInput: names that could do harm.
        Corrupt: no usable checksum or size.
    """
    check_names([file.path for file in files])
    for file in files:
        length = 64 if file.sha256 is not None else 40
        if len(file.oid) != length or not _HEX.fullmatch(file.oid) or file.size < 0:
            raise Corrupt(f"the Hub has no usable checksum for {file.path!r}")
