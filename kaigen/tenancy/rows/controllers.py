"""What ExternalSecrets, SealedSecrets, and objects of Flux and Argo CD reach by what their controllers write."""

from __future__ import annotations

from kaigen.kubernetes.manifest import ALL
from kaigen.tenancy.conditions.references import GrantedClass, NamespacedKind, OwnNamespace, Reference
from kaigen.tenancy.conditions.values import Matching, Missing, NotEmpty
from kaigen.tenancy.reach import Reach

_EXTERNAL = ("ExternalSecret.external-secrets.io",)
_SEALED = ("SealedSecret.bitnami.com",)
_TARGET = ("spec", "target")
_TYPES = r"|Opaque|kubernetes\.io/(basic-auth|dockercfg|dockerconfigjson|ssh-auth|tls)"
"""Types of Secrets that no controller obeys (source: Kubernetes, types of Secrets; the API server fills a Secret of the
type service-account-token with a token of the account that an annotation names)."""

SECRET_REACHES: tuple[Reach, ...] = (
    Reach(
        "secret-target",
        "metadata of a Secret from a template, by the target",
        _EXTERNAL,
        ((*_TARGET, "template", "templateFrom", ALL, "target"),),
        Matching("Data"),
    ),
    Reach("secret-manifest", "objects other than Secrets", _EXTERNAL, ((*_TARGET, "manifest"),), Missing()),
    Reach(
        "secret-type",
        "a Secret of type",
        (*_EXTERNAL, *_SEALED),
        ((*_TARGET, "template", "type"), ("spec", "template", "type")),
        Matching(_TYPES),
    ),
    Reach(
        "secret-finalizer",
        "finalizers of a Secret",
        (*_EXTERNAL, *_SEALED),
        ((*_TARGET, "template", "metadata", "finalizers"), ("spec", "template", "metadata", "finalizers")),
        Missing(),
    ),
    Reach(
        "generator",
        "the generator",
        _EXTERNAL,
        tuple(("spec", field, ALL, "sourceRef", "generatorRef") for field in ("data", "dataFrom")),
        NamespacedKind(),
    ),
)


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
