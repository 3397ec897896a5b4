"""Patterns of names, labels, keys and system namespaces, and the rules that kinds have for the names of their objects.

Sources: the validation code of k8s.io/apimachinery and k8s.io/kubernetes v1.36.3, and for custom resources
that of their controllers.
"""

from __future__ import annotations

import re

from msgspec import Struct

LABEL_1123 = r"[a-z0-9](?:[-a-z0-9]*[a-z0-9])?"
_LABEL_1035 = r"[a-z](?:[-a-z0-9]*[a-z0-9])?"
SUBDOMAIN = rf"{LABEL_1123}(?:\.{LABEL_1123})*"
QUALIFIED = r"[A-Za-z0-9](?:[-A-Za-z0-9_.]*[A-Za-z0-9])?"
PORT_NAME = r"(?=[0-9-]*[a-z])[a-z0-9](?:-?[a-z0-9])*"

LABEL_FORM = "lower-case letters, digits and '-', starting and ending with a letter or digit"
_SUBDOMAIN_FORM = "lower-case letters, digits, '-' and '.', starting and ending with a letter or digit"
_LABEL_1035_FORM = "lower-case letters, digits and '-', starting with a letter"


class NameRule(Struct, frozen=True):
    """How objects of a kind may be named.

    Attributes:
        pattern: regular expression of the whole name.
        max_length: in characters.
        form: describes the pattern to a user.
        reason: why the kind has a lower limit than others; empty for the common limit.
    """

    pattern: str
    max_length: int
    form: str
    reason: str = ""


SUBDOMAIN_NAME = NameRule(SUBDOMAIN, 253, _SUBDOMAIN_FORM)
LABEL_NAME = NameRule(LABEL_1123, 63, LABEL_FORM)
LABEL_VALUE_NAME = NameRule(SUBDOMAIN, 63, _SUBDOMAIN_FORM, "it becomes the value of a label")
PATH_SEGMENT_NAME = NameRule(r"(?!\.\.?$)[^/%]+", 253, "any characters except '/' and '%'")


def label_1035_name(max_length: int, reason: str = "") -> NameRule:
    """Return the rule of a DNS label that starts with a letter."""
    return NameRule(_LABEL_1035, max_length, _LABEL_1035_FORM, reason)


def is_qualified(key: str) -> bool:
    """Whether the key of a label or annotation is valid: `name`, or `dns.prefix/name`."""
    prefix, slash, name = key.rpartition("/")
    if len(name) > 63 or not re.fullmatch(QUALIFIED, name):
        return False
    return not slash or (len(prefix) <= 253 and re.fullmatch(SUBDOMAIN, prefix) is not None)


# Names that the installation of each service documents.
SYSTEM_NAMESPACES = (
    r"kube-.*|openshift(-.*)?|argocd|flux-system|cert-manager|external-secrets|istio-system|calico-system"
    r"|tigera-operator|gatekeeper-system|kyverno|gpu-operator|karpenter|keda|kueue-system|lws-system|jobset-system"
)
"""A pattern of RE2 and Python."""

SYNCER_NAMESPACES = r"argocd|flux-system|openshift-gitops"
"""Those of system namespaces whose accounts apply what tenants write; a pattern of RE2 and Python."""


def is_system_namespace(name: str) -> bool:
    """Return whether a namespace belongs to Kubernetes or to a cluster service."""
    return re.fullmatch(SYSTEM_NAMESPACES, name) is not None
