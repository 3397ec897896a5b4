"""The pods that an object makes, wherever its kind keeps their template."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple, cast

from kaigen.check import pods
from kaigen.diff.objects import JsonMap, Obj, get, get_map, get_text

_ROLES = {"leaderTemplate": "leader", "workerTemplate": "worker", "headGroupSpec": "head"}


class PodTemplate(NamedTuple):
    """A pod template of an object.

    Attributes:
        role: tells the templates of one object apart: `leader`, `worker`, a replicated job's name; or empty.
        data: `metadata` and `spec`.
    """

    role: str
    data: JsonMap

    @property
    def spec(self) -> JsonMap:
        """The pod's spec."""
        return get_map(self.data, "spec")

    @property
    def annotations(self) -> JsonMap:
        """The pod's annotations."""
        return get_map(self.data, "metadata", "annotations")

    def containers(self) -> Iterator[tuple[str, JsonMap]]:
        """Every container with its name, init containers first."""
        for field in ("initContainers", "containers"):
            items = get(self.spec, field)
            for item in items if isinstance(items, list) else []:
                if isinstance(item, dict):
                    yield get_text(item, "name") or "?", item


def pod_templates(obj: Obj | None) -> dict[str, PodTemplate]:
    """Every pod template of an object by its role; empty for a kind that makes no pods."""
    if obj is None:
        return {}
    found: dict[str, PodTemplate] = {}
    for template in pods.pod_templates(cast("pods.Object", obj.data)):
        role, data = "", obj.data
        for step in template.path:
            data = data[step]  # type: ignore[index, assignment]
            if isinstance(step, int):
                role = get_text(data, "name") or get_text(data, "groupName") or str(step)
            else:
                role = _ROLES.get(step, role)
        found[role] = PodTemplate(role, data)
    return found
