"""The results of a publication."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

Status = Literal["published", "unchanged", "planned", "proposed"]
"""`planned`: a dry run. `proposed`: pushed to a separate branch for a pull request."""


class AppChanges(Struct, frozen=True):
    """The apps that change in one tree, as `NAMESPACE/NAME`, sorted."""

    added: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()

    @property
    def all(self) -> tuple[str, ...]:
        """All apps that change, sorted."""
        return tuple(sorted({*self.added, *self.changed, *self.removed}))


class TreeResult(Struct, frozen=True):
    """One tree of a branch.

    Attributes:
        environment: the environment that it is rendered for; empty for none.
        path: its folder in the branch; empty for the top of the branch.
        apps: the apps that change.
        files: how many files are added, changed and removed.
    """

    environment: str
    path: str
    apps: AppChanges
    files: tuple[int, int, int]


class BranchResult(Struct, frozen=True):
    """The result of publishing to a branch.

    Attributes:
        remote: name or URL of the remote, without credentials.
        branch: the branch that was pushed to: the deploy branch, or the branch of the pull request.
        base: the deploy branch.
        status: what was done.
        commit: the commit that has the trees; empty when no commit was made.
        message: message of that commit.
        url: the remote's URL for opening a pull request; empty when it offers none.
        trees: the changes per tree.
        attempts: how many attempts it took; more than one if others pushed in the meantime.
    """

    remote: str
    branch: str
    base: str
    status: Status
    commit: str
    message: str
    url: str
    trees: tuple[TreeResult, ...]
    attempts: int = 1


class ArtifactResult(Struct, frozen=True):
    """The result of pushing one artifact.

    Attributes:
        name: name of the chart, or of the environment's manifests.
        version: the chart's version, or the tag.
        reference: its address, as `oci://…`.
        digest: digest of its manifest, `sha256:…`.
        status: what was done.
        attached: media types of its attachments.
    """

    name: str
    version: str
    reference: str
    digest: str
    status: Status
    attached: tuple[str, ...]
