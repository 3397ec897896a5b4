"""Permissions of an app's pods on the API server."""

from __future__ import annotations

from collections.abc import Mapping

from kaigen.compile.app import Object
from kaigen.compile.builders.frame import Frame
from kaigen.compile.expressions import Namespace, Release, Tree


def facts_access(frame: Frame, annotations: Mapping[str, str]) -> list[Object]:
    """Return the downloader's service account, which may write the one ConfigMap with its measurements.

    Args:
        frame: the app.
        annotations: annotations by which a cloud identifies the account.
    """
    component = "download"
    account: Tree = Release("-download")
    return [
        Object(
            role="serviceaccount",
            body={
                "apiVersion": "v1",
                "kind": "ServiceAccount",
                "metadata": frame.metadata("-download", component, annotations=annotations),
                "automountServiceAccountToken": False,
            },
        ),
        Object(
            role="role",
            body={
                "apiVersion": "rbac.authorization.k8s.io/v1",
                "kind": "Role",
                "metadata": frame.metadata("-download", component),
                "rules": [
                    # `create` cannot be limited to a name: the name is not known when it is authorized.
                    {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["create"]},
                    {
                        "apiGroups": [""],
                        "resources": ["configmaps"],
                        "resourceNames": [Release("-facts")],
                        "verbs": ["get", "patch"],
                    },
                ],
            },
        ),
        Object(
            role="rolebinding",
            body={
                "apiVersion": "rbac.authorization.k8s.io/v1",
                "kind": "RoleBinding",
                "metadata": frame.metadata("-download", component),
                "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": account},
                "subjects": [{"kind": "ServiceAccount", "name": account, "namespace": Namespace()}],
            },
        ),
    ]
