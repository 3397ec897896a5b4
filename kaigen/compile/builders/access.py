"""ServiceAccounts of an app's pods, and their permissions on the API server."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from kaigen.compile.app import Object
from kaigen.compile.builders import settings
from kaigen.compile.builders.frame import Frame
from kaigen.compile.expressions import Namespace, Release, Setting, Tree
from kaigen.compile.setting_expressions import Fallback
from kaigen.core.json_types import FieldPath
from kaigen.kinds.pod import PodFields, ServiceAccount

_ORIGIN: FieldPath = ("spec", "serviceAccount")
_DOWNLOAD = "download"
_TOKEN = "gate-token"
"""Name of the volume. Jobs are named by a hash of their pods, so another name would run finished Jobs again."""
TOKEN_FOLDER = "/var/run/secrets/kubernetes.io/serviceaccount"


def account_of(spec: PodFields) -> ServiceAccount | None:
    """Return the ServiceAccount of a spec as a block; None where it names none."""
    given = spec.service_account
    return ServiceAccount(name=given) if isinstance(given, str) else given


def account_fields(spec: PodFields) -> dict[str, Tree]:
    """Return the fields of a pod about its ServiceAccount."""
    account = account_of(spec)
    if account is None:
        return {"serviceAccountName": account_name(), "automountServiceAccountToken": False}
    return {
        "serviceAccountName": _existing(spec, account)
        if account.create is None
        else Fallback(account_name(), Release()),
        "automountServiceAccountToken": account.automount_token,
    }


def token_volume() -> dict[str, Tree]:
    """Return the volume with a token for the API server: what the kubelet mounts by default into every container.

    Only the containers with `token_mount` have it.
    """
    namespace: Tree = {"path": "namespace", "fieldRef": {"fieldPath": "metadata.namespace"}}
    return {
        "name": _TOKEN,
        "projected": {
            "sources": [
                {"serviceAccountToken": {"path": "token", "expirationSeconds": 3600}},
                {"configMap": {"name": "kube-root-ca.crt", "items": [{"key": "ca.crt", "path": "ca.crt"}]}},
                {"downwardAPI": {"items": [namespace]}},
            ]
        },
    }


def token_mount() -> dict[str, Tree]:
    """Return the mount of `token_volume` in a container that calls the API server."""
    return {"name": _TOKEN, "mountPath": TOKEN_FOLDER, "readOnly": True}


def account_name() -> Setting:
    """Return the setting with the name of an existing ServiceAccount."""
    doc = "Existing ServiceAccount of the pods; empty for the app's own, or the namespace's default without one."
    return settings.text("serviceAccount.name", "", doc, optional=True)


def account_objects(spec: PodFields, frame: Frame, component: str) -> list[Object]:
    """Return the ServiceAccount that a spec asks kaigen to create; nothing without one."""
    account = account_of(spec)
    if account is None or account.create is None:
        return []
    return [service_account(frame, "", component, account.create.annotations)]


def _existing(spec: PodFields, account: ServiceAccount) -> Tree:
    assert account.name is not None
    origin = _ORIGIN if isinstance(spec.service_account, str) else (*_ORIGIN, "name")
    return settings.text("serviceAccount.name", account.name, "Existing ServiceAccount of the pods.", origin=origin)


def service_account(
    frame: Frame, suffix: str, component: str, annotations: Mapping[str, str], *, given: bool = True
) -> Object:
    """Return a ServiceAccount.

    Args:
        frame: the app.
        suffix: end of its name.
        component: value of its component label.
        annotations: its annotations besides those of all objects.
        given: whether they come from `spec.serviceAccount`, and so are a setting.
    """
    setting = settings.string_map(
        "serviceAccount.annotations",
        annotations,
        "Annotations of the ServiceAccount, by which a cloud gives the pods an identity.",
        origin=(*_ORIGIN, "create", "annotations") if given else (),
    )
    return Object(
        role="serviceaccount",
        when=settings.flag(
            "serviceAccount.create", True, "Create the ServiceAccount; if not, set `serviceAccount.name`."
        ),
        body={
            "apiVersion": "v1",
            "kind": "ServiceAccount",
            "metadata": frame.metadata(suffix, component, more=setting),
            "automountServiceAccountToken": False,
        },
    )


def download_account(spec: PodFields) -> Tree:
    """Return the name of the downloader's ServiceAccount."""
    account = account_of(spec)
    if account is None or account.create:
        return Fallback(account_name(), Release(f"-{_DOWNLOAD}"))
    return _existing(spec, account)


def facts_rules() -> list[Tree]:
    """Return the rules of a Role whose pods write the ConfigMap with the facts of the app."""
    facts: Tree = [Release("-facts")]
    return [
        # `create` cannot be limited to a name: the name is not known when it is authorized.
        {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["create"]},
        {"apiGroups": [""], "resources": ["configmaps"], "resourceNames": facts, "verbs": ["get", "patch"]},
    ]


def download_access(
    spec: PodFields, frame: Frame, annotations: Mapping[str, str], more: Sequence[Tree] = ()
) -> list[Object]:
    """Return the downloader's access to pods and to the one ConfigMap with its measurements, and its ServiceAccount.

    Args:
        spec: the spec, which may name an existing ServiceAccount.
        frame: the app.
        annotations: annotations by which a cloud identifies the account.
        more: further rules of the Role.
    """
    suffix, account = f"-{_DOWNLOAD}", account_of(spec)
    objects = []
    if account is None:
        objects.append(service_account(frame, suffix, _DOWNLOAD, annotations, given=False))
    elif account.create is not None:
        own = {**annotations, **account.create.annotations}
        objects.append(service_account(frame, suffix, _DOWNLOAD, own))
    rules: list[Tree] = [
        *facts_rules(),
        # A revision that a pod reads is not removed.
        {"apiGroups": [""], "resources": ["pods"], "verbs": ["list"]},
        *more,
    ]
    return [*objects, *role_and_binding(frame, suffix, _DOWNLOAD, rules, download_account(spec))]


def role_and_binding(
    frame: Frame, suffix: str, component: str, rules: list[Tree], account: Tree, *, role_suffix: str = ""
) -> list[Object]:
    """Return a Role, and its binding to a ServiceAccount.

    Args:
        frame: the app.
        suffix: end of their names.
        component: value of their component label.
        rules: rules of the Role.
        account: name of the ServiceAccount.
        role_suffix: end of the names of their files, where the app may have others.
    """
    role: Tree = Release(suffix)
    return [
        Object(
            role=f"role{role_suffix}",
            body={
                "apiVersion": "rbac.authorization.k8s.io/v1",
                "kind": "Role",
                "metadata": frame.metadata(suffix, component),
                "rules": rules,
            },
        ),
        Object(
            role=f"rolebinding{role_suffix}",
            body={
                "apiVersion": "rbac.authorization.k8s.io/v1",
                "kind": "RoleBinding",
                "metadata": frame.metadata(suffix, component),
                "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": role},
                "subjects": [{"kind": "ServiceAccount", "name": account, "namespace": Namespace()}],
            },
        ),
    ]
