"""Findings for objects of tenants that reach outside their namespaces."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from msgspec.structs import replace

from kaigen.check import codes
from kaigen.check.tenant_metadata import metadata_violations
from kaigen.config.globs import is_bucket_granted, is_granted, is_host_granted
from kaigen.config.tenant_settings import Tenant, tenant_of_file, tenant_of_namespace
from kaigen.diagnostics.problem import Problem
from kaigen.kubernetes import pod_security
from kaigen.kubernetes.claim_jobs import created_volume
from kaigen.kubernetes.manifest import Object, Path, mapping, text, type_of
from kaigen.kubernetes.pod_security import LEVELS
from kaigen.kubernetes.pods import pod_templates
from kaigen.kubernetes.reach import (
    BUILD_IMAGE,
    BUILD_OPTION,
    COVERED_CONTROLS,
    EXCLUDES,
    OPTION,
    PODS,
    REACHES,
    TEMPLATE_PATHS,
    TEMPLATES,
    URI,
    URL_REST,
    URL_SCHEME,
    WORKLOAD_IDENTITIES,
    Reach,
    Test,
    location,
    values_at,
)
from kaigen.kubernetes.schemas import is_cluster_scoped


class LooseLevel(Problem, frozen=True):
    """A spec declares a looser Pod Security level for its pods than its tenant is granted."""


def tenant_findings(
    obj: Object, namespace: str, source: str, tenants: Sequence[Tenant], level: str = ""
) -> Iterator[Problem]:
    """Check what an object reaches outside its namespace against what its tenant is granted.

    The tenant is the one whose folder contains the file, or else the one that owns the namespace. Objects of others
    are not checked.

    Args:
        obj: the object.
        namespace: of the app.
        source: the file that it comes from, relative to the repository.
        tenants: of kaigen.yaml.
        level: Pod Security level that the object's spec declares, which its pods satisfy; empty for an object of no
            spec.
    """
    if not tenants:
        return
    tenant = tenant_of_file(source, tenants) or tenant_of_namespace(_place(obj, namespace), tenants)
    if tenant is None:
        return
    yield from violations(obj, namespace, tenant)
    if not level:
        yield from _pod_security_violations(obj, tenant)
    elif LEVELS.index(level) < LEVELS.index(tenant.pod_security):
        yield LooseLevel(
            codes.TENANT_NOT_GRANTED,
            f"its spec needs Pod Security `{level}`, and tenant `{tenant.name}` is granted `{tenant.pod_security}`",
            hint=f"remove it, or {_set_level(tenant, level)}",
        )


def _pod_security_violations(obj: Object, tenant: Tenant) -> Iterator[Problem]:
    """Return the violations of the tenant's Pod Security level, except those that no level grants."""
    for template in pod_templates(obj):
        privileged = pod_security.violations(template, "baseline")
        for each in pod_security.violations(template, tenant.pod_security):
            if each.control in COVERED_CONTROLS:
                continue
            needed = "privileged" if each in privileged else "baseline"
            subject = f"the container `{each.container}`" if each.container else "the pod"
            yield Problem(
                codes.TENANT_NOT_GRANTED,
                f"tenant `{tenant.name}` is granted Pod Security `{tenant.pod_security}`, "
                f"and {subject} {each.problem}",
                each.path,
                f"{each.hint or 'remove it'}, or {_set_level(tenant, needed)}",
            )


def _set_level(tenant: Tenant, level: str) -> str:
    return f"set `tenants.{tenant.name}.podSecurity: {level}` in kaigen.yaml"


def violations(obj: Object, namespace: str, tenant: Tenant) -> Iterator[Problem]:
    """Return what an object reaches and a tenant is not granted."""
    kind, place = type_of(obj), _place(obj, namespace)
    if not is_granted(kind, tenant.granted("kinds")):
        yield _problem(tenant, f"the kind {kind}", ("kind",), "kinds")
    if place not in tenant.namespaces and (place or kind == "Namespace"):
        path: Path = ("metadata", "name" if kind == "Namespace" else "namespace")
        yield _problem(tenant, f"the namespace {place}", path, "namespaces")
    for reach in REACHES:
        for path, value in _values(reach, obj, kind):
            for found, what in metadata_violations(reach, mapping(value), path, tenant):
                yield _problem(tenant, what, found, reach.grant)
            if (shown := _violated(reach, value, tenant)) is not None:
                yield _problem(tenant, f"{reach.what} {shown}".strip(), path, reach.grant)
    created = created_volume(obj)
    if created is not None:
        claim = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", **created.body}
        for problem in violations(claim, place, tenant):
            yield replace(problem, path=created.path)


def _place(obj: Object, namespace: str) -> str:
    """Return the namespace that an object is in, or is for; empty for an object of the cluster."""
    metadata = mapping(obj.get("metadata"))
    kind = type_of(obj)
    if kind == "Namespace":
        return text(metadata.get("name"))
    if kind == "PersistentVolume":
        return text(mapping(mapping(obj.get("spec")).get("claimRef")).get("namespace"))
    if is_cluster_scoped(str(obj.get("apiVersion")), str(obj.get("kind"))):
        return ""
    return text(metadata.get("namespace")) or namespace


