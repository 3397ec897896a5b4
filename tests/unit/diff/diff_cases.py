"""Small Kubernetes objects, and the trees and differences that they make."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterable
from typing import Any

from kaigen.diff import AppChange, Change, Effect, ObjectChange, compare

Obj = dict[str, Any]

SAFE: Obj = {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}, "readOnlyRootFilesystem": True}


def obj(kind: str, name: str = "x", api: str = "v1", **fields: Any) -> Obj:
    """An object in namespace `team-a`; `metadata` fields are merged."""
    metadata = {"name": name, "namespace": "team-a"} | fields.pop("metadata", {})
    return {"apiVersion": api, "kind": kind, "metadata": metadata, **fields}


def container(name: str = "run", image: str = "repo/app:v1@sha256:" + "a" * 64, **fields: Any) -> Obj:
    """A container that meets Pod Security restricted."""
    return {"name": name, "image": image, "securityContext": copy.deepcopy(SAFE), **fields}


def template(*containers: Obj, metadata: Obj | None = None, **spec: Any) -> Obj:
    """A pod template that meets Pod Security restricted."""
    return {
        **({"metadata": metadata} if metadata else {}),
        "spec": {
            "automountServiceAccountToken": False,
            "securityContext": {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}},
            "containers": list(containers) or [container()],
            **spec,
        },
    }


def deployment(name: str = "web", pod: Obj | None = None, **spec: Any) -> Obj:
    """A Deployment of one hardened pod."""
    return obj("Deployment", name, "apps/v1", spec={"template": pod or template(), **spec})


def stateful(name: str = "db", **spec: Any) -> Obj:
    """A StatefulSet of one hardened pod."""
    return obj("StatefulSet", name, "apps/v1", spec={"template": template(), **spec})


def job(name: str = "run-1a2b3c4d", pod: Obj | None = None, **spec: Any) -> Obj:
    """A Job of one hardened pod."""
    return obj("Job", name, "batch/v1", spec={"template": pod or template(), **spec})


def claim(name: str = "data", size: str = "10Gi", annotations: Obj | None = None, **spec: Any) -> Obj:
    """A claim of a volume."""
    return obj(
        "PersistentVolumeClaim",
        name,
        metadata={"annotations": annotations} if annotations else {},
        spec={"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": size}}, **spec},
    )


KEEP = {
    "argocd.argoproj.io/sync-options": "Prune=false,Delete=false",
    "helm.sh/resource-policy": "keep",
    "kustomize.toolkit.fluxcd.io/prune": "disabled",
}


def with_(item: Obj, way: str, value: Any) -> Obj:
    """A copy with another value at a dotted way; numbers step into lists, `None` takes the field away."""
    result = copy.deepcopy(item)
    *steps, last = way.split("/")
    here: Any = result
    for step in steps:
        here = here[int(step)] if isinstance(here, list) else here.setdefault(step, {})
    if value is None:
        del here[last]
    else:
        here[int(last) if isinstance(here, list) else last] = value
    return result


def tree(*objects: Obj | None, folder: str = "team-a/app") -> dict[str, bytes]:
    """A tree that holds these objects, each in a file that is named by its kind and place."""
    return {
        f"{folder}/manifests/{number}-object.yaml": json.dumps(item).encode()
        for number, item in enumerate(objects)
        if item is not None
    }


def only_app(change: Change) -> AppChange:
    """The one app that differs."""
    assert len(change.apps) == 1, change.apps
    return change.apps[0]


def only_object(change: Change) -> ObjectChange:
    """The one object that differs."""
    app = only_app(change)
    assert len(app.objects) == 1, app.objects
    return app.objects[0]


def said(effects: Iterable[Effect], rule: str) -> list[tuple[str, str]]:
    """What a rule said."""
    return [(effect.level, effect.text) for effect in effects if effect.rule == rule]


def difference(old: Obj | None, new: Obj | None, *siblings: Obj) -> Change:
    """What becomes of one object in an app that holds these others too."""
    return compare(tree(old, *siblings), tree(new, *siblings))
