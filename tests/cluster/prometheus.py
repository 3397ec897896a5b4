"""Prometheus next to a real node. The Prometheus operator writes its configuration from PodMonitors."""

from __future__ import annotations

import base64
import gzip
import http.client
import json
import shutil
from collections.abc import Sequence
from functools import partial
from typing import Any
from urllib.parse import quote

from tests.cluster.aggregated import HOST, make_certificate, register
from tests.cluster.client import Object
from tests.cluster.network import NetworkNamespace, connect
from tests.cluster.node import Node
from tests.cluster.processes import free_ports
from tests.cluster.tools.parts import KINDS, locate_part

USER = "kaigen"
PASSWORD = "not-a-secret"
PORT = 9090
URL = f"http://{NetworkNamespace.host}:{PORT}"
_LOGIN = "Basic " + base64.b64encode(f"{USER}:{PASSWORD}".encode()).decode()
_HASH = "$2b$04$abcdefghijklmnopqrstuukiPfWbK4Chx2wQkrCBcuNQWm8D.wM3i"
_NAMESPACE = "monitoring"
_SECRET = "prometheus-main"
_ADAPTER = "prometheus-adapter"
_RULE = {
    "seriesQuery": '{namespace!="",pod!="",__name__!~"^container_.*"}',
    "resources": {"overrides": {"namespace": {"resource": "namespace"}, "pod": {"resource": "pod"}}},
    "metricsQuery": "sum(<<.Series>>{<<.LabelMatchers>>}) by (<<.GroupBy>>)",
}
"""The adapter serves every metric of pods under its own name."""


def program(name: str) -> str:
    """Return the path of Prometheus, promtool or amtool: that of the PATH, or the one that is built here.

    Those of a distribution evaluate rules, too, but do not find pods.
    """
    return shutil.which(name) or str(locate_part(name))


class Prometheus:
    """A Prometheus with a password that scrapes the pods of all PodMonitors. It ends with the node."""

    def __init__(self, node: Node) -> None:
        """Start the operator.

        Args:
            node: where.
        """
        self._node = node
        operator = locate_part("prometheus-operator")
        node.install_kinds(operator.parent / KINDS)
        node.make_namespace(_NAMESPACE)
        (port,) = free_ports(1)
        node.start(
            operator.name,
            str(operator),
            f"--web.listen-address={HOST}:{port}",
            "--kubelet-endpoints=false",
            "--feature-gates=StatusForConfigurationResources=true",
            env={"KUBECONFIG": str(node.kubeconfig_for(operator.name))},
        )
        node.client.create(self._object(), _NAMESPACE)

    def _object(self) -> Object:
        client = self._node.client
        tls = {
            "caFile": str(client.ca),
            "certFile": str(client.credentials.cert),
            "keyFile": str(client.credentials.key),
        }
        return {
            "apiVersion": "monitoring.coreos.com/v1",
            "kind": "Prometheus",
            "metadata": {"name": "main"},
            "spec": {
                # The process runs outside of the node's pods.
                "replicas": 0,
                "version": "v3.10.0",
                "scrapeInterval": "2s",
                "podMonitorSelector": {},
                "podMonitorNamespaceSelector": {},
                "apiserverConfig": {"host": client.url, "tlsConfig": tls},
            },
        }

    def scrape(self, monitors: Sequence[str]) -> None:
        """Start Prometheus once the operator has written the configuration of PodMonitors.

        Args:
            monitors: their namespaces and names, separated by slashes.
        """
        names = [f"podMonitor/{monitor}/" for monitor in monitors]
        found = self._node.client.wait(
            "v1/Secret",
            _SECRET,
            _NAMESPACE,
            lambda secret: all(name in _configuration(secret) for name in names),
            "configured",
        )
        folder = self._node.folder / "prometheus"
        folder.mkdir()
        config, web = folder / "prometheus.yaml", folder / "web.json"
        # In a pod, the operator's sidecar replaces these.
        config.write_text(_configuration(found).replace("$(SHARD)", "0").replace("$(POD_NAME)", "main"))
        web.write_text(json.dumps({"basic_auth_users": {USER: _HASH}}))
        self._node.start(
            "prometheus",
            str(locate_part("prometheus")),
            f"--config.file={config}",
            f"--web.config.file={web}",
            f"--storage.tsdb.path={folder / 'data'}",
            f"--web.listen-address={self._node.network.host}:{PORT}",
        )
        listens = partial(self._node.listens, PORT, self._node.network.host)
        self._node.processes.wait_until(listens, "Prometheus listens")

    def serve_metrics(self) -> None:
        """Start the adapter that serves metrics of pods to HorizontalPodAutoscalers."""
        node = self._node
        certificate = make_certificate(node, _ADAPTER, _NAMESPACE)
        (port,) = free_ports(1)
        config = node.folder / "prometheus-adapter.json"
        config.write_text(json.dumps({"rules": [_RULE]}))
        user = node.kubeconfig_for(_ADAPTER)
        node.start(
            _ADAPTER,
            str(locate_part(_ADAPTER)),
            *(f"--{use}kubeconfig={user}" for use in ("lister-", "authentication-", "authorization-")),
            f"--config={config}",
            f"--prometheus-url={URL}",
            f"--prometheus-header=Authorization={_LOGIN}",
            "--metrics-relist-interval=5s",
            f"--bind-address={HOST}",
            f"--secure-port={port}",
            f"--tls-cert-file={certificate / 'tls.crt'}",
            f"--tls-private-key-file={certificate / 'tls.key'}",
            f"--client-ca-file={certificate / 'ca.crt'}",
        )
        register(node, "v1beta1.custom.metrics.k8s.io", _ADAPTER, _NAMESPACE, port)

    def ask(self, path: str) -> Any:
        """Return the data of an answer of its HTTP API.

        Args:
            path: below `/api/v1`.
        """
        host = self._node.network.host
        connection = http.client.HTTPConnection(host, timeout=30)
        connection.sock = connect(self._node.network, (host, PORT), 10)
        try:
            connection.request("GET", f"/api/v1/{path}", headers={"Authorization": _LOGIN})
            return json.load(connection.getresponse())["data"]
        finally:
            connection.close()

    def value(self, query: str) -> float | None:
        """Return the only value of a PromQL query; None without one."""
        found = self.ask(f"query?query={quote(query)}")["result"]
        return float(found[0]["value"][1]) if found else None


def _configuration(secret: Object) -> str:
    data = secret.get("data", {}).get("prometheus.yaml.gz", "")
    return gzip.decompress(base64.b64decode(data)).decode() if data else ""
