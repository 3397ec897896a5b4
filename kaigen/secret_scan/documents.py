"""Credentials in specs: they are found, and never shown.

What stands in a spec stands in Git, for everyone who can read the repository and in every copy of it.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache

from yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from kaigen.diagnostics.diagnostic import Diagnostic, Mark
from kaigen.diagnostics.field_path import dotted
from kaigen.secret_scan.detect import looks_like_secret, may_hold_secret
from kaigen.yaml.document import Document
from kaigen.yaml.sources import Source

_WORD = re.compile(r"[^\s\"'`,;\[\](){}]+")
_RUN = re.compile(r"[A-Za-z0-9/+_=-]{16,}")
_KEY_BLOCK = re.compile(r"(-----BEGIN [A-Z0-9 ]*PRIVATE KEY[A-Z ]*-----)(.*)", re.DOTALL)
_ENCRYPTED = re.compile(
    r"ENC\[AES256_GCM,data:[A-Za-z0-9+/=]*,iv:[A-Za-z0-9+/=]+,tag:[A-Za-z0-9+/=]+,type:[a-z]+\]"
)
_ONLY_VALUES = "encrypt the values only: `sops encrypt --encrypted-regex '^(data|stringData)$' FILE`"
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

    A Secret that SOPS has encrypted is no finding: that is one of the ways in. One that it encrypted in part, or
    whose very kind it encrypted, is (KG0152).
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
    if "sops" in written and str(document.apiVersion).startswith("ENC["):
        found.append(
            Diagnostic(
                "KG0152",
                "SOPS encrypted all of this file, so that nobody can tell what it is",
                document.mark(("apiVersion",)),
                _ONLY_VALUES,
                path="apiVersion",
            )
        )
    return found


def is_sops(data: object) -> bool:
    """Whether a document is a Secret that SOPS encrypted."""
    return (
        isinstance(data, dict)
        and (data.get("apiVersion"), data.get("kind")) == ("v1", "Secret")
        and isinstance(data.get("sops"), dict)
    )


def holds_values(data: object) -> bool:
    """Whether a document is a Secret with its values, which `find_secrets` tells."""
    return (
        isinstance(data, dict)
        and (data.get("apiVersion"), data.get("kind")) == ("v1", "Secret")
        and any(isinstance(data.get(field), dict) and data[field] for field in ("data", "stringData"))
    )


def find_shared_files(documents: Sequence[Document]) -> list[Diagnostic]:
    """Secrets that SOPS encrypted in a file that holds more (KG0153)."""
    if len(documents) < 2:
        return []
    return [
        Diagnostic(
            "KG0153",
            "a file that SOPS encrypted holds one document: its checksum is over the whole file",
            document.mark(("kind",)),
            "encrypt each Secret in a file of its own",
        )
        for document in documents
        if is_sops(document.data)
    ]


def find_in_comments(source: Source, documents: Sequence[Document]) -> list[Diagnostic]:
    """Credentials in the comments of a text (KG0150).

    Args:
        source: the text.
        documents: what was read from it; where one could not be, what looks like a comment counts as one.
    """
    source = replace(source, text=source.text.removeprefix("\ufeff"))
    text = source.text
    if "#" not in text or not may_hold_secret(text):
        return []
    # A `#` inside a value is none that starts a comment.
    values = sorted(
        (node.start_mark.index, node.end_mark.index)
        for document in documents
        for node in _scalars(document.node)
    )
    found: list[Diagnostic] = []
    at = 0
    while start := re.compile(r"(?<!\S)#").search(text, at):
        before = bisect_right(values, (start.start(), len(text))) - 1
        at = max(start.end(), values[before][1] if before >= 0 else 0)
        if at > start.end():
            continue
        line = text.find("\n", at)
        at = len(text) if line < 0 else line
        comment = text[start.end() : at]
        if kind := looks_like_secret(comment):
            word = next((each for each in _WORD.finditer(comment) if looks_like_secret(each.group())), None)
            first, last = word.span() if word else (0, len(comment))
            mark = source.mark_at(start.end() + first, start.end() + last)
            hint = "delete it: a comment stands in Git too"
            found.append(Diagnostic("KG0150", f"this looks like {kind}", _hidden(mark), hint))
    return found


def _scalars(root: Node) -> Iterator[Node]:
    for _, node in _nodes(root):
        if isinstance(node, ScalarNode):
            yield node
        elif isinstance(node, MappingNode):
            yield from (key for key, _ in node.value if isinstance(key, ScalarNode))


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
        if "sops" in fields and not _has_checksum(fields["sops"][1]):
            start = fields["sops"][0]
            mark = document.source.mark_at(start.start_mark.index, start.end_mark.index)
            yield Diagnostic(
                "KG0152",
                "`sops` has no `mac`, so SOPS will not decrypt this",
                mark,
                _ONLY_VALUES,
                path="sops",
            )
        for name in ("data", "stringData"):
            key, value = fields.get(name, (None, None))
            if key is None or not isinstance(value, MappingNode) or not value.value:
                continue
            if "sops" in fields:
                yield from _left_open(document, (*path, name), value)
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


def _has_checksum(block: Node) -> bool:
    return isinstance(block, MappingNode) and any(
        isinstance(key, ScalarNode) and key.value == "mac" and _encrypted(value) for key, value in block.value
    )


def _left_open(document: Document, path: _Path, values: MappingNode) -> Iterator[Diagnostic]:
    """The values that SOPS did not encrypt, each at its key."""
    for key, value in values.value:
        # SOPS leaves an empty text as it is.
        if _encrypted(value) or (isinstance(value, ScalarNode) and not value.value):
            continue
        mark = document.source.mark_at(key.start_mark.index, key.end_mark.index)
        stop = mark.column - 1 + mark.length
        name = redact(key.value) if isinstance(key, ScalarNode) else "?"
        yield Diagnostic(
            "KG0152",
            f"SOPS left the value of `{name}` readable for all",
            replace(mark, text=redact(mark.text[:stop]) + re.sub(r"[^\s:{}\[\],]", "…", mark.text[stop:])),
            _ONLY_VALUES,
            path=dotted((*path, name)),
        )


def _encrypted(node: Node) -> bool:
    return isinstance(node, ScalarNode) and _ENCRYPTED.fullmatch(node.value) is not None


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
