"""The programs of a plane: their sources and locations.

The versions are in the go.mod files and nowhere else. Parts with the same libraries share one, so that Go
compiles each library once.
"""

from __future__ import annotations

import functools
import hashlib
import os
import platform
import re
import shutil
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tests.tools import ToolError, helm_versions

_FOLDER = Path(__file__).parent
_SHARED = "shared"


class ToolsMissing(Exception):
    """A program of the plane is missing. The message is one line for the user."""


@dataclass(frozen=True, slots=True)
class Part:
    """Programs of one component.

    Attributes:
        name: Name of the component.
        module: Go module that sets the version.
        packages: Package of each program, by the program's name.
        stamps: Variables that the linker sets, with ``{version}`` for the version.
        asks: Arguments that make a program print its version. Empty if it cannot: then only programs
            built here are used.
        cold: Minutes of a first build on two cores.
        tags: Build tags.
        kinds: Folder of its module with CustomResourceDefinitions, which are kept next to the programs.
        replaced: Path of a file in another module that the file of the same name next to the go.mod replaces,
            by the name of the module.
        go_mod: Name of the folder of its go.mod, if it is not its own.
    """

    name: str
    module: str
    packages: Mapping[str, str]
    stamps: Mapping[str, str] = field(default_factory=dict)
    asks: Mapping[str, Sequence[str]] = field(default_factory=dict)
    cold: float = 1.0
    tags: Sequence[str] = ()
    kinds: str = ""
    replaced: Mapping[str, str] = field(default_factory=dict)
    go_mod: str = ""

    @property
    def folder(self) -> Path:
        """Folder of its go.mod."""
        return _FOLDER / (self.go_mod or self.name)

    @property
    def version(self) -> str:
        """The version its go.mod requires, with its leading v."""
        return self._required()[self.module]

    def version_of(self, program: str) -> str:
        """Return the version of the module that a program is built from, with its leading v."""
        return self.module_of(program)[1]

    def module_of(self, program: str) -> tuple[str, str]:
        """Return the module that a program is built from, and its version with its leading v."""
        package, required = f"{self.packages[program]}/", self._required()
        module = max((name for name in required if package.startswith(f"{name}/")), key=len)
        return module, required[module]

    def _required(self) -> dict[str, str]:
        """Return the version of each module that its go.mod requires."""
        text = (self.folder / "go.mod").read_text()
        return dict(re.findall(r"^(?:require|\t)\s*(\S+) (v\S+)", text, re.MULTILINE))

    @property
    def ldflags(self) -> str:
        """Arguments of the linker."""
        major, minor, _ = self.version.removeprefix("v").split(".", 2)
        values = {"version": self.version, "bare": self.version[1:], "major": major, "minor": minor}
        return " ".join(["-s", "-w", *(f"-X {name}={value.format(**values)}" for name, value in self.stamps.items())])

    @property
    def digest(self) -> str:
        """Digest of everything that affects the programs, except Go itself."""
        content = hashlib.sha256()
        for name in ("go.mod", "go.sum", *(Path(path).name for path in self.replaced.values())):
            content.update((self.folder / name).read_bytes())
        content.update(f"{self.ldflags}\n{sorted(self.packages.items())}{''.join(self.tags)}{self.kinds}".encode())
        return content.hexdigest()[:12]


def _kubernetes(*names: str) -> dict[str, str]:
    return {name: f"k8s.io/kubernetes/cmd/{name}" for name in names}


