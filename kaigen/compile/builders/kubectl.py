"""Pods that run kubectl with an account of the app: those of `helm test`, and those that wait for another app."""

from __future__ import annotations

from collections.abc import Sequence

from kaigen.compile.builders import settings
from kaigen.compile.builders.pods import DEFAULT_USER, NO_NETWORK, container_security
from kaigen.compile.context import Context
from kaigen.compile.expressions import Tree


def kubectl_pod(prefix: str, whose: str, account: Tree, containers: Sequence[Tree]) -> dict[str, Tree]:
    """Return the spec of a pod with the token of an account.

    Args:
        prefix: beginning of the paths of its settings.
        whose: the pod, for the texts of settings.
        account: name of the account.
        containers: those of `kubectl_container`.
    """
    return {
        "restartPolicy": "Never",
        "serviceAccountName": account,
        "automountServiceAccountToken": True,
        "imagePullSecrets": settings.pull_secrets(
            f"{prefix}imagePullSecrets", (), f"Secrets for pulling the image of {whose}."
        ),
        "securityContext": {
            "runAsNonRoot": True,
            "runAsUser": DEFAULT_USER,
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        "containers": [*containers],
    }


def kubectl_container(prefix: str, whose: str, name: str, arguments: Sequence[Tree], context: Context) -> Tree:
    """Return a container that runs kubectl.

    Args:
        prefix: beginning of the paths of its settings.
        whose: the pod, for the texts of settings.
        name: its name.
        arguments: of kubectl.
        context: has the image.
    """
    return {
        "name": name,
        **NO_NETWORK,
        "image": settings.image(f"{prefix}image", context.config.images["kubectl"], f"Image of {whose}."),
        "args": [*arguments],
        "resources": {"requests": {"cpu": "10m", "memory": "64Mi"}, "limits": {"memory": "64Mi"}},
        "securityContext": container_security(read_only=True),
    }
