"""What the Services and Ingresses reach that KubeRay makes for a cluster of Ray.

The rows of Services apply to the templates of Services. Source of the fields: the CustomResourceDefinitions of
ray-project/kuberay at feeaf72fa. The Ingress of a head has no host unless an annotation names one, so it serves its
path at all hosts (ray-operator/controllers/ray/common/ingress.go).
"""

from __future__ import annotations

from collections.abc import Iterator

from kaigen.kubernetes.manifest import Step
from kaigen.tenancy.conditions.texts import NotTrue
from kaigen.tenancy.reach import RAY_HEADS, RAY_SERVICES, Reach
from kaigen.tenancy.rows.classes import CLASS_REACHES
from kaigen.tenancy.rows.network import NETWORK_REACHES

_KINDS = tuple(RAY_HEADS)
_PLACES = tuple(dict.fromkeys(place for places in RAY_SERVICES.values() for place in places))


def _in_heads(field: str) -> tuple[Step, ...]:
    return tuple((*head, field) for head in RAY_HEADS.values())


def _of_services() -> Iterator[Reach]:
    """Yield the rows of Services for the templates of Services; the head has a type of its own, too."""
    for row in (*NETWORK_REACHES, *CLASS_REACHES):
        if row.types == ("Service",):
            paths = tuple((*place, *path) for place in _PLACES for path in row.paths)
            paths = (*_in_heads("serviceType"), *paths) if row.name == "service" else paths
            yield row._replace(name=f"ray-{row.name}", types=_KINDS, paths=paths)


RAY_REACHES: tuple[Reach, ...] = (
    *_of_services(),
    Reach("ray-ingress", "all hosts by an Ingress", _KINDS, _in_heads("enableIngress"), NotTrue()),
)
