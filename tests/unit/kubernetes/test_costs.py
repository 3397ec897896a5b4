"""What the GPUs of objects cost."""

from __future__ import annotations

from typing import Any

import pytest

from kaigen.catalog.catalog import BUILT_IN, Catalog
from kaigen.catalog.instances import find_instance, list_price
from kaigen.catalog.rates import rate_of
from kaigen.kubernetes.costs import hour_of, is_run, pod_costs

PRICES = Catalog("prices", prices={"p5.48xlarge": 55.04, "g6.xlarge": 0.8}, currency="EUR")


def on(instance: str) -> dict[str, str]:
    return {"node.kubernetes.io/instance-type": instance}


def pod(gpus: int, selector: dict[str, str]) -> dict[str, Any]:
    resources = {"limits": {"nvidia.com/gpu": gpus}} if gpus else {}
    return {"spec": {"nodeSelector": selector, "containers": [{"name": "main", "resources": resources}]}}


def deployment(gpus: int, selector: dict[str, str], replicas: int = 1) -> dict[str, Any]:
    spec = {"replicas": replicas, "template": pod(gpus, selector)}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "x"}, "spec": spec}


@pytest.mark.parametrize(
    ("gpus", "replicas", "instance", "hour"),
    [(8, 1, "p5.48xlarge", 55.04), (2, 3, "p5.48xlarge", 3 * 55.04 / 4), (1, 1, "g6.xlarge", 0.8)],
)
def test_a_pod_costs_its_share_of_the_gpus_of_its_node(gpus: int, replicas: int, instance: str, hour: float) -> None:
    costs = pod_costs(deployment(gpus, on(instance), replicas), PRICES, "eks")
    assert hour_of(costs) == pytest.approx(hour)


def test_a_pod_without_gpus_has_no_cost() -> None:
    assert pod_costs(deployment(0, on("p5.48xlarge")), PRICES, "eks") == []


def test_a_pod_that_only_names_a_gpu_costs_the_cheapest_instance_type_that_has_it() -> None:
    chosen = find_instance("g6.xlarge", BUILT_IN)
    assert chosen is not None
    labels = {"karpenter.k8s.aws/instance-gpu-name": chosen.node_labels("eks")["karpenter.k8s.aws/instance-gpu-name"]}
    [cost] = pod_costs(deployment(1, labels), BUILT_IN, "eks")
    listed = list_price(chosen)
    assert listed is not None
    assert cost.instance == chosen
    assert cost.hour == pytest.approx(listed.usd)
    assert cost.why.startswith("the cheapest of ")


@pytest.mark.parametrize(
    ("selector", "catalog", "why"),
    [
        (on("p9.huge"), BUILT_IN, "p9.huge is not in the catalog, or has fewer GPUs"),
        ({"team": "a"}, BUILT_IN, "no instance type of the catalog has its node labels"),
        (on("g6.2xlarge"), PRICES, "no price of g6.2xlarge"),
    ],
)
def test_an_unknown_price_says_why(selector: dict[str, str], catalog: Catalog, why: str) -> None:
    [cost] = pod_costs(deployment(1, selector), catalog, "eks")
    assert (cost.hour, cost.why) == (None, why)
    assert hour_of([cost]) is None


def test_a_discount_of_an_instance_type_comes_before_that_of_its_cloud() -> None:
    catalog = Catalog("discounts", discounts={"aws": 50, "g6.xlarge": 10})
    rates = []
    for name in ("g6.xlarge", "g6.2xlarge"):
        item = find_instance(name, catalog)
        assert item is not None
        listed, rate = list_price(item), rate_of(item, catalog)
        assert listed is not None
        assert rate is not None
        rates.append(rate.amount / listed.usd)
        assert rate.source.startswith(f"list price, {listed.region}, {listed.date}, less ")
    assert rates == pytest.approx([0.9, 0.5])


def test_a_list_price_is_not_used_in_another_currency() -> None:
    item = find_instance("g6.2xlarge", PRICES)
    assert item is not None
    assert list_price(item) is not None
    assert rate_of(item, PRICES) is None


@pytest.mark.parametrize(("kind", "runs"), [("Deployment", False), ("Job", True), ("CronJob", True)])
def test_jobs_cost_only_while_they_run(kind: str, runs: bool) -> None:
    version = "apps/v1" if kind == "Deployment" else "batch/v1"
    assert is_run({"apiVersion": version, "kind": kind, "spec": {}}) is runs


def test_affinity_terms_are_alternatives() -> None:
    terms = [
        {"matchExpressions": [{"key": "karpenter.k8s.aws/instance-gpu-name", "operator": "In", "values": ["l4"]}]},
        {
            "matchExpressions": [
                {"key": "node.kubernetes.io/instance-type", "operator": "In", "values": ["g6.12xlarge"]}
            ]
        },
    ]
    body = deployment(4, {})
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}
    body["spec"]["template"]["spec"]["affinity"] = {"nodeAffinity": required}
    [cost] = pod_costs(body, BUILT_IN, "eks")
    assert cost.instance is not None
    assert (cost.instance.gpu.name, cost.instance.count) == ("L4", 4)
