"""Controllers on a plane or a real node: LeaderWorkerSet, JobSet, Kubeflow Trainer, Kueue, KubeRay, KEDA's webhooks."""

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
_TRAINER_GROUP = "trainer.kubeflow.org"

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
_TRAINER = (
    *_both(_TRAINER_GROUP, "v1alpha1", "TrainJob", "trainjobs", _ALWAYS),
    Webhook("validate", _TRAINER_GROUP, "v1alpha1", "TrainingRuntime", "trainingruntimes"),
)
_KUEUE = (
    *_both(_KUEUE_GROUP, "v1beta2", "ClusterQueue", "clusterqueues"),
    Webhook("validate", _KUEUE_GROUP, "v1beta2", "Cohort", "cohorts"),
    *_both(_KUEUE_GROUP, "v1beta2", "ResourceFlavor", "resourceflavors"),
    *_both(_KUEUE_GROUP, "v1beta2", "Workload", "workloads"),
    *_both("batch", "v1", "Job", "jobs"),
    *_both(_JOB_SET_GROUP, "v1alpha2", "JobSet", "jobsets"),
    *_both(_LWS_GROUP, "v1", "LeaderWorkerSet", "leaderworkersets", _ALWAYS),
    *_both("ray.io", "v1", "RayJob", "rayjobs"),
    *_both("apps", "v1", "Deployment", "deployments", _ALWAYS),
    *_both("apps", "v1", "StatefulSet", "statefulsets", _ALWAYS),
    Webhook("mutate", "", "v1", "Pod", "pods", ("CREATE",)),
    Webhook("validate", "", "v1", "Pod", "pods"),
)
_KEDA_GROUP = "keda.sh"
_KEDA = tuple(
    Webhook("validate", _KEDA_GROUP, "v1alpha1", kind, f"{kind.lower()}s")
    for kind in ("ScaledObject", "ScaledJob", "TriggerAuthentication", "ClusterTriggerAuthentication")
)
_KUEUE_TRAINER = _both(_TRAINER_GROUP, "v1alpha1", "TrainJob", "trainjobs")
_KUEUE_FRAMEWORKS = (
    "batch/job",
    "jobset.x-k8s.io/jobset",
    "leaderworkerset.x-k8s.io/leaderworkerset",
    "ray.io/rayjob",
    "pod",
    "deployment",
    "statefulset",
)
_KUEUE_TRAIN_JOB = f"{_TRAINER_GROUP}/trainjob"
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

    def start_trainer(self) -> None:
        """Start Kubeflow Trainer, which makes JobSets of TrainJobs. Kueue must not have been started before."""
        self.start_job_set()
        # It reads its certificates from a folder of the temporary one.
        certificates = self._folder / "k8s-webhook-server" / "serving-certs"
        if not certificates.exists():
            self._pair()
            certificates.parent.mkdir()
            certificates.symlink_to(self._folder / "certificates")
        settings: Object = {
            "certManagement": {"enable": False},
            "webhook": {"host": _HOST},
        }
        self._start("trainer", f"config.{_TRAINER_GROUP}/v1alpha1", _TRAINER, settings)

    def start_kueue(self, program: str = "kueue") -> None:
        """Start Kueue, which admits the pods of objects with the label of a queue.

        It admits TrainJobs where Kubeflow Trainer has been started.

        Args:
            program: the version: `kueue`, or that of an older one, which then replaces it.
        """
        if program in self._started:
            return
        if other := [name for name in self._started if name.startswith("kueue")]:
            self._replace_kueue(*other)
        else:
            self._plane.make_namespace("kueue-system")
        trains = _KUEUE_TRAINER if "trainer" in self._started else ()
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
            "integrations": {"frameworks": [*_KUEUE_FRAMEWORKS, *([_KUEUE_TRAIN_JOB] if trains else [])]},
            "namespace": "kueue-system",
        }
        self._start(program, "config.kueue.x-k8s.io/v1beta2", (*_KUEUE, *trains), settings, name="kueue")

    def _replace_kueue(self, program: str) -> None:
        """End a version of Kueue, so that another one can start."""
        self._started.remove(program)
        self._plane.processes.stop(program)
        client = self._plane.client
        client.delete("v1/Secret", "kueue-webhook-server-cert", "kueue-system")
        for each in configurations("kueue", (), "", b""):
            client.delete(f"{each['apiVersion']}/{each['kind']}", each["metadata"]["name"])

    def start_kube_ray(self) -> None:
        """Start KubeRay's operator, which makes the pods of Ray's kinds. Their definitions are those of the plane."""
        name = "kuberay"
        if name in self._started:
            return
        self._started.add(name)
        health, metrics = free_ports(2)
        self._plane.start(
            name,
            str(locate_part(name)),
            "--enable-leader-election=false",
            f"--metrics-addr={_HOST}:{metrics}",
            f"--health-probe-bind-address={_HOST}:{health}",
            f"--kubeconfig={self._plane.kubeconfig_for(name)}",
        )
        self._plane.processes.wait_until(partial(self._serves, health), f"{name} is healthy")

    def start_keda_webhooks(self) -> None:
        """Start the webhooks of KEDA, which are a program of their own."""
        name = "keda-webhooks"
        if name in self._started:
            return
        self._started.add(name)
        files = self._pair()
        health, port, metrics = free_ports(3)
        self._plane.start(
            name,
            str(locate_part(name)),
            f"--cert-dir={self._folder / 'certificates'}",
            f"--port={port}",
            f"--metrics-bind-address={_HOST}:{metrics}",
            f"--health-probe-bind-address={_HOST}:{health}",
            f"--kubeconfig={self._plane.kubeconfig_for(name)}",
        )
        self._plane.processes.wait_until(partial(self._serves, port), f"{name} serves its webhooks")
        self._create(configurations("keda", _KEDA, f"https://{_HOST}:{port}", files["ca.crt"]))

    def _pair(self) -> Mapping[str, bytes]:
        if not self._certificates:
            hosts = ["kueue-webhook-service.kueue-system.svc"]
            self._certificates = make_certificates(self._folder / "certificates", hosts)
        return self._certificates

    def _start(
        self, program: str, api_version: str, webhooks: Sequence[Webhook], settings: Object, name: str = ""
    ) -> None:
        if program in self._started:
            return
        self._started.add(program)
        name = name or program
        path, files = locate_part(program), self._pair()
        health, port = free_ports(2)
        url = f"https://{_HOST}:{port}"
        self._install_kinds(path.parent / KINDS, url)
        config = {
            "apiVersion": api_version,
            "kind": "Configuration",
            "health": {"healthProbeBindAddress": f"{_HOST}:{health}"},
            "metrics": {"bindAddress": "0"},
            "webhook": {"host": _HOST, "certDir": str(self._folder / "certificates")},
            "leaderElection": {"leaderElect": False},
            **settings,
        }
        config["webhook"]["port"] = port
        settings_file = self._folder / f"{program}.yaml"
        settings_file.write_text(yaml.safe_dump(config))
        entries = configurations(name, webhooks, url, files["ca.crt"])
        if name == "kueue":
            # It writes its authority into them before it starts.
            self._create(entries)
        kubeconfig = self._plane.kubeconfig_for(name)
        env = {"TMPDIR": str(self._folder)}
        self._plane.start(program, str(path), f"--config={settings_file}", f"--kubeconfig={kubeconfig}", env=env)
        self._plane.processes.wait_until(partial(self._serves, port), f"{program} serves its webhooks")
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
            if kind.get("kind") != "CustomResourceDefinition":
                continue  # The kustomization next to them.
            name = kind["metadata"]["name"]
            if client.find(_CUSTOM_KIND, name) is None:
                client.create(kind)
            client.wait(_CUSTOM_KIND, name, "", partial(is_true, condition="Established"), "established")
            if name in {f"{each}.{_KUEUE_GROUP}" for each in _CONVERTED}:
                webhook = {"conversionReviewVersions": ["v1"], "clientConfig": {"url": f"{url}/convert"}}
                conversion = {"strategy": "Webhook", "webhook": webhook}
                client.patch(_CUSTOM_KIND, name, "", {"spec": {"conversion": conversion}})
