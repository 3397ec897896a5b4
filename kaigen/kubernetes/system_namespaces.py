"""Namespaces of Kubernetes and of cluster services, in which no workload belongs."""

from __future__ import annotations

import re

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
