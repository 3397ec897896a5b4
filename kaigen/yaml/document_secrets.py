"""Find credentials and unencrypted Secrets in YAML documents, which are readable by everyone once they are in Git."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence

from msgspec.structs import replace
from yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from kaigen.core.credentials import WORD, looks_like_secret, mask, may_contain_secret, redact
from kaigen.core.json_types import FieldPath
from kaigen.diagnostics.diagnostic import Diagnostic, Mark
from kaigen.diagnostics.problem import dotted_path
from kaigen.yaml.document import Document
from kaigen.yaml.sources import Source

_ENCRYPTED = re.compile(r"ENC\[AES256_GCM,data:[A-Za-z0-9+/=]*,iv:[A-Za-z0-9+/=]+,tag:[A-Za-z0-9+/=]+,type:[a-z]+\]")
_ONLY_VALUES = "encrypt the values only: `sops encrypt --encrypted-regex '^(data|stringData)$' FILE`"
_ALTERNATIVES = "refer to a Secret by name, created with External Secrets, Sealed Secrets or SOPS"


def find_secrets(document: Document) -> list[Diagnostic]:
    """Return credentials in keys and values of a document (KG0150) and Secret objects with readable data (KG0151).

    A Secret whose values SOPS encrypted is allowed; one that it encrypted only in part, or including its kind, is an
    error (KG0152).
    """
    node, source = document.node, document.source
    written = source.text[node.start_mark.index : node.end_mark.index]
    found: list[Diagnostic] = []
    if may_contain_secret(written) or "\\" in written:
        for path, place, kind in _credentials(node):
            mark = source.mark_at(place.start_mark.index, place.end_mark.index)
            where = redact(dotted_path(path))
            found.append(
                Diagnostic("KG0150", f"this looks like {kind}", _redacted_mark(mark), _ALTERNATIVES, path=where)
            )
    if "Secret" in written:
        found.extend(_secret_objects(document))
    if "sops" in written and str(document.apiVersion).startswith("ENC["):
        found.append(
            Diagnostic(
                "KG0152",
                "SOPS encrypted the whole file, including `apiVersion` and `kind`",
                document.mark(("apiVersion",)),
                _ONLY_VALUES,
                path="apiVersion",
            )
        )
    return found


def is_sops_secret(data: object) -> bool:
    """Return whether a document is a Secret that SOPS encrypted."""
    return (
        isinstance(data, dict)
        and (data.get("apiVersion"), data.get("kind")) == ("v1", "Secret")
        and isinstance(data.get("sops"), dict)
    )


def has_secret_values(data: object) -> bool:
    """Return whether a document is a Secret with values in it, which `find_secrets` reports."""
    return (
        isinstance(data, dict)
        and (data.get("apiVersion"), data.get("kind")) == ("v1", "Secret")
        and any(isinstance(data.get(field), dict) and data[field] for field in ("data", "stringData"))
    )


def find_shared_sops_files(documents: Sequence[Document]) -> list[Diagnostic]:
    """Return Secrets that SOPS encrypted in a file with several documents (KG0153)."""
    if len(documents) < 2:
        return []
    return [
        Diagnostic(
            "KG0153",
            "a file that SOPS encrypts must contain one document, because its checksum covers the whole file",
            document.mark(("kind",)),
            "encrypt each Secret in a file of its own",
        )
        for document in documents
        if is_sops_secret(document.data)
    ]


def find_secrets_in_comments(source: Source, documents: Sequence[Document]) -> list[Diagnostic]:
    """Return credentials in the comments of a text (KG0150).

    Args:
        source: the text.
        documents: read from the text; in an unreadable one everything after a `#` counts as a comment.
    """
    source = replace(source, text=source.text.removeprefix("\ufeff"))
    text = source.text
    if "#" not in text or not may_contain_secret(text):
        return []
    # A `#` inside a value does not start a comment.
    values = sorted(
        (node.start_mark.index, node.end_mark.index) for document in documents for node in _scalars(document.node)
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
            word = next((each for each in WORD.finditer(comment) if looks_like_secret(each.group())), None)
            first, last = word.span() if word else (0, len(comment))
            mark = source.mark_at(start.end() + first, start.end() + last)
            hint = "delete it: comments are stored in Git too"
            found.append(Diagnostic("KG0150", f"this looks like {kind}", _redacted_mark(mark), hint))
    return found


def _scalars(root: Node) -> Iterator[Node]:
    for _, node in _nodes(root):
        if isinstance(node, ScalarNode):
            yield node
        elif isinstance(node, MappingNode):
            yield from (key for key, _ in node.value if isinstance(key, ScalarNode))


def _redacted_mark(mark: Mark) -> Mark:
    start, stop = mark.column - 1, mark.column - 1 + mark.length
    text = redact(mark.text)
    if text[start:stop] == mark.text[start:stop]:
        text = text[:start] + mask(text[start:stop]) + text[stop:]
    return replace(mark, text=text)


def _credentials(root: Node) -> Iterator[tuple[FieldPath, Node, str]]:
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
        name = next((v.value for k, v in mapping.value if k.value == "name" and isinstance(v, ScalarNode)), None)
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
                "KG0152", "`sops` has no `mac`, so SOPS cannot decrypt this Secret", mark, _ONLY_VALUES, path="sops"
            )
        for name in ("data", "stringData"):
            key, value = fields.get(name, (None, None))
            if key is None or not isinstance(value, MappingNode) or not value.value:
                continue
            if "sops" in fields:
                yield from _unencrypted_values(document, (*path, name), value)
                continue
            mark = document.source.mark_at(key.start_mark.index, key.end_mark.index)
            stop = mark.column - 1 + mark.length
            rest = re.sub(r"[^\s:{}\[\],]", "…", mark.text[stop:])
            yield Diagnostic(
                "KG0151",
                f"a Secret with `{name}` stores its content in Git, readable by everyone",
                replace(mark, text=redact(mark.text[:stop]) + rest),
                "create it with External Secrets, Sealed Secrets or SOPS, or by hand in the cluster",
                path=dotted_path((*path, name)),
            )


def _scalar(fields: Mapping[str, tuple[Node, Node]], name: str) -> str | None:
    _, value = fields.get(name, (None, None))
    return value.value if isinstance(value, ScalarNode) else None


def _has_checksum(block: Node) -> bool:
    return isinstance(block, MappingNode) and any(
        isinstance(key, ScalarNode) and key.value == "mac" and _encrypted(value) for key, value in block.value
    )


def _unencrypted_values(document: Document, path: FieldPath, values: MappingNode) -> Iterator[Diagnostic]:
    """Yield the values that SOPS did not encrypt, each at its key."""
    for key, value in values.value:
        # SOPS does not encrypt empty strings.
        if _encrypted(value) or (isinstance(value, ScalarNode) and not value.value):
            continue
        mark = document.source.mark_at(key.start_mark.index, key.end_mark.index)
        stop = mark.column - 1 + mark.length
        name = redact(key.value) if isinstance(key, ScalarNode) else "?"
        yield Diagnostic(
            "KG0152",
            f"SOPS did not encrypt the value of `{name}`",
            replace(mark, text=redact(mark.text[:stop]) + re.sub(r"[^\s:{}\[\],]", "…", mark.text[stop:])),
            _ONLY_VALUES,
            path=dotted_path((*path, name)),
        )


def _encrypted(node: Node) -> bool:
    return isinstance(node, ScalarNode) and _ENCRYPTED.fullmatch(node.value) is not None


def _nodes(root: Node) -> Iterator[tuple[FieldPath, Node]]:
    """Yield every node with the first path that leads to it."""
    seen: set[int] = set()
    pending: list[tuple[FieldPath, Node]] = [((), root)]
    while pending:
        path, node = pending.pop()
        if id(node) in seen:
            continue
        seen.add(id(node))
        yield path, node
        below: Sequence[tuple[FieldPath, Node]] = ()
        if isinstance(node, MappingNode):
            below = [((*path, key.value), value) for key, value in node.value if isinstance(key, ScalarNode)]
        elif isinstance(node, SequenceNode):
            below = [((*path, place), item) for place, item in enumerate(node.value)]
        pending.extend(reversed(below))
