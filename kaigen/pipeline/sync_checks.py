"""Checks of objects of apps that kaigen or a syncer writes, too, or applies in the wrong order."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from msgspec.structs import replace

from kaigen.config.reserved import ALLOW_DNS, ALLOW_NETWORK, DEFAULT_DENY, QUOTA
from kaigen.diagnostics.diagnostic import Diagnostic, Mark, Severity
from kaigen.pipeline.output import delivery_of
from kaigen.pipeline.summary import AppSummary, ObjectKey
from kaigen.system.lazy_import import lazy_imports

if TYPE_CHECKING:
    from kaigen.config.gitops import GitOps
    from kaigen.config.settings import Config
    from kaigen.pipeline.unit import RunApp, Unit

with lazy_imports():
    from kaigen.gitops import files as gitops_files


_GROUPS = ("argoproj.io", "toolkit.fluxcd.io")
"""The groups of Argo CD and Flux, or how they end."""

_NAMES = frozenset({ALLOW_DNS, ALLOW_NETWORK, DEFAULT_DENY, QUOTA, "argocd-cm"})
_STAGED = "--custom-apply-stage-kinds=trainer.kubeflow.org/TrainingRuntime"
"""Flag with which Flux applies TrainingRuntimes before it asks the API server about other objects."""


def refused_train_jobs(apps: Sequence[RunApp], config: Config) -> Iterator[Diagnostic]:
    """Return a warning for each app whose TrainJob is applied before its TrainingRuntime: Kubeflow Trainer refuses it.

    Source: the webhook of github.com/kubeflow/trainer v2.2.1, `ApplyAllStaged` of github.com/fluxcd/pkg/ssa v0.76.2,
    and `InstallOrder` of helm.sh/helm, which sorts kinds that it does not know by their names.
    """
    with_flux = config.gitops is not None and config.gitops.flux is not None
    for unit, app in apps:
        if unit is None or not any(each.kind == "TrainJob" for each in app.objects):
            continue
        path = ("spec", "groups")
        if config.format != "manifests":
            message = "Helm makes the TrainJob before its TrainingRuntime, so Kubeflow Trainer refuses it"
            found = unit.diagnostic(app, "KG0484", message, path, "set `format: manifests`, or `groups: jobSet`")
            yield replace(found, severity=Severity.WARNING)
        elif with_flux:
            message = "Flux asks about the TrainJob before it makes its TrainingRuntime, so Kubeflow Trainer refuses it"
            hint = f"run kustomize-controller 1.8 or newer with `{_STAGED}`, or set `groups: jobSet`"
            found = unit.diagnostic(app, "KG0484", message, path, hint)
            yield replace(found, severity=Severity.WARNING)


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
