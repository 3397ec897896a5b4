"""What an object reaches outside its namespace, by the table of fields that the checks of tenants use."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import cast

from kaigen.catalog import controllers
from kaigen.catalog.profiles import profile_names
from kaigen.config.settings import Config
from kaigen.config.tenant_settings import Tenant, tenant_of_namespace
from kaigen.config.tenants import profile_classes
from kaigen.core.json_types import FieldPath, Json
from kaigen.diff.formatting import value
from kaigen.diff.model import Absent
from kaigen.diff.objects import Obj, get
from kaigen.kubernetes.manifest import Object
from kaigen.system.lazy_import import lazy_imports

with lazy_imports():
    from kaigen.tenancy import violations

_NAME = "x"
_START = f"tenant `{_NAME}` is not granted "

_ELSEWHERE = frozenset(
    {"csi", "hostIPC", "hostNetwork", "hostPID", "hostPath", "mountOptions", "nodeName", "parentRefs", "privileged"}
)
"""Fields that other rules judge: those of volumes, Pod Security and the scheduler. And what a Gateway decides: which
routes it admits (source: Gateway API, allowedRoutes)."""

_LEAVES = re.compile(r"/\.{1,2}(/|$)|[\\%]")
"""A folder of a bucket by which a client may leave it."""

_JUDGED_ELSEWHERE = ("buckets", "hosts", "images", "kinds", "priorityClasses", "storageClasses")
"""Grants of what other rules of the diff show, or what reaches no other namespace."""


def reach_of(obj: Obj, namespace: str, config: Config) -> Iterator[str]:
    """Yield what an object reaches outside its namespace, in words, unless kaigen.yaml allows it.

    Nothing for objects of RBAC, whose rules are `diff.rules.rbac`.

    Args:
        obj: the object.
        namespace: the namespace of its app.
        config: kaigen.yaml.
    """
    if obj.type.endswith(".rbac.authorization.k8s.io"):
        return
    body = cast("Object", obj.data)
    for problem in violations.violations(body, namespace, _grants(namespace, config)):
        if problem.path[:2] == ("metadata", "namespace") or _ELSEWHERE & set(problem.path):
            continue
        what = problem.message.removeprefix(_START).replace("`", "")
        if what.startswith("the bucket ") and not _LEAVES.search(what):
            continue
        yield f"{what}{_value(obj, problem.path)}"


def _value(obj: Obj, path: FieldPath) -> str:
    """Return the value of a label or an annotation."""
    if len(path) < 2 or path[-2] not in ("labels", "annotations"):
        return ""
    found: Json | Absent = obj.data
    for step in path:
        found = found[int(step)] if isinstance(found, list) else get(found, str(step))
    return f": {value(found)}"


def _grants(namespace: str, config: Config) -> Tenant:
    """Return what an object of a namespace may have: what its tenant is granted, and what `allow` allows."""
    owner = tenant_of_namespace(namespace, config.tenants)
    given = dict(owner.grants) if owner else {}
    for field in _JUDGED_ELSEWHERE:
        given[field] = ("*",)
    known = (name for profile in profile_names() for name in profile_classes(profile))
    given["classes"] = (*given.get("classes", ()), *known, "GatewayClass/*", "IngressClass/*")
    given["services"] = (*given.get("services", ()), "LoadBalancer", "NodePort")
    common = (*config.labels.items(), *config.annotations.items())
    given["annotations"] = (
        *given.get("annotations", ()),
        *controllers.host_keys(),
        *(f"{key}={text}" for key, text in common),
    )
    places = owner.namespaces if owner else (namespace,)
    return Tenant(_NAME, (), tuple(places), given, pod_security="privileged")
