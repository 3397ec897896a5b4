"""A control plane with one real node: kubelet, containerd, runc, network, DNS and volumes. Pods run."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tests.cluster.client import Object, is_true
from tests.cluster.images import BASE, PAUSE, archives
from tests.cluster.network import NetworkNamespace
from tests.cluster.plane import Plane
from tests.cluster.tools.parts import locate_node

NAME = "node"
STORAGE_CLASS = "local-path"
_POD_CIDR = "10.244.0.0/24"
_SERVICE_IP = "10.96.0.1"
_DNS_IP = "10.96.0.10"
_DNS_PORT = 5353
_KUBELET_PORT = 10250


class Node(Plane):
    """A running cluster of one real node, in a network namespace of its own.

    Volumes are folders of the node; claims of the default class bind when a pod needs them. Names that tests serve
    inside the namespace are added with `name_host`.
    """

    def __init__(self, *, images: Sequence[str] = (), custom_kinds: bool = True) -> None:
        """Start the cluster and wait until its node is ready.

        Args:
            images: folders of `runtimes/` whose images the node gets.
            custom_kinds: Whether it serves the kinds of ``crds``.

        Raises:
            ToolsMissing: its programs are not there.
            NetworkMissing: this machine has no network namespaces.
            ImageFailed: an image could not be built.
            PlaneError: a process did not come up.
        """
        locate_node()
        self._archives = archives(*images)
        super().__init__(custom_kinds=custom_kinds, network=NetworkNamespace())

    def _locate(self) -> Mapping[str, Path]:
        return locate_node()

    has_real_node = True
    _endpoint_reconciler = "lease"

    @property
    def _api_hosts(self) -> Sequence[str]:
        return [self.network.host, "127.0.0.1", _SERVICE_IP, "kubernetes.default.svc"]

    def _world(self) -> list[Object]:
        return [_storage_class(), *_dns(self.network.host)]

    @property
    def _data(self) -> Path:
        # The supervisor unmounts and removes it, even after a kill.
        return self.folder / "data"

    @property
    def _socket(self) -> Path:
        return self._data / "containerd.sock"

    def _start_nodes(self, port: int) -> None:
        del port  # that of simulated kubelets
        self._start_containerd()
        for archive in self._archives:
            self.import_image(archive)
        self._start_kubelet()
        self._start_proxy()
        self._start_dns()
        self._start_volumes()

    def import_image(self, archive: Path) -> None:
        """Give the node an image.

        Args:
            archive: of `docker save`'s format.
        """
        self.ctr("images", "import", str(archive))

    def ctr(self, *arguments: str) -> str:
        """Run containerd's own client in the kubelet's namespace of images and containers.

        Returns:
            What it printed.
        """
        done = self.run("ctr", "-a", str(self._socket), "-n", "k8s.io", *arguments)
        return done.stdout

    def _file(self, name: str, content: Mapping[str, Any]) -> str:
        path = self.folder / name
        path.write_text(json.dumps(content, indent=1))
        return str(path)

    def _start_containerd(self) -> None:
        programs = self.program("bridge").parent
        networks = self._data / "networks"
        networks.mkdir()
        (networks / "10-bridge.conflist").write_text(json.dumps(_pod_network(self._data)))
        config = self.folder / "containerd.toml"
        config.write_text(
            _CONTAINERD.format(
                data=self._data,
                socket=self._socket,
                pause=PAUSE,
                plugins=programs,
                networks=networks,
                runc=self.program("runc"),
            )
        )
        path = os.pathsep.join([str(self.program("containerd").parent), os.environ["PATH"]])
        self.start("containerd", str(self.program("containerd")), f"--config={config}", env={"PATH": path})
        self.processes.wait_until(self._containerd_answers, "containerd answers")

    def _containerd_answers(self) -> bool:
        return self.run("ctr", "-a", str(self._socket), "version", check=False).returncode == 0

    def _start_kubelet(self) -> None:
        serving = self._authority.issue("kubelet", "kubelet", hosts=[self.network.host, NAME])
        resolver = self.folder / "resolv.conf"
        resolver.write_text("nameserver 127.0.0.1\n")
        config = {
            "apiVersion": "kubelet.config.k8s.io/v1beta1",
            "kind": "KubeletConfiguration",
            "authentication": {
                "anonymous": {"enabled": False},
                "webhook": {"enabled": True},
                "x509": {"clientCAFile": str(self._authority.pair.cert)},
            },
            "authorization": {"mode": "Webhook"},
            "cgroupDriver": "cgroupfs",
            "cgroupRoot": self._make_control_groups(),
            # Version 1 of control groups, and no CAP_SYS_RESOURCE, are common in build machines.
            "failCgroupV1": False,
            "featureGates": {"KubeletInUserNamespace": True},
            "failSwapOn": False,
            "containerRuntimeEndpoint": f"unix://{self._socket}",
            "clusterDNS": [_DNS_IP],
            "clusterDomain": "cluster.local",
            "tlsCertFile": str(serving.cert),
            "tlsPrivateKeyFile": str(serving.key),
            "port": _KUBELET_PORT,
            "healthzPort": 0,
            "evictionHard": {"memory.available": "100Mi", "nodefs.available": "1%", "imagefs.available": "1%"},
            "imageGCHighThresholdPercent": 100,
            "maxPods": 200,
            "nodeStatusUpdateFrequency": "5s",
            "podLogsDir": str(self._data / "pod-logs"),
            "resolvConf": str(resolver),
            "seccompDefault": True,
            "syncFrequency": "5s",
        }
        user = self._user(f"system:node:{NAME}", ["system:nodes"])
        self.start(
            "kubelet",
            str(self.program("kubelet")),
            f"--config={self._file('kubelet.json', config)}",
            f"--kubeconfig={user}",
            f"--root-dir={self._data / 'kubelet'}",
            f"--hostname-override={NAME}",
            f"--node-ip={self.network.host}",
        )

    def _make_control_groups(self) -> str:
        """Return the root of this node's control groups. A kubelet ends what it does not know below its root."""
        root = Path("/sys/fs/cgroup")
        controllers = [root] if (root / "cgroup.controllers").exists() else root.iterdir()
        for controller in controllers:
            if controller.is_dir() and not controller.is_symlink():
                (controller / self.network.name).mkdir()
        cpusets = root / "cpuset" / self.network.name
        for name in ("cpuset.cpus", "cpuset.mems") if cpusets.exists() else ():
            (cpusets / name).write_text((root / "cpuset" / name).read_text())
        return f"/{self.network.name}"

    def _user(self, name: str, groups: Sequence[str] = ()) -> Path:
        """Return a kubeconfig of a component that has the rights of its name and groups."""
        return self.kubeconfig_of(self.as_user(name, groups), name.replace(":", "-"))

    def _start_proxy(self) -> None:
        config = {
            "apiVersion": "kubeproxy.config.k8s.io/v1alpha1",
            "kind": "KubeProxyConfiguration",
            "mode": "iptables",
            "clusterCIDR": _POD_CIDR,
            "hostnameOverride": NAME,
            "clientConnection": {"kubeconfig": str(self._user("system:kube-proxy"))},
            "healthzBindAddress": "127.0.0.1:10256",
            "metricsBindAddress": "127.0.0.1:10249",
            # The limits of connection tracking belong to the machine.
            "conntrack": {"maxPerCore": 0, "min": 0, "tcpCloseWaitTimeout": "0s", "tcpEstablishedTimeout": "0s"},
        }
        self.start("kube-proxy", str(self.program("kube-proxy")), f"--config={self._file('proxy.json', config)}")

    def _start_dns(self) -> None:
        self._hosts.touch()
        config = self.folder / "Corefile"
        config.write_text(
            _COREFILE.format(
                port=_DNS_PORT, host=self.network.host, kubeconfig=self.kubeconfig_for("dns"), hosts=self._hosts
            )
        )
        self.start("coredns", str(self.program("coredns")), f"-conf={config}")

    @property
    def _hosts(self) -> Path:
        return self.folder / "hosts"

    def name_host(self, name: str) -> None:
        """Resolve a name to the node's address, where a test serves it.

        Args:
            name: such as `hub.test`.
        """
        with self._hosts.open("a") as hosts:
            hosts.write(f"{self.network.host} {name}\n")

    def _start_volumes(self) -> None:
        folder = self.folder / "volumes"
        folder.mkdir()
        settings = {
            "config.json": json.dumps({"nodePathMap": [], "sharedFileSystemPath": str(self._data / "volumes")}),
            "setup": '#!/bin/sh\nset -eu\nmkdir -m 0777 -p "$VOL_DIR"\n',
            "teardown": '#!/bin/sh\nset -eu\nrm -rf "$VOL_DIR"\n',
            "helperPod.yaml": json.dumps(_helper_pod()),
        }
        self.client.create(
            {
                "apiVersion": "v1",
                "kind": "ConfigMap",
                "metadata": {"name": "local-path-config", "namespace": "kube-system"},
                "data": settings,
            }
        )
        for name, text in settings.items():
            (folder / name).write_text(text)
        self.start(
            "local-path-provisioner",
            str(self.program("local-path-provisioner")),
            "start",
            f"--kubeconfig={self.kubeconfig_for('local-path-provisioner')}",
            "--namespace=kube-system",
            f"--config={folder / 'config.json'}",
            "--configmap-name=local-path-config",
            f"--helper-image={BASE}",
            "--service-account-name=default",
            env={"POD_NAMESPACE": "kube-system"},
        )

    def _works(self) -> bool:
        node = self.client.find("v1/Node", NAME)
        account = self.client.find("v1/ServiceAccount", "default", "default")
        return node is not None and account is not None and is_true(node, "Ready")

    def trust_registry(self, host: str, address: str = "") -> None:
        """Let the node pull images from a registry over plain HTTP.

        Args:
            host: address and port in the names of images.
            address: where the node reaches it; `host` if empty.
        """
        folder = self._data / "registries" / host
        folder.mkdir(parents=True)
        (folder / "hosts.toml").write_text(f'server = "http://{address or host}"\n')


