"""Rules for kinds that act outside of a namespace, or that kaigen does not know, and for fields that do."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from kaigen.catalog.kind_effects import effects, harmless_kinds
from kaigen.diff.formatting import clip, listing, value
from kaigen.diff.objects import Obj, get, get_list, get_map, get_text
from kaigen.diff.reach_table import reach_of
from kaigen.diff.rules import volumes
from kaigen.diff.rules.case import Case, Finding
from kaigen.diff.rules.own import is_usual
from kaigen.diff.trees import top_of
from kaigen.kubernetes.schemas import is_cluster_type

UNKNOWN = "kaigen does not know this kind: review what its controller does"

_REMOVAL_IS_JUDGED = frozenset(
    {
        # Rules of their own say what becomes of them.
        "Application.argoproj.io",
        "ApplicationSet.argoproj.io",
        "CustomResourceDefinition.apiextensions.k8s.io",
        "HelmRelease.helm.toolkit.fluxcd.io",
        "Kustomization.kustomize.toolkit.fluxcd.io",
        "Namespace",
        "PersistentVolume",
        "ResourceQuota",
        # Without them, something has fewer rights.
        "ClusterRole.rbac.authorization.k8s.io",
        "ClusterRoleBinding.rbac.authorization.k8s.io",
        "ReferenceGrant.gateway.networking.k8s.io",
    }
)
"""Kinds whose removal is not a danger by itself."""

_BEFORE_IN_NAMESPACE = ("the annotation ", "the label ", "the reference ", "the server ")
"""Beginnings of what is not new reach if another object of the namespace had it."""


def is_harmless(type_: str) -> bool:
    """Return whether objects of a kind act in their own namespace only."""
    return type_ in harmless_kinds()


def kind(case: Case) -> Iterator[Finding]:
    """An object of a kind that acts outside of its namespace, or that kaigen does not know."""
    obj = case.obj
    if is_harmless(obj.type) or is_usual(case):
        return
    if case.status == "removed":
        if obj.type not in _REMOVAL_IS_JUDGED:
            yield "danger", f"is deleted; {_effect(obj)}"
    elif obj.type != "PersistentVolume" or not volumes.is_allowed(case):
        yield "danger", _effect(obj) + _decryption(case)


def _effect(obj: Obj) -> str:
    specific = _SPECIFIC.get(obj.type)
    known = specific(obj) if specific else effects().get(obj.type)
    if known:
        return f"review it: {known}"
    if is_cluster_type(obj.kind, obj.type.partition(".")[2]):
        return "review it: it is an object of the whole cluster"
    return UNKNOWN


def _application(obj: Obj) -> str:
    source = get_map(obj.data, "spec", "source")
    what = f"{_short(get_text(source, 'repoURL'))} {_short(get_text(source, 'path'))}".strip()
    place = get_text(obj.data, "spec", "destination", "namespace") or "the namespaces of its objects"
    return f"Argo CD applies {what or 'its sources'} into namespace {_short(place)}"


def _kustomization(obj: Obj) -> str:
    spec = get_map(obj.data, "spec")
    source = f"{get_text(spec, 'sourceRef', 'kind')} {get_text(spec, 'sourceRef', 'name')}"
    account = get_text(spec, "serviceAccountName")
    who = f"ServiceAccount {_short(account)}" if account else "the account of its controller"
    return f"Flux applies {_short(get_text(spec, 'path') or './')} of {_short(source)} as {who}"


def _decryption(case: Case) -> str:
    """Return what a Kustomization decrypts that none of its tree decrypted before; empty for nothing."""
    decryption = get_map(case.obj.data, "spec", "decryption")
    top = top_of(case.obj.path)
    olds = (get_map(each.data, "spec", "decryption") for each in case.trees.of_kind("old", case.obj.kind, top))
    if not decryption or decryption in olds:
        return ""
    name = get_text(decryption, "secretRef", "name")
    key = f"the key in Secret {_short(name)}" if name else "the cloud identity of its controller"
    return f"; decryption is new: Flux decrypts Secrets of this folder that SOPS encrypted, with {key}"


def _source(obj: Obj) -> str:
    return f"Flux fetches what is applied from {_short(get_text(obj.data, 'spec', 'url'))}"


def _endpoints(obj: Obj) -> str:
    found = [str(each) for item in get_list(obj.data, "endpoints") for each in get_list(item, "addresses")]
    found += [get_text(each, "ip") for item in get_list(obj.data, "subsets") for each in get_list(item, "addresses")]
    return f"it sends the traffic of a Service to {listing(map(_short, found)) or 'other addresses'}"


def _volume(obj: Obj) -> str:
    spec = get_map(obj.data, "spec")
    where = [
        f"{name} {value(item)}"
        for name, item in spec.items()
        if isinstance(item, dict) and name not in ("capacity", "claimRef", "nodeAffinity")
    ]
    return f"pods of the claim get {listing(where) or 'a volume'}"


def _resource_quota(obj: Obj) -> str:
    hard = listing((f"{key} {value(item)}" for key, item in get_map(obj.data, "spec", "hard").items()), 5)
    return f"it limits what all apps of the namespace use together: {hard or 'nothing'}"


def _storage_class(obj: Obj) -> str:
    return f"claims of every namespace may use it, with driver {value(get(obj.data, 'provisioner'))}"


def _grant(obj: Obj) -> str:
    who = [get_text(each, "namespace") for each in get_list(obj.data, "spec", "from")]
    what = [get_text(each, "kind") for each in get_list(obj.data, "spec", "to")]
    return f"objects of namespace {listing(who) or '?'} may use every {listing(what) or 'object'} that it names here"


_SPECIFIC: Mapping[str, Callable[[Obj], str]] = {
    "Application.argoproj.io": _application,
    "EndpointSlice.discovery.k8s.io": _endpoints,
    "Endpoints": _endpoints,
    "GitRepository.source.toolkit.fluxcd.io": _source,
    "HelmRepository.source.toolkit.fluxcd.io": _source,
    "Kustomization.kustomize.toolkit.fluxcd.io": _kustomization,
    "OCIRepository.source.toolkit.fluxcd.io": _source,
    "PersistentVolume": _volume,
    "ReferenceGrant.gateway.networking.k8s.io": _grant,
    "ResourceQuota": _resource_quota,
    "StorageClass.storage.k8s.io": _storage_class,
}
"""What an object of a kind does, with what it names."""


def _short(text: str) -> str:
    return clip(text, 80)


def reach(case: Case) -> Iterator[Finding]:
    """An object of a harmless kind reaches outside its namespace by a field."""
    new = case.obj
    if not is_harmless(new.type):
        return
    config = case.trees.config(new.path)
    found = list(dict.fromkeys(reach_of(new, case.place, config)))
    was = set(reach_of(case.old, case.place, config)) if case.old else set()
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
            for each in reach_of(obj, place, config)
        },
    )


def duplicate(case: Case) -> Iterator[Finding]:
    """A new object has the identity of another one in the tree, which it replaces, or is replaced by."""
    obj = case.obj
    for other in case.trees.named("new", obj.kind, case.top, obj.name):
        same = (other.type, other.name, other.namespace) == (obj.type, obj.name, obj.namespace)
        if same and obj.name and obj.namespace and other.path != obj.path:
            yield "danger", f"is also in {clip(other.path, 200)}: one of the two replaces the other"


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
        yield f"a Secret of type {_short(type_)}{of}: a controller reads or fills it"


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
