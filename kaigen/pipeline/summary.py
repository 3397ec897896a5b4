"""The plain facts about a compiled source file that the rest of a run needs, and that the cache stores."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from msgspec import Struct, field

from kaigen.config.settings import Config
from kaigen.diagnostics.diagnostic import Diagnostic, Severity
from kaigen.gitops.facts import AppFacts
from kaigen.kinds.input_documents import Key, ObjectName
from kaigen.pipeline.gpu_facts import GpuFacts
from kaigen.pipeline.queue_facts import QueueFacts
from kaigen.pipeline.rollout_facts import RolloutFacts
from kaigen.secrets.facts import Facts
from kaigen.system.lazy_import import lazy_imports

if TYPE_CHECKING:
    from kaigen.config.settings import Format
    from kaigen.pipeline.result import Compiled

with lazy_imports():
    from kaigen.gitops import delivery
    from kaigen.pipeline import app_reach, app_secrets


class ObjectKey(Struct, frozen=True, array_like=True):
    """What two apps must not both create.

    Attributes:
        group: API group of an object; empty for the core, and for a bucket folder.
        kind: kind of the object, or `FOLDER`.
        namespace: of the object.
        name: of the object, or URI of the bucket folder.
    """

    group: str
    kind: str
    namespace: str
    name: str


FOLDER = "folder of a bucket"
"""The kind in the key of a bucket folder, which only one app may fill."""


class Missing(Struct, frozen=True, array_like=True):
    """A reference to an object that its own app does not make.

    Attributes:
        kind: of the object.
        namespace: of the object; empty for one of the cluster, and where the deployment chooses it.
        name: of the object.
        diagnostic: the warning, unless another app makes the object.
    """

    kind: str
    namespace: str
    name: str
    diagnostic: Diagnostic


class AppRow(Struct, frozen=True, order=True):
    """One app, as the table at the end of a render shows it."""

    namespace: str
    name: str
    kind: str
    objects: int
    source: str


class AppSummary(Struct, frozen=True, array_like=True):
    """One app without its objects.

    Attributes:
        namespace: where it goes.
        name: its name.
        kind: the kind that it was written in.
        source: its file, relative to the repository.
        position: of its spec among those of the file; -1 for plain objects and for what kaigen generates.
        objects: what it creates.
        needs: namespace and name of the apps that it refers to.
        facts: the facts for Argo CD and Flux; None when kaigen.yaml configures neither.
        secrets: the Secrets that it reads and creates; None when the run does not need them.
        hosts: of its Ingresses and routes.
        gpus: what it requests of GPUs; None when the run does not need them.
        unpinned: names of kaigen's own images that it uses and the settings do not pin.
        queues: what it has to do with queues; None for nothing.
        rollout: the versions that its requests go to; None for one.
    """

    namespace: str
    name: str
    kind: str
    source: str
    position: int
    objects: tuple[ObjectKey, ...]
    needs: tuple[tuple[str, str], ...] = ()
    facts: AppFacts | None = None
    secrets: Facts | None = None
    hosts: tuple[str, ...] = ()
    gpus: GpuFacts | None = None
    unpinned: tuple[str, ...] = ()
    queues: QueueFacts | None = None
    rollout: RolloutFacts | None = None

    @property
    def key(self) -> tuple[str, str]:
        """Namespace and name."""
        return (self.namespace, self.name)

    @property
    def row(self) -> AppRow:
        """The app as a row of a table."""
        count = sum(key.kind != FOLDER for key in self.objects)
        return AppRow(self.namespace, self.name, self.kind, count, self.source)


class SourceSummary(Struct, frozen=True, array_like=True):
    """One source file after compiling.

    Attributes:
        digest: of its text.
        defines: kind, namespace and name of its specs.
        documents: apiVersion, kind and name of its documents.
        lookups: the objects that its specs looked up among all documents, each with a digest of their files.
        consumed: path and index of the documents of other files that became part of its specs.
        references: the specs that were looked up, each with the digest of its file; empty when there was none.
        diagnostics: errors and warnings.
        matched: the overrides, pins and patches that apply to its specs.
        apps: its apps.
        form: the form of its files; empty when they were not written.
        files: the digest of each of its files in the output tree.
        missing: references to objects that an app of another file may make.
        absent: kind, namespace and name of its specs that the environment does not have.
    """

    digest: str
    defines: tuple[Key, ...]
    documents: tuple[ObjectName, ...]
    lookups: tuple[tuple[ObjectName, str], ...]
    consumed: tuple[tuple[str, int], ...]
    references: tuple[tuple[Key, str], ...]
    diagnostics: tuple[Diagnostic, ...]
    matched: tuple[int | str, ...]
    apps: tuple[AppSummary, ...]
    form: str = ""
    files: Mapping[str, str] = field(default_factory=dict)
    missing: tuple[Missing, ...] = ()
    absent: tuple[Key, ...] = ()

    @property
    def has_errors(self) -> bool:
        """True when at least one diagnostic is an error."""
        return any(item.severity is Severity.ERROR for item in self.diagnostics)


class Detail(Struct, frozen=True):
    """What summaries must include.

    Attributes:
        form: the form whose files are written; empty for none.
        facts: include the facts for Argo CD and Flux.
        secrets: include Secrets.
        gpus: include GPUs.
    """

    form: Format | str = ""
    facts: bool = False
    secrets: bool = False
    gpus: bool = False

    def covers(self, summary: SourceSummary) -> bool:
        """Return whether a summary includes all of it."""
        return (not self.form or summary.form == self.form) and all(
            (app.facts is not None or not self.facts)
            and (app.secrets is not None or not self.secrets)
            and (app.gpus is not None or not self.gpus)
            for app in summary.apps
        )


def summarize(
    item: Compiled, detail: Detail, position: int, config: Config, unpinned: tuple[str, ...] = ()
) -> AppSummary:
    """Return the summary of an app.

    Args:
        item: the app with its objects.
        detail: what to include.
        position: of its spec in the file; negative for an app without one.
        config: has the GPUs, and the profile of the cluster.
        unpinned: names of kaigen's own images that it uses and the settings do not pin.
    """
    app = item.app
    facts = secrets = None
    if detail.facts:
        facts = delivery.facts_of(app, item.objects, item.needs, item.version_in(detail.form))
    if detail.secrets:
        secrets = app_secrets.facts_of([item])
    keys = object_keys(item)
    return AppSummary(
        app.namespace,
        app.name,
        app.kind,
        app.source,
        position,
        keys,
        item.needs,
        facts,
        secrets,
        app_reach.app_hosts(item),
        app_reach.app_gpus(item, config.catalog, config.profile) if detail.gpus else None,
        unpinned,
        app_reach.app_queues(item, config.catalog),
        app_reach.app_rollout(item),
    )


def object_keys(item: Compiled) -> tuple[ObjectKey, ...]:
    """Return the keys of an app's objects, and of the bucket folders that it fills."""
    keys = []
    for group, identity, folder in app_reach.app_objects(item):
        keys.append(ObjectKey(group, identity.kind, identity.namespace, identity.name))
        if folder:
            keys.append(ObjectKey("", FOLDER, "", folder))
    return tuple(keys)
