"""What objects of Flux and Argo CD reach by what their controllers apply."""

from __future__ import annotations

from kaigen.tenancy.conditions.classes import GrantedClass
from kaigen.tenancy.conditions.references import OwnNamespace, Reference
from kaigen.tenancy.conditions.texts import Missing, NotEmpty
from kaigen.tenancy.reach import Reach

_RELEASE = "HelmRelease.helm.toolkit.fluxcd.io"
_FLUX = ("Kustomization.kustomize.toolkit.fluxcd.io", _RELEASE)
_ARGO = "argoproj.io"

SYNCER_REACHES: tuple[Reach, ...] = (
    # Flux applies as its own account where an object names none, unless its controllers have a default (source: Flux
    # 2.7, role-based access control).
    Reach(
        "syncer-rights",
        "the rights of Flux itself, without a `serviceAccountName`",
        _FLUX,
        (("spec", "serviceAccountName"),),
        NotEmpty("set `serviceAccountName`"),
        default="",
    ),
    Reach("syncer-cluster", "another login by a kubeconfig", _FLUX, (("spec", "kubeConfig"),), Missing()),
    Reach(
        "syncer-namespace",
        "objects in namespace",
        _FLUX,
        (("spec", "targetNamespace"), ("spec", "storageNamespace")),
        OwnNamespace(),
    ),
    Reach(
        "syncer-source",
        "the source",
        _FLUX,
        (("spec", "sourceRef"), ("spec", "chart", "spec", "sourceRef"), ("spec", "chartRef")),
        Reference("references"),
    ),
    # Argo CD applies what the project allows; without one, what `default` allows (source: Argo CD 3.5, projects).
    Reach(
        "project",
        "the project",
        (f"Application.{_ARGO}",),
        (("spec", "project"),),
        GrantedClass("AppProject"),
        default="",
    ),
    Reach(
        "application-set",
        "Applications of any project, which generators make",
        (f"ApplicationSet.{_ARGO}",),
        (("spec",),),
        Missing(),
    ),
)
