"""Credentials in specs: they are found, and never shown.

What stands in a spec stands in Git, for everyone who can read the repository and in every copy of it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache

from yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from kaigen.load.diagnostics import Diagnostic, Mark
from kaigen.load.paths import dotted
from kaigen.load.tokens import looks_like_secret, may_hold_secret
from kaigen.load.yaml import Document

_WORD = re.compile(r"[^\s\"'`,;\[\](){}]+")
_RUN = re.compile(r"[A-Za-z0-9/+_=-]{16,}")
_KEY_BLOCK = re.compile(r"(-----BEGIN [A-Z0-9 ]*PRIVATE KEY[A-Z ]*-----)(.*)", re.DOTALL)
_WAYS = "refer to a Secret by name; make it with External Secrets, Sealed Secrets or SOPS"

_Path = tuple[str | int, ...]


@lru_cache(maxsize=32)
def redact(text: str) -> str:
    """The text with the middle of every credential replaced by `…`, one a character, so that columns stay."""
    if not may_hold_secret(text):
        return text
    masked = _WORD.sub(
        lambda word: _masked(word.group()) if looks_like_secret(word.group()) else word.group(), text
    )
    if looks_like_secret(masked):
        # It only shows across words: a key block, or a key beside its name.
        masked = _KEY_BLOCK.sub(lambda block: block[1] + re.sub(r"\S", "…", block[2]), masked)
        masked = _RUN.sub(lambda run: _masked(run.group()), masked)
    return masked


def redact_diagnostic(item: Diagnostic) -> Diagnostic:
    """A diagnostic whose message, hint, path and excerpt show no credential."""
    message, hint, path = redact(item.message), redact(item.hint), redact(item.path)
    mark = item.mark
    if mark:
        text = redact(mark.text)
        mark = mark if text is mark.text else replace(mark, text=text)
    if mark is item.mark and (message, hint, path) == (item.message, item.hint, item.path):
        return item
    return replace(item, message=message, hint=hint, path=path, mark=mark)


def find_secrets(document: Document) -> list[Diagnostic]:
    """Credentials in keys and values of a document (KG0150), and Secret objects with data in them (KG0151).

    A Secret that SOPS has encrypted is no finding: that is one of the ways in.
    """
    node, source = document.node, document.source
    written = source.text[node.start_mark.index : node.end_mark.index]
    found: list[Diagnostic] = []
    if may_hold_secret(written) or "\\" in written:
        for path, place, kind in _credentials(node):
            mark = source.mark_at(place.start_mark.index, place.end_mark.index)
            where = redact(dotted(path))
            found.append(Diagnostic("KG0150", f"this looks like {kind}", _hidden(mark), _WAYS, path=where))
    if "Secret" in written:
        found.extend(_secret_objects(document))
    return found


def _masked(word: str) -> str:
    if len(word) < 3:
        return word
    ends = 3 if len(word) >= 20 else 1
    return word[:ends] + "…" * (len(word) - ends - 1) + word[-1:]


def _hidden(mark: Mark) -> Mark:
    start, stop = mark.column - 1, mark.column - 1 + mark.length
    text = redact(mark.text)
    if text[start:stop] == mark.text[start:stop]:
        text = text[:start] + _masked(text[start:stop]) + text[stop:]
    return replace(mark, text=text)


def _credentials(root: Node) -> Iterator[tuple[_Path, Node, str]]:
    for path, node in _nodes(root):
        if isinstance(node, MappingNode):
            for key, value in node.value:
                if not isinstance(key, ScalarNode):
                    continue
                if kind := looks_like_secret(key.value):
                    yield (*path, key.value), key, kind
                if isinstance(value, ScalarNode) and (kind := _kind_of_value(node, key, value)):
                    yield (*path, key.value), value, kind
        elif isinstance(node, SequenceNode):
            for place, item in enumerate(node.value):
                if isinstance(item, ScalarNode) and (kind := looks_like_secret(item.value)):
                    yield (*path, place), item, kind
        elif not path and (kind := looks_like_secret(node.value)):
            yield path, node, kind


def _kind_of_value(mapping: MappingNode, key: ScalarNode, value: ScalarNode) -> str | None:
    kind = looks_like_secret(value.value)
    if kind is None and not looks_like_secret(key.value):
        kind = looks_like_secret(f"{key.value}={value.value}")
    if kind is None and key.value == "value":
        # An environment variable of a pod: `{name: …, value: …}`.
        name = next(
            (v.value for k, v in mapping.value if k.value == "name" and isinstance(v, ScalarNode)), None
        )
        kind = looks_like_secret(f"{name}={value.value}") if name else None
    return kind


def _secret_objects(document: Document) -> Iterator[Diagnostic]:
    for path, node in _nodes(document.node):
        if not isinstance(node, MappingNode):
            continue
        fields: dict[str, tuple[Node, Node]] = {
            key.value: (key, value) for key, value in node.value if isinstance(key, ScalarNode)
        }
        if _scalar(fields, "kind") != "Secret" or _scalar(fields, "apiVersion") != "v1":
            continue
        for name in ("data", "stringData"):
            key, value = fields.get(name, (None, None))
            if key is None or not isinstance(value, MappingNode) or not value.value:
                continue
            if "sops" in fields and all(_encrypted(item) for _, item in value.value):
                continue
            mark = document.source.mark_at(key.start_mark.index, key.end_mark.index)
            stop = mark.column - 1 + mark.length
            rest = re.sub(r"[^\s:{}\[\],]", "…", mark.text[stop:])
            yield Diagnostic(
                "KG0151",
                f"a Secret with `{name}` puts its content into Git for all to read",
                replace(mark, text=redact(mark.text[:stop]) + rest),
                "make it with External Secrets, Sealed Secrets or SOPS, or by hand in the cluster",
                path=dotted((*path, name)),
            )


def _scalar(fields: Mapping[str, tuple[Node, Node]], name: str) -> str | None:
    _, value = fields.get(name, (None, None))
    return value.value if isinstance(value, ScalarNode) else None


def _encrypted(node: Node) -> bool:
    return isinstance(node, ScalarNode) and node.value.startswith("ENC[") and node.value.endswith("]")


def _nodes(root: Node) -> Iterator[tuple[_Path, Node]]:
    """Every node with the path at which it stands first."""
    seen: set[int] = set()
    waiting: list[tuple[_Path, Node]] = [((), root)]
    while waiting:
        path, node = waiting.pop()
        if id(node) in seen:
            continue
        seen.add(id(node))
        yield path, node
        below: Sequence[tuple[_Path, Node]] = ()
        if isinstance(node, MappingNode):
            below = [((*path, key.value), value) for key, value in node.value if isinstance(key, ScalarNode)]
        elif isinstance(node, SequenceNode):
            below = [((*path, place), item) for place, item in enumerate(node.value)]
        waiting.extend(reversed(below))
