"""Core kinds, from the schemas in the package kubernetes-validate and from tools/core_rules.yaml."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import json
import re
import sys
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

from tools.schemas.files import INTEGER_FORMATS, STRING_FORMATS, Files, Node, Schema, dump_shard

FREE_FORM = {
    "meta.v1/FieldsV1",
    "meta.v1/Patch",
    "pkg.runtime/RawExtension",
    "apiextensions.v1/JSON",
    "apiextensions.v1/JSONSchemaPropsOrArray",
    "apiextensions.v1/JSONSchemaPropsOrBool",
    "apiextensions.v1/JSONSchemaPropsOrStringArray",
}
ATOMS = {
    "api.resource/Quantity": "q",
    "util.intstr/IntOrString": "is",
    "meta.v1/Time": "time",
    "meta.v1/MicroTime": "time",
    **dict.fromkeys(FREE_FORM, "any"),
}


def make_core(targets: tuple[str, ...], rules_file: Path) -> tuple[Files, dict[str, Schema]]:
    """Return the shards of the core kinds, and the index entry of each `apiVersion/Kind`."""
    rules = yaml.safe_load(rules_file.read_text())
    folder = core_folder()
    versions = sorted(
        (p.name[1:].split(".0-")[0] for p in folder.glob("v*.0-local")), key=lambda v: int(v.split(".")[1])
    )
    served: dict[str, list[str]] = defaultdict(list)
    refs: dict[str, str] = {}
    variants: dict[str, list[tuple[str, Node]]] = defaultdict(list)
    for version in versions:
        definitions = json.loads((folder / f"v{version}.0-local" / "_definitions.json").read_bytes())["$defs"]
        kinds = dict(core_kinds(definitions))
        for kind, name in kinds.items():
            served[kind].append(version)
            if version in targets:
                refs[kind] = short(name)
        if version in targets:
            for name, node in core_nodes(definitions, kinds, rules, version).items():
                variants[name].append((version, node))
    check_rules_are_used(rules, variants)
    known: dict[str, Schema] = {}
    for kind, found in served.items():
        entry: Schema = {}
        if kind in refs:
            entry["ref"] = refs[kind]
        if found[0] != versions[0]:
            entry["since"] = found[0]
        if found[-1] != versions[-1]:
            entry["until"] = found[-1]
        group, _, name = kind.rpartition("/")
        if name in rules["clusterScoped"].get(group.split("/")[0] if "/" in group else "core", ()):
            entry["cluster"] = 1
        known[kind] = entry
    for kind, gone in rules["removed"].items():
        known.setdefault(kind, {"until": f"1.{int(gone.split('.')[1]) - 1}"})
    shards: dict[str, dict[str, Any]] = defaultdict(dict)
    for name, found_nodes in variants.items():
        shard, _, local = name.partition("/")
        shards[shard][local] = merge_variants(found_nodes, targets)
    source = f"kubernetes-validate {importlib.metadata.version('kubernetes-validate')}, tools/core_rules.yaml"
    return {f"{s}.json": dump_shard(source, defs) for s, defs in shards.items()}, known


def core_folder() -> Path:
    """Return the folder of the schemas in the installed package."""
    spec = importlib.util.find_spec("kubernetes_validate")
    if spec is None or spec.origin is None:
        sys.exit("kubernetes-validate is not installed")
    return Path(spec.origin).parent / "kubernetes-json-schema"


def core_kinds(definitions: Schema) -> Iterator[tuple[str, str]]:
    """Return `apiVersion/Kind` and definition of every kind with object metadata."""
    for name, schema in definitions.items():
        metadata = schema.get("properties", {}).get("metadata", {}).get("$ref", "")
        if not metadata.endswith(".ObjectMeta"):
            continue
        for gvk in schema.get("x-kubernetes-group-version-kind", ()):
            group = f"{gvk['group']}/" if gvk["group"] else ""
            yield f"{group}{gvk['version']}/{gvk['kind']}", name


def short(name: str) -> str:
    """Return `core.v1/PodSpec` for io.k8s.api.core.v1.PodSpec."""
    package, version, kind = name.split("/")[-1].split(".")[-3:]
    return f"{package}.{version}/{kind}"


def core_nodes(definitions: Schema, kinds: dict[str, str], rules: Schema, target: str) -> dict[str, Node]:
    """Return the nodes of all definitions reachable from the kinds, by short name."""
    by_short = {short(name): schema for name, schema in definitions.items()}
    nodes: dict[str, Node] = {}
    waiting = sorted({short(name) for name in kinds.values()})
    tops = set(waiting)
    while waiting:
        name = waiting.pop()
        if name in nodes:
            continue
        node = core_node(by_short[name])
        if isinstance(node, dict) and "p" in node:
            if name in tops and "status" in node["p"]:
                node["p"]["status"] = "any"  # written by controllers
            apply_rules(node, name, rules, target)
        nodes[name] = node
        waiting.extend(refs_of(node))
    return nodes


def refs_of(node: object) -> Iterator[str]:
    """Return the references in a node, in order."""
    if isinstance(node, str) and "/" in node:
        yield node
    elif isinstance(node, dict):
        for key in ("l", "m"):
            yield from refs_of(node.get(key))
        for child in node.get("p", {}).values():
            yield from refs_of(child)


def core_node(schema: Schema) -> Node:
    """Return the node of a core schema. Any optional field may be null, so nodes do not record that."""
    if "$ref" in schema:
        name = short(schema["$ref"])
        return ATOMS.get(name, name)
    types = schema.get("type", "any")
    kind = next(t for t in types if t != "null") if isinstance(types, list) else types
    form = schema.get("format")
    match kind:
        case "string":
            return STRING_FORMATS[form]
        case "integer":
            return INTEGER_FORMATS[form]
        case "number":
            return "n"
        case "boolean":
            return "b"
        case "array":
            node: Schema = {"l": core_node(schema["items"])}
            if schema.get("x-kubernetes-list-type") == "map":
                node["k"] = schema["x-kubernetes-list-map-keys"]
            elif schema.get("x-kubernetes-list-type") == "set":
                node["set"] = 1
            return node
        case "object" if "properties" in schema:
            node = {"p": {key: core_node(child) for key, child in schema["properties"].items()}}
            if schema.get("required"):
                node["r"] = sorted(schema["required"])
            return node
        case "object" if "additionalProperties" in schema:
            return {"m": core_node(schema["additionalProperties"])}
        case "object":
            return {"p": {}}
    return "any"


def apply_rules(node: Schema, name: str, rules: Schema, target: str) -> None:
    """Add the rules of tools/core_rules.yaml to the node of one definition."""
    fields: Schema = node["p"]
    for field, values in rules["enums"].get(name, {}).items():
        allowed = [v for v in values if isinstance(v, str)]
        allowed += [v for late in values if isinstance(late, dict) for v, since in late.items() if target >= since]
        if field.endswith("[]") and field[:-2] in fields:
            fields[field[:-2]] = {**fields[field[:-2]], "l": {"t": "s", "enum": allowed}}
        elif field in fields:
            fields[field] = {"t": "s", "enum": allowed}
    for field, (least, *most) in rules["ranges"].get(name, {}).items():
        if field in fields:
            fields[field] = {"t": fields[field], "min": least, **({"max": most[0]} if most else {})}
    fields |= rules["nodes"].get(name, {})
    for field in rules["notEmpty"].get(name, ()):
        if field == "*":
            node["min"] = 1
        else:
            fields[field] = {**fields[field], "min": 1}
    if name in rules["required"]:
        node["r"] = sorted({*node.get("r", ()), *rules["required"][name]})
    for form, definitions in rules["forms"].items():
        for field in definitions.get(name, ()):
            apply_form(node, field, form)
    if name in rules["unions"]:
        least, members, *excluded = rules["unions"][name]
        if members == "*":
            members = [f for f in fields if f not in excluded[0]]
        node["u"] = [least, sorted(f for f in members if f in fields)]
    for rule in rules["conditions"].get(name, ()):
        when, then = rule["when"], rule["then"]
        if fields.keys() >= {*when, *then}:
            node.setdefault("rules", []).append([when, then])
    for field, defaults in key_defaults(fields, rules).items():
        fields[field]["kd"] = defaults


def apply_form(node: Schema, field: str, form: str) -> None:
    """Require a string format of a field, or of its items or values (`[]`) or keys (`{}`).

    An optional field may be empty, except with a `!`.
    """
    fields: Schema = node["p"]
    filled, field = field.endswith("!"), field.removesuffix("!")
    if field.endswith("{}"):
        fields[field[:-2]] = {**fields[field[:-2]], "keys": form}
        return
    if field.endswith("[]"):
        child = fields[field[:-2]]
        fields[field[:-2]] = {**child, "l" if "l" in child else "m": form}
    elif field in fields:
        optional = field not in node.get("r", ()) and fields[field] == "s" and not filled
        # The API server treats an empty string as a missing field.
        fields[field] = {"t": form, "blank": 1} if optional else form


def key_defaults(fields: Schema, rules: Schema) -> dict[str, Schema]:
    """Return the defaults of list keys by the field of the list."""
    return {
        field: rules["keyDefaults"][child["l"]]
        for field, child in fields.items()
        if isinstance(child, dict) and "k" in child and child["l"] in rules["keyDefaults"]
    }


def check_rules_are_used(rules: Schema, variants: dict[str, list[tuple[str, Node]]]) -> None:
    """Exit on a rule for an unknown definition or field, because a typo would check nothing."""
    plain = {name: rules[name] for name in ("enums", "ranges", "nodes", "required", "notEmpty", "unions")}
    conditions = {
        name: {field for rule in found for part in ("when", "then") for field in rule[part]}
        for name, found in rules["conditions"].items()
    }
    for section, table in {**plain, **rules["forms"], "conditions": conditions}.items():
        for name, fields in table.items():
            if name not in variants:
                sys.exit(f"core_rules.yaml: {section}: no definition {name}")
            known = {f for _, node in variants[name] if isinstance(node, dict) for f in node["p"]}
            given = fields[1] if section == "unions" else fields
            for field in () if given == "*" else given:
                if field != "*" and re.sub(r"[^A-Za-z0-9]+$", "", field) not in known:
                    sys.exit(f"core_rules.yaml: {section}: {name} has no field {field}")


def merge_variants(found: list[tuple[str, Node]], targets: tuple[str, ...]) -> Node | list[Any]:
    """Return one node if it is the same in all targets, else a list of [first target, last target, node]."""
    runs: list[list[Any]] = []
    for target, node in found:
        if runs and runs[-1][2] == node and targets.index(runs[-1][1]) + 1 == targets.index(target):
            runs[-1][1] = target
        else:
            runs.append([target, target, node])
    if len(runs) == 1 and len(found) == len(targets):
        return found[0][1]
    return runs
