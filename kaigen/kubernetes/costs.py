"""What the GPUs of an object cost while its pods run.

A pod costs the share of its node that it has of the node's GPUs: 2 of the 8 GPUs of a node are a quarter of its price.
Pods without GPUs run on nodes that no field names, so they have no price.
"""

from __future__ import annotations

from msgspec import Struct

from kaigen.catalog.carbon import carbon_of
from kaigen.catalog.catalog import Catalog
from kaigen.catalog.gpus import is_gpu_resource
from kaigen.catalog.instances import Instance
from kaigen.catalog.rates import Rate, rate_of
from kaigen.core.text import plural
from kaigen.kubernetes.manifest import Object, type_of
from kaigen.kubernetes.node_choice import instance_types, possible_instances
from kaigen.kubernetes.pods import PodTemplate, pod_templates
from kaigen.kubernetes.quantities import NANO
from kaigen.kubernetes.requests import pod_count, pod_requests
from kaigen.kubernetes.runs import run_seconds


class PodCost(Struct, frozen=True):
    """What the pods of one template cost.

    Attributes:
        role: of the template, as in `PodTemplate`.
        gpus: that one pod requests.
        pods: how many the object makes, without an autoscaler.
        instance: the instance type; None when it is unknown.
        rate: of the instance type; None when it is unknown.
        why: why there is no price, or why another one is possible; empty when the pod names its instance type.
    """

    role: str
    gpus: int
    pods: int
    instance: Instance | None = None
    rate: Rate | None = None
    why: str = ""

    @property
    def hour(self) -> float | None:
        """What one pod costs in an hour; None when it is unknown."""
        if self.instance is None or self.rate is None:
            return None
        return self.rate.amount * self.gpus / self.instance.count

    def carbon(self, catalog: Catalog, region: str) -> float | None:
        """Return the kilograms of CO2e of one pod in an hour, its share of the node; None when they are unknown."""
        node = None if self.instance is None else carbon_of(self.instance, catalog, region)
        return None if node is None or self.instance is None else node * self.gpus / self.instance.count


def carbon_hour_of(costs: list[PodCost], catalog: Catalog, region: str) -> float | None:
    """Return the kilograms of CO2e of an hour of an object's pods, without an autoscaler; None when unknown."""
    each = [(cost.pods, cost.carbon(catalog, region)) for cost in costs]
    if any(kilograms is None for _, kilograms in each):
        return None
    return sum(pods * (kilograms or 0) for pods, kilograms in each)


def pod_costs(obj: Object, catalog: Catalog, profile: str) -> list[PodCost]:
    """Return what the pods with GPUs of an object cost, by template.

    Args:
        obj: the object.
        catalog: has the instance types and prices.
        profile: of the cluster.
    """
    found = (_pod_cost(obj, template, catalog, profile) for template in pod_templates(obj))
    return [each for each in found if each is not None]


def hour_of(costs: list[PodCost]) -> float | None:
    """Return what the pods of an object cost in an hour, without an autoscaler; None when one has no price."""
    hours = [each.hour for each in costs]
    if None in hours:
        return None
    return sum(each.pods * (each.hour or 0) for each in costs)


def is_run(obj: Object) -> bool:
    """Return whether the pods of an object end, so that they cost only while they run."""
    return run_seconds(obj) is not None or type_of(obj) in ("CronJob.batch", "ScaledJob.keda.sh")


def _pod_cost(obj: Object, template: PodTemplate, catalog: Catalog, profile: str) -> PodCost | None:
    amounts = pod_requests(template, catalog).items()
    asked = {name: -(-amount // NANO) for name, amount in amounts if amount and is_gpu_resource(name, catalog)}
    if not asked:
        return None
    gpus, pods = sum(asked.values()), pod_count(obj, template, surge=False)
    resource = next(iter(asked))
    if len(asked) > 1:
        return PodCost(template.role, gpus, pods, why=f"requests {' and '.join(sorted(asked))}")
    found = possible_instances(template.spec, resource, gpus, catalog, profile)
    named = instance_types(template.spec)
    if not found:
        why = (
            f"{named[1][0]} is not in the catalog, or has fewer GPUs"
            if named
            else "no instance type of the catalog has its node labels"
        )
        return PodCost(template.role, gpus, pods, why=why)
    priced = [(rate.amount / item.count, item.name, item, rate) for item in found if (rate := rate_of(item, catalog))]
    if not priced:
        item = found[0] if len(found) == 1 else None
        return PodCost(template.role, gpus, pods, item, why=f"no price of {item.name}" if item else "no price")
    _, _, item, rate = min(priced)
    why = f"the cheapest of {plural(len(found), 'instance type')} that it may run on" if len(found) > 1 else ""
    return PodCost(template.role, gpus, pods, item, rate, why)