def _storage_class() -> Object:
    return {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {"name": STORAGE_CLASS, "annotations": {"storageclass.kubernetes.io/is-default-class": "true"}},
        "provisioner": "rancher.io/local-path",
        "volumeBindingMode": "WaitForFirstConsumer",
        "reclaimPolicy": "Delete",
    }


def _helper_pod() -> Object:
    container = {"name": "helper-pod", "image": BASE, "imagePullPolicy": "IfNotPresent"}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "helper-pod"}, "spec": {"containers": [container]}}


def _dns(host: str) -> list[Object]:
    """CoreDNS runs outside the node: a Service with an endpoint of its own leads pods there."""
    ports = [{"name": name, "port": 53, "protocol": name.upper(), "targetPort": _DNS_PORT} for name in ("udp", "tcp")]
    metadata = {"name": "kube-dns", "namespace": "kube-system"}
    return [
        {"apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": {"clusterIP": _DNS_IP, "ports": ports}},
        {
            "apiVersion": "discovery.k8s.io/v1",
            "kind": "EndpointSlice",
            "metadata": metadata | {"labels": {"kubernetes.io/service-name": "kube-dns"}},
            "addressType": "IPv4",
            "ports": [{"name": p["name"], "port": _DNS_PORT, "protocol": p["protocol"]} for p in ports],
            "endpoints": [{"addresses": [host], "conditions": {"ready": True}}],
        },
    ]


