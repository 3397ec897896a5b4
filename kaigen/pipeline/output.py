"""The output tree of a run."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from msgspec import Struct, field

from kaigen.config.settings import CHARTS_HINT, CHARTS_IN_ARTIFACT
from kaigen.diagnostics.errors import InputError
from kaigen.system.lazy_import import lazy_imports

if TYPE_CHECKING:
    from pathlib import Path

    from kaigen.config.gitops import GitOps
    from kaigen.config.settings import Config, Format
    from kaigen.diagnostics.diagnostic import Diagnostic
    from kaigen.gitops.delivery import Delivery
    from kaigen.gitops.facts import AppFacts
    from kaigen.output.contents import FileContent, TreeState
    from kaigen.output.tree import TreeChange
    from kaigen.pipeline.summary import AppRow

with lazy_imports():
    from kaigen.compile import network_access
    from kaigen.gitops import delivery
    from kaigen.gitops import files as gitops_files
    from kaigen.output import tree


class LazyFile(Struct, frozen=True):
    """A file of the output tree whose content is made when it is read.

    Attributes:
        digest: SHA-256 of the content, in hexadecimal.
        read: returns the content.
    """

    digest: str
    read: Callable[[], bytes]


class OutputTree(Struct, frozen=True):
    """The content of one output folder.

    Attributes:
        root: the folder.
        files: content by relative path.
        apps: every app, by namespace and name.
        diagnostics: warnings.
        scope: which of kaigen's files may be removed; all when None.
        state: what is known about the folder's files; `plan` and `write` update it.
        save: stores the state and the cache of the run for the next one.
        inside: the repository that must contain the folder; None for a folder that the user named.
    """

    root: Path
    files: Mapping[str, FileContent] = field(default_factory=dict)
    apps: Sequence[AppRow] = ()
    diagnostics: Sequence[Diagnostic] = ()
    scope: Callable[[str], bool] | None = None
    state: TreeState | None = None
    save: Callable[[], object] = lambda: None
    inside: Path | None = None

    def plan(self) -> TreeChange:
        """Return what `write` would change."""
        return tree.plan_tree(self.root, self.files, scope=self.scope, state=self.state, inside=self.inside)

    def diff(self, change: TreeChange) -> Iterator[str]:
        """Return the lines of a unified diff of a planned change."""
        return tree.diff_tree(self.root, self.files, change, scope=self.scope)

    def write(self) -> TreeChange:
        """Bring the folder up to date, all of it or nothing, and return what changed."""
        return tree.write_tree(self.root, self.files, scope=self.scope, state=self.state, inside=self.inside)


def sync_tree(apps: Sequence[AppFacts], config: Config, form: Format) -> dict[str, bytes]:
    """Return the files for Argo CD and Flux, by facts about every app; none when kaigen.yaml configures neither."""
    if config.gitops is None:
        return {}
    flux = config.gitops.flux
    if form == "chart" and flux is not None and flux.oci is not None and config.gitops.charts is None:
        raise InputError.of("KG0723", CHARTS_IN_ARTIFACT, hint=CHARTS_HINT)
    return gitops_files.sync_files(delivery_of(apps, config, config.gitops, form))


def delivery_of(apps: Sequence[AppFacts], config: Config, settings: GitOps, form: Format) -> Delivery:
    """Return what Argo CD and Flux sync.

    Args:
        apps: facts about every app.
        config: the repository's settings.
        settings: how Argo CD and Flux sync.
        form: the form of the output tree.
    """
    return delivery.Delivery(
        config.environment,
        form == "chart",
        settings,
        tuple(apps),
        config.clusters,
        network_access.egress_rules(config.network) if config.network is not None else (),
        {place: quota for tenant in config.tenants for place, quota in tenant.quotas.items()},
    )
