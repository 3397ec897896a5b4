"""Where specs come from: the commit that is rendered, and how it stands to the one that was published before."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from kaigen.diagnostics.diagnostic import CheckFailed, InputError
from kaigen.git.command import Git, without_userinfo

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kaigen.config.settings import Config


@dataclass(frozen=True, slots=True)
class Source:
    """What was rendered.

    Attributes:
        commit: its full hash.
        date: the commit's date, seconds since the epoch.
        repository: URL of the repository that it is in, without credentials; empty when it has no remote.
        folder: the folder of kaigen.yaml in the repository; empty for its top.
        branch: the branch that is checked out; empty for none.
        dirty: whether specs or kaigen.yaml have changes that are not committed.
    """

    commit: str
    date: int
    repository: str
    folder: str
    branch: str
    dirty: bool


def read_source(git: Git, configs: Sequence[Config], *, allow_dirty: bool = False) -> Source:
    """The state of the repository that is rendered.

    Args:
        git: the repository.
        configs: the settings of each environment.
        allow_dirty: take changes that are not committed for a part of it.

    Raises:
        InputError: KG0802 no repository, KG0801 no commit yet, KG0901 changes that are not committed.
    """
    from kaigen.config.settings import FILE_NAME, PINS_FOLDER
    from kaigen.git.read import head_commit, is_dirty

    commit = head_commit(git.folder)
    paths = dict.fromkeys([FILE_NAME, PINS_FOLDER, *(spec for config in configs for spec in config.specs)])
    dirty = [path for path in paths if is_dirty(git.folder, path)]
    if dirty and not allow_dirty:
        words = ", ".join(dirty)
        hint = "commit first, so that the branch can say what it was rendered from; or give --allow-dirty"
        raise InputError.of("KG0901", f"changes in {words} are not committed", hint=hint)
    url = source_url(git)
    if url.startswith(("/", ".", "file:")):
        # A folder of this machine says nothing to others.
        url = ""
    return Source(
        commit=commit,
        date=int(git.text("log", "-1", "--format=%ct", commit) or 0),
        repository=without_userinfo(url),
        folder=git.text("rev-parse", "--show-prefix").strip("/"),
        branch=git.text("symbolic-ref", "--quiet", "--short", "HEAD"),
        dirty=bool(dirty),
    )


def source_url(git: Git) -> str:
    """Where the specs are pushed to: the remote `origin`, or the only one; empty when there is none."""
    names = git.text("remote").split("\n")
    name = "origin" if "origin" in names else names[0] if len(names) == 1 else ""
    return git.text("remote", "get-url", "--", name) if name else ""


def is_checked_out(git: Git, source: Source, branch: str) -> bool:
    """Whether a branch of the remote is the one that the specs are on."""
    return branch == source.branch and git.text("remote", "get-url", "--", git.remote) == source_url(git)


def require_newer(git: Git, source: Source, commit: str, repository: str, where: str) -> None:
    """See that what was published before is contained in what shall be published.

    Args:
        git: the source's repository.
        source: what shall be published.
        commit: the source commit of what was published before.
        repository: the repository of that commit, as its trailer says; empty when unknown.
        where: what it was published to, for the message.

    Raises:
        CheckFailed: it is not, or nobody can tell.
    """
    if commit == source.commit:
        return
    ours, theirs = source.commit[:12], commit[:12]
    known = bool(git.text("rev-parse", "--verify", "--quiet", f"{commit}^{{commit}}"))
    if known and not isinstance(git.call(["merge-base", "--is-ancestor", commit, source.commit]), bytes):
        known_newer = isinstance(git.call(["merge-base", "--is-ancestor", source.commit, commit]), bytes)
        if known_newer:
            raise CheckFailed(
                f"{where} was rendered from {theirs}, which is newer than {ours}",
                hint="check out the newer commit; or give --allow-older to go back",
            )
        if git.text("rev-parse", "--is-shallow-repository") != "true":
            raise CheckFailed(
                f"{where} was rendered from {theirs}, which {ours} does not contain: its work would be lost",
                hint="merge or rebase first; or give --allow-older to replace it",
            )
    elif known:
        return
    if git.text("rev-parse", "--is-shallow-repository") == "true":
        raise CheckFailed(
            f"{where} was rendered from {theirs}, and the clone is too shallow to tell whether {ours} is newer",
            hint="fetch the whole history, with 'git fetch --unshallow' or 'fetch-depth: 0'",
        )
    if repository and source.repository and not same_repository(repository, source.repository):
        raise CheckFailed(
            f"{where} holds what was rendered from {repository}",
            hint="publish to another --path or --branch; or give --allow-older to replace it",
        )
    raise CheckFailed(
        f"{where} was rendered from {theirs}, which is not in this clone: its work would be lost",
        hint="pull first; or give --allow-older to replace it",
    )


def same_repository(one: str, other: str) -> bool:
    """Whether two URLs mean the same repository, whatever the protocol, user and ending."""
    return _plain(one) == _plain(other)


def _plain(url: str) -> str:
    _, scheme, rest = url.rpartition("://")
    rest = rest.rpartition("@")[2] if "@" in rest.partition("/")[0] else rest
    if not scheme:
        rest = rest.replace(":", "/", 1)
    host, slash, path = rest.partition("/")
    if scheme:
        host = host.partition(":")[0]
    return f"{host.lower()}{slash}{path.strip('/').removesuffix('.git').strip('/')}"
