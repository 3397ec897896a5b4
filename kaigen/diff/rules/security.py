"""Rules for changes that weaken the security of pods and namespaces, and for pods that kaigen cannot judge."""

from __future__ import annotations

from collections.abc import Iterator
from typing import cast

from kaigen.core.json_types import Json, JsonObject
from kaigen.diagnostics.problem import dotted_path
from kaigen.diff.formatting import listing, value
from kaigen.diff.model import ABSENT
from kaigen.diff.objects import Obj, get, get_list, get_text
from kaigen.diff.pods import PodTemplate, pod_templates, weaknesses
from kaigen.diff.rules.case import Case, Finding
from kaigen.diff.rules.rbac import unsafe_rights
from kaigen.kubernetes import pods as kubernetes_pods
from kaigen.kubernetes.manifest import Object
from kaigen.kubernetes.pod_security import LEVELS

POD_SECURITY = "kaigen.dev/pod-security"
"""Annotation of an object or its pods that requests a level less strict than restricted."""

_ENFORCE = "pod-security.kubernetes.io/enforce"


def pods(case: Case) -> Iterator[Finding]:
    """The violations of Pod Security changed."""
    before, after = _all(case.old), _all(case.new)
    looser = [label for label in after if label not in before]
    if looser:
        yield "danger", f"security is looser: {listing(looser, 4)}"
    tighter = [label for label in before if label not in after]
    if tighter and case.new is not None and pod_templates(case.new) and not looser:
        yield "info", f"security is tighter, no longer: {listing(tighter, 2)}"


def _all(obj: Obj | None) -> dict[str, None]:
    return {
        (f"{role}: " if role else "") + label: None
        for role, template in pod_templates(obj).items()
        for label in weaknesses(template)
    }


def writable_root(case: Case) -> Iterator[Finding]:
    """The root file system of containers became writable."""
    before, after = _read_only(case.old), _read_only(case.new)
    opened = [name for name, read_only in after.items() if before.get(name) and not read_only]
    if opened:
        yield "notice", f"root file system becomes writable in container {listing(opened)}"


def _read_only(obj: Obj | None) -> dict[str, bool]:
    return {
        name: get(container, "securityContext", "readOnlyRootFilesystem") is True
        for template in pod_templates(obj).values()
        for name, container in template.containers()
    }


def token(case: Case) -> Iterator[Finding]:
    """Pods, or some of their containers, get the API token of their service account."""
    if case.obj.kind == "ServiceAccount":
        was = get(case.old.data if case.old else ABSENT, "automountServiceAccountToken")
        now = get(case.obj.data, "automountServiceAccountToken")
        if now is not False and (case.old is None or was is False):
            yield "notice", "pods of this service account get its API token unless they opt out"
        return
    before, after = pod_templates(case.old), pod_templates(case.new)
    for role, template in after.items():
        old = before.get(role)
        was = get(old.spec, "automountServiceAccountToken") if old else False
        now = get(template.spec, "automountServiceAccountToken")
        if was is False and (now is True or (old is not None and now is not False)):
            where = f" ({role})" if role else ""
            yield "notice", f"pods{where} get the API token of service account {_account(template)}"
            continue
        had = dict(old.containers()) if old is not None and was is not False else _token_mounts(old)
        added = [name for name in _token_mounts(template) if name not in had]
        if added:
            who = f"container {added[0]} gets" if len(added) == 1 else f"containers {listing(added)} get"
            yield "notice", f"{who} the API token of service account {_account(template)}"


def _token_mounts(template: PodTemplate | None) -> dict[str, JsonObject]:
    """Return the containers that mount a projected token for the API server, by their names."""
    if template is None:
        return {}
    volumes = {get_text(each, "name") for each in get_list(template.spec, "volumes") if _is_token(each)}
    return {
        name: container
        for name, container in template.containers()
        if any(get_text(mount, "name") in volumes for mount in get_list(container, "volumeMounts"))
    }


