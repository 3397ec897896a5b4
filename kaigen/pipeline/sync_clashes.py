"""Objects of specs that kaigen writes itself, for Argo CD, for Flux and for namespaces."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from kaigen.config.reserved import ALLOW_DNS, ALLOW_NETWORK, DEFAULT_DENY, QUOTA
from kaigen.diagnostics.diagnostic import Diagnostic, Mark
from kaigen.pipeline.output import delivery_of
from kaigen.pipeline.summary import ObjectKey
from kaigen.system.lazy_import import lazy_imports

if TYPE_CHECKING:
    from kaigen.config.gitops import GitOps
    from kaigen.config.settings import Config
    from kaigen.pipeline.cross_checks import RunApp
    from kaigen.pipeline.summary import AppSummary
    from kaigen.pipeline.unit import Unit

with lazy_imports():
    from kaigen.gitops import files as gitops_files

_GROUPS = ("argoproj.io", "toolkit.fluxcd.io")
"""The groups of Argo CD and Flux, or how they end."""

_NAMES = frozenset({ALLOW_DNS, ALLOW_NETWORK, DEFAULT_DENY, QUOTA, "argocd-cm"})


def sync_clashes(apps: Sequence[RunApp], config: Config) -> Iterator[Diagnostic]:
    """Return an error for each object of an app that kaigen writes itself."""
    if config.gitops is None:
        return
    wanted = [(unit, app, key) for unit, app in apps for key in app.objects if may_be_synced(key, config.gitops)]
    made = synced_objects(apps, config, config.gitops) if wanted else {}
    for unit, app, key in wanted:
        path = made.get(key)
        if path is not None:
            message = f"kaigen writes {key.kind} `{key.name}` itself, for `gitops` of kaigen.yaml, to {path}"
            yield _at_object(unit, app, key, message)


def may_be_synced(key: ObjectKey, gitops: GitOps) -> bool:
    """Return whether kaigen may write an object itself; True for all that it does write."""
    account = gitops.tenancy.service_account if gitops.tenancy is not None else None
    return key.kind == "Namespace" or key.group.endswith(_GROUPS) or key.name in {*_NAMES, account}


def synced_objects(apps: Sequence[RunApp], config: Config, gitops: GitOps) -> dict[ObjectKey, str]:
    """Return the paths in the output tree of the objects that kaigen writes for Argo CD, Flux and namespaces."""
    facts = [app.facts for _, app in apps if app.facts is not None]
    named = gitops_files.identities(delivery_of(facts, config, gitops, config.format))
    return {ObjectKey(group, kind, namespace, name): path for (group, kind, namespace, name), path in named.items()}


def _at_object(unit: Unit | None, app: AppSummary, key: ObjectKey, message: str) -> Diagnostic:
    """Return the error at the plain object, or at the name of the spec."""
    hint = "choose another name, or remove it"
    if unit is None:
        return Diagnostic("KG0302", message, Mark(app.source), hint)
    for document in unit.loaded.plain if app.position < 0 else ():
        if (document.kind, document.name) == (key.kind, key.name):
            return Diagnostic("KG0302", message, document.mark(("metadata", "name")), hint)
    return unit.diagnostic(app, "KG0302", message, ("metadata", "name"), hint)
