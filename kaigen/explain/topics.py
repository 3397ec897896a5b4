"""Words that are neither kinds nor apps: where objects of Kubernetes come from, and pages of the documentation."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from kaigen.core.text import some_of
from kaigen.diagnostics.codes import page_url
from kaigen.diagnostics.suggest import nearest
from kaigen.explain.fields import nested_fields
from kaigen.kinds.builtin import BUILTIN_KINDS
from kaigen.kinds.schema import json_schema
from kaigen.kinds.value_texts import first_sentence
from kaigen.kubernetes.kind_table import KINDS

if TYPE_CHECKING:
    from kaigen.kinds.entry import KindEntry

WORDS = Path(__file__).with_name("words.yaml")
_DEEPEST = 4
"""Levels of fields below `spec` that are searched."""
_ABBREVIATION = 6
"""Most letters of an abbreviation of a kind."""
_CAPITALS = re.compile("[A-Z][a-z]*")


def topic_lines(word: str, known: Iterable[str]) -> list[str]:
    """Return the explanation of a word; nothing for a word that kaigen does not know, or for a misspelled kind.

    Args:
        word: the name of a kind of Kubernetes or its abbreviation, of a field, or what readers search for.
        known: names of the kinds that can be written.
    """
    kind = kubernetes_kind(word)
    pages = [page for page, words in search_words().items() if {word.lower(), kind.lower()} & {*words}]
    if not kind and not pages and nearest(word, known):
        return []
    fields = [*_fields(kind or word)]
    if not (kind or pages or fields):
        return []
    lines = [f"KIND:     {kind}, a kind of Kubernetes that kaigen writes" if kind else f"WORD:     {word}", ""]
    width = max((len(path) for path, _ in fields), default=0)
    if fields:
        lines += ["FIELDS:", *(f"  {path:{width}}  {text}".rstrip() for path, text in fields)]
    if kind and not fields:
        lines.append("  No field is named after it: apps have one where they need it. `kaigen graph` shows them, and")
        lines.append("  `patches` in kaigen.yaml changes them.")
    if pages:
        lines += [
            *([""] if lines[-1] else []),
            "PAGES:",
            *(f"  {page_url(page.removesuffix('.md'))}" for page in pages),
        ]
    return lines


def kubernetes_kind(word: str) -> str:
    """Return the kind of Kubernetes that kaigen writes with a name, in any case, or an abbreviation of it; or nothing.

    An abbreviation is the first letters of the parts of a name (`pdb`), or letters of it in their order (`netpol`), of
    which the shortest name is meant.
    """
    kinds = sorted((row.kind for row in KINDS.values() if row.emitted), key=lambda kind: (len(kind), kind))
    low = word.lower()
    for kind in kinds:
        if low in (kind.lower(), f"{kind.lower()}s", f"{kind.lower()[:-1]}ies"):
            return kind
    if len(word) > _ABBREVIATION or not word.isalpha():
        return ""
    for kind in kinds:
        if low == "".join(part[0] for part in _CAPITALS.findall(kind)).lower():
            return kind
    return next((kind for kind in kinds if len(word) > 1 and _abbreviates(low, kind)), "")


def _abbreviates(word: str, kind: str) -> bool:
    """Return whether a word has letters of a kind in their order, and begins each of its parts that it reaches."""
    parts = [part.lower() for part in _CAPITALS.findall(kind)]
    pattern = "".join(part[0] + "".join(f"{letter}?" for letter in part[1:]) for part in parts)
    return re.fullmatch(pattern, word) is not None


@cache
def search_words() -> Mapping[str, list[str]]:
    """Return the words that readers search for, by the page of the documentation that explains them."""
    found: Mapping[str, list[str]] = yaml.safe_load(WORDS.read_text(encoding="utf-8"))
    return found


def _fields(word: str) -> Iterator[tuple[str, str]]:
    """Yield the fields of kaigen's kinds with a name, or whose description has that of a kind, and what they do."""
    pattern = re.compile(rf"\b{re.escape(word)}s?\b" if word[:1].isupper() else "(?!)")
    found: dict[str, tuple[str, list[str]]] = {}
    for entry in BUILTIN_KINDS:
        for path, text in _walk(entry, pattern, word):
            found.setdefault(path, (text, []))[1].append(entry.kind)
    for path, (text, kinds) in found.items():
        yield f"{some_of(kinds, len(kinds)) if len(kinds) < len(BUILTIN_KINDS) else 'all kinds'}: {path}", text


def _walk(entry: KindEntry, pattern: re.Pattern[str], word: str) -> Iterator[tuple[str, str]]:
    root = json_schema(entry)
    level: list[tuple[str, Any]] = [("spec", root["properties"]["spec"])]
    for _ in range(_DEEPEST):
        below: list[tuple[str, Any]] = []
        for place, node in level:
            for name, field, _ in nested_fields(root, node):
                path = f"{place}.{name}"
                text = first_sentence(field.get("description", ""))
                if name.lower() == word.lower() or pattern.search(text):
                    yield path, text
                else:
                    below.append((path, field))
        level = below
