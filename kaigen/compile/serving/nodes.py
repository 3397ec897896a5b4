"""What nodes must be like that Karpenter makes for an app."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from kaigen.catalog.gpus import Gpu, get_gpu
from kaigen.catalog.instances import instances
from kaigen.catalog.profiles import Profile
from kaigen.compile.bricks.pods import Granted
from kaigen.compile.problems import SpecProblem
from kaigen.kinds.blocks import Resources

_CLOUDS = {"aks": "azure", "eks": "aws"}
_GIVEN = re.compile(
    r"(^|\.)(kubernetes\.io|k8s\.io|karpenter\.sh|karpenter\.k8s\.aws|azure\.com|google\.com|nvidia\.com)$"
)
"""Domains of labels that nodes carry by themselves."""


def node_requirements(
    resources: Resources, granted: Granted, profile: Profile, gpus: int
) -> dict[str, Sequence[str]]:
    """Values by label, of which a node has one: its instance type, or the GPU that it has.

    Args:
        resources: what the spec asks for.
        granted: what that comes to.
        profile: of the cluster.
        gpus: of each pod, and so of each node.

    Raises:
        SpecProblem: when the spec leaves open which nodes there are to be.
    """
    if resources.instance_type is not None:
        return {"node.kubernetes.io/instance-type": [resources.instance_type]}
    label = profile.gpu_label
    if label in granted.node_selector and label.startswith("karpenter."):
        count = {f"{label.rpartition('-')[0]}-count": [str(gpus)]} if gpus else {}
        return {label: [granted.node_selector[label]], **count}
    gpu = get_gpu(resources.gpu_type) if resources.gpu_type else None
    cloud = _CLOUDS.get(profile.name)
    known = [
        each
        for each in (instances(cloud) if cloud and gpu else ())
        if gpu and each.gpu.name == gpu.name and each.memory == gpu.memory
    ]
    alike = [each.name for each in known if each.count == gpus]
    if not alike:
        raise SpecProblem(
            "KG0350",
            "Karpenter must be told which nodes to make",
            ("spec", "provisioning"),
            _counts_hint(cloud, gpu, sorted({each.count for each in known})),
        )
    return {"node.kubernetes.io/instance-type": alike}


def _counts_hint(cloud: str | None, gpu: Gpu | None, counts: Sequence[int]) -> str:
    if gpu is None or not counts:
        return "name an `instanceType` in `resources`"
    several = " or ".join(map(str, counts))
    return f"{cloud}'s nodes with {gpu.name} have {several} of them; or name an `instanceType`"


def own_labels(selector: Mapping[str, str]) -> dict[str, str]:
    """The labels of a selector that nobody gives to nodes but who makes them: not Kubernetes', not a cloud's."""
    return {
        key: value
        for key, value in selector.items()
        if "/" not in key or not _GIVEN.search(key.partition("/")[0])
    }
