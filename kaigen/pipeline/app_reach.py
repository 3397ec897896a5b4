"""What an app reaches that other apps may reach too: hosts and GPUs."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from kaigen.catalog.gpus import is_gpu_resource
from kaigen.kubernetes.manifest import Object, mapping, text, type_of
from kaigen.kubernetes.quantities import NANO
from kaigen.kubernetes.reach import hosts_of
from kaigen.kubernetes.requests import requests_of, scaled_replicas

if TYPE_CHECKING:
    from kaigen.pipeline.result import Compiled


def app_hosts(item: Compiled) -> tuple[str, ...]:
    """Return the hosts of the Ingresses and routes of an app, sorted."""
    return tuple(sorted({host for each in item.objects for host in hosts_of(each.body)}))


def app_gpus(item: Compiled) -> int:
    """Return how many GPUs an app requests at most, with its autoscalers at their maximum."""
    bodies: list[Object] = [each.body for each in item.objects]
    most = {scaled[:2]: scaled[2] for body in bodies if (scaled := scaled_replicas(body))}
    total: Counter[str] = Counter()
    for body in bodies:
        name = text(mapping(body.get("metadata")).get("name"))
        total += requests_of(body, most.get((type_of(body).partition(".")[0], name)))
    return sum(amount // NANO for name, amount in total.items() if is_gpu_resource(name))
