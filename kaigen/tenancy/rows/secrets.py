"""What ExternalSecrets and SealedSecrets reach by the objects that their controllers write."""

from __future__ import annotations

from kaigen.kubernetes.manifest import ALL
from kaigen.tenancy.conditions.classes import NamespacedKind
from kaigen.tenancy.conditions.texts import Matching, Missing
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