def _is_token(volume: Json) -> bool:
    """Return whether a volume has a token for the API server. One with an audience is for another server."""
    tokens = [get(source, "serviceAccountToken") for source in get_list(volume, "projected", "sources")]
    return any(isinstance(token, dict) and not get_text(token, "audience") for token in tokens)


def account(case: Case) -> Iterator[Finding]:
    """The service account of pods changed."""
    before = pod_templates(case.old)
    for role, template in pod_templates(case.new).items():
        old = before.get(role)
        if old is not None and _account(old) != _account(template):
            where = f" ({role})" if role else ""
            yield ("notice", f"pods{where} run as service account {_account(template)} instead of {_account(old)}")


def account_rights(case: Case) -> Iterator[Finding]:
    """Pods run as a ServiceAccount whose rights are not harmless."""
    before = {_account(template) for template in pod_templates(case.old).values()}
    for name in dict.fromkeys(_account(template) for template in pod_templates(case.new).values()):
        if name not in before and (rights := unsafe_rights(name, case.place, case)):
            yield "danger", f"pods run as service account {name}, which may: {rights}"


def _account(template: PodTemplate) -> str:
    return get_text(template.spec, "serviceAccountName") or "default"


def namespace_level(case: Case) -> Iterator[Finding]:
    """The enforced Pod Security level changed; without the label it is the cluster's default, privileged."""
    was = _enforced(case.old) if case.old else "restricted"
    now = _enforced(case.new)
    if was == now or (case.old is None and now == "privileged" and _ENFORCE not in case.obj.labels):
        return
    if LEVELS.index(now) < LEVELS.index(was):
        before = f" instead of {was}" if case.old else ""
        yield "danger", f"security is looser: the namespace enforces Pod Security {now}{before}"
    else:
        yield ("notice", f"the namespace enforces Pod Security {now} instead of {was}: new pods must satisfy it")


def _enforced(obj: Obj | None) -> str:
    level = obj.labels.get(_ENFORCE) if obj else None
    return level if isinstance(level, str) and level in LEVELS else "privileged"


def requested_level(obj: Obj | None) -> str:
    """Return the level less strict than restricted that an object or its pods request; empty for none."""
    if obj is None:
        return ""
    levels = [obj.annotations.get(POD_SECURITY)]
    levels += [template.annotations.get(POD_SECURITY) for template in pod_templates(obj).values()]
    looser = [level for level in levels if isinstance(level, str) and level not in ("", "restricted")]
    return min(looser, key=_strictness, default="")


def _strictness(level: str) -> int:
    return LEVELS.index(level) if level in LEVELS else 0


def requested_exception(old: Obj | None, new: Obj) -> Finding | None:
    """Return the finding for an object that requests a level less strict than restricted; None for none."""
    now = requested_level(new)
    if not now:
        return None
    was = requested_level(old)
    if was == now:
        return "notice", f"{new} requests Pod Security {value(now)}, as before"
    instead = f" instead of {value(was)}" if was else ""
    if was and _strictness(now) > _strictness(was):
        return "notice", f"security is tighter: {new} now requests Pod Security {value(now)}{instead}"
    return "danger", f"security is looser: {new} now requests Pod Security {value(now)}{instead}"


def unknown_pods(case: Case) -> Iterator[Finding]:
    """Pods are where the table of object kinds has none, so what becomes of a change is not known."""
    before, after = _places(case.old), _places(case.new)
    if after and (before != after or case.status == "added"):
        yield "danger", f"runs pods that kaigen does not know the kind of, at {listing(list(after))}"


def _places(obj: Obj | None) -> dict[str, Object]:
    """Return the pods of an object that were found by their form, by their places."""
    if obj is None:
        return {}
    found = kubernetes_pods.pod_templates(cast("Object", obj.data))
    return {dotted_path(template.spec_path): template.spec for template in found if template.by_form}
