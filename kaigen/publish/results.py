"""What a publication came to, for a person or a program to read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Status = Literal["published", "unchanged", "planned", "proposed"]
"""`planned` by a dry run; `proposed` on a branch that a pull request can be opened from."""


@dataclass(frozen=True, slots=True)
class AppChanges:
    """The apps that differ in one tree, as `NAMESPACE/NAME`, sorted."""

    added: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()

    @property
    def all(self) -> tuple[str, ...]:
        """Every one of them."""
        return tuple(sorted({*self.added, *self.changed, *self.removed}))


@dataclass(frozen=True, slots=True)
class TreeResult:
    """One tree of a branch.

    Attributes:
        environment: whose it is; empty for none.
        path: its folder in the branch; empty for the branch's top.
        apps: the apps that differ.
        files: how many files were added, changed and removed.
    """

    environment: str
    path: str
    apps: AppChanges
    files: tuple[int, int, int]


@dataclass(frozen=True, slots=True)
class BranchResult:
    """What became of a branch.

    Attributes:
        remote: its name or URL, without credentials.
        branch: the branch that was pushed to: the deploy branch, or the one to propose.
        base: the deploy branch.
        status: what was done.
        commit: the commit with the trees as they shall be; empty when none was made.
        message: of that commit.
        url: where the remote offers to open a pull request; empty when it offers nothing.
        trees: what differs.
        attempts: how often the branch was looked at; more than one when it moved meanwhile.
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


@dataclass(frozen=True, slots=True)
class ArtifactResult:
    """What became of one artifact in a registry.

    Attributes:
        name: of the chart, or of the environment's manifests.
        version: the chart's version, or the tag.
        reference: where it is, as `oci://…`.
        digest: of its manifest, `sha256:…`.
        status: what was done.
        attached: media types of what is attached to it.
    """

    name: str
    version: str
    reference: str
    digest: str
    status: Status
    attached: tuple[str, ...]
