"""Problems of the block `tenants` of kaigen.yaml: what two tenants have, and names that are not of tenants."""

import posixpath
from collections.abc import Mapping

from kaigen.config.controller_keys import controller_of
from kaigen.config.layers import Layers
from kaigen.config.tenant_settings import contains
from kaigen.config.tenants import TenantBlock
from kaigen.diagnostics.collector import Diagnostics
from kaigen.diagnostics.diagnostic import Diagnostic, Mark
from kaigen.diagnostics.suggest import did_you_mean
from kaigen.kubernetes.names import is_system_namespace


def check_environment(layers: Layers, problems: Diagnostics) -> None:
    """Report tenants of an environment that the file does not have, and which have no folders or namespaces."""
    known = layers.layers[0][1].get("tenants", {}) if layers.layers else {}
    for place, layer in layers.layers[1:]:
        for name, block in layer.get("tenants", {}).items():
            missing = [each for each in ("folders", "namespaces") if name not in known and each not in block]
            if missing:
                message = f"the file has no tenant `{name}`, and this one has no `{missing[0]}`"
                hint = did_you_mean(name, known) or f"set {' and '.join(f'`{each}`' for each in missing)}"
                mark = layers.mark_of((*place, "tenants", name), key=True)
                problems.add(Diagnostic("KG0746", message, mark, hint))


def check_tenants(
    blocks: Mapping[str, TenantBlock], layers: Layers, problems: Diagnostics, *, creates: bool = True
) -> None:
    """Report what two tenants have, folders with wildcards, namespaces and domains that are not of tenants, and quotas
    that apply to nothing.

    Args:
        blocks: the tenants by name.
        layers: where their fields are.
        problems: receives the errors.
        creates: whether `gitops.tenancy` creates objects in the namespaces.
    """
    _check_places(blocks, layers, problems)
    for name, block in blocks.items():
        known = _namespaces(name, block, layers)
        for namespace in block.quotas:
            if namespace not in known:
                message = f"`{namespace}` is no namespace of tenant `{name}`"
                hint = did_you_mean(namespace, known) or f"known: {', '.join(known)}"
                mark = layers.mark("tenants", name, "quotas", namespace, key=True)
                problems.add(Diagnostic("KG0746", message, mark, hint))
        if (block.quota or block.quotas) and not creates:
            field_name = "quota" if block.quota else "quotas"
            message = f"nothing creates the quotas of tenant `{name}`: kaigen.yaml has no `gitops.tenancy`"
            mark = layers.mark("tenants", name, field_name, key=True)
            problems.add(Diagnostic("KG0746", message, mark, "set `gitops.tenancy: {}`"))
    for name, block in blocks.items():
        for index, namespace in enumerate(block.namespaces):
            if is_system_namespace(namespace):
                message = f"`{namespace}` is a namespace of Kubernetes or of a cluster service, and not of a tenant"
                mark = _entry(layers, name, "namespaces", index)
                problems.add(Diagnostic("KG0745", message, mark, "choose another namespace"))
        for index, domain in enumerate(block.domains):
            if by := controller_of(domain):
                message = f"`{domain}` is not a domain of a tenant: keys of it, or of a part of it, are read by {by}"
                mark = _entry(layers, name, "domains", index)
                problems.add(Diagnostic("KG0744", message, mark, "list single keys in `annotations`"))


def _namespaces(name: str, block: TenantBlock, layers: Layers) -> list[str]:
    """Return the namespaces of a tenant in this and in all other environments."""
    file = layers.layers[0][1] if layers.layers else {}
    blocks = [each.get("tenants", {}).get(name, {}) for each in (file, *file.get("environments", {}).values())]
    return list(dict.fromkeys([*block.namespaces, *(place for each in blocks for place in each.get("namespaces", ()))]))


def _entry(layers: Layers, name: str, field_name: str, index: int) -> Mark:
    return layers.mark_of((*layers.path("tenants", name, field_name), index))


def _check_places(blocks: Mapping[str, TenantBlock], layers: Layers, problems: Diagnostics) -> None:
    seen: dict[tuple[str, str], str] = {}
    for name, block in blocks.items():
        for field_name, values in (("folders", block.folders), ("namespaces", block.namespaces)):
            for index, value in enumerate(values):
                if field_name == "folders":
                    value = posixpath.normpath(value)
                    if any(char in value for char in "*?["):
                        message = f"`{value}` has a wildcard, and `folders` are names"
                        mark = _entry(layers, name, field_name, index)
                        problems.add(Diagnostic("KG0743", message, mark, "list each folder"))
                other = seen.setdefault((field_name, value), name)
                for (kind, taken), owner in seen.items():
                    inside = contains(taken, value) or contains(value, taken)
                    if kind == field_name == "folders" and owner != name and inside:
                        other = owner
                if other != name:
                    message = f"tenant `{other}` has `{value}`, or a folder above or below it, too"
                    mark = _entry(layers, name, field_name, index)
                    problems.add(Diagnostic("KG0742", message, mark, "remove it from one of the two tenants"))
