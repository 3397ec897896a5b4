"""What an app makes and reaches that other apps may, too: objects, folders of buckets, hosts, GPUs, kaigen's images."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from msgspec import to_builtins

from kaigen.catalog.catalog import Catalog
from kaigen.catalog.gpus import is_gpu_resource
from kaigen.compile.builders.frame import LOCATION
from kaigen.compile.pod_images import pod_image
from kaigen.kinds.exposure import EVERY_REQUEST
from kaigen.kubernetes.costs import hour_of, pod_costs
from kaigen.kubernetes.images import images_of
from kaigen.kubernetes.kind_table import kind_of
from kaigen.kubernetes.manifest import Identity, Object, group_of, identity_of, mapping, text
from kaigen.kubernetes.quantities import NANO
from kaigen.kubernetes.queues import QUEUE_GROUP
from kaigen.kubernetes.requests import max_surge, most_replicas, requests_of, why_unlimited
from kaigen.kubernetes.schemas import is_cluster_scoped
from kaigen.kubernetes.train_jobs import with_trained
from kaigen.kubernetes.workloads import workloads_of
from kaigen.pipeline.gpu_facts import GpuFacts, GpuObject
from kaigen.pipeline.queue_facts import QueueFacts
from kaigen.pipeline.rollout_facts import RolloutFacts
from kaigen.tenancy.hosts import hosts_of

if TYPE_CHECKING:
    from kaigen.compile.app import Rendered
    from kaigen.compile.context import Context
    from kaigen.pipeline.result import Compiled

_SPLIT = ("Topology", "Alias")
"""Kinds whose requests a canary may get a share of."""


def app_objects(item: Compiled) -> Iterator[tuple[str, Identity, str]]:
    """Yield group and identity of each object of an app, and the folder of a bucket that it fills; empty for none."""
    for each in item.objects:
        body, identity = each.body, identity_of(each.body)
        if is_cluster_scoped(text(body.get("apiVersion")), text(body.get("kind"))):
            identity = identity._replace(namespace="")
        elif not identity.namespace:
            identity = identity._replace(namespace=item.app.namespace)
        annotations = mapping(mapping(body.get("metadata")).get("annotations"))
        yield group_of(body), identity, text(annotations.get(LOCATION))


def app_hosts(item: Compiled) -> tuple[str, ...]:
    """Return the hosts of the Ingresses and routes of an app, sorted."""
    return tuple(sorted({host for each in item.objects for host in hosts_of(each.body)}))


def app_gpus(item: Compiled, catalog: Catalog, profile: str) -> GpuFacts:
    """Return what an app requests of GPUs. Its autoscalers may scale objects of other apps."""
    placed = [(_namespace(each.body, item), each.body) for each in item.objects]
    objects = []
    for namespace, body in with_trained(placed):
        own, each, one = _gpus(body, catalog), 0, {}
        if kind_of(body).scalable:
            one = {**body, "spec": {**mapping(body.get("spec")), "replicas": 1}}
            each = _gpus(one, catalog, surge=False)
        if own or each:
            key = (namespace, text(body.get("kind")), identity_of(body).name)
            hour = hour_of(pod_costs(body, catalog, profile))
            hour_each = hour_of(pod_costs(one, catalog, profile)) or 0 if one else 0
            objects.append(GpuObject(key, own, each, why_unlimited(body), *max_surge(body), hour, hour_each))
    return GpuFacts(tuple(objects), tuple(sorted(most_replicas(placed).items())))


def app_queues(item: Compiled, catalog: Catalog) -> QueueFacts | None:
    """Return the queues that an app defines, and what it puts into queues; None for an app without any."""
    placed = [(_namespace(each.body, item), each.body) for each in item.objects]
    objects = tuple((namespace, body) for namespace, body in placed if group_of(body) == QUEUE_GROUP)
    workloads = tuple(to_builtins(each) for each in workloads_of(placed, catalog))
    return QueueFacts(objects, workloads) if objects or workloads else None


def app_rollout(item: Compiled) -> RolloutFacts | None:
    """Return the versions that the requests of an app go to; None for one."""
    block: Any = item.spec.block if item.spec is not None and item.app.kind in _SPLIT else None
    if block is None or block.spec.canary is None:
        return None
    canary, route = block.spec.canary, block.spec.route
    if item.app.kind == "Alias":
        pools = (block.spec.topology, canary.topology)
    else:
        pools = (item.app.name, f"{item.app.name}-{canary.pool}")
    split = canary.weight == EVERY_REQUEST or (route is not None and route.gateway is not None)
    return RolloutFacts(pools, 0 if split else canary.weight)


def own_images(objects: Iterable[Rendered], context: Context) -> tuple[str, ...]:
    """Return the names of kaigen's own images that objects have, whatever the mirror and the lock make of them."""
    used = set(images_of(each.body for each in objects))
    return tuple(name for name, ref in context.config.images.items() if pod_image(ref, context) in used)


def unpinned_images(item: Compiled, context: Context) -> tuple[str, ...]:
    """Return the names of kaigen's own images that an app uses and the settings do not pin; none if they pin none."""
    fixed = context.config.fixed_images
    return tuple(name for name in own_images(item.objects, context) if name not in fixed) if fixed else ()


def _namespace(body: Object, item: Compiled) -> str:
    return text(mapping(body.get("metadata")).get("namespace")) or item.app.namespace


def _gpus(body: Object, catalog: Catalog, *, surge: bool = True) -> int:
    amounts = requests_of(body, catalog, surge=surge)
    return sum(-(-amount // NANO) for name, amount in amounts.items() if is_gpu_resource(name, catalog))
