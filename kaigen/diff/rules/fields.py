"""Rules for fields of harmless kinds that read or give more than their namespace has.

`_reached` finds them by the table of fields that the checks of tenants use.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import cast

from kaigen.catalog import controllers
from kaigen.catalog.profiles import profile_names
from kaigen.config.settings import Config
from kaigen.config.tenant_lists import profile_classes
from kaigen.config.tenant_settings import Tenant, tenant_of_namespace
from kaigen.core.json_types import FieldPath, Json
from kaigen.diff.formatting import clip, listing, value
from kaigen.diff.model import Absent
from kaigen.diff.objects import Obj, get, get_list, get_map, get_text
from kaigen.diff.rules.case import Case, Finding
from kaigen.diff.rules.kinds import is_harmless
from kaigen.kubernetes.manifest import Object
from kaigen.system.lazy_import import lazy_imports

with lazy_imports():
    from kaigen.tenancy import violations


_BEFORE_IN_NAMESPACE = ("the annotation ", "the label ", "the reference ", "the server ")
"""Beginnings of what is not new reach if another object of the namespace had it."""


def reach(case: Case) -> Iterator[Finding]:
    """An object of a harmless kind reaches outside its namespace by a field."""
    new = case.obj
    if not is_harmless(new.type):
        return
    config = case.trees.config(new.path)
    found = list(dict.fromkeys(_reached(new, case.place, config)))
    was = set(_reached(case.old, case.place, config)) if case.old else set()
    more = [each for each in found if each not in was]
    if any(each.startswith(_BEFORE_IN_NAMESPACE) for each in more):
        had = _had(case)
        more = [each for each in more if not (each.startswith(_BEFORE_IN_NAMESPACE) and each in had)]
    if more:
        yield "danger", f"reaches outside its namespace: {listing(more, 4)}"


def _had(case: Case) -> set[str]:
    """Return what objects of the kind reached before from the same namespace."""
    config = case.trees.config(case.obj.path)
    place = case.place
    return case.trees.once(
        ("reached", case.obj.kind, case.top, place),
        lambda: {
            each
            for obj in case.trees.in_namespace("old", case.obj.kind, case.top, place)
            for each in _reached(obj, place, config)
        },
    )


_SECRET_TYPES = frozenset(
    {
        "",
        "Opaque",
        "kubernetes.io/basic-auth",
        "kubernetes.io/dockercfg",
        "kubernetes.io/dockerconfigjson",
        "kubernetes.io/ssh-auth",
        "kubernetes.io/tls",
    }
)
"""Types of Secrets that are only data (source: Kubernetes, types of Secret)."""


_TRIGGER_SOURCES = frozenset({"configMapTargetRef", "env", "secretTargetRef"})
"""Fields of a TriggerAuthentication that read objects of its namespace (source: KEDA, authentication)."""


_SCOPES = ("sealedsecrets.bitnami.com/cluster-wide", "sealedsecrets.bitnami.com/namespace-wide")
"""Annotations that unseal a SealedSecret under another name or elsewhere (source: Sealed Secrets, scopes)."""


def fields(case: Case) -> Iterator[Finding]:
    """A field of a harmless kind reads or gives more than its namespace has."""
    judge = _FIELDS.get(case.obj.type)
    if judge is None or case.new is None:
        return
    was = set(judge(case.old, case)) if case.old else set()
    for text in judge(case.new, case):
        if text not in was:
            yield "danger", text


def _secret(obj: Obj, case: Case) -> Iterator[str]:
    type_ = get_text(obj.data, "type")
    if type_ not in _SECRET_TYPES:
        account = obj.annotations.get("kubernetes.io/service-account.name")
        of = f" of ServiceAccount {account}" if account else ""
        yield f"a Secret of type {clip(type_, 80)}{of}: a controller reads or fills it"


def _external_secret(obj: Obj, case: Case) -> Iterator[str]:
    spec = get_map(obj.data, "spec")
    settings = case.trees.config(obj.path).external_secrets
    own = (settings.store_kind, settings.store) if settings else ("", "")
    store = (get_text(spec, "secretStoreRef", "kind") or "SecretStore", get_text(spec, "secretStoreRef", "name"))
    if store[0] != "SecretStore" and store != own:
        keys = [get_text(each, "remoteRef", "key") for each in get_list(spec, "data")]
        keys += [get_text(each, "extract", "key") for each in get_list(spec, "dataFrom")]
        keys = [key for key in keys if key]
        yield f"reads {listing(keys) or 'secrets'} of {store[0]} {store[1]}, which kaigen.yaml does not name"
    for each in get_list(spec, "dataFrom"):
        find = get(each, "find")
        if isinstance(find, dict):
            yield f"reads every secret of {store[0]} {store[1]} that {value(find)} finds"
    for each in (*get_list(spec, "data"), *get_list(spec, "dataFrom")):
        other = get(each, "sourceRef")
        if isinstance(other, dict):
            yield f"reads secrets of {value(other)}"
    if get_map(spec, "target", "manifest"):
        yield f"creates an object of another kind: {value(get(spec, 'target', 'manifest'))}"
    for each in get_list(spec, "target", "template", "templateFrom"):
        target = get_text(each, "target") or "Data"
        if target != "Data":
            yield f"writes {target} of the Secret by a template"


def _sealed_secret(obj: Obj, case: Case) -> Iterator[str]:
    inner = get_map(obj.data, "spec", "template", "metadata", "annotations")
    for key in _SCOPES:
        if key in obj.annotations or key in inner:
            yield f"unseals what was sealed under another name ({key})"
    for field in ("annotations", "labels"):
        for key, item in get_map(obj.data, "spec", "template", "metadata", field).items():
            if "/" in key and key not in _SCOPES:
                yield f"its Secret has {field[:-1]} {key}: {value(item)}"


def _claim_of_devices(obj: Obj, case: Case) -> Iterator[str]:
    spec = get_map(obj.data, "spec", "spec") or get_map(obj.data, "spec")
    for request in get_list(spec, "devices", "requests"):
        if True in (get(request, "exactly", "adminAccess"), get(request, "adminAccess")):
            yield f"request {get_text(request, 'name')} gets devices that others use (adminAccess)"


def _trigger(obj: Obj, case: Case) -> Iterator[str]:
    for field, item in get_map(obj.data, "spec").items():
        if field not in _TRIGGER_SOURCES:
            yield f"KEDA authenticates by {field}: {value(item)}"


_FIELDS: Mapping[str, Callable[[Obj, Case], Iterator[str]]] = {
    "ExternalSecret.external-secrets.io": _external_secret,
    "ResourceClaim.resource.k8s.io": _claim_of_devices,
    "ResourceClaimTemplate.resource.k8s.io": _claim_of_devices,
    "SealedSecret.bitnami.com": _sealed_secret,
    "Secret": _secret,
    "TriggerAuthentication.keda.sh": _trigger,
}


FIELD_TYPES = frozenset(_FIELDS)


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


def _reached(obj: Obj, namespace: str, config: Config) -> Iterator[str]:
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