PARTS = (
    Part(
        name="etcd",
        module="go.etcd.io/etcd/server/v3",
        packages={"etcd": "go.etcd.io/etcd/server/v3"},
        asks={"etcd": ["--version"]},
        cold=0.5,
    ),
    Part(
        name="kubernetes",
        module="k8s.io/kubernetes",
        packages=_kubernetes(
            *("kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubectl"), *("kubelet", "kube-proxy")
        ),
        # Without these, clients and Helm cannot parse the server's version.
        stamps={
            "k8s.io/component-base/version.gitVersion": "{version}",
            "k8s.io/component-base/version.gitMajor": "{major}",
            "k8s.io/component-base/version.gitMinor": "{minor}",
        },
        asks={
            "kube-apiserver": ["--version"],
            "kube-controller-manager": ["--version"],
            "kube-scheduler": ["--version"],
            "kubectl": ["version", "--client"],
            "kubelet": ["--version"],
            "kube-proxy": ["--version"],
        },
        cold=5,
    ),
    Part(
        name="kwok",
        module="sigs.k8s.io/kwok",
        packages={"kwok": "sigs.k8s.io/kwok/cmd/kwok"},
        asks={"kwok": ["--version"]},
        go_mod=_SHARED,
        cold=1.2,
    ),
    Part(
        name="kustomize",
        module="sigs.k8s.io/kustomize/kustomize/v5",
        packages={"kustomize": "sigs.k8s.io/kustomize/kustomize/v5"},
        asks={"kustomize": ["version"]},
        cold=0.2,
    ),
    Part(
        name="argo-cd",
        module="github.com/argoproj/argo-cd/v3",
        packages={"argocd": "github.com/argoproj/argo-cd/v3/cmd"},
        stamps={"github.com/argoproj/argo-cd/v3/common.version": "{bare}"},
        asks={"argocd": ["version", "--client", "--short"]},
        cold=4,
    ),
    Part(
        name="flux",
        module="github.com/fluxcd/kustomize-controller",
        packages={
            name: f"github.com/fluxcd/{name}"
            for name in ("source-controller", "kustomize-controller", "helm-controller")
        },
        go_mod=_SHARED,
        cold=5,
    ),
    Part(
        name="sops",
        module="github.com/getsops/sops/v3",
        packages={"sops": "github.com/getsops/sops/v3/cmd/sops", "age-keygen": "filippo.io/age/cmd/age-keygen"},
        asks={"sops": ["--version", "--disable-version-check"]},
        go_mod=_SHARED,
        cold=2,
    ),
    Part(
        name="actionlint",
        module="github.com/rhysd/actionlint",
        packages={"actionlint": "github.com/rhysd/actionlint/cmd/actionlint"},
        asks={"actionlint": ["-version"]},
        cold=0.2,
    ),
)

_CNI = "github.com/containernetworking/plugins/plugins"
_CONTAINERD = "github.com/containerd/containerd/v2"

NODE_PARTS = (
    Part(
        name="containerd",
        module=_CONTAINERD,
        packages={name: f"{_CONTAINERD}/cmd/{name}" for name in ("containerd", "containerd-shim-runc-v2", "ctr")},
        tags=("no_btrfs", "no_devmapper", "no_zfs"),
        cold=0.7,
    ),
    Part(
        name="cni-plugins",
        module="github.com/containernetworking/plugins",
        packages={
            "bridge": f"{_CNI}/main/bridge",
            "loopback": f"{_CNI}/main/loopback",
            "host-local": f"{_CNI}/ipam/host-local",
            "portmap": f"{_CNI}/meta/portmap",
        },
        cold=0.2,
    ),
    Part(
        name="local-path-provisioner",
        module="github.com/rancher/local-path-provisioner",
        packages={"local-path-provisioner": "github.com/rancher/local-path-provisioner"},
        go_mod=_SHARED,
        cold=0.5,
    ),
    Part(
        name="coredns", module="github.com/coredns/coredns", packages={"coredns": "github.com/coredns/coredns"}, cold=1
    ),
    Part(
        name="traefik",
        module="github.com/traefik/traefik/v3",
        packages={"traefik": "github.com/traefik/traefik/v3/cmd/traefik"},
        # No clients of DNS providers: 850 of its 2,500 packages.
        replaced={"github.com/go-acme/lego/v4": "providers/dns/zz_gen_dns_providers.go"},
        cold=3,
    ),
)
"""Programs of a real node in addition to the control plane: runtime, network, volumes, DNS."""

KINDS = "kinds"
"""Folder of CustomResourceDefinitions next to the programs of a part."""

GROUP_PARTS = (
    Part(
        name="lws",
        module="sigs.k8s.io/lws",
        packages={"lws": "sigs.k8s.io/lws/cmd"},
        kinds="config/crd/bases",
        go_mod=_SHARED,
        cold=1,
    ),
    Part(
        name="jobset", module="sigs.k8s.io/jobset", packages={"jobset": "sigs.k8s.io/jobset"}, go_mod=_SHARED, cold=0.8
    ),
)
"""Controllers of pods that work together: LeaderWorkerSet and JobSet."""

