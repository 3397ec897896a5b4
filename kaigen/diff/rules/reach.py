"""Rules for what reaches beyond its namespace: folders of nodes, the scheduler, the API server, ingress controllers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from kaigen.compile.builders.frame import KEEP
from kaigen.config.block_settings import matches_glob
from kaigen.config.controller_keys import is_raw_key
from kaigen.diff.formatting import listing, value
from kaigen.diff.objects import Obj, get, get_list, get_map, get_text
from kaigen.diff.pods import pod_templates
from kaigen.diff.rules.case import FLUX, SYNC_OPTIONS, Case, Finding
from kaigen.diff.rules.storage import PVC
from kaigen.kubernetes.metadata_keys import is_syncer_key

VOLUME = frozenset({"PersistentVolume"})
PRIORITY = frozenset({"PriorityClass.scheduling.k8s.io"})
HOOKS = frozenset(
    {
        "ValidatingWebhookConfiguration.admissionregistration.k8s.io",
        "MutatingWebhookConfiguration.admissionregistration.k8s.io",
        "ValidatingAdmissionPolicyBinding.admissionregistration.k8s.io",
        "MutatingAdmissionPolicyBinding.admissionregistration.k8s.io",
        "APIService.apiregistration.k8s.io",
    }
)
DEFAULTS = frozenset({"StorageClass.storage.k8s.io", "IngressClass.networking.k8s.io"})
INGRESS = frozenset({"Ingress.networking.k8s.io"})
_WAVE = "argocd.argoproj.io/sync-wave"
_RECONCILE = f"{FLUX}reconcile"
_KEEPING_OPTIONS = frozenset({"Prune=false", "Prune=confirm", "Delete=false", "Delete=confirm"})
_SYSTEM_PRIORITY = "system-"


def volume(case: Case) -> Iterator[Finding]:
    """A PersistentVolume is a folder of a node, or its driver reads a Secret of another namespace."""
    granted = [each for grant in case.trees.config(case.obj.path).allow.volumes for each in grant.secrets]
    was = _volume(case.old, granted) if case.old else {}
    for text in _volume(case.obj, granted):
        if text not in was:
            yield "danger", text


def _volume(obj: Obj, granted: Sequence[str]) -> dict[str, None]:
    spec = get_map(obj.data, "spec")
    found = [
        f"pods get the folder {value(get(spec, field, 'path'))} of a node"
        for field in ("hostPath", "local")
        if field in spec
    ]
    claim = get_text(spec, "claimRef", "namespace")
    csi = get_map(spec, "csi")
    for key, reference in csi.items():
        namespace = get_text(reference, "namespace")
        if str(key).endswith("SecretRef") and namespace != claim:
            name = f"{namespace}/{get_text(reference, 'name')}"
            if not matches_glob(name, granted):
                found.append(f"driver {get_text(csi, 'driver')} uses Secret {name} of another namespace")
    return dict.fromkeys(found)


def priority(case: Case) -> Iterator[Finding]:
    """A PriorityClass becomes the default of the cluster."""
    if get(case.obj.data, "globalDefault") is True and (
        case.old is None or get(case.old.data, "globalDefault") is not True
    ):
        yield "danger", "every pod of the cluster without a priority class gets this priority"


def hooks(case: Case) -> Iterator[Finding]:
    """Requests to the API server go through something else."""
    yield "danger", "requests to the API server of the whole cluster go through it"


def defaults(case: Case) -> Iterator[Finding]:
    """A class becomes the default of the cluster."""
    if _is_default(case.obj) and not (case.old and _is_default(case.old)):
        yield "danger", f"it becomes the cluster's default {case.obj.kind}"


def _is_default(obj: Obj) -> bool:
    return any(str(key).endswith("/is-default-class") and item == "true" for key, item in obj.annotations.items())


def snippets(case: Case) -> Iterator[Finding]:
    """An annotation is raw configuration of the ingress controller."""
    old = case.old.annotations if case.old else {}
    found = [
        key
        for key, item in case.obj.annotations.items()
        if ("snippet" in str(key).rpartition("/")[2] or is_raw_key(str(key))) and old.get(key) != item
    ]
    if found:
        yield "danger", f"raw configuration of the ingress controller: {listing(found)}"


def syncer_keys(case: Case) -> Iterator[Finding]:
    """A label or an annotation directs Argo CD, Flux or Helm in a way that kaigen does not use itself."""
    was = _syncer_keys(case.old)
    found = [key for key in _syncer_keys(case.new) if key not in was]
    if found:
        yield "danger", f"Argo CD, Flux or Helm may skip, replace or delete it: {listing(found)}"


def syncer_keys_removed(case: Case) -> Iterator[Finding]:
    """A label or an annotation was removed that kept the object in the cluster, or directed a syncer in another way."""
    old, new = case.pair
    kept = _keeping(new)
    lost = [text for text in _keeping(old) if text not in kept]
    if lost:
        yield ("danger", f"Argo CD, Flux or Helm may now delete it with its file or its app, without {listing(lost)}")
    given = new.annotations.keys() | new.labels.keys()
    gone = [text for text in _syncer_keys(old) if text not in lost and text.partition(": ")[0] not in given]
    if gone:
        yield "notice", f"Argo CD, Flux or Helm no longer obey {listing(gone)}"


def _keeping(obj: Obj) -> list[str]:
    """Return what keeps an object when it or its app is removed; for claims, only what no rule of theirs reports."""
    found = []
    for given in (obj.annotations, obj.labels):
        for key, item in given.items():
            if key == SYNC_OPTIONS:
                options = {part.strip() for part in str(item).split(",")} & _KEEPING_OPTIONS
                found += [f"{key}: {option}" for option in sorted(options)]
            elif _keeps(str(key), str(item)) or (key == _RECONCILE and str(item).lower() == "disabled"):
                found.append(f"{key}: {value(item)}")
    return [text for text in found if obj.type != PVC or ": Delete=" in text]


def _syncer_keys(obj: Obj | None) -> dict[str, None]:
    if obj is None:
        return {}
    return {
        f"{key}: {value(item)}": None
        for given in (obj.annotations, obj.labels)
        for key, item in given.items()
        if is_syncer_key(str(key)) and key != _WAVE and not _keeps(str(key), str(item))
    }


def _keeps(key: str, text: str) -> bool:
    """Return whether the value only keeps the object when it is removed from Git or its app is deleted."""
    if key == SYNC_OPTIONS:
        return {part.strip() for part in text.split(",")} <= _KEEPING_OPTIONS
    return KEEP.get(key) == text.strip().lower()


def scheduling(case: Case) -> Iterator[Finding]:
    """Pods bypass the scheduler, take a priority of the system, or tolerate every taint."""
    was = _scheduling(case.old)
    for text in _scheduling(case.new):
        if text not in was:
            yield "danger", text


def _scheduling(obj: Obj | None) -> dict[str, None]:
    found: dict[str, None] = {}
    for template in pod_templates(obj).values():
        if node := get_text(template.spec, "nodeName"):
            found[f"pods bypass the scheduler and run on node {node}"] = None
        name = get_text(template.spec, "priorityClassName")
        if name.startswith(_SYSTEM_PRIORITY):
            found[f"pods have the priority {name} and may evict any other pod"] = None
        for toleration in get_list(template.spec, "tolerations"):
            if get_text(toleration, "operator") == "Exists" and not get_text(toleration, "key"):
                found["pods tolerate every taint, also those of control-plane nodes"] = None
    return found
