"""The peers of kaigen. Each gets the same objects in its natural input format."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from benchmarks.peers.cdk8s import Cdk8sNode, Cdk8sPython
from benchmarks.peers.helm import Helm
from benchmarks.peers.kapitan import Kapitan
from benchmarks.peers.kustomize import Kustomize
from benchmarks.peers.peer import Peer

PEERS: Mapping[str, Callable[[], Peer]] = {
    "helm": Helm,
    "kustomize": Kustomize,
    "kapitan": Kapitan,
    "cdk8s-node": Cdk8sNode,
    "cdk8s-node-files": lambda: Cdk8sNode("FILE_PER_RESOURCE", "cdk8s (Node), one object a file"),
    "cdk8s-python": Cdk8sPython,
}
"""Every peer. Calling one installs it, or raises `CommandFailed` or `ToolError`."""

__all__ = ["PEERS", "Peer"]
