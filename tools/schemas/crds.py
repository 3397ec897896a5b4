"""Custom resources, from the structural schemas of their CustomResourceDefinitions."""

from __future__ import annotations

import json
import re
import sys
from collections import Counter, defaultdict
from collections.abc import Callable
from pathlib import Path

import yaml

from tools.schemas.cel import rule_file
from tools.schemas.files import INTEGER_FORMATS, STRING_FORMATS, Files, Node, Schema, dump, dump_shard, sha256

QUANTITY = re.compile(r"\^\(\\\+\|-\)\?\(\(\[0-9\]\+.*KMGTPE\]i.*\$")
# Keywords without effect on a node; rules in CEL and defaults are in files of their own.
SILENT = {"default", "x-kubernetes-validations", "x-kubernetes-map-type", "x-kubernetes-list-type"}


def make_crds(folder: Path) -> tuple[Files, dict[str, Schema], Schema]:
    """Return the shards of the custom resources, the index entry of each kind, and the sources with hashes."""
    groups: dict[str, dict[str, Node]] = defaultdict(dict)
    schemas: dict[str, dict[str, Schema]] = defaultdict(dict)
    origins: dict[str, set[str]] = defaultdict(set)
    known: dict[str, Schema] = {}
    sources: Schema = {}
    for path in sorted(folder.glob("*.yaml")):
        content = path.read_bytes()
        crd = yaml.load(content, yaml.CSafeLoader)
        spec = crd["spec"]
        group, kind = spec["group"], spec["names"]["kind"]
        origin = re.search(r"Source: (.+)", content.decode().partition("\n")[0])
        if origin is None:
            sys.exit(f"{path.name}: its first line names no source")
        origins[group].add(origin[1])
        sources[f"crds/{path.name}"] = {"sha256": sha256(content), "source": origin[1]}
        for version in spec["versions"]:
            if not version["served"]:
                continue
            limit_replicas(version)
            name = f"{kind}.{version['name']}"
            schemas[group][name] = version["schema"]["openAPIV3Schema"]
            groups[group][name] = crd_top(version["schema"]["openAPIV3Schema"])
            entry: Schema = {"ref": f"{group}/{name}"}
            if spec["scope"] == "Cluster":
                entry["cluster"] = 1
            if version.get("deprecated"):
                entry["deprecated"] = 1
            known[f"{group}/{version['name']}/{kind}"] = entry
    files = {
        f"{group}.json": dump_shard("; ".join(sorted(origins[group])), share(tops, group))
        for group, tops in groups.items()
    }
    for group, tops in schemas.items():
        if written := rule_file(tops, "; ".join(sorted(origins[group])), dump):
            files[f"{group}.rules.json"] = written
            for name in json.loads(written)["kinds"]:
                kind, _, version = name.partition(".")
                known[f"{group}/{version}/{kind}"]["rules"] = 1
    return files, known, sources


def limit_replicas(version: Schema) -> None:
    """Add the limits of the replicas that the scale subresource names, which are none of the schema.

    Source: ValidateScaleSpec in pkg/registry/customresource/validator.go of k8s.io/apiextensions-apiserver v0.36.3.
    """
    scale = version.get("subresources", {}).get("scale")
    if scale is None:
        return
    node = version["schema"]["openAPIV3Schema"]
    for step in scale["specReplicasPath"].removeprefix(".").split("."):
        node = node["properties"][step]
    node["minimum"] = max(0, node.get("minimum", 0))
    node["maximum"] = min(2**31 - 1, node.get("maximum", 2**31 - 1))


def crd_top(schema: Schema) -> Node:
    """Return the node of a custom resource, including object metadata."""
    node = crd_node(schema)
    if not isinstance(node, dict) or "p" not in node:
        sys.exit("a custom resource without properties")
    node["p"] |= {"apiVersion": "s", "kind": "s", "metadata": "meta.v1/ObjectMeta"}
    if "status" in node["p"]:
        node["p"]["status"] = "any"
        node["r"] = [field for field in node.get("r", ()) if field != "status"]
    return {key: value for key, value in node.items() if value != []}


def crd_node(schema: Schema) -> Node:
    """Return the node of a structural schema of apiextensions.k8s.io/v1; exit on unknown keywords."""
    left = dict(schema)
    node: Schema = {}
    for key, ours in (("nullable", "null"), ("x-kubernetes-preserve-unknown-fields", "open")):
        if left.pop(key, False):
            node[ours] = 1
    kind = left.pop("type", None)
    if left.pop("x-kubernetes-int-or-string", False):
        kind = "int-or-string"
        left.pop("anyOf", None)
    form = left.pop("format", None)
    match kind:
        case "object":
            crd_object(left, node)
        case "array":
            crd_list(left, node)
        case "string":
            node["t"] = STRING_FORMATS[form]
        case "integer":
            node["t"] = INTEGER_FORMATS[form]
        case "number" | "boolean":
            node["t"] = kind[0]
        case "int-or-string":
            quantity = QUANTITY.fullmatch(left.get("pattern", ""))
            node["t"] = "qi" if quantity else "is"
            if quantity:
                del left["pattern"]
        case None if "properties" in left:  # a branch of a oneOf checks only some fields
            crd_object(left, node)
            node["open"] = 1
        case None:
            node["t"] = form or "any"
            node.pop("open", None)
    crd_limits(left, node)
    if node.keys() & {"one", "any"} and "properties" in schema:
        # The API server sets defaults before it checks which branch fits.
        defaults = {k: child["default"] for k, child in schema["properties"].items() if "default" in child}
        node |= {"kd": defaults} if defaults else {}
    if left.keys() - SILENT:
        sys.exit(f"keywords that the checks do not know: {sorted(left.keys() - SILENT)}")
    if node.keys() == {"t"}:
        return str(node["t"])
    return node


