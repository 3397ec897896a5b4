"""The controllers of pods that work together, on a plane or a real node: LeaderWorkerSet, JobSet and Kueue."""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import yaml

from tests.cluster.client import Object, is_true
from tests.cluster.plane import Plane
from tests.cluster.processes import free_ports, listening
from tests.cluster.tools.parts import KINDS, locate_part
from tests.cluster.webhooks import Webhook, configurations, make_certificates

_HOST = "127.0.0.1"
_CUSTOM_KIND = "apiextensions.k8s.io/v1/CustomResourceDefinition"
_LWS_GROUP, _JOB_SET_GROUP, _KUEUE_GROUP = "leaderworkerset.x-k8s.io", "jobset.x-k8s.io", "kueue.x-k8s.io"

_ALWAYS = ("CREATE", "UPDATE")


def _selected(label: str) -> Mapping[str, Any]:
    return {"matchExpressions": [{"key": label, "operator": "Exists"}]}


def _both(
    group: str, version: str, kind: str, resource: str, defaults: Sequence[str] = ("CREATE",)
) -> tuple[Webhook, Webhook]:
    """Return the webhooks of a kind that set defaults, for some operations, and that validate."""
    return (
        Webhook("mutate", group, version, kind, resource, defaults),
        Webhook("validate", group, version, kind, resource),
    )


_LWS_PODS = _selected("leaderworkerset.sigs.k8s.io/name")
_LWS = (
    *_both(_LWS_GROUP, "v1", "LeaderWorkerSet", "leaderworkersets", _ALWAYS),
    Webhook("mutate", "", "v1", "Pod", "pods", ("CREATE",), _LWS_PODS),
    Webhook("validate", "", "v1", "Pod", "pods", selector=_LWS_PODS),
)
_JOB_SET_PODS = _selected("jobset.sigs.k8s.io/jobset-name")
_JOB_SET = (
    Webhook("mutate", _JOB_SET_GROUP, "v1alpha2", "JobSet", "jobsets", ("CREATE",)),
    Webhook("validate", _JOB_SET_GROUP, "v1alpha2", "JobSet", "jobsets"),
    Webhook("mutate", "", "v1", "Pod", "pods", ("CREATE",), _JOB_SET_PODS),
    Webhook("validate", "", "v1", "Pod", "pods", ("CREATE",), _JOB_SET_PODS),
)
_KUEUE = (
    *_both(_KUEUE_GROUP, "v1beta2", "ClusterQueue", "clusterqueues"),
    *_both(_KUEUE_GROUP, "v1beta2", "ResourceFlavor", "resourceflavors"),
    *_both(_KUEUE_GROUP, "v1beta2", "Workload", "workloads"),
    *_both("batch", "v1", "Job", "jobs"),
    *_both(_JOB_SET_GROUP, "v1alpha2", "JobSet", "jobsets"),
    *_both(_LWS_GROUP, "v1", "LeaderWorkerSet", "leaderworkersets", _ALWAYS),
    *_both("apps", "v1", "Deployment", "deployments", _ALWAYS),
    *_both("apps", "v1", "StatefulSet", "statefulsets", _ALWAYS),
    Webhook("mutate", "", "v1", "Pod", "pods", ("CREATE",)),
    Webhook("validate", "", "v1", "Pod", "pods"),
)
_KUEUE_FRAMEWORKS = (
    "batch/job",
    "jobset.x-k8s.io/jobset",
    "leaderworkerset.x-k8s.io/leaderworkerset",
    "pod",
    "deployment",
    "statefulset",
)
_CONVERTED = ("clusterqueues", "cohorts", "localqueues", "multikueueclusters", "workloads")
"""Kinds of Kueue whose versions its controller converts."""


