"""Rules for kinds that act outside of a namespace, or that kaigen does not know, and for fields that do."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from functools import cache

from kaigen.core.json_types import Json
from kaigen.diff.formatting import clip, listing, value
from kaigen.diff.objects import Obj, get, get_list, get_map, get_text
from kaigen.diff.rules import storage
from kaigen.diff.rules.case import Case, Finding
from kaigen.diff.trees import Trees, is_own, top_of
from kaigen.gitops.layout import TENANT_FOLDER, is_guard_component
from kaigen.kubernetes.schemas import is_cluster_type
from kaigen.system.lazy_import import lazy_imports

with lazy_imports():
    from kaigen.catalog import yaml_files


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


def is_harmless(type_: str) -> bool:
    """Return whether objects of a kind act in their own namespace only."""
    return type_ in harmless_kinds()


def kind(case: Case) -> Iterator[Finding]:
    """An object of a kind that acts outside of its namespace, or that kaigen does not know."""
    obj = case.obj
    if is_harmless(obj.type) or _is_usual(case):
        return
    if case.status == "removed":
        if obj.type not in _REMOVAL_IS_JUDGED:
            yield "danger", f"is deleted; {_effect(obj)}"
    elif obj.type != "PersistentVolume" or not storage.is_allowed(case):
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


def duplicate(case: Case) -> Iterator[Finding]:
    """A new object has the identity of another one in the tree, which it replaces, or is replaced by."""
    obj = case.obj
    for other in case.trees.named("new", obj.kind, case.top, obj.name):
        same = (other.type, other.name, other.namespace) == (obj.type, obj.name, obj.namespace)
        if same and obj.name and obj.namespace and other.path != obj.path:
            yield "danger", f"is also in {clip(other.path, 200)}: one of the two replaces the other"


_FOLDER = re.compile(r"(?P<above>.*/|)(?P<namespace>[^/]+)/(?P<app>[^/]+)/(?P<form>manifests|chart)")

_FREE: Mapping[str, tuple[tuple[str, ...], ...]] = {
    "Application": (("spec", "ignoreDifferences"), ("spec", "syncPolicy", "syncOptions")),
    "ApplicationSet": (
        ("spec", "template", "spec", "ignoreDifferences"),
        ("spec", "template", "spec", "syncPolicy", "syncOptions"),
    ),
    "Kustomization": tuple(("spec", field) for field in ("dependsOn", "force", "healthCheckExprs", "timeout", "wait")),
    "HelmRelease": (
        *(("spec", field) for field in ("dependsOn", "healthCheckExprs", "timeout")),
        ("spec", "driftDetection", "ignore"),
    ),
    # Another rule reports what a project allows.
    "AppProject": tuple(
        ("spec", field)
        for field in ("clusterResourceWhitelist", "description", "destinations", "namespaceResourceWhitelist")
    ),
}
"""Fields that follow from what an app is, by kind."""

_NAMED = {
    ("metadata", "namespace"): "namespace",
    ("spec", "project"): "namespace",
    ("spec", "destination", "namespace"): "namespace",
    ("spec", "targetNamespace"): "namespace",
    ("spec", "storageNamespace"): "namespace",
    ("spec", "source", "helm", "releaseName"): "app",
    ("spec", "releaseName"): "app",
    ("spec", "source", "chart"): "app",
}
"""Fields with the name of an app or of its namespace."""

_PATHS = (("spec", "source", "path"), ("spec", "path"), ("spec", "chart", "spec", "chart"))
"""Fields with the folder that is synced."""


def _is_usual(case: Case) -> bool:
    """Return whether an object is one that kaigen renders itself, as all others of its kind, or is no longer.

    It must be in a folder of kaigen's, and either belong to a tenancy, or sync a folder of the tree with the
    settings of another object of its kind in the old tree.
    """
    if case.new is None:
        return case.old is not None and is_own(case.old) and case.old.type not in protections()
    new = case.new
    if not is_own(new):
        return False
    if new.path.split("/")[-3:-2] == [TENANT_FOLDER]:
        return True
    top = top_of(new.path)
    if not _syncs_tree(new, top, case.trees):
        return False
    olds = case.trees.once(("own settings", new.type, top), lambda: _own_settings(new, top, case.trees))
    return _settings(new) in (olds or map(_settings, _planned(case)))


def _own_settings(new: Obj, top: str, trees: Trees) -> set[str]:
    """Return the settings of kaigen's objects of a kind in the old tree."""
    olds = trees.of_kind("old", new.kind, top)
    return {_settings(obj) for obj in olds if is_own(obj) and obj.type == new.type}


