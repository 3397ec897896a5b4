"""Findings for objects of tenants that reach outside their namespaces."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from msgspec.structs import replace

from kaigen.check import codes
from kaigen.config.globs import is_granted
from kaigen.config.reserved import Reserved, SyncerSecrets
from kaigen.config.tenant_settings import Tenant, tenant_of_file, tenant_of_namespace
from kaigen.core.json_types import FieldPath
from kaigen.core.text import series
from kaigen.diagnostics.problem import Problem
from kaigen.kubernetes import pod_security
from kaigen.kubernetes.claims import created_volume
from kaigen.kubernetes.manifest import Object, mapping, text, type_of, values_at
from kaigen.kubernetes.pod_security import LEVELS
from kaigen.kubernetes.pods import pod_templates
from kaigen.kubernetes.references import references_of
from kaigen.kubernetes.rights import USUAL_KINDS
from kaigen.kubernetes.schemas import is_cluster_scoped
from kaigen.kubernetes.secrets import SECRET
from kaigen.tenancy import unknown
from kaigen.tenancy.reach import PODS, TEMPLATE_PATHS, TEMPLATES, Reach, Refusal
from kaigen.tenancy.rows.pods import COVERED_CONTROLS
from kaigen.tenancy.rows.rbac import ROLE_BINDING, ROLES
from kaigen.tenancy.rows.reserved import RESERVED_SECRET_REACHES
from kaigen.tenancy.table import REACHES


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
        privileged = frozenset(pod_security.violations(template, "baseline"))
        for each in pod_security.violations(template, tenant.pod_security):
            if each.control in COVERED_CONTROLS:
                continue
            needed = "privileged" if each in privileged else "baseline"
            subject = f"the container `{each.container}`" if each.container else "the pod"
            yield Problem(
                codes.TENANT_NOT_GRANTED,
                f"tenant `{tenant.name}` is granted Pod Security `{tenant.pod_security}`, and {subject} {each.problem}",
                each.path,
                f"{each.hint or 'remove it'}, or {_set_level(tenant, needed)}",
            )


def _set_level(tenant: Tenant, level: str) -> str:
    return f"set `tenants.{tenant.name}.podSecurity: {level}` in kaigen.yaml"


_KINDS = "kinds"
"""The field of a tenant with the kinds of its objects."""


class Denied(Problem, frozen=True):
    """Something that an object reaches and a tenant is not granted.

    Attributes:
        grant: the field of a tenant that could list it; empty for none.
        value: what it is, as in the message.
    """

    grant: str = ""
    value: str = ""


def cause_of(problem: Problem) -> str:
    """Return what violations of one spec have in common if one change of it, or of the tenant, solves them."""
    return _KINDS if isinstance(problem, Denied) and problem.grant == _KINDS else problem.message


def of_one_cause(problems: Sequence[Problem]) -> tuple[str, str]:
    """Return the message and the hint of violations with one cause."""
    first = problems[0]
    values = [*dict.fromkeys(each.value for each in problems if isinstance(each, Denied))]
    if cause_of(first) != _KINDS or len(values) == 1:
        return first.message, first.hint
    message = first.message.replace(f"the kind {values[0]}", f"the kinds {series(values)}")
    return message, first.hint.replace("remove it, or add it to", "remove them, or add them to", 1)


def violations(obj: Object, namespace: str, tenant: Tenant) -> Iterator[Problem]:
    """Return what an object reaches and a tenant is not granted."""
    kind, place = type_of(obj), _place(obj, namespace)
    if not is_granted(kind, tenant.granted("kinds")):
        yield _problem(tenant, "the kind", kind, ("kind",), "kinds")
    if place not in tenant.namespaces and (place or kind == "Namespace"):
        path: FieldPath = ("metadata", "name" if kind == "Namespace" else "namespace")
        yield _problem(tenant, "the namespace", place, path, "namespaces")
    for reach, refusal, at in _refusals(REACHES, obj, tenant):
        grant = reach.condition.grant if refusal.can_be_granted else ""
        yield _problem(tenant, refusal.what or reach.what, refusal.shown, at, grant, refusal.hint)
    yield from unknown.pod_violations(obj, tenant)
    yield from unknown.account_violations(obj, tenant)
    created = created_volume(obj)
    if created is not None:
        claim = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", **created.body}
        for problem in violations(claim, place, tenant):
            yield replace(problem, path=created.path)


def syncer_secret_findings(
    obj: Object, namespace: str, source: str, tenants: Sequence[Tenant], secrets: SyncerSecrets
) -> Iterator[Problem]:
    """Return the places in an object of any spec that name a Secret which Flux reads.

    An object of the cluster is checked only in the folder of a tenant.

    Args:
        obj: the object.
        namespace: of the app.
        source: the file that it comes from, relative to the repository.
        tenants: of kaigen.yaml.
        secrets: the Secrets that Flux reads.
    """
    place = _place(obj, namespace)
    tenant = tenant_of_file(source, tenants)
    reserved = secrets.within(tenant.namespaces if tenant is not None else (place,))
    if not reserved or (tenant is None and not place):
        return
    reader = Tenant("", (), (), {}, reserved=Reserved(secrets=reserved))
    seen: set[FieldPath] = set()
    for reach, refusal, path in _refusals(RESERVED_SECRET_REACHES, obj, reader):
        seen.add(path)
        name = refusal.shown.strip("`")
        yield _syncer_secret(f"{reach.what} `{name}`", reserved[name], path)
    for reference in references_of(obj, namespace):
        name = reference.target.name
        if reference.target.type == SECRET and name in reserved and reference.path not in seen:
            seen.add(reference.path)
            yield _syncer_secret(f"the Secret `{name}`", reserved[name], reference.path)
    for path, name in unknown.name_places(obj, reserved):
        if path not in seen:
            yield _syncer_secret(f"the Secret `{name}`", reserved[name], path)
    created = created_volume(obj)
    if created is not None:
        claim = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", **created.body}
        for problem in syncer_secret_findings(claim, place, source, tenants, secrets):
            yield replace(problem, path=created.path)


def _syncer_secret(what: str, place: str, path: FieldPath) -> Problem:
    return Problem(
        codes.SYNCER_SECRET,
        f"{what} is what Flux reads by `{place}` of kaigen.yaml, and no spec may use it",
        path,
        "use another Secret; list it in `allow.secrets` of kaigen.yaml only if every spec may read it",
    )


def binding_findings(
    objects: Sequence[Object], namespace: str, source: str, tenants: Sequence[Tenant]
) -> Iterator[tuple[int, Problem]]:
    """Return the bindings of an app of a tenant to Roles that are not of the app, with their numbers.

    The rights of a Role are checked where it is made, so a binding to one of somebody else could give any right.

    Args:
        objects: of the app.
        namespace: of the app.
        source: the file that they come from, relative to the repository.
        tenants: of kaigen.yaml.
    """
    if not tenants:
        return
    made = {
        (_place(obj, namespace), text(mapping(obj.get("metadata")).get("name")))
        for obj in objects
        if type_of(obj) == ROLES[0]
    }
    for number, obj in enumerate(objects):
        if type_of(obj) != ROLE_BINDING:
            continue
        place = _place(obj, namespace)
        tenant = tenant_of_file(source, tenants) or tenant_of_namespace(place, tenants)
        name = text(mapping(obj.get("roleRef")).get("name"))
        if tenant is not None and (place, name) not in made:
            yield (
                number,
                Problem(
                    codes.TENANT_NOT_GRANTED,
                    f"tenant `{tenant.name}` is not granted the role `{name}`, which is not a Role of this app",
                    ("roleRef", "name"),
                    "add the Role with its rules to the same spec or file",
                ),
            )


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


def _values(reach: Reach, obj: Object, kind: str) -> Iterator[tuple[FieldPath, object]]:
    if reach.types == (PODS,):
        for template in pod_templates(obj):
            for steps in reach.paths:
                for path, value in values_at(template.spec, steps, reach.default):
                    yield template.place(path), value
        return
    if reach.types == (TEMPLATES,):
        paths = TEMPLATE_PATHS.get(kind, ())
        starts: list[tuple[object, FieldPath]] = [
            (found, path) for steps in paths for path, found in values_at(obj, steps)
        ]
    else:
        starts = [(obj, ())] if not reach.types or kind in reach.types else []
    for start, at in starts:
        for steps in reach.paths:
            yield from values_at(start, steps, reach.default, at)


def _refusals(reaches: Iterable[Reach], obj: Object, tenant: Tenant) -> Iterator[tuple[Reach, Refusal, FieldPath]]:
    """Yield what rows of the table refuse of an object, each with its place."""
    kind = type_of(obj)
    for reach in reaches:
        for path, value in _values(reach, obj, kind):
            for refusal in reach.condition.refusals(value, tenant):
                yield reach, refusal, (*path, *refusal.path)


def _problem(tenant: Tenant, what: str, value: str, path: FieldPath, grant: str, hint: str = "") -> Denied:
    hint = hint or (
        f"remove it, or add it to `tenants.{tenant.name}.{grant}` in kaigen.yaml"
        if grant
        else "remove it, or move the spec to a folder of no tenant"
    )
    if grant == "storageClasses":
        hint += "; with a list, the class of the profile needs an entry, too"
    if grant == "kinds" and tenant.granted("kinds") == tuple(USUAL_KINDS):
        hint += f"; with a list, all kinds need an entry: `kaigen tenants suggest {tenant.folders[0]}` prints it"
    message = f"tenant `{tenant.name}` is not granted {f'{what} {value}'.strip()}"
    return Denied(codes.TENANT_NOT_GRANTED, message, path, hint, grant=grant, value=value)