class GroupControllers:
    """Controllers with their webhooks; each is started on first use and ends with its plane."""

    def __init__(self, plane: Plane) -> None:
        """Start nothing yet.

        Args:
            plane: Where.
        """
        self._plane = plane
        self._folder = plane.folder / "groups"
        self._certificates: Mapping[str, bytes] = {}
        self._started: set[str] = set()

    def start_leader_worker_set(self) -> None:
        """Start the controller of LeaderWorkerSets."""
        self._start("lws", "config.lws.x-k8s.io/v1alpha1", _LWS, {"internalCertManagement": {"enable": False}})

    def start_job_set(self) -> None:
        """Start the controller of JobSets."""
        self._start(
            "jobset", "config.jobset.x-k8s.io/v1alpha1", _JOB_SET, {"internalCertManagement": {"enable": False}}
        )

    def start_kueue(self) -> None:
        """Start Kueue, which admits the pods of objects with the label of a queue."""
        if "kueue" in self._started:
            return
        self._plane.make_namespace("kueue-system")
        secret = {name: base64.b64encode(content).decode() for name, content in self._pair().items()}
        self._plane.client.create(
            {
                "apiVersion": "v1",
                "kind": "Secret",
                "metadata": {"name": "kueue-webhook-server-cert", "namespace": "kueue-system"},
                "data": secret,
            }
        )
        settings: Object = {
            # Without its own certificates, it reads those of its metrics from a fixed folder of the machine.
            "internalCertManagement": {
                "enable": True,
                "webhookServiceName": "kueue-webhook-service",
                "webhookSecretName": "kueue-webhook-server-cert",
            },
            "featureGates": {"VisibilityOnDemand": False},
            "integrations": {"frameworks": list(_KUEUE_FRAMEWORKS)},
            "namespace": "kueue-system",
        }
        self._start("kueue", "config.kueue.x-k8s.io/v1beta2", _KUEUE, settings)

    def _pair(self) -> Mapping[str, bytes]:
        if not self._certificates:
            hosts = ["kueue-webhook-service.kueue-system.svc"]
            self._certificates = make_certificates(self._folder / "certificates", hosts)
        return self._certificates

    def _start(self, name: str, api_version: str, webhooks: Sequence[Webhook], settings: Object) -> None:
        if name in self._started:
            return
        self._started.add(name)
        program, files = locate_part(name), self._pair()
        health, port = free_ports(2)
        url = f"https://{_HOST}:{port}"
        self._install_kinds(program.parent / KINDS, url)
        config = {
            "apiVersion": api_version,
            "kind": "Configuration",
            "health": {"healthProbeBindAddress": f"{_HOST}:{health}"},
            "metrics": {"bindAddress": "0"},
            "webhook": {"host": _HOST, "port": port, "certDir": str(self._folder / "certificates")},
            "leaderElection": {"leaderElect": False},
            **settings,
        }
        path = self._folder / f"{name}.yaml"
        path.write_text(yaml.safe_dump(config))
        entries = configurations(name, webhooks, url, files["ca.crt"])
        if name == "kueue":
            # It writes its authority into them before it starts.
            self._create(entries)
        self._plane.start(name, str(program), f"--config={path}", f"--kubeconfig={self._plane.kubeconfig_for(name)}")
        self._plane.processes.wait_until(partial(self._serves, port), f"{name} serves its webhooks")
        if name != "kueue":
            self._create(entries)

    def _create(self, objects: Sequence[Object]) -> None:
        for each in objects:
            self._plane.client.create(each)

    def _serves(self, port: int) -> bool:
        try:
            with self._plane.network.entered():
                return listening(port)
        except OSError:
            return False

    def _install_kinds(self, folder: Path, url: str) -> None:
        """Create the kinds of a controller that the plane does not serve yet."""
        if not folder.is_dir():
            return
        client = self._plane.client
        loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
        for file in sorted(folder.glob("*.yaml")):
            kind: Object = yaml.load(file.read_text(), loader)
            name = kind["metadata"]["name"]
            if client.find(_CUSTOM_KIND, name) is None:
                client.create(kind)
            client.wait(_CUSTOM_KIND, name, "", partial(is_true, condition="Established"), "established")
            if name in {f"{each}.{_KUEUE_GROUP}" for each in _CONVERTED}:
                webhook = {"conversionReviewVersions": ["v1"], "clientConfig": {"url": f"{url}/convert"}}
                conversion = {"strategy": "Webhook", "webhook": webhook}
                client.patch(_CUSTOM_KIND, name, "", {"spec": {"conversion": conversion}})