JUDGE_PARTS = (
    Part(
        name="kaito",
        module="github.com/kaito-project/kaito",
        packages={"workspace": "github.com/kaito-project/kaito/cmd/workspace"},
        cold=2.5,
    ),
    Part(
        name="kueue",
        module="sigs.k8s.io/kueue",
        packages={"kueue": "sigs.k8s.io/kueue/cmd/kueue"},
        kinds="config/components/crd/bases",
        cold=2.5,
    ),
    Part(
        name="kueue-0.16",
        module="sigs.k8s.io/kueue",
        packages={"kueue-0.16": "sigs.k8s.io/kueue/cmd/kueue"},
        kinds="config/components/crd/bases",
        cold=2.5,
    ),
    Part(
        name="trainer",
        module="github.com/kubeflow/trainer/v2",
        packages={"trainer": "github.com/kubeflow/trainer/v2/cmd/trainer-controller-manager"},
        kinds="manifests/base/crds",
        cold=2.5,
    ),
    Part(
        name="kuberay",
        module="github.com/ray-project/kuberay/ray-operator",
        packages={"kuberay": "github.com/ray-project/kuberay/ray-operator"},
        cold=2,
    ),
    Part(
        name="keda-webhooks",
        module="github.com/kedacore/keda/v2",
        packages={"keda-webhooks": "github.com/kedacore/keda/v2/cmd/webhooks"},
        kinds="config/crd/bases",
        go_mod="keda",
        cold=0.5,
    ),
    Part(
        name="kyverno",
        module="github.com/kyverno/kyverno",
        packages={"kyverno": "github.com/kyverno/kyverno/cmd/kyverno"},
        kinds="config/crds",
        cold=8,
    ),
)
"""KAITO, Kyverno, Kueue in two versions, Kubeflow Trainer, KubeRay and KEDA's webhooks, which kaigen predicts."""

SCALING_PARTS = (
    Part(
        name="prometheus",
        module="github.com/prometheus-operator/prometheus-operator",
        packages={
            "prometheus": "github.com/prometheus/prometheus/cmd/prometheus",
            "promtool": "github.com/prometheus/prometheus/cmd/promtool",
            "amtool": "github.com/prometheus/alertmanager/cmd/amtool",
            "prometheus-operator": "github.com/prometheus-operator/prometheus-operator/cmd/operator",
        },
        # Debian's own cannot find pods.
        tags=("remove_all_sd", "enable_kubernetes_sd"),
        kinds="example/prometheus-operator-crd",
        cold=4,
    ),
    Part(
        name="keda",
        module="github.com/kedacore/keda/v2",
        packages={f"keda-{name}": f"github.com/kedacore/keda/v2/cmd/{name}" for name in ("operator", "adapter")},
        kinds="config/crd/bases",
        cold=1.5,
    ),
    Part(
        name="metrics-server",
        module="sigs.k8s.io/metrics-server",
        packages={"metrics-server": "sigs.k8s.io/metrics-server/cmd/metrics-server"},
        cold=1.5,
    ),
    Part(
        name="prometheus-adapter",
        module="sigs.k8s.io/prometheus-adapter",
        packages={"prometheus-adapter": "sigs.k8s.io/prometheus-adapter/cmd/adapter"},
        cold=1.5,
    ),
    Part(
        name="kube-state-metrics",
        module="k8s.io/kube-state-metrics/v2",
        packages={"kube-state-metrics": "k8s.io/kube-state-metrics/v2"},
        cold=1.5,
    ),
)
"""What autoscalers and alerts need: the Prometheus operator, KEDA, and servers of metrics."""

SOURCE_PARTS = (
    Part(
        name="versitygw",
        module="github.com/versity/versitygw",
        packages={"versitygw": "github.com/versity/versitygw/cmd/versitygw"},
        cold=1.8,
    ),
    Part(
        name="fake-gcs-server",
        module="github.com/fsouza/fake-gcs-server",
        packages={"fake-gcs-server": "github.com/fsouza/fake-gcs-server"},
        cold=2.5,
    ),
)
"""Servers of buckets: of S3, with checks of signatures and checksums, and of Google's API for reading."""

BUILD_PARTS = (
    Part(
        name="buildkit",
        module="github.com/moby/buildkit",
        packages={
            "buildctl": "github.com/moby/buildkit/cmd/buildctl",
            "buildkitd": "github.com/moby/buildkit/cmd/buildkitd",
            "rootlesskit": "github.com/rootless-containers/rootlesskit/v3/cmd/rootlesskit",
        },
        cold=2,
    ),
)
"""The builder of images, with the program that starts it as another user than root."""

LOGIN_PARTS = (
    Part(
        name="oauth2-proxy",
        module="github.com/oauth2-proxy/oauth2-proxy/v7",
        packages={"oauth2-proxy": "github.com/oauth2-proxy/oauth2-proxy/v7"},
        cold=1.5,
    ),
)
"""The proxy that asks users of notebooks to sign in."""

ROUTER_PARTS = (
    Part(
        name="endpoint-picker",
        module="sigs.k8s.io/gateway-api-inference-extension",
        packages={"epp": "sigs.k8s.io/gateway-api-inference-extension/cmd/epp"},
        kinds="config/crd/bases",
        cold=3,
    ),
)
"""The endpoint picker of the Gateway API Inference Extension. Envoy is a wheel of the requirements."""

CLUSTER_PARTS = (*PARTS, *NODE_PARTS, *GROUP_PARTS)
"""What `make test-cluster` needs."""

ALL_PARTS = (*CLUSTER_PARTS, *JUDGE_PARTS, *SCALING_PARTS, *SOURCE_PARTS, *BUILD_PARTS, *LOGIN_PARTS, *ROUTER_PARTS)
"""What `make test-engine` needs: everything that is built."""

