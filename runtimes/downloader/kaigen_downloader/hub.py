"""Lists the files of a repository on the Hub."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from kaigen_downloader.errors import BadInput, Corrupt, Refused, Transient, Unavailable
from kaigen_downloader.globs import chosen, duplicates, report_skipped
from kaigen_downloader.listing import LARGEST_ANSWER, Total
from kaigen_downloader.net import Net, referred
from kaigen_downloader.ranges import Served
from kaigen_downloader.remote import RemoteFile, Snapshot, check_names
from kaigen_downloader.retry import Retry
from kaigen_downloader.store import Work
from kaigen_downloader.text import file_size, listed, plural, shown

_DATASETS = "datasets/"
_HEX = re.compile(r"[0-9a-f]+")
_COMMIT = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
"""Git's name of a commit, in full: a SHA-1, or a SHA-256."""
_REPOSITORY = re.compile(r"(?:\b[\w.-]+\b/)?\b[\w.-]{1,96}\b", re.ASCII)
_NEXT = re.compile(r'<([^<>]*)>\s*;[^<]*\brel="?next\b')


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

    def selection(self, paths: Collection[str]) -> set[str]:
        """Return the files that the globs select, without weights in other formats."""
        return _selected(self, paths)[0]

    def sign(self, url: str, headers: Mapping[str, str]) -> Mapping[str, str]:
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
    check_repository(source.parts[1])
    hub = _Api(source, net, retry, token)
    try:
        commit = hub.commit()
        entries = hub.files(commit)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise Unavailable(f"{source.endpoint} does not respond like a Hub ({type(error).__name__})") from None
    selected, skipped = _selected(source, [entry.path for entry in entries])
    report_skipped(skipped)
    files = [entry for entry in entries if entry.path in selected]
    if not files:
        some = listed(shown(entry.path) for entry in entries)
        raise BadInput(
            f"the globs select none of the {plural(len(entries), 'file')} of {source.name}"
            + (f", which has {some}" if some else "")
        )
    check(files)
    return Snapshot(commit, tuple(sorted(files, key=lambda file: file.path)))


def check_repository(name: str) -> None:
    """Reject a name that the Hub allows no repository to have.

    The rules are those of huggingface_hub, which takes a fifth of a second to import.

    Raises:
        BadInput: it is not `OWNER/NAME` or `NAME`.
    """
    if not _REPOSITORY.fullmatch(name) or "--" in name or ".." in name or name.endswith(".git"):
        raise BadInput(f"{name!r} is not a repository name OWNER/NAME")


class _Api:
    """The requests to the Hub about one repository (source: the Hub's OpenAPI description)."""

    def __init__(self, source: Repository, net: Net, retry: Retry, token: bool) -> None:
        self._source, self._net, self._retry, self._token = source, net, retry, token
        kind, self._repo = source.parts
        self._base = f"{source.endpoint}/api/{kind}s/{self._repo}"
        self._files_url = f"{source.endpoint}/{source.repo}/resolve"

    def commit(self) -> str:
        """Return the commit of the revision.

        Raises:
            Refused: the revision is a commit, and the Hub answers with another one.
            Unavailable: the Hub names no commit.
        """
        body, _ = self._get(f"{self._base}/revision/{quote(self._source.revision, safe='')}")
        commit, asked = json.loads(body)["sha"], self._source.revision.lower()
        if not isinstance(commit, str) or not _COMMIT.fullmatch(commit):
            raise Unavailable(f"{self._source.endpoint} returns no commit for {self._source.name}")
        if _COMMIT.fullmatch(asked) and commit != asked:
            raise Refused(f"{self._source.endpoint} answers with commit {commit} for {self._source.name}")
        return commit

    def files(self, commit: str) -> list[RemoteFile]:
        """Return all files of a commit."""
        found: list[RemoteFile] = []
        url = f"{self._base}/tree/{commit}?recursive=true&expand=false"
        total = Total(self._source.endpoint, self._source.repo)
        while url:
            body, url = self._get(url)
            page = json.loads(body)
            if not isinstance(page, list):
                raise TypeError
            total.add(len(page), len(body))
            found += [self._file(entry, commit) for entry in page if entry["type"] == "file"]
        return found

    def _file(self, entry: Mapping[str, Any], commit: str) -> RemoteFile:
        path, lfs = entry["path"], entry.get("lfs")
        size, oid = (lfs or entry)["size"], (lfs or entry)["oid"]
        if not (isinstance(path, str) and type(size) is int and isinstance(oid, str)):
            raise TypeError
        return RemoteFile(
            path=path,
            size=size,
            sha256=oid if lfs else None,
            git_sha1=None if lfs else oid,
            url=f"{self._files_url}/{commit}/{quote(path)}",
        )

    def _get(self, url: str) -> tuple[bytes, str]:
        """Return an answer of the Hub, and the URL of its next page; empty for none."""
        attempts = self._retry.attempts(f"listing {self._source.repo}")
        while True:
            try:
                where, answer = self._net.follow(url, {"Accept": "application/json"})
                with answer:
                    body = answer.small_body(LARGEST_ANSWER)
                if answer.status == 200:
                    following = _NEXT.search(answer.headers.get("Link") or "")
                    return body, referred(where, following[1]) if following else ""
            except Transient as error:
                attempts.failed(error)
            else:
                code = answer.headers.get("X-Error-Code", "")
                message = answer.headers.get("X-Error-Message", "")
                raise refusal(self._source, answer.status, code, message, self._token)


def _selected(source: Repository, paths: Collection[str]) -> tuple[set[str], set[str]]:
    """Return the files to fetch, which are those that the globs select, and those that have the same weights."""
    selected = {path for path in paths if chosen(path, source.include, source.exclude)}
    if source.parts[0] != "model" or source.include or source.duplicates:
        return selected, set()
    skipped = duplicates(selected)
    return selected - skipped, skipped


def check(files: Sequence[RemoteFile]) -> None:
    """Reject a listing that is dangerous or cannot be verified.

    Raises:
        BadInput: names that could do harm.
        Corrupt: no usable checksum or size.
    """
    check_names([file.path for file in files])
    for file in files:
        length = 64 if file.sha256 is not None else 40
        if len(file.oid) != length or not _HEX.fullmatch(file.oid) or file_size(file.size) is None:
            raise Corrupt(f"the Hub has no usable checksum or size for {shown(file.path)}")
