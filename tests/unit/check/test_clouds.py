"""Instance types of another cloud than that of the cluster are a warning."""

from __future__ import annotations

from typing import Any

import pytest

from kaigen.catalog.catalog import BUILT_IN
from kaigen.catalog.profiles import get_profile
from kaigen.check.clouds import cloud_findings

AZURE, AWS, LABEL = "Standard_NC24ads_A100_v4", "p5.48xlarge", "node.kubernetes.io/instance-type"


def pod(**spec: Any) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}, "spec": {"containers": [], **spec}}


def pool(*types: str) -> dict[str, Any]:
    requirement = {"key": LABEL, "operator": "In", "values": [*types]}
    spec = {"template": {"spec": {"requirements": [requirement]}}}
    return {"apiVersion": "karpenter.sh/v1", "kind": "NodePool", "metadata": {"name": "a"}, "spec": spec}


@pytest.mark.parametrize(
    ("obj", "profile", "warned"),
    [
        (pod(nodeSelector={LABEL: AZURE}), "eks", True),
        (pod(nodeSelector={LABEL: AZURE}), "gke", True),
        (pod(nodeSelector={LABEL: AZURE}), "aks", False),
        (pod(nodeSelector={LABEL: AZURE}), "generic", False),
        (pod(nodeSelector={LABEL: "our-own-node"}), "eks", False),
        (pod(nodeSelector={"disk": "fast"}), "eks", False),
        (pool(AZURE), "eks", True),
        (pool(AZURE, AWS), "eks", False),
        (pool(AWS), "eks", False),
    ],
)
def test_a_type_that_no_node_of_the_cloud_has_is_a_warning(obj: dict[str, Any], profile: str, warned: bool) -> None:
    found = [*cloud_findings(obj, get_profile(profile), BUILT_IN)]
    assert [item.code for item in found] == ["KG0586"] * warned