def _planned(case: Case) -> Iterator[Obj]:
    """Yield the object itself where nothing was synced before, and it syncs from where kaigen.yaml says."""
    gitops = case.trees.config(case.obj.path).gitops
    if gitops is None:
        return
    flux = gitops.flux.oci if gitops.flux else None
    known = [gitops.repository or "", gitops.charts or "", flux or ""]
    places = [place.replace("{env}", case.trees.config(case.obj.path).environment) for place in known if place]
    named = [get_text(case.obj.data, *keys) for keys in (("spec", "source", "repoURL"), ("spec", "url"))]
    if all(any(name in place or name.startswith(place) for place in places) for name in named if name):
        yield case.obj


def _syncs_tree(obj: Obj, top: str, trees: Trees) -> bool:
    """Return whether the folder that an object syncs, if it names one, has files in the new tree."""
    for keys in _PATHS:
        path = get_text(obj.data, *keys).removeprefix("./")
        found = _FOLDER.fullmatch(path)
        if found:
            inner = f"{found['namespace']}/{found['app']}/{found['form']}"
            return trees.has_folder("new", f"{top}/{inner}" if top else inner)
    return True


def _settings(obj: Obj) -> str:
    """Return what is the same in all objects of a kind: without the names and the folder of an app."""
    data = json.loads(json.dumps(obj.data))
    names = _names(obj)
    for keys in _FREE.get(obj.kind, ()):
        _drop(data, keys)
    for keys in _PATHS:
        path = get_text(data, *keys)
        found = _FOLDER.fullmatch(path)
        if found:
            _put(data, keys, f"{found['above']}NAMESPACE/APP/{found['form']}")
    for keys, what in _NAMED.items():
        text = get_text(data, *keys)
        name = names.get(what)
        if name and (text == name or text.endswith(f".{name}")):
            _put(data, keys, text.removesuffix(name) + what.upper())
    _drop_guard(data, names)
    if "chart" in get_map(data, "spec", "source"):
        _drop(data, ("spec", "source", "targetRevision"))
    if obj.kind == "OCIRepository" and names.get("app"):
        _put(data, ("spec", "url"), get_text(data, "spec", "url").removesuffix(names["app"]))
        _drop(data, ("spec", "ref", "tag"))
    _drop(data, ("spec", "chartRef", "name"))
    for key in ("name", "annotations"):
        _drop(data, ("metadata", key))
    accounts = get_list(data, "spec", "destinationServiceAccounts")
    for account in accounts:
        _drop(account, ("namespace",))
    unique = {json.dumps(each, sort_keys=True) for each in accounts}
    _put(data, ("spec", "destinationServiceAccounts"), [*sorted(unique)])
    return json.dumps(data, sort_keys=True)


def _drop_guard(data: Json, names: Mapping[str, str]) -> None:
    """Remove the component of an app with a route, if it is the one that kaigen renders."""
    components = get_list(data, "spec", "components")
    if len(components) == 1 and is_guard_component(
        str(components[0]), names.get("namespace", ""), names.get("app", "")
    ):
        _drop(data, ("spec", "components"))


def _names(obj: Obj) -> dict[str, str]:
    """Return the app and the namespace that an object syncs, as far as it names them."""
    for keys in _PATHS:
        found = _FOLDER.fullmatch(get_text(obj.data, *keys))
        if found:
            return {"namespace": found["namespace"], "app": found["app"]}
    app = get_text(obj.data, "spec", "source", "chart") or get_text(obj.data, "spec", "releaseName")
    if obj.kind in ("GitRepository", "OCIRepository"):
        # A source may be one of each namespace; that of a chart ends in the name of its app.
        is_chart = "layerSelector" in get_map(obj.data, "spec")
        app = get_text(obj.data, "spec", "url").rpartition("/")[2] if is_chart else ""
        return {"namespace": obj.namespace, "app": app}
    place = get_text(obj.data, "spec", "destination", "namespace") or get_text(obj.data, "spec", "targetNamespace")
    return {"namespace": place, "app": app}


def _drop(data: Json, keys: tuple[str, ...]) -> None:
    above = get_map(data, *keys[:-1])
    above.pop(keys[-1], None)


def _put(data: Json, keys: tuple[str, ...], item: Json) -> None:
    above = get_map(data, *keys[:-1])
    if keys[-1] in above:
        above[keys[-1]] = item


@cache
def harmless_kinds() -> dict[str, str]:
    """Return the kinds that act in their own namespace only, by type, each with the reason."""
    return _listed("harmless")


@cache
def effects() -> dict[str, str]:
    """Return what objects of further kinds do, by type, in one clause."""
    return _listed("effects")


@cache
def protections() -> dict[str, str]:
    """Return the kinds whose removal takes a protection away, by type, each with what they protect from."""
    return _listed("protections")


def _listed(field: str) -> dict[str, str]:
    groups = yaml_files.load("kind_effects").values()
    return {type_: text for group in groups for type_, text in group.get(field, {}).items()}
