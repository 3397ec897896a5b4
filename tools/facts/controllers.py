"""Make kaigen/catalog/controller_versions.json: what differs between versions of controllers, from their kinds."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

import yaml

from kaigen.kubernetes.schemas import index
from tools.facts.vllm_table import changes, spans

ROOT = Path(__file__).parent.parent.parent
TABLE = ROOT / "kaigen" / "catalog" / "controller_versions.json"
_FILES = (
    *("config/crd/bases/*.yaml", "config/components/crd/bases/*.yaml"),
    *("pkg/apis/crds/*.yaml", "manifests/crds/*-crd.yaml"),
)
"""Where the modules of controllers have the definitions of their kinds."""
_UNREAD = ("apiVersion", "kind", "metadata", "operation", "status")
"""Fields that Kubernetes defines, or that only controllers write. A generator in a generator of an ApplicationSet, and
its template, have the fields of the ApplicationSet's own."""
Rows = dict[str, dict[str, Any]]
Archive = tuple[Path, str, str]
"""An archive of a module, its version and the day of it."""


def definitions(archive: Path) -> Iterator[dict[str, Any]]:
    """Yield the custom kinds in the archive of a module that kaigen has a schema of."""
    known = index()["kinds"]
    with zipfile.ZipFile(archive) as files:
        for name in sorted(files.namelist()):
            inner = name.partition("@")[2].partition("/")[2]
            if any(fnmatch(inner, pattern) for pattern in _FILES):
                body = yaml.load(files.read(name), getattr(yaml, "CSafeLoader", yaml.SafeLoader))
                if isinstance(body, dict) and body.get("kind") == "CustomResourceDefinition":
                    group, kind = body["spec"]["group"], body["spec"]["names"]["kind"]
                    if any(version.startswith(f"{group}/") for version in known.get(kind, {})):
                        yield body


def fields_of(schema: Mapping[str, Any], place: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield each field below a schema by its place, with what limits its values; those of pods are Kubernetes' own."""
    for name, child in schema.get("properties", {}).items():
        if (place == "" and name in _UNREAD) or (name in ("template", "generators") and "generators" in place):
            continue
        path, inner = f"{place}.{name}".lstrip("."), child
        yield path, _facts(child)
        while "items" in inner:
            inner, path = inner["items"], f"{path}[]"
        if "additionalProperties" in inner and isinstance(inner["additionalProperties"], dict):
            inner, path = inner["additionalProperties"], f"{path}{{}}"
        if not _is_pod(inner):
            yield from fields_of(inner, path)


def _facts(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values that a field may have and its default, where its schema has them."""
    enum = {"enum": sorted(schema["enum"], key=str)} if "enum" in schema else {}
    return enum | ({"default": schema["default"]} if "default" in schema else {})


def _is_pod(schema: Mapping[str, Any]) -> bool:
    return "containers" in schema.get("properties", {}).get("spec", {}).get("properties", {})


def _kinds(archives: Sequence[Archive]) -> dict[str, Rows]:
    """Return the fields of each kind by its API version and name."""
    found: dict[str, Rows] = {}
    for archive, _, _ in archives:
        for body in definitions(archive):
            spec = body["spec"]
            for version in spec["versions"]:
                if version["served"]:
                    name = f"{spec['group']}/{version['name']}/{spec['names']['kind']}"
                    found[name] = dict(fields_of(version["schema"]["openAPIV3Schema"]))
    return found


def _differing(kinds: Sequence[Mapping[str, Rows]], name: str) -> dict[str, Any]:
    """Return the fields of a kind that are not the same in all versions that have it."""
    having = [number for number, each in enumerate(kinds) if name in each]
    paths = sorted({path for number in having for path in kinds[number][name]})
    rows = {path: [kinds[number][name].get(path) for number in having] for path in paths}
    found: dict[str, Any] = {}
    for path, own in rows.items():
        changed = [[having[number], change] for number, change in changes(own)]
        above = rows.get(path.rpartition(".")[0].rstrip("[]{}"), [])
        comes_with_it = len(changed) < 3 and [row is None for row in own] == [row is None for row in above]
        if (len(changed) > 1 or changed[0][0] != having[0]) and not (None in own and comes_with_it):
            found[path] = changed
    return found


def table(sources: Mapping[str, Mapping[str, Sequence[Archive]]]) -> str:
    """Return the content of the table.

    Args:
        sources: archives of modules by controller and version, oldest first.
    """
    blocks = []
    for controller, versions in sources.items():
        kinds = [_kinds(archives) for archives in versions.values()]
        names = sorted({name for each in kinds for name in each})
        served = spans([each.keys() for each in kinds])
        rows = [f"   {json.dumps(name)}: {json.dumps(_differing(kinds, name))}" for name in names]
        parts = {
            "versions": json.dumps(
                {
                    version: {
                        "source": ", ".join(f"{_module(path)} {found}" for path, found, _ in archives),
                        "date": max(day for *_, day in archives),
                    }
                    for version, archives in versions.items()
                }
            ),
            "served": json.dumps({name: served[name] for name in names}),
            "fields": "{\n" + ",\n".join(rows) + "\n  }",
        }
        body = ",\n".join(f"  {json.dumps(key)}: {value}" for key, value in parts.items())
        blocks.append(f" {json.dumps(controller)}: {{\n{body}\n }}")
    return "{\n" + ",\n".join(blocks) + "\n}\n"


def _module(archive: Path) -> str:
    with zipfile.ZipFile(archive) as files:
        return files.namelist()[0].partition("@")[0]
