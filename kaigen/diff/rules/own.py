"""Which objects kaigen itself renders for syncers and tenants, with the settings that it gives all of them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping

from kaigen.catalog.kind_effects import protections
from kaigen.core.json_types import Json
from kaigen.diff.objects import Obj, get_list, get_map, get_text
from kaigen.diff.rules.case import Case
from kaigen.diff.trees import TENANT_FOLDER, Trees, is_own, top_of

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


def is_usual(case: Case) -> bool:
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
