"""Prometheus on a plane or next to a real node. The Prometheus operator writes its configuration and its rules."""

from __future__ import annotations

import base64
import gzip
import http
import http.client
import json
import re
import shutil
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any
from urllib.parse import quote

import yaml

from tests.cluster.aggregated import HOST, make_certificate, register
from tests.cluster.client import Object
from tests.cluster.network import NetworkNamespace, connect
from tests.cluster.plane import Plane
from tests.cluster.processes import free_ports
from tests.cluster.tools.parts import KINDS, locate_part

USER = "kaigen"
PASSWORD = "not-a-secret"
PORT = 9090
URL = f"http://{NetworkNamespace.host}:{PORT}"
_LOGIN = "Basic " + base64.b64encode(f"{USER}:{PASSWORD}".encode()).decode()
_HASH = "$2b$04$abcdefghijklmnopqrstuukiPfWbK4Chx2wQkrCBcuNQWm8D.wM3i"
_SECRET = "prometheus-main"
_FURTHER = "further"
_RULES = "/etc/prometheus/rules/"
_ADAPTER = "prometheus-adapter"
_RULE = {
    "seriesQuery": '{namespace!="",pod!="",__name__!~"^container_.*"}',
    "resources": {"overrides": {"namespace": {"resource": "namespace"}, "pod": {"resource": "pod"}}},
    "metricsQuery": "sum(<<.Series>>{<<.LabelMatchers>>}) by (<<.GroupBy>>)",
}
"""The adapter serves every metric of pods under its own name."""

_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400}


def program(name: str) -> str:
    """Return the path of Prometheus, promtool or amtool: that of the PATH, or the one that is built here.

    Those of a distribution evaluate rules, too, but do not find pods.
    """
    return shutil.which(name) or str(locate_part(name))


def shorten(text: str, faster: int = 60) -> str:
    """Return a file of rules with shorter times, and nothing else changed.

    Args:
        text: the file.
        faster: what `for` and the windows of `rate` are divided by. With 60, an hour is a minute.
    """

    def duration(number: str, unit: str) -> str:
        return f"{max(1, int(number) * _UNITS[unit] // faster)}s"

    content = yaml.safe_load(text)
    for group in content["groups"]:
        for rule in group["rules"]:
            rule["for"] = duration(rule["for"][:-1], rule["for"][-1])
            rule["expr"] = re.sub(r"\[(\d+)([smhd])\]", lambda found: f"[{duration(*found.groups())}]", rule["expr"])
    return yaml.safe_dump(content)


