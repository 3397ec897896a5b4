"""The pod templates of an object by their roles, and their violations of Pod Security level restricted."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple, cast

from kaigen.core.json_types import JsonObject
from kaigen.diff.objects import Obj, get, get_map, get_text
from kaigen.kubernetes import pods
from kaigen.kubernetes.manifest import Object
from kaigen.kubernetes.pod_security import violations


class PodTemplate(NamedTuple):
    """A pod template of an object.

    Attributes:
        role: distinguishes the templates of one object: `leader`, `worker`, a replicated job's name; or empty.
        data: `metadata` and `spec`.
    """

    role: str
    data: JsonObject

    @property
    def spec(self) -> JsonObject:
        """The pod's spec."""
        return get_map(self.data, "spec")

    @property
    def annotations(self) -> JsonObject:
        """The pod's annotations."""
        return get_map(self.data, "metadata", "annotations")

    def containers(self) -> Iterator[tuple[str, JsonObject]]:
        """Every container with its name, init containers first."""
        for field in ("initContainers", "containers"):
            items = get(self.spec, field)
            for item in items if isinstance(items, list) else []:
                if isinstance(item, dict):
                    yield get_text(item, "name") or "?", item


def pod_templates(obj: Obj | None) -> dict[str, PodTemplate]:
    """Return every pod template of an object by its role; empty for a kind without pods."""
    if obj is None:
        return {}
    return {
        template.role: PodTemplate(
            template.role, cast("JsonObject", {"metadata": template.metadata, "spec": template.spec})
        )
        for template in pods.pod_templates(cast("Object", obj.data))
    }


def weaknesses(template: PodTemplate) -> list[str]:
    """Return a description of each violation of level restricted, as in `container main is privileged`."""
    pod = pods.PodTemplate((), cast("Object", get_map(template.data, "metadata")), cast("Object", template.spec))
    return [
        f"{f'container {found.container}' if found.container else 'pod'} {found.problem}"
        for found in violations(pod, "restricted")
    ]
