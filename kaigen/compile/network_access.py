"""How pods reach servers outside the cluster: proxies, a private authority, mirrors of the Hub and of packages."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from kaigen.compile.app import App
from kaigen.compile.builders.access import TOKEN_FOLDER
from kaigen.compile.builders.egress import connection_rules
from kaigen.compile.builders.frame import Frame
from kaigen.compile.expressions import DIGEST_LENGTH, Release
from kaigen.compile.field_expressions import Items
from kaigen.compile.go_json import go_json, sha256_hex
from kaigen.compile.pod_edits import default_items, edit_items, edit_pods, with_config_map, with_items_before

if TYPE_CHECKING:
    from kaigen.config.network import Network

VOLUME = "kaigen-ca-bundle"
FOLDER = "/etc/kaigen/ca"
FILE = f"{FOLDER}/ca.crt"

_CA_VARIABLES = (
    "SSL_CERT_FILE",  # OpenSSL, Python, Go, uv
    "REQUESTS_CA_BUNDLE",  # requests, pip
    "CURL_CA_BUNDLE",
    "AWS_CA_BUNDLE",  # boto3, AWS CLI
    "GIT_SSL_CAINFO",
    "NODE_EXTRA_CA_CERTS",
)
_INTERNAL = (
    "localhost",
    "127.0.0.1",
    "::1",
    "169.254.169.254",  # metadata of AWS, Azure and Google
    "169.254.170.23",  # EKS Pod Identity
    "metadata.google.internal",
    ".svc",
    ".cluster.local",
)
_EXCEPTIONS = ("NO_PROXY", "no_proxy")
_API_SERVER = "$(KUBERNETES_SERVICE_HOST)"
"""The address of the API server. The kubelet fills it in, but only in `env` of a container."""

Body = Mapping[str, Any]
_LISTS = ("initContainers", "containers")


def with_network(app: App, network: Network | None, frame: Frame) -> App:
    """Return an app whose containers have the variables and the volume for a network, if they connect to it.

    The variables are in a ConfigMap, whose name ends in a hash of its content. Containers in a setting have them one by
    one: the value of a setting cannot contain the name of the release.

    Args:
        app: the app.
        network: the network; None for none.
        frame: names and labels of the app.
    """
    variables = network_variables(network, app.namespace) if network is not None else {}
    if network is None or not variables:
        return app
    name = Release(f"-network-{sha256_hex(go_json(variables))[:DIGEST_LENGTH]}")
    bundle = network.ca_bundle
    seen = set()

    def container(body: Body, pod: Body, in_setting: bool) -> Body:
        if not _connects(body):
            return body
        seen.add(in_setting)
        added = _added(body, variables, in_setting=in_setting, calls_api=calls_api(body, pod))
        changed = {"env": with_items_before(added, body.get("env"))} if added else {}
        if not in_setting:
            changed["envFrom"] = with_items_before([{"configMapRef": {"name": name}}], body.get("envFrom"))
        if bundle:
            mount = {"name": VOLUME, "mountPath": FOLDER, "readOnly": True}
            changed["volumeMounts"] = with_items_before([mount], body.get("volumeMounts"))
        return _in_order(body, changed)

    def pod(spec: Body, in_setting: bool = False) -> Body:
        def edit(body: Body) -> Body:
            return container(body, spec, in_setting)

        def edit_default(body: Body) -> Body:
            return container(body, spec, True)

        changed = {field: edit_items(spec[field], edit, edit_default) for field in _LISTS if field in spec}
        if bundle and any(_connects(each) for field in changed for each in default_items(spec[field])):
            items = [{"key": bundle.key, "path": FILE.rpartition("/")[2]}]
            volume = {"name": VOLUME, "configMap": {"name": bundle.config_map, "items": items}}
            changed["volumes"] = with_items_before([volume], spec.get("volumes"))
        return {**spec, **changed}

    edited = edit_pods(app, pod, partial(pod, in_setting=True))
    if False not in seen:
        return edited
    return with_config_map(edited, "configmap-network", frame.metadata("", "network", name=name), variables)


def _connects(body: Any) -> bool:
    """Return whether a container may connect to servers outside the cluster."""
    return isinstance(body, Mapping) and "name" in body and not isinstance(body.get("envFrom"), Items)


def calls_api(body: Body, pod: Body) -> bool:
    """Return whether a container has a token for the API server."""
    mounts = default_items(body.get("volumeMounts"))
    return pod.get("automountServiceAccountToken") is not False or any(
        isinstance(each, Mapping) and each.get("mountPath") == TOKEN_FOLDER for each in mounts
    )


def _added(body: Body, variables: Mapping[str, str], *, in_setting: bool, calls_api: bool) -> list[Mapping[str, Any]]:
    """Return the variables that a container needs itself, as entries of `env`.

    A variable that the container sets stays as it is, and counts in both cases of its name.

    Args:
        body: the container.
        variables: the variables of the network.
        in_setting: whether it has no ConfigMap with them.
        calls_api: whether it calls the API server.
    """
    entries = [each for each in default_items(body.get("env")) if isinstance(each, Mapping)]
    names = {each.get("name") for each in entries}
    own = {str(each.get("name")).upper(): each for each in entries}
    added: list[Mapping[str, Any]] = []
    for name, value in variables.items():
        if name.upper() in own:
            added += [{**own[name.upper()], "name": name}] if name not in names else []
        elif name in _EXCEPTIONS and (in_setting or calls_api):
            added.append({"name": name, "value": f"{value},{_API_SERVER}"})
        elif in_setting:
            added.append({"name": name, "value": value})
    return added


def _in_order(body: Mapping[str, Any], changed: Mapping[str, Any]) -> dict[str, Any]:
    """Return a container with changed fields; a new one comes before its resources."""
    new = {key: value for key, value in changed.items() if key not in body}
    result: dict[str, Any] = {}
    for key, value in body.items():
        if key == "resources":
            result |= new
        result[key] = changed.get(key, value)
    return {**result, **new}


def network_variables(network: Network, namespace: str) -> dict[str, str]:
    """Return the variables for a network in pods of a namespace, by name. `_EXCEPTIONS` lack the API server."""
    found: dict[str, str] = {}
    if network.hub_endpoint:
        found["HF_ENDPOINT"] = network.hub_endpoint
    proxies = {"HTTP_PROXY": network.http_proxy, "HTTPS_PROXY": network.https_proxy}
    for name, url in proxies.items():
        if url:
            found |= dict.fromkeys((name, name.lower()), url)
    if any(proxies.values()):
        # Pods that work together have names such as `NAME-0.NAME.NAMESPACE`.
        exceptions = (*_INTERNAL, f".{namespace}", *(network.no_proxy or ()))
        found |= dict.fromkeys(("NO_PROXY", "no_proxy"), ",".join(exceptions))
    if network.ca_bundle:
        found |= dict.fromkeys(_CA_VARIABLES, FILE)
    if network.package_index:
        found |= dict.fromkeys(("PIP_INDEX_URL", "UV_DEFAULT_INDEX"), network.package_index)
    return found


def egress_rules(network: Network) -> list[dict[str, Any]]:
    """Return the rules of a NetworkPolicy for connections to the proxies and mirrors of a network."""
    urls = (network.http_proxy, network.https_proxy, network.hub_endpoint, network.package_index)
    return connection_rules(url for url in urls if url)
