"""The names of a foreign system, laid on what a Topology comes to."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace

from kaigen.compile.app import App, Object
from kaigen.compile.expressions import Expr, Joined, Release, Tree
from kaigen.compile.field_expressions import Arguments, Labels
from kaigen.compile.topology.workloads import SERVE
from kaigen.kinds.compat import ServingNaming

_NODES = "-nodes"


def renamed(app: App, naming: ServingNaming) -> App:
    """An app with the names, labels, ports and folders of a foreign system.

    Args:
        app: as kaigen names it.
        naming: the foreign names.
    """
    labels: dict[str, Tree] = {key: value or Release() for key, value in naming.labels.items()}
    objects = tuple(_object(item, naming, labels) for item in app.objects)
    return replace(app, objects=objects)


def _object(item: Object, naming: ServingNaming, labels: Mapping[str, Tree]) -> Object:
    body = _moved(item.body, naming)
    assert isinstance(body, dict)
    spec = body.get("spec")
    if item.test or not isinstance(spec, dict):
        return replace(item, body=body)
    if item.kind == "Service" and spec.get("clusterIP") != "None":
        ports = spec["ports"]
        assert isinstance(ports, list)
        more = [
            {"name": name, "port": port, "targetPort": port, "protocol": "TCP"}
            for name, port in naming.ports.items()
        ]
        spec = {**spec, "publishNotReadyAddresses": True, "ports": [*ports, *more]}
    return replace(item, body={**body, "spec": _labelled(spec, labels)})


def _labelled(node: Tree, labels: Mapping[str, Tree]) -> Tree:
    """Pods with further labels, selectors that ask for them, and the engine's container under the app's name."""
    if isinstance(node, Labels) and node.helper.endswith(".selectorLabels"):
        return replace(node, own={**node.own, **labels})
    if isinstance(node, list):
        return [_labelled(item, labels) for item in node]
    if not isinstance(node, Mapping):
        return node
    found = {key: _labelled(value, labels) for key, value in node.items()}
    if found.get("name") == SERVE and "image" in found:
        found["name"] = Release()
    return found


def _moved(node: Tree, naming: ServingNaming) -> Tree:
    """Texts with foreign folders in place of kaigen's, and names with the foreign ending."""
    if isinstance(node, str):
        for own, foreign in naming.paths.items():
            node = re.sub(rf"(?<![\w/.-]){re.escape(own)}(?=/|$)", foreign, node)
        return node
    if isinstance(node, Release):
        return Release(naming.headless) if node.suffix == _NODES else node
    if isinstance(node, Joined):
        return Joined(tuple(_part(part, naming) for part in node.parts))
    if isinstance(node, Arguments):
        return replace(node, fixed=[_moved(item, naming) for item in node.fixed])
    if isinstance(node, Expr):
        return node
    if isinstance(node, Mapping):
        return {key: _moved(value, naming) for key, value in node.items()}
    return [_moved(item, naming) for item in node] if isinstance(node, list) else node


def _part(part: str | Expr, naming: ServingNaming) -> str | Expr:
    found = _moved(part, naming)
    assert isinstance(found, str | Expr)
    return found
