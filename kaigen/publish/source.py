"""Reads the source of a publication: the commit that is rendered, and whether it is newer than the last one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

from kaigen.config.settings import FILE_NAME, LOCK_NAME, PINS_FOLDER
from kaigen.core.credentials import without_userinfo
from kaigen.core.text import shown_name
from kaigen.diagnostics.errors import CheckFailed, InputError
from kaigen.git.remote import Git
from kaigen.git.repository import head_commit, is_dirty

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kaigen.config.settings import Config


class Source(Struct, frozen=True):
    """The commit that is rendered, and its repository.

    Attributes:
        commit: its full hash.
        date: its date, in seconds since the epoch.
        repository: URL of the repository, without credentials; empty when it has no remote.
        folder: the folder of kaigen.yaml in the repository; empty for its top.
        branch: the branch that is checked out; empty for none.
        dirty: whether specs or kaigen.yaml have uncommitted changes.
    """

    commit: str
    date: int
    repository: str
    folder: str
    branch: str
    dirty: bool


def read_source(git: Git, configs: Sequence[Config], *, allow_dirty: bool = False) -> Source:
    """Return the state of the repository that is rendered.

    Args:
        git: the repository.
        configs: the settings of each environment.
        allow_dirty: accept uncommitted changes.

    Raises:
        InputError: KG0802 no repository, KG0801 no commit yet, KG0901 uncommitted changes.
    """
    commit = head_commit(git.folder)
    specs = (spec for config in configs for spec in config.specs)
    paths = dict.fromkeys([FILE_NAME, LOCK_NAME, PINS_FOLDER, *specs])
    dirty = [path for path in paths if is_dirty(git.folder, path)]
    if dirty and not allow_dirty:
        hint = "commit first, so that the published commit names its exact source; or give --allow-dirty"
        raise InputError.of("KG0901", f"uncommitted changes in {', '.join(dirty)}", hint=hint)
    url = source_url(git)
    if url.startswith(("/", ".", "file:")):
        # A folder of this machine means nothing to others.
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
    """Return the URL that the specs are pushed to: the remote `origin`, or the only remote; empty for none."""
    names = git.text("remote").split("\n")
    name = "origin" if "origin" in names else names[0] if len(names) == 1 else ""
    return git.text("remote", "get-url", "--", name) if name else ""


def is_checked_out(git: Git, source: Source, branch: str) -> bool:
    """Return whether a branch of the remote is the branch that is checked out."""
    return branch == source.branch and git.text("remote", "get-url", "--", git.remote) == source_url(git)


def require_newer(
    git: Git, source: Source, commit: str, repository: str, target: str, *, folder: str | None = None
) -> None:
    """Check that the source contains the commit that was published before.

    Args:
        git: the source's repository.
        source: what is published now.
        commit: the source commit of the last publication.
        repository: the repository of that commit, from its trailer; empty when unknown.
        target: what is published to, for the message.
        folder: the folder of kaigen.yaml in that repository, from its trailer; None when unknown.

    Raises:
        CheckFailed: the source does not contain the commit, or this clone cannot show it; or it is of another
            folder of the repository.
    """
    is_known = bool(git.text("rev-parse", "--verify", "--quiet", f"{commit}^{{commit}}"))
    if is_known and folder is not None and folder != shown_name(source.folder):
        raise CheckFailed(
            f"{target} was rendered from another folder of this repository, {folder or 'its top'}",
            hint="publish to another --path or --branch; or give --allow-older to replace it",
        )
    if commit == source.commit:
        return
    ours, theirs = source.commit[:12], commit[:12]
    is_shallow = git.text("rev-parse", "--is-shallow-repository") == "true"
    if is_known:
        if git.succeeds("merge-base", "--is-ancestor", commit, source.commit):
            return
        if git.succeeds("merge-base", "--is-ancestor", source.commit, commit):
            raise CheckFailed(
                f"{target} was rendered from {theirs}, which is newer than {ours}",
                hint="check out the newer commit; or give --allow-older to publish the older one",
            )
        if not is_shallow:
            raise CheckFailed(
                f"{target} was rendered from {theirs}, which {ours} does not contain: its changes would be lost",
                hint="merge or rebase first; or give --allow-older to replace it",
            )
    if is_shallow:
        raise CheckFailed(
            f"{target} was rendered from {theirs}, and this shallow clone cannot show whether {ours} contains it",
            hint="fetch the whole history with 'git fetch --unshallow' or 'fetch-depth: 0'",
        )
    if repository and source.repository and not same_repository(repository, source.repository):
        raise CheckFailed(
            f"{target} was rendered from another repository, {repository}",
            hint="publish to another --path or --branch; or give --allow-older to replace it",
        )
    raise CheckFailed(
        f"{target} was rendered from {theirs}, which is not in this clone: its changes would be lost",
        hint="pull first; or give --allow-older to replace it",
    )


def same_repository(one: str, other: str) -> bool:
    """Return whether two URLs name the same repository; protocol, user and `.git` do not matter."""
    return _normalized(one) == _normalized(other)


def _normalized(url: str) -> str:
    _, scheme, address = url.rpartition("://")
    address = address.rpartition("@")[2] if "@" in address.partition("/")[0] else address
    if not scheme:
        address = address.replace(":", "/", 1)
    host, slash, path = address.partition("/")
    if scheme:
        host = host.partition(":")[0]
    return f"{host.lower()}{slash}{path.strip('/').removesuffix('.git').strip('/')}"
