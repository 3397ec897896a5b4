"""The proxy in front of a Notebook that has a route: oauth2-proxy, which asks users to sign in.

It proves itself to Jupyter with the notebook's token, as the password of HTTP's Basic scheme, so Jupyter answers nobody
who comes without the proxy or the token, whatever the cluster's network permits.

Source of the flags, their defaults and the variables: oauth2-proxy 7.15.6, pkg/apis/options and
https://oauth2-proxy.github.io/oauth2-proxy/configuration/overview.
"""

from __future__ import annotations

from collections.abc import Mapping

from kaigen.compile.app import Object
from kaigen.compile.builders import settings
from kaigen.compile.builders.frame import Frame
from kaigen.compile.builders.pods import DEFAULT_USER, container_security, image_fields
from kaigen.compile.builders.routes import route_host
from kaigen.compile.context import Context
from kaigen.compile.expressions import Joined, Setting, Tree
from kaigen.compile.field_expressions import ContentName
from kaigen.compile.problems import Problems
from kaigen.core.json_types import FieldPath
from kaigen.kinds.exposure import Oidc, ProtectedRoute

PORT = 4180
"""Port of the proxy: the default of oauth2-proxy."""

PORT_NAME = "proxy"

_SECRET_VOLUME = "oidc"
_SECRET_FOLDER = "/etc/oauth2-proxy/secret"
_EMAILS_VOLUME = "oidc-emails"
_EMAILS_FOLDER = "/etc/oauth2-proxy/emails"
_EMAILS = "emails"
_ORIGIN: FieldPath = ("spec", "route", "oidc")
_MEMORY = "128Mi"


def login_container(
    route: ProtectedRoute, upstream: int, token: Mapping[str, Tree], context: Context
) -> Mapping[str, Tree]:
    """Return the container of the proxy.

    Args:
        route: the spec's block.
        upstream: port of Jupyter.
        token: name of the Secret with the notebook's token, and its key.
        context: its settings name the image.
    """
    mounts: list[Tree] = [{"name": _SECRET_VOLUME, "mountPath": _SECRET_FOLDER, "readOnly": True}]
    if _has_emails(route):
        mounts.append({"name": _EMAILS_VOLUME, "mountPath": _EMAILS_FOLDER, "readOnly": True})
    probe: dict[str, Tree] = {"timeoutSeconds": 5, "periodSeconds": 10}
    return {
        "name": "oauth2-proxy",
        **image_fields(context.config.images["oauth2Proxy"], "oauth2Proxy.", ()),
        "args": _arguments(route, upstream),
        "env": [{"name": "OAUTH2_PROXY_BASIC_AUTH_PASSWORD", "valueFrom": {"secretKeyRef": dict(token)}}],
        "ports": [{"name": PORT_NAME, "containerPort": PORT, "protocol": "TCP"}],
        "resources": Setting(
            "oauth2Proxy.resources",
            {"requests": {"cpu": "10m", "memory": _MEMORY}, "limits": {"memory": _MEMORY}},
            "Resources of the proxy.",
            settings.RESOURCES,
        ),
        "readinessProbe": {"httpGet": {"path": "/ready", "port": PORT_NAME}, **probe},
        "livenessProbe": {"httpGet": {"path": "/ping", "port": PORT_NAME}, **probe},
        "securityContext": {"runAsUser": DEFAULT_USER, "runAsNonRoot": True, **container_security(read_only=True)},
        "terminationMessagePolicy": "FallbackToLogsOnError",
        "volumeMounts": mounts,
    }


def _arguments(route: ProtectedRoute, upstream: int) -> list[Tree]:
    oidc = route.oidc
    domains = oidc.allowed_domains or ([] if oidc.allowed_emails else ["*"])
    return [
        "--provider=oidc",
        f"--oidc-issuer-url={oidc.issuer}",
        f"--client-id={oidc.client_id}",
        f"--client-secret-file={_SECRET_FOLDER}/client-secret",
        Joined(("--redirect-url=https://", route_host(route), "/oauth2/callback")),
        # Both are off by default. The nonce ties the ID token to the browser that asked for it.
        "--code-challenge-method=S256",
        "--insecure-oidc-skip-nonce=false",
        "--skip-provider-button=true",
        f"--http-address=:{PORT}",
        f"--upstream=http://127.0.0.1:{upstream}/",
        f"--cookie-secret-file={_SECRET_FOLDER}/cookie-secret",
        "--cookie-samesite=lax",
        # A user who may no longer open the notebook can until then; the default is a week.
        "--cookie-expire=12h",
        # The session needs no token of the provider after the login, and a cookie may have 4 KiB.
        "--session-cookie-minimal=true",
        # JupyterLab's own requests get 401, not a page, when the session has ended.
        "--api-route=^/api/",
        "--silence-ping-logging=true",
        *(f"--allowed-group={group}" for group in oidc.allowed_groups),
        *(f"--email-domain={domain}" for domain in domains),
        *([f"--authenticated-emails-file={_EMAILS_FOLDER}/{_EMAILS}"] if _has_emails(route) else []),
    ]


def login_volumes(route: ProtectedRoute, name: str) -> list[Tree]:
    """Return the volumes of the proxy.

    Args:
        route: the spec's block.
        name: name of the Notebook.
    """
    oidc = route.oidc
    secret = settings.text(
        "oidc.secret",
        oidc.secret.name if oidc.secret else f"{name}-oidc",
        "Secret with `client-secret` and `cookie-secret`.",
        origin=(*_ORIGIN, "secret", "name") if oidc.secret else (),
    )
    items: Tree = [{"key": key, "path": key} for key in ("client-secret", "cookie-secret")]
    volumes: list[Tree] = [{"name": _SECRET_VOLUME, "secret": {"secretName": secret, "items": items}}]
    if _has_emails(route):
        volumes.append({"name": _EMAILS_VOLUME, "configMap": {"name": _emails_name(oidc)}})
    return volumes


def login_config_maps(route: ProtectedRoute, frame: Frame, component: str) -> list[Object]:
    """Return the ConfigMap with the addresses of users; nothing without addresses."""
    if not _has_emails(route):
        return []
    body: dict[str, Tree] = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": frame.metadata("", component, name=_emails_name(route.oidc)),
        "data": {_EMAILS: _emails(route.oidc)},
    }
    return [Object(role="configmap-emails", body=body)]


def check_login(route: ProtectedRoute, problems: Problems) -> None:
    """Report a route that all users of the provider may use."""
    oidc = route.oidc
    if not (oidc.allowed_groups or oidc.allowed_emails or oidc.allowed_domains):
        problems.warning(
            "KG0352",
            f"every user of {oidc.issuer} may run code in the notebook",
            _ORIGIN,
            "set `allowedGroups`, `allowedEmails` or `allowedDomains`",
        )


def _has_emails(route: ProtectedRoute) -> bool:
    return bool(route.oidc.allowed_emails)


def _emails(oidc: Oidc) -> Setting:
    return settings.text(
        "oidc.emails",
        "".join(f"{address}\n" for address in oidc.allowed_emails),
        "Addresses of users, one a line.",
        origin=(*_ORIGIN, "allowedEmails"),
    )


def _emails_name(oidc: Oidc) -> ContentName:
    return ContentName("-emails", _emails(oidc))
