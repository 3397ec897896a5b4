"""Check of instance types: those that a pod or a NodePool names are of the cloud of the cluster."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from kaigen.catalog.catalog import Catalog
from kaigen.catalog.instances import find_instance
from kaigen.catalog.profiles import Profile
from kaigen.check import codes
from kaigen.core.json_types import FieldPath
from kaigen.core.text import series
from kaigen.diagnostics.diagnostic import Severity
from kaigen.diagnostics.problem import Problem
from kaigen.kubernetes.manifest import Object, entries, mapping, type_of
from kaigen.kubernetes.node_choice import INSTANCE_TYPE, instance_types
from kaigen.kubernetes.pods import pod_templates

_NODE_POOL = "NodePool.karpenter.sh"
_REQUIREMENTS = ("spec", "template", "spec", "requirements")


def cloud_findings(obj: Object, profile: Profile, catalog: Catalog) -> Iterator[Problem]:
    """Warn of pods, and of nodes to create, whose instance types are all of other clouds than that of the cluster.

    Args:
        obj: an object.
        profile: of the cluster.
        catalog: has the instance types. One that it does not have may be of any cloud.
    """
    if not profile.cloud:
        return
    for path, names in _named(obj):
        found = [find_instance(name, catalog) for name in names]
        clouds = sorted({item.cloud for item in found if item is not None})
        if None in found or not clouds or profile.cloud in clouds:
            continue
        listed = series([f"`{name}`" for name in names[:3]], "and")
        yield Problem(
            codes.OTHER_CLOUD,
            f"{listed} of {series(clouds, 'and')}: clusters of profile `{profile.name}` have no such nodes",
            path,
            "name an instance type of this cloud in an override of the environment, or the GPU: `kaigen gpus list`",
            Severity.WARNING,
        )


def _named(obj: Object) -> Iterator[tuple[FieldPath, Sequence[str]]]:
    """Yield the instance types that an object requires, with their field."""
    if type_of(obj) == _NODE_POOL:
        node = mapping(mapping(mapping(obj.get("spec")).get("template")).get("spec"))
        for number, each in entries(node.get("requirements")):
            values = each.get("values")
            if each.get("key") == INSTANCE_TYPE and each.get("operator") == "In" and isinstance(values, list):
                yield (*_REQUIREMENTS, number, "values"), [str(value) for value in values]
    for template in pod_templates(obj):
        named = instance_types(template.spec)
        if named is not None:
            yield template.place(named[0]), named[1]
