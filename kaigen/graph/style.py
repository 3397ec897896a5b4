"""What all forms of the graph show alike: families of kinds, and texts that are safe and short."""

from __future__ import annotations

import re

from kaigen.graph.model import ExternalNode, ObjectNode, Relation
from kaigen.kubernetes.kind_table import find_kind

FAMILIES = ("workload", "storage", "config", "access", "network", "other", "external")

# What is not seen as itself: controls, marks of writing direction, blanks without width, lone surrogates.
_UNSEEN = re.compile(
    "[\x00-\x1f\x7f-\x9f\xad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ud800-\udfff\ufeff\ufffe\uffff]"
)


def family(node: ObjectNode | ExternalNode) -> str:
    """The group of kinds that a node is drawn as; one of `FAMILIES`."""
    return "external" if isinstance(node, ExternalNode) else find_kind(node.api_version, node.kind).family


def one_line(text: str) -> str:
    """The text with every character that is not seen as itself replaced by a question mark."""
    return _UNSEEN.sub("?", text)


def shorten(text: str, most: int) -> str:
    """The text's beginning and end, `most` characters at most."""
    if len(text) <= most:
        return text
    tail = (most - 1) // 3
    return f"{text[: most - 1 - tail]}…{text[len(text) - tail :]}"


def absence(node: ExternalNode) -> str:
    """Why something external is no object of an app that is shown."""
    if node.maker:
        return f"of {node.maker}"
    match node.kind:
        case "Secret":
            return "not in Git"
        case "Marker":
            return "written by no app here"
    return "made by no app here"


def app_relations(relations: frozenset[Relation]) -> str:
    """How one app needs another, in words: the strongest relations first."""
    return ", ".join(relation.value for relation in Relation if relation in relations)
