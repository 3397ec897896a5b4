"""How pods reach servers outside the cluster: proxies, a private authority, mirrors of the Hub and of packages."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from kaigen.compile.app import App
from kaigen.compile.builders.egress import connection_rules
from kaigen.compile.pod_edits import default_items, edit_items, edit_pods, with_items_before

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
    "$(KUBERNETES_SERVICE_HOST)",  # the API server; the kubelet fills it in
    ".svc",
    ".cluster.local",
)


def with_network(app: App, network: Network | None) -> App:
    """Return an app whose containers have the variables and the volume for a network.

    A variable that a container sets itself stays as it is; proxies count in both cases of their names.
    """
    if network is None:
        return app
    variables = network_variables(network, app.namespace)
    bundle = network.ca_bundle

    def container(body: Mapping[str, Any]) -> dict[str, Any]:
        if "name" not in body:
            return dict(body)
        given = {str(each.get("name", "")).upper() for each in default_items(body.get("env")) if isinstance(each, dict)}
        added = [{"name": name, "value": value} for name, value in variables.items() if name.upper() not in given]
        changed = {"env": with_items_before(added, body.get("env"))} if added else {}
        if bundle:
            mount = {"name": VOLUME, "mountPath": FOLDER, "readOnly": True}
            changed["volumeMounts"] = with_items_before([mount], body.get("volumeMounts"))
        return _in_order(body, changed)

    def pod(spec: Mapping[str, Any]) -> dict[str, Any]:
        fields = ("initContainers", "containers")
        changed = {field: edit_items(spec[field], container) for field in fields if field in spec}
        if bundle:
            items = [{"key": bundle.key, "path": FILE.rpartition("/")[2]}]
            volume = {"name": VOLUME, "configMap": {"name": bundle.config_map, "items": items}}
            changed["volumes"] = with_items_before([volume], spec.get("volumes"))
        return {**spec, **changed}

    return edit_pods(app, pod)


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
    """Return the variables for a network in pods of a namespace, by name."""
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