REDIS = "redis-server"
NODE_PROGRAMS = ("runc", "buildah", "podman", "debootstrap", "conntrack", "iptables", "ip", "nsenter")
"""Programs of a node from the system's packages."""


def cache() -> Path:
    """Return the folder of built programs, outside the tree."""
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "kaigen" / "cluster-tools"


@functools.cache
def go_version(folder: Path) -> str:
    """Return the version of Go that builds a part; its toolchain line may select another than the one on the PATH.

    Raises:
        ToolsMissing: There is no Go, or only one that is too old.
    """
    if shutil.which("go") is None:
        raise ToolsMissing("go is not on the PATH: the cluster's programs are built with Go 1.26 or newer")
    result = subprocess.run(["go", "env", "GOVERSION"], cwd=folder, capture_output=True, text=True, check=False)
    if result.returncode != 0:
        raise ToolsMissing(f"go cannot build {folder.name}: {result.stderr.strip().splitlines()[-1]}")
    return result.stdout.strip()


def place(part: Part, go: str) -> Path:
    """The folder of a part's programs in the cache."""
    machine = f"{platform.system()}-{platform.machine()}".lower()
    return cache() / f"{part.name}-{part.version}-{go}-{machine}-{part.digest}"


def _built(part: Part) -> Path | None:
    if shutil.which("go") is not None:
        folder = place(part, go_version(part.folder))
        return folder if folder.is_dir() else None
    # Programs built by an earlier Go run without Go.
    return max(cache().glob(place(part, "go*").name), default=None)


def _fits(program: Path, arguments: Sequence[str], version: str) -> bool:
    try:
        result = subprocess.run([program, *arguments], capture_output=True, text=True, timeout=30, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return False
    found = re.search(r"v?(\d+\.\d+)\.\d+", result.stdout)
    return found is not None and version.startswith(f"v{found[1]}.")


def _installed(part: Part) -> dict[str, Path] | None:
    """The part's programs on KUBEBUILDER_ASSETS or the PATH, where all have its major and minor version."""
    folders = os.pathsep.join(filter(None, [os.environ.get("KUBEBUILDER_ASSETS"), os.environ.get("PATH")]))
    programs = {}
    for name in part.packages:
        found = shutil.which(name, path=folders)
        if found is None or name not in part.asks or not _fits(Path(found), part.asks[name], part.version):
            return None
        programs[name] = Path(found)
    return programs


def find(part: Part) -> dict[str, Path] | None:
    """A part's programs by name: those built here, else those installed; None when it has to be built."""
    folder = _built(part)
    if folder is not None:
        return {name: folder / name for name in part.packages}
    return _installed(part)


@functools.cache
def locate() -> Mapping[str, Path]:
    """Return every program of the control plane, by name.

    Raises:
        ToolsMissing: Some are missing.
    """
    return _programs(PARTS, [REDIS]) | _helm()


@functools.cache
def locate_part(name: str) -> Path:
    """Return the program of a controller that only some tests start.

    Args:
        name: name of the program.

    Raises:
        ToolsMissing: it is missing.
    """
    return _programs([part for part in ALL_PARTS if name in part.packages], [])[name]


def module_of(name: str) -> tuple[str, str]:
    """Return the module that a program is built from, and its version with its leading v.

    Args:
        name: name of the program.
    """
    (part,) = (part for part in ALL_PARTS if name in part.packages)
    return part.module_of(name)


@functools.cache
def locate_node() -> Mapping[str, Path]:
    """Return every program of a control plane with a real node, by name.

    Raises:
        ToolsMissing: Some are missing.
    """
    return _programs([*PARTS, *NODE_PARTS], [REDIS, *NODE_PROGRAMS]) | _helm()


def _helm() -> dict[str, Path]:
    try:
        return helm_versions()
    except ToolError as error:
        raise ToolsMissing(str(error)) from None


def _programs(parts: Iterable[Part], installed: Iterable[str]) -> dict[str, Path]:
    programs: dict[str, Path] = {}
    missing = []
    for part in parts:
        found = find(part)
        if found is None:
            missing.append(f"{part.name} {part.version}")
        else:
            programs |= found
    for name in installed:
        path = shutil.which(name)
        if path is None:
            missing.append(name)
        else:
            programs[name] = Path(path)
    if missing:
        raise ToolsMissing(f"missing: {', '.join(missing)}; run `make cluster-tools` first")
    return programs


def programs() -> dict[str, str]:
    """Return the versions of the programs that the tools build, which the marker `ran` of a test may name."""
    return {program: part.version_of(program) for part in ALL_PARTS for program in part.packages}