def panels(dashboard: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return title and query of each line of a dashboard, with the value of the variable that Grafana sets."""
    return [
        (panel["title"], target["expr"].replace("$__rate_interval", "1m"))
        for panel in dashboard["panels"]
        for target in panel["targets"]
    ]


class Prometheus:
    """A Prometheus with a password that scrapes the pods of all PodMonitors. It ends with the plane."""

    def __init__(
        self,
        node: Plane,
        *,
        namespace: str = "monitoring",
        port: int = PORT,
        interval: str = "2s",
        further: Sequence[Object] = (),
    ) -> None:
        """Start the operator.

        Args:
            node: where.
            namespace: its own; created.
            port: of Prometheus.
            interval: how often it scrapes and evaluates rules.
            further: jobs of its configuration that no PodMonitor describes.
        """
        self._node, self._namespace, self._port, self._interval = node, namespace, port, interval
        operator = locate_part("prometheus-operator")
        node.install_kinds(operator.parent / KINDS)
        node.make_namespace(namespace)
        (own,) = free_ports(1)
        node.start(
            f"{namespace}-operator",
            str(operator),
            f"--web.listen-address={HOST}:{own}",
            f"--prometheus-instance-namespaces={namespace}",
            "--kubelet-endpoints=false",
            "--feature-gates=StatusForConfigurationResources=true",
            env={"KUBECONFIG": str(node.kubeconfig_for(operator.name))},
        )
        secret = {"metadata": {"name": _FURTHER}, "stringData": {"jobs.yaml": json.dumps(list(further))}}
        node.client.create({"apiVersion": "v1", "kind": "Secret", **secret}, namespace)
        node.client.create(self._object(), namespace)

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
                "scrapeInterval": self._interval,
                "evaluationInterval": self._interval,
                "additionalScrapeConfigs": {"name": _FURTHER, "key": "jobs.yaml"},
                "ruleSelector": {},
                "ruleNamespaceSelector": {},
                "podMonitorSelector": {},
                "podMonitorNamespaceSelector": {},
                "apiserverConfig": {"host": client.url, "tlsConfig": tls},
            },
        }

    def scrape(
        self, monitors: Sequence[str], rules: Sequence[str] = (), change: Callable[[str], str] = lambda text: text
    ) -> None:
        """Start Prometheus once the operator has written the configuration of PodMonitors and the rules.

        Args:
            monitors: namespaces and names of PodMonitors, separated by slashes.
            rules: those of PrometheusRules.
            change: changes the text of a file with rules.
        """
        names = [f"podMonitor/{monitor}/" for monitor in monitors]
        found = self._node.client.wait(
            "v1/Secret",
            _SECRET,
            self._namespace,
            lambda secret: all(name in _configuration(secret) for name in names),
            "configured",
        )
        folder = self._node.folder / self._namespace
        folder.mkdir()
        for name, text in self._rule_files(rules).items():
            (folder / name).parent.mkdir(exist_ok=True)
            (folder / name).write_text(change(text))
        config, web = folder / "prometheus.yaml", folder / "web.json"
        # In a pod, the operator's sidecar replaces these.
        text = _configuration(found).replace("$(SHARD)", "0").replace("$(POD_NAME)", "main")
        config.write_text(text.replace(_RULES, f"{folder}/"))
        web.write_text(json.dumps({"basic_auth_users": {USER: _HASH}}))
        self._node.start(
            f"{self._namespace}-prometheus",
            str(locate_part("prometheus")),
            f"--config.file={config}",
            f"--web.config.file={web}",
            f"--storage.tsdb.path={folder / 'data'}",
            f"--web.listen-address={self._node.network.host}:{self._port}",
        )
        listens = partial(self._node.listens, self._port, self._node.network.host)
        self._node.processes.wait_until(listens, "Prometheus listens")
        self._node.processes.wait_until(self._is_ready, "Prometheus is ready")

    def _rule_files(self, rules: Sequence[str]) -> dict[str, str]:
        """Return the files that the operator wrote, by the name of their ConfigMap and their own."""
        wanted = {rule.replace("/", "-", 1) for rule in rules}
        found: dict[str, str] = {}

        def written() -> bool:
            for each in self._node.client.objects("v1/ConfigMap", self._namespace):
                name = each["metadata"]["name"]
                if name.startswith("prometheus-main-rulefiles-"):
                    found.update({f"{name}/{key}": text for key, text in each.get("data", {}).items()})
            # A file has the namespace, the name and the identifier of its PrometheusRule.
            return {key.partition("/")[2][: -len("-.yaml") - 36] for key in found} >= wanted

        self._node.processes.wait_until(written, "the operator has written the rules")
        return found

    def serve_metrics(self) -> None:
        """Start the adapter that serves metrics of pods to HorizontalPodAutoscalers."""
        node = self._node
        certificate = make_certificate(node, _ADAPTER, self._namespace)
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
        register(node, "v1beta1.custom.metrics.k8s.io", _ADAPTER, self._namespace, port)

    def _is_ready(self) -> bool:
        return self._get("/-/ready")[0] == http.HTTPStatus.OK

    def ask(self, path: str) -> Any:
        """Return the data of an answer of its HTTP API.

        Args:
            path: below `/api/v1`.
        """
        return json.loads(self._get(f"/api/v1/{path}")[1])["data"]

    def _get(self, path: str) -> tuple[int, bytes]:
        host = self._node.network.host
        connection = http.client.HTTPConnection(host, timeout=30)
        connection.sock = connect(self._node.network, (host, self._port), 10)
        try:
            connection.request("GET", path, headers={"Authorization": _LOGIN})
            answer = connection.getresponse()
            return answer.status, answer.read()
        finally:
            connection.close()

    def value(self, query: str) -> float | None:
        """Return the only value of a PromQL query; None without one."""
        found = self.ask(f"query?query={quote(query)}")["result"]
        return float(found[0]["value"][1]) if found else None


def _configuration(secret: Object) -> str:
    data = secret.get("data", {}).get("prometheus.yaml.gz", "")
    return gzip.decompress(base64.b64decode(data)).decode() if data else ""