def crd_object(left: Schema, node: Schema) -> None:
    """Move the keywords of an object or a map from a schema to its node."""
    if "additionalProperties" in left and left["additionalProperties"] is not True:
        node["m"] = crd_node(left.pop("additionalProperties"))
        node.pop("open", None)
    else:
        node["open"] = 1 if left.pop("additionalProperties", False) else node.get("open", 0)
        properties = left.pop("properties", {})
        node["p"] = {key: or_null(child) for key, child in properties.items()}
        # The API server sets defaults before it checks required fields.
        required = [key for key in left.pop("required", ()) if "default" not in properties.get(key, {})]
        if required:
            node["r"] = sorted(required)
        if not node["open"]:
            del node["open"]
    move(left, node, {"minProperties": "min", "maxProperties": "max"})


def or_null(schema: Schema) -> Node:
    """Return the node of a field: null is allowed for one with a default, which replaces it."""
    node = crd_node(schema)
    if "default" not in schema:
        return node
    return {**(node if isinstance(node, dict) else {"t": node}), "null": 1}


def crd_list(left: Schema, node: Schema) -> None:
    """Move the keywords of a list from a schema to its node."""
    items = left.pop("items")
    node["l"] = crd_node(items)
    if keys := left.pop("x-kubernetes-list-map-keys", None):
        node["k"] = keys
        properties = items.get("properties", {})
        if defaults := {k: properties[k]["default"] for k in keys if "default" in properties.get(k, {})}:
            node["kd"] = defaults
    elif left.get("x-kubernetes-list-type") == "set":
        node["set"] = 1
    move(left, node, {"minItems": "min", "maxItems": "max"})


def crd_limits(left: Schema, node: Schema) -> None:
    """Move limits of values and combinations of schemas to a node."""
    move(left, node, {"minLength": "minlen", "maxLength": "maxlen", "minimum": "min", "maximum": "max"})
    move(left, node, {"enum": "enum", "pattern": "re"})
    if "re" in node:
        # Go has flags anywhere, and Python at the beginning or in a group only.
        node["re"] = re.sub(r"^\^\(\?i\)(.*)\$$", r"^(?i:\1)$", node["re"])
        re.compile(node["re"])
    for part in left.pop("allOf", ()):
        if part.keys() != {"enum"}:
            sys.exit(f"an allOf of more than enums: {part}")
        node["enum"] = [v for v in node.get("enum", part["enum"]) if v in part["enum"]]
    for key, ours in (("oneOf", "one"), ("anyOf", "any")):
        if key in left:
            node[ours] = [crd_node(part) for part in left.pop(key)]
    if "not" in left:
        node["none"] = crd_node(left.pop("not"))


def move(left: Schema, node: Schema, names: dict[str, str]) -> None:
    """Move keywords from a schema to its node under other names."""
    for key, ours in names.items():
        if key in left:
            node[ours] = left.pop(key)


def share(tops: dict[str, Node], shard: str) -> dict[str, Node]:
    """Return the definitions of a shard: the kinds, and each larger node that occurs several times.

    Such a node is named by a hash of what it says, so that the others keep their names when one changes.
    """
    count: Counter[str] = Counter()

    def tally(node: Node) -> Node:
        if isinstance(node, dict):
            text = dump(node)
            count[text] += 1
            if count[text] == 1:
                for_children(node, tally)
        return node

    for top in tops.values():
        tally(top)
    shared: dict[str, Node] = {}

    def replace(node: Node) -> Node:
        if not isinstance(node, dict):
            return node
        text = dump(node)
        if count[text] < 2 or len(text) < 60:
            return for_children(node, replace)
        name = sha256(text.encode())[:8]
        if name not in shared:
            shared[name] = for_children(node, replace)
        return f"{shard}/{name}"

    kinds = {name: for_children(top, replace) for name, top in tops.items() if isinstance(top, dict)}
    return {**kinds, **shared}


def for_children(node: Schema, change: Callable[[Node], Node]) -> Schema:
    """Return the node with its children replaced."""
    changed = dict(node)
    for key in ("l", "m", "none"):
        if key in node:
            changed[key] = change(node[key])
    for key in ("one", "any"):
        if key in node:
            changed[key] = [change(child) for child in node[key]]
    if "p" in node:
        changed["p"] = {key: change(child) for key, child in node["p"].items()}
    return changed
