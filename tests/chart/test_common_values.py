"""The values that people expect in every chart, in Helm."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests import helm
from tests.cases import write_chart
from tests.rendering import compile_text

SPECS = """\
apiVersion: kaigen.dev/v1alpha1
kind: Model
metadata: {name: qwen, namespace: ml}
spec:
  source: {huggingFace: {repo: a/b, revision: 7ae557604adf67be50417f59c2c2f167def9a775}}
  store: {volume: {size: 5Gi, accessModes: [ReadWriteMany]}}
---
apiVersion: kaigen.dev/v1alpha1
kind: Topology
metadata: {name: chat, namespace: ml}
spec:
  model: qwen
  engine: transformers
  resources: {gpus: 0}
  auth: {secret: {name: chat-key}}
  env: {TOKEN: {secret: {name: token, key: value}}}
  autoscale: {min: 2, max: 5, metric: cpu}
  route: {host: chat.example.com, gateway: {name: public}}
---
apiVersion: kaigen.dev/v1alpha1
kind: Job
metadata: {name: evaluate, namespace: ml}
spec:
  image: registry.example/evaluate:1
  serviceAccount: {create: {annotations: {example.com/role: reader}}}
"""
APPS = ("qwen", "chat", "evaluate")


@pytest.fixture(scope="module")
def charts(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The charts of the specs by name."""
    folder = tmp_path_factory.mktemp("charts")
    return {item.app.name: write_chart(folder, item) for item in compile_text(SPECS).apps}


def objects(chart: Path, values: dict[str, Any], name: str = "") -> dict[str, Any]:
    """Return the chart's objects by kind, without those of `helm test`."""
    release = name or chart.parent.name
    found = helm.template(chart, release, "ml", values)
    return {each["kind"]: each for each in found if "helm.sh/hook" not in each["metadata"].get("annotations", {})}


def pod(made: dict[str, Any]) -> dict[str, Any]:
    workload = made.get("Job") or made["Deployment"]
    found: dict[str, Any] = workload["spec"]["template"]["spec"]
    return found


@pytest.mark.parametrize("name", APPS)
def test_every_chart_has_the_common_values(charts: dict[str, Path], name: str) -> None:
    values: dict[str, Any] = {
        "labels": {"team": "ml"},
        "annotations": {"example.com/owner": "ml"},
        "podLabels": {"mesh": "off"},
        "podAnnotations": {"example.com/inject": "true"},
        "extraEnv": [{"name": "LEVEL", "value": "debug"}],
        "extraVolumes": [{"name": "more", "emptyDir": {}}],
        "extraVolumeMounts": [{"name": "more", "mountPath": "/more"}],
        "serviceAccount": {"name": "existing"},
        "nodeSelector": {"disk": "ssd"},
        "tolerations": [{"operator": "Exists"}],
        "affinity": {"nodeAffinity": {}},
        "priorityClassName": "high",
    }
    made = objects(charts[name], values)
    for each in made.values():
        assert each["metadata"]["labels"]["team"] == "ml"
        assert each["metadata"]["annotations"]["example.com/owner"] == "ml"
    workload = made.get("Job") or made["Deployment"]
    metadata = workload["spec"]["template"]["metadata"]
    assert metadata["labels"]["mesh"] == "off"
    assert metadata["annotations"]["example.com/inject"] == "true"
    found = pod(made)
    main = found["containers"][0]
    assert main["env"][-1] == {"name": "LEVEL", "value": "debug"}
    assert main["volumeMounts"][-1] == {"name": "more", "mountPath": "/more"}
    assert found["volumes"][-1] == {"name": "more", "emptyDir": {}}
    assert found["serviceAccountName"] == "existing"
    assert {key: found[key] for key in ("nodeSelector", "tolerations", "affinity", "priorityClassName")} == {
        key: values[key] for key in ("nodeSelector", "tolerations", "affinity", "priorityClassName")
    }


@pytest.mark.parametrize(("name", "account"), [("qwen", "qwen-download"), ("evaluate", "evaluate")])
def test_an_account_of_the_app_can_be_replaced_by_an_existing_one(
    charts: dict[str, Path], name: str, account: str
) -> None:
    plain = objects(charts[name], {})
    assert plain["ServiceAccount"]["metadata"]["name"] == pod(plain)["serviceAccountName"] == account
    made = objects(charts[name], {"serviceAccount": {"create": False, "name": "existing"}})
    assert "ServiceAccount" not in made
    assert pod(made)["serviceAccountName"] == "existing"
    if "RoleBinding" in made:
        assert made["RoleBinding"]["subjects"][0]["name"] == "existing"


def test_annotations_of_the_account_are_added_to_those_of_the_spec(charts: dict[str, Path]) -> None:
    values = {"serviceAccount": {"annotations": {"example.com/more": "x"}}, "annotations": {"a": "b"}}
    account = objects(charts["evaluate"], values)["ServiceAccount"]
    assert account["metadata"]["annotations"] == {"a": "b", "example.com/more": "x", "example.com/role": "reader"}


def test_autoscaling_can_be_switched_off(charts: dict[str, Path]) -> None:
    on = objects(charts["chat"], {})
    assert "replicas" not in on["Deployment"]["spec"]
    assert on["HorizontalPodAutoscaler"]["spec"]["minReplicas"] == 2
    off = objects(charts["chat"], {"autoscaling": {"enabled": False}, "replicas": 3})
    assert "HorizontalPodAutoscaler" not in off
    assert off["Deployment"]["spec"]["replicas"] == 3


def test_names_of_secrets_and_gateways_are_values(charts: dict[str, Path]) -> None:
    values: dict[str, Any] = {
        "auth": {"secretName": "other-key"},
        "env": {"TOKEN": {"name": "other-token", "key": "other"}},
        "route": {"gateway": "private", "gatewayNamespace": "gateways", "sectionName": "https"},
        "service": {"annotations": {"example.com/a": "b"}},
    }
    made = objects(charts["chat"], values)
    found = pod(made)
    secrets = [each["secret"]["secretName"] for each in found["volumes"] if "secret" in each]
    assert secrets == ["other-key"]
    (token,) = (each for each in found["containers"][0]["env"] if each["name"] == "TOKEN")
    assert token["valueFrom"]["secretKeyRef"] == {"name": "other-token", "key": "other"}
    (parent,) = made["HTTPRoute"]["spec"]["parentRefs"]
    assert parent == {
        "group": "gateway.networking.k8s.io",
        "kind": "Gateway",
        "name": "private",
        "namespace": "gateways",
        "sectionName": "https",
    }
    assert made["HTTPRoute"]["spec"]["rules"][0]["backendRefs"][0]["name"] == "chat"
    assert made["Service"]["metadata"]["annotations"] == {"example.com/a": "b"}


def test_everything_that_refers_to_the_app_follows_its_name(charts: dict[str, Path]) -> None:
    made = objects(charts["chat"], {"fullnameOverride": "talk"}, "prod")
    assert {each["metadata"]["name"] for each in made.values()} == {"talk"}
    assert made["HTTPRoute"]["spec"]["rules"][0]["backendRefs"][0]["name"] == "talk"
    assert made["HorizontalPodAutoscaler"]["spec"]["scaleTargetRef"]["name"] == "talk"
    labels = made["Deployment"]["spec"]["template"]["metadata"]["labels"]
    for selector in (
        made["Service"]["spec"]["selector"],
        made["NetworkPolicy"]["spec"]["podSelector"]["matchLabels"],
        made["PodDisruptionBudget"]["spec"]["selector"]["matchLabels"],
    ):
        assert selector.items() <= labels.items()