def _pod_network(data: Path) -> Object:
    addresses = {
        "type": "host-local",
        "dataDir": str(data / "addresses"),
        "ranges": [[{"subnet": _POD_CIDR}]],
        "routes": [{"dst": "0.0.0.0/0"}],
    }
    bridge = {
        "type": "bridge",
        "bridge": "pods",
        "isGateway": True,
        "ipMasq": True,
        "hairpinMode": True,
        "ipam": addresses,
    }
    ports = {"type": "portmap", "capabilities": {"portMappings": True}}
    return {"cniVersion": "1.0.0", "name": "pods", "plugins": [bridge, ports]}


_CONTAINERD = """version = 3
root = "{data}/containerd"
state = "{data}/containerd-state"
[grpc]
  address = "{socket}"
[ttrpc]
  address = "{socket}.ttrpc"
[plugins.'io.containerd.cri.v1.images']
  snapshotter = "overlayfs"
  [plugins.'io.containerd.cri.v1.images'.pinned_images]
    sandbox = "{pause}"
  [plugins.'io.containerd.cri.v1.images'.registry]
    config_path = "{data}/registries"
[plugins.'io.containerd.cri.v1.runtime']
  restrict_oom_score_adj = true
  netns_mounts_under_state_dir = true
  [plugins.'io.containerd.cri.v1.runtime'.cni]
    bin_dirs = ["{plugins}"]
    conf_dir = "{networks}"
  [plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.runc]
    runtime_type = "io.containerd.runc.v2"
    [plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.runc.options]
      BinaryName = "{runc}"
      SystemdCgroup = false
"""

_COREFILE = """.:{port} {{
  bind {host}
  kubernetes cluster.local in-addr.arpa {{
    kubeconfig {kubeconfig}
    pods insecure
  }}
  hosts {hosts} {{
    fallthrough
  }}
  errors
  reload 2s
}}
"""
