"""Style that all forms of the graph share: families of kinds, and safe, short text."""

from __future__ import annotations

import re

from kaigen.graph.model import ExternalNode, ObjectNode, Relation
from kaigen.kubernetes.kind_table import find_kind

FAMILIES = ("workload", "storage", "config", "access", "network", "other", "external")

# Control characters, marks of writing direction, zero-width characters, lone surrogates.
_INVISIBLE = re.compile(
    "[\x00-\x1f\x7f-\x9f\xad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ud800-\udfff\ufeff\ufffe\uffff]"
)


def family(node: ObjectNode | ExternalNode) -> str:
    """Return the family that a node is drawn as; one of `FAMILIES`."""
    return "external" if isinstance(node, ExternalNode) else find_kind(node.api_version, node.kind).family


def one_line(text: str) -> str:
    """Return the text with every invisible character replaced by a question mark."""
    return _INVISIBLE.sub("?", text)


def shorten(text: str, most: int) -> str:
    """Return the beginning and the end of a text, together at most `most` characters."""
    if len(text) <= most:
        return text
    tail = (most - 1) // 3
    return f"{text[: most - 1 - tail]}…{text[len(text) - tail :]}"


def absence(node: ExternalNode) -> str:
    """Return why no app of the graph has an external object."""
    if node.maker:
        return f"of {node.maker}"
    if node.declared:
        return "listed in kaigen.yaml"
    match node.kind:
        case "Secret":
            return "not in Git"
        case "Marker":
            return "written by no app here"
    return "made by no app here"


def app_relations(relations: frozenset[Relation]) -> str:
    """Describe how one app needs another, the strongest relation first."""
    return ", ".join(relation.value for relation in Relation if relation in relations)