def _values(reach: Reach, obj: Object, kind: str) -> Iterator[tuple[Path, object]]:
    if reach.types == (PODS,):
        starts: list[tuple[object, Path]] = [
            (template.spec, (*template.path, "spec")) for template in pod_templates(obj)
        ]
    elif reach.types == (TEMPLATES,):
        paths = TEMPLATE_PATHS.get(kind, ())
        starts = [(found, path) for steps in paths for path, found in values_at(obj, steps)]
    else:
        starts = [(obj, ())] if not reach.types or kind in reach.types else []
    for start, at in starts:
        for steps in reach.paths:
            for path, value in values_at(start, steps, reach.default, at):
                if reach.test is Test.NO_KEYS:
                    yield from (
                        ((*path, key), key) for key, item in mapping(value).items() if item is not None
                    )
                else:
                    yield path, value


def _violated(reach: Reach, value: object, tenant: Tenant) -> str | None:
    """Return how a message shows a value that a tenant is not granted; None for one that it is."""
    match reach.test:
        case Test.GRANTED:
            granted = (*tenant.granted(reach.grant), *reach.always)
            return None if isinstance(value, str) and is_granted(value, granted) else f"`{value}`"
        case Test.MISSING:
            return f"`{value}`" if isinstance(value, str) else ""
        case Test.NOT_TRUE:
            return "" if value is True else None
        case Test.NO_KEYS:
            return f"`{value}`" if _is_refused(str(value), reach, tenant) else None
        case Test.NAMESPACE:
            return None if value in tenant.namespaces else f"`{value}`"
        case Test.KEY:
            key = text(mapping(value).get("key"))
            if mapping(value).get("operator") in EXCLUDES or not _is_refused(key, reach, tenant):
                return None
            return f"`{key}`" if key else "of all taints"
        case Test.REFERENCE:
            target = mapping(value)
            place = target.get("namespace")
            shown = f"{place}/{target.get('name')}"
            own = place is None or place in tenant.namespaces
            return None if own or is_granted(shown, tenant.granted(reach.grant)) else f"`{shown}`"
        case Test.BUCKET:
            if not isinstance(value, str) or not re.match(URI, value):
                return None
            uri = re.sub(f"^{OPTION}", "", value)
            return None if is_bucket_granted(uri, tenant.granted(reach.grant)) else f"`{value}`"
        case Test.LIST:
            granted = (*tenant.granted(reach.grant), *reach.always)
            items = value.split(",") if isinstance(value, str) else [str(value)]
            return next((f"`{item}`" for item in items if not is_granted(item, granted)), None)
        case Test.LOCATION | Test.INLINE_LOCATION:
            bucket = location(mapping(value), inline=reach.test is Test.INLINE_LOCATION)
            is_allowed = not bucket or is_bucket_granted(bucket, tenant.granted(reach.grant))
            return None if is_allowed else f"`{bucket}`"
        case Test.MATCHES:
            return None if re.fullmatch(reach.pattern, str(value)) else f"`{value}`"
        case Test.BUILD:
            granted = tenant.granted(reach.grant)
            return next(
                (f"`{image}`" for image in _build_images(value) if not is_granted(image, granted)), None
            )
        case Test.SERVER:
            if not isinstance(value, str) or "://" not in value:
                return None
            url = re.fullmatch(f"{URL_SCHEME}([^/?:]*){URL_REST}", value)
            return None if url and is_host_granted(url[1], tenant.servers()) else f"`{value}`"
        case Test.VOLUME:
            return None if is_granted(str(value), tenant.volumes()) else f"`{value}`"
        case Test.IDENTITY:
            provider = mapping(value).get("provider")
            owner = mapping(value).get("identityOwner")
            is_own = provider in WORKLOAD_IDENTITIES or (provider, owner) == ("aws", "workload")
            return None if is_own else f"`{provider}`"
        case Test.CONTROLLER_KEYS | Test.RAW_KEYS | Test.HOSTS:
            return None


def _build_images(argument: object) -> Iterator[str]:
    """Yield the images of an argument by which BuildKit reads or writes images."""
    if isinstance(argument, str) and re.match(BUILD_OPTION, argument):
        for field in argument.split(","):
            found = re.match(BUILD_IMAGE, field)
            if found:
                yield field[found.end() :]


def _is_refused(key: str, reach: Reach, tenant: Tenant) -> bool:
    """Return whether a key matches the pattern of a rule, and the tenant is not granted it."""
    granted = (*tenant.granted(reach.grant), *reach.always)
    return re.fullmatch(reach.pattern, key) is not None and not is_granted(key, granted)


def _problem(tenant: Tenant, what: str, path: Path, grant: str) -> Problem:
    hint = (
        f"remove it, or add it to `tenants.{tenant.name}.{grant}` in kaigen.yaml"
        if grant
        else "remove it, or move the spec to a folder of no tenant"
    )
    message = f"tenant `{tenant.name}` is not granted {what}"
    return Problem(codes.TENANT_NOT_GRANTED, message, path, hint)
