"""Collects what the GPUs of an environment cost."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from msgspec import Struct

from kaigen.catalog.rates import currency_of
from kaigen.config.settings import Config
from kaigen.config.tenant_settings import tenant_of_file, tenant_of_namespace
from kaigen.kubernetes.costs import PodCost, is_run, pod_costs
from kaigen.kubernetes.hours import mean_replicas
from kaigen.kubernetes.kind_table import kind_of
from kaigen.kubernetes.manifest import Object, identity_of, mapping, text
from kaigen.kubernetes.pods import pod_templates
from kaigen.kubernetes.requests import least_replicas, most_replicas, pod_count, scaled_replicas
from kaigen.kubernetes.runs import run_seconds

if TYPE_CHECKING:
    from kaigen.pipeline.result import Compilation, Compiled

HOURS_A_MONTH = 730
"""Hours of a mean month, 365 days divided by 12."""


class Item(Struct, frozen=True):
    """The pods of one template of an app.

    Attributes:
        app: `NAMESPACE/NAME`.
        tenant: that the app belongs to; empty for none.
        kind: of the object.
        name: of the object, with the role of the template behind a slash where it has several.
        cost: of one pod.
        least: pods while no request waits.
        most: pods with the autoscaler at its maximum.
        runs: whether the pods end, and cost only while they run.
        seconds: how long a run may take; 0 without a limit.
        mean: pods on average over a week, where their number follows the time alone.
        carbon: kilograms of CO2e of an hour of one pod; None when it is unknown.
    """

    app: str
    tenant: str
    kind: str
    name: str
    cost: PodCost
    least: int
    most: int
    runs: bool
    seconds: int
    mean: float | None = None
    carbon: float | None = None

    @property
    def emitted(self) -> tuple[float, float] | None:
        """Kilograms of CO2e of an hour at least and at most; None when they are unknown."""
        if self.carbon is None:
            return None
        return (0.0 if self.runs else self.least * self.carbon), self.most * self.carbon

    @property
    def month(self) -> tuple[float, float] | None:
        """What a month costs at least and at most; None when it is unknown."""
        if self.mean is not None and self.cost.hour is not None:
            return self.mean * self.cost.hour * HOURS_A_MONTH, self.mean * self.cost.hour * HOURS_A_MONTH
        return None if self.hours is None else (self.hours[0] * HOURS_A_MONTH, self.hours[1] * HOURS_A_MONTH)

    @property
    def hours(self) -> tuple[float, float] | None:
        """What an hour costs at least and at most; None when it is unknown. A Job that does not run costs nothing."""
        if self.cost.hour is None:
            return None
        return (0.0 if self.runs else self.least * self.cost.hour), self.most * self.cost.hour


class Idle(Struct, frozen=True):
    """GPUs of nodes that no pod uses, although their nodes are paid for.

    Attributes:
        instance: instance type of the nodes.
        nodes: the fewest nodes that the pods fit on.
        gpus: that these nodes have.
        used: that the pods request.
    """

    instance: str
    nodes: int
    gpus: int
    used: int


class Costs(Struct, frozen=True):
    """What the GPUs of an environment cost.

    Attributes:
        environment: its name; empty without environments.
        currency: of all prices.
        items: by app.
        idle: GPUs that pods that always run leave unused, by instance type.
        region: of the environment, where its catalogue has the carbon of some; empty otherwise.
    """

    environment: str
    currency: str
    items: tuple[Item, ...]
    idle: tuple[Idle, ...]
    region: str = ""


def collect(compilation: Compilation, config: Config, apps: Sequence[str] = ()) -> Costs:
    """Return what the GPUs of an environment cost.

    Args:
        compilation: every app of the environment.
        config: its settings.
        apps: only these apps, `NAME` or `NAMESPACE/NAME`; all when empty.
    """
    placed = [(_namespace(each.body, item), each.body) for item in compilation.apps for each in item.objects]
    limits = _Limits(least_replicas(placed), most_replicas(placed), _means(placed))
    items = tuple(
        found
        for item in compilation.apps
        if not apps or {item.app.name, f"{item.app.namespace}/{item.app.name}"} & set(apps)
        for each in item.objects
        for found in _items(each.body, item, config, limits)
    )
    region = config.region if config.catalog.carbon else ""
    return Costs(config.environment, currency_of(config.catalog), items, tuple(_idle(items)), region)


_Key = tuple[str, str, str]
"""Namespace, kind and name of an object."""


class _Limits(Struct, frozen=True):
    """Replicas that autoscalers set: the fewest, the most, and on average where they follow the time alone."""

    least: dict[_Key, int]
    most: dict[_Key, int]
    means: dict[_Key, float]


def _means(placed: Iterable[tuple[str, Object]]) -> dict[_Key, float]:
    found: dict[_Key, float] = {}
    for namespace, body in placed:
        scaled = scaled_replicas(body)
        mean = mean_replicas(body) if scaled is not None else None
        if scaled is not None and mean is not None:
            found[namespace, scaled[0], scaled[1]] = mean
    return found


def _items(body: Object, item: Compiled, config: Config, limits: _Limits) -> Iterator[Item]:
    namespace, identity = _namespace(body, item), identity_of(body)
    key = (namespace, text(body.get("kind")), identity.name)
    fewest, most = limits.least.get(key), limits.most.get(key)
    mean = limits.means.get(key) if kind_of(body).scalable else None
    tenant = tenant_of_file(item.app.source, config.tenants) or tenant_of_namespace(namespace, config.tenants)
    costs = pod_costs(body, config.catalog, config.profile)
    templates = {template.role: template for template in pod_templates(body)}
    small = {**body, "spec": {**mapping(body.get("spec")), "replicas": fewest}}
    for cost in costs:
        template = templates[cost.role]
        each = pod_count(body, template, 1, surge=False) if mean is not None else 1
        yield Item(
            f"{item.app.namespace}/{item.app.name}",
            tenant.name if tenant is not None else "",
            key[1],
            f"{identity.name}/{cost.role}" if cost.role and len(templates) > 1 else identity.name,
            cost,
            pod_count(small, template, surge=False) if fewest is not None and kind_of(body).scalable else cost.pods,
            pod_count(body, template, most, surge=False) if kind_of(body).scalable else cost.pods,
            is_run(body),
            run_seconds(body) or 0,
            None if mean is None else mean * each,
            cost.carbon(config.catalog, config.region),
        )


def _idle(items: Iterable[Item]) -> Iterator[Idle]:
    """Yield the GPUs that pods leave unused on the fewest nodes that they fit on.

    Pods of one size fill a node as often as they fit into it; pods of several sizes are counted by their GPUs alone.
    """
    used: dict[str, tuple[int, int, int]] = {}
    for item in items:
        instance = item.cost.instance
        if instance is None or item.runs or not item.least:
            continue
        _, gpus, nodes = used.get(instance.name, (0, 0, 0))
        fit = instance.count // item.cost.gpus
        alone = -(-item.least // fit) if instance.count % item.cost.gpus else 0
        used[instance.name] = instance.count, gpus + item.least * item.cost.gpus, nodes + alone
    for name, (count, gpus, nodes) in sorted(used.items()):
        needed = max(nodes, -(-gpus // count))
        if needed * count > gpus:
            yield Idle(name, needed, needed * count, gpus)


def _namespace(body: Object, item: Compiled) -> str:
    return text(mapping(body.get("metadata")).get("namespace")) or item.app.namespace
