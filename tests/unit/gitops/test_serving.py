"""Objects for Argo CD and Flux of apps that serve."""

from __future__ import annotations

from collections.abc import Callable

from tests.unit.gitops.conftest import MODEL, Object, Rendered

GROUPS = """\
apiVersion: kaigen.dev/v1alpha1
kind: Topology
metadata: {name: chat}
spec:
  model: {folder: /weights}
  shape: {nodes: 2}
  autoscale: {max: 3}
  probes: {startup: 2h}
"""
ALONE = """\
apiVersion: kaigen.dev/v1alpha1
kind: Topology
metadata: {name: chat}
spec:
  model: qwen
  resources: {gpus: 0}
"""


def application(files: Rendered) -> Object:
    (found,) = [body for body in files.values() if body.get("kind") == "Application" and "chat" in str(body)]
    return found


def test_replicas_that_a_scaler_sets_are_left_alone(rendered: Callable[..., Rendered]) -> None:
    files = rendered(specs=(GROUPS,), argocd={"applications": "each"}, flux={})
    spec = application(files)["spec"]
    assert spec["ignoreDifferences"] == [
        {
            "group": "leaderworkerset.x-k8s.io",
            "kind": "LeaderWorkerSet",
            "name": "chat",
            "jsonPointers": ["/spec/replicas"],
        }
    ]
    assert "RespectIgnoreDifferences=true" in spec["syncPolicy"]["syncOptions"]
    assert "replicas" not in files["ml/chat/manifests/leaderworkerset.yaml"]["spec"]


def test_both_learn_when_a_group_is_well(rendered: Callable[..., Rendered]) -> None:
    files = rendered(specs=(GROUPS,), argocd={"applications": "each"}, flux={})
    (config,) = [
        body for body in files.values() if body.get("metadata", {}).get("name") == "argocd-cm" and "data" in body
    ]
    assert "resource.customizations.health.leaderworkerset.x-k8s.io_LeaderWorkerSet" in config["data"]
    checks = files["_flux/apps/ml.chat.yaml"]["spec"]["healthCheckExprs"]
    assert {check["kind"] for check in checks} == {"LeaderWorkerSet"}


def test_flux_waits_as_long_as_loading_may_take(rendered: Callable[..., Rendered]) -> None:
    files = rendered(specs=(GROUPS,), flux={})
    assert int(files["_flux/apps/ml.chat.yaml"]["spec"]["timeout"].removesuffix("s")) > 2 * 3600
    files = rendered(specs=(MODEL, ALONE), flux={})
    spec = files["_flux/apps/ml.chat.yaml"]["spec"]
    progress = files["ml/chat/manifests/deployment.yaml"]["spec"]["progressDeadlineSeconds"]
    assert int(spec["timeout"].removesuffix("s")) >= progress
    assert spec["dependsOn"] == [{"name": "prod.ml.qwen"}]
