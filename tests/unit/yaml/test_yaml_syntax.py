"""Errors of text that is not YAML are explained at the mistake, with a hint."""

from __future__ import annotations

import pytest

from tests.unit.yaml.texts import read

BROKEN = [
    # Tabs
    ("a: 1\n\tb: 2\n", "2:1 KG0111 this line is indented with a tab", "use spaces, two for each level"),
    ("a:\n\tb: 2\n", "2:1 KG0111 this line is indented with a tab", "use spaces, two for each level"),
    ("a:\n  b: 1\n \tc: 2\n", "3:2 KG0111 this line is indented with a tab", "use spaces, two for each level"),
    ("a:\n\t- b\n", "2:1 KG0111 this line is indented with a tab", "use spaces, two for each level"),
    # Quotes
    ('a: "foo\nb: 1\n', "1:4 KG0112 this double quote is never closed", 'close it with `"`'),
    ('a: "foo\nb: "bar"\nc: 1\n', "1:4 KG0112 this double quote is never closed", 'close it with `"`'),
    (
        "a: 1\nb: 'y\n",
        "2:4 KG0112 this single quote is never closed",
        "close it with `'`; write an apostrophe inside the text twice, or use double quotes",
    ),
    (
        'a: "b" c\n',
        "1:8 KG0112 text after the closing quote",
        "quote the whole value; inside the quotes write \\\" or ''",
    ),
    (
        "a: 'it's'\n",
        "1:8 KG0112 text after the closing quote",
        "quote the whole value; inside the quotes write \\\" or ''",
    ),
    # Brackets
    ("a: [1, 2\nb: 3\n", "1:4 KG0113 this `[` is never closed", "close it with `]`"),
    ("a: [1, 2\n", "1:4 KG0113 this `[` is never closed", "close it with `]`"),
    ("a:\n  b: {c: [1, 2}\n", "2:15 KG0113 `}` cannot close `[`", "close it with `]`"),
    ("a: {b: 1\nc: 2\n", "1:4 KG0113 this `{` is never closed", "close it with `}`"),
    ("a: [\nb:\n  - c\n", "1:4 KG0113 this `[` is never closed", "close it with `]`"),
    ("a: [1,, 2]\n", "1:7 KG0113 a value is missing before `,`", "remove the comma"),
    ("a: [1] c\n", "1:8 KG0113 text after the closing `]`", "quote the whole value, or remove the text"),
    ("a: ]\n", "1:4 KG0113 `]` has no opening bracket", "remove it, or quote the value that it belongs to"),
    ('{"a": 1,\n "b": 2\n "c": 3}\n', "3:2 KG0113 `,` or `}` is missing before this", "check for a missing comma"),
    ('["a" "b"]\n', "1:6 KG0113 `,` or `]` is missing before this", "check for a missing comma"),
    # Colons
    ("image: foo: bar\n", "1:8 KG0115 an unquoted value cannot contain `: `", 'quote it: "foo: bar"'),
    ('a:\n  - msg: say "x": y\n', "2:10 KG0115 an unquoted value cannot contain `: `", "quote it: 'say \"x\": y'"),
    ("spec:\n  name:foo\n  x: 1\n", "2:3 KG0118 a space is missing after `name:`", "write `name: foo`"),
    ("spec:\n  x: 1\n  name:foo\n", "3:3 KG0118 a space is missing after `name:`", "write `name: foo`"),
    ("spec:\n  x: 1\n  name:foo\n  y: 1\n", "3:3 KG0118 a space is missing after `name:`", "write `name: foo`"),
    ("foo\nbar: 1\n", "1:1 KG0118 `:` is missing: this is neither a key nor a value", "write `key: value`"),
    ("a: 1\nfoo\nb: 2\n", "2:1 KG0118 `:` is missing: this is neither a key nor a value", "write `key: value`"),
    ("a:\n- b\nc\n", "3:1 KG0118 `:` is missing: this is neither a key nor a value", "write `key: value`"),
    (": x\n", "1:1 KG0131 a key is missing before `:`", 'write a key, or "" for an empty one'),
    # Indentation
    (
        "a:\n  b: 1\n   c: 2\n",
        "3:4 KG0114 this line is indented under `b`, which already has a value",
        "indent it like the line above, or remove that value",
    ),
    (
        "key: value\n  other: 1\n",
        "2:3 KG0114 this line is indented under `key`, which already has a value",
        "indent it like the line above, or remove that value",
    ),
    (
        "a:\n  b: 1\n c: 2\n",
        "3:2 KG0114 this line is indented by 1 space, which matches no line above",
        "indent it by 0 or 2 spaces",
    ),
    (
        "a:\n    b:\n      c: 1\n   d: 2\n",
        "4:4 KG0114 this line is indented by 3 spaces, which matches no line above",
        "indent it by 0 or 4 spaces",
    ),
    (
        "- a: 1\n  b: 2\n - c: 3\n",
        "3:2 KG0114 this line is indented by 1 space, which matches no line above",
        "indent it by 0 or 2 spaces",
    ),
    ("- a\nb: 1\n", "2:1 KG0114 a key between list items", "indent it under its item, or start it with `- `"),
    (
        "a: 1\n- b\n",
        "2:1 KG0114 a list item between keys",
        "indent the list under the key it belongs to, or remove `- `",
    ),
    (
        "a: - b\n",
        "1:4 KG0114 a list cannot start on the line of its key",
        "put each item on a line of its own, indented under the key",
    ),
    # Characters that mean something else
    ("a: %x\n", "1:4 KG0116 an unquoted value cannot start with `%`", 'quote it: "%x"'),
    ("a: @x y # why\n", "1:4 KG0116 an unquoted value cannot start with `@`", 'quote it: "@x y"'),
    ("a: `x`\n", "1:4 KG0116 an unquoted value cannot start with a backtick", 'quote it: "`x`"'),
    ("a: *.example.com\n", "1:4 KG0116 an unquoted value cannot start with `*`", 'quote it: "*.example.com"'),
    ("a: & b\n", "1:4 KG0116 an unquoted value cannot start with `&`", 'quote it: "& b"'),
    ("a: , b\n", "1:4 KG0116 an unquoted value cannot start with `,`", 'quote it: ", b"'),
    ("a: [%s]\n", "1:5 KG0116 an unquoted value cannot start with `%`", 'quote it: "%s"'),
    ("a: [b, %s c, d]\n", "1:8 KG0116 an unquoted value cannot start with `%`", 'quote it: "%s c"'),
    ("a: {b: @{c}, d: e}\n", "1:8 KG0116 an unquoted value cannot start with `@`", 'quote it: "@{c}"'),
    ("a: [*.b, c]\n", "1:5 KG0116 an unquoted value cannot start with `*`", 'quote it: "*.b"'),
    ("a: [b] # [\nc: %s], d\n", "2:4 KG0116 an unquoted value cannot start with `%`", 'quote it: "%s], d"'),
    ("%foo\na: 1\n", "1:1 KG0116 a line that starts with `%` is a directive to the parser", "quote it to make it text"),
    (
        "a: |x\n  y\n",
        "1:5 KG0110 only `+`, `-`, an indentation from 1 to 9 and a comment may follow `|` or `>`",
        "start the text on the next line, or quote a value of one line",
    ),
    (
        "memory: >16Gi\n",
        "1:11 KG0110 only `+`, `-`, an indentation from 1 to 9 and a comment may follow `|` or `>`",
        "start the text on the next line, or quote a value of one line",
    ),
    # Template text
    (
        "a: {{ x }}-b\n",
        "1:4 KG0117 templates are not expanded here, and without quotes this is not YAML",
        "write the value itself, or quote the whole value",
    ),
    (
        "{% if x %}\na: 1\n",
        "1:1 KG0117 templates are not expanded here, and without quotes this is not YAML",
        "write the value itself, or quote the whole value",
    ),
    # Anchors, aliases, tags, escapes
    ("a: &x 1\nb: &x 2\n", "2:4 KG0137 duplicate anchor `&x`, first defined on line 1", "rename one of the anchors"),
    ("a: *y\n", "1:4 KG0136 `*y` refers to an unknown anchor", 'quote it to make it text: "*y"'),
    ("a: &base 1\nb: *bsae\n", "2:4 KG0136 `*bsae` refers to an unknown anchor", "did you mean `*base`?"),
    ("a: !foo!bar x\n", "1:4 KG0132 this tag is not supported", "remove it, or quote the value"),
    (
        'a: "\\d"\n',
        "1:5 KG0120 `\\d` is not a valid escape in double quotes",
        "write the backslash twice, or use single quotes",
    ),
    (
        'a: "\\ud83d"\n',
        "1:5 KG0120 `\\u` requires the hex digits of an existing character",
        "write the backslash twice, or use single quotes",
    ),
    (
        'a: "\\UFFFFFFFF"\n',
        "1:5 KG0120 `\\U` requires the hex digits of an existing character",
        "write the backslash twice, or use single quotes",
    ),
    # The end of a document
    (
        "[a]\nb: 1\n",
        "2:1 KG0110 unexpected text after the end of the document's value",
        "start another document with `---`, or indent this under a key",
    ),
]


@pytest.mark.parametrize(("text", "problem", "hint"), BROKEN)
def test_a_mistake_is_reported_where_it_was_made(text: str, problem: str, hint: str) -> None:
    for written in (text, text.replace("\n", "\r\n")):
        documents, found = read(written)
        messages = [f"{item.mark.line}:{item.mark.column} {item.code} {item.message}" for item in found if item.mark]
        assert (documents, messages, [item.hint for item in found]) == ([], [problem], [hint])


@pytest.mark.parametrize(("text", "problem", "hint"), BROKEN)
def test_a_mistake_is_reported_after_other_documents(text: str, problem: str, hint: str) -> None:
    if text.startswith("%"):
        text = "...\n" + text
    documents, found = read(f"first: é\n---\n{text}---\nlast: 1\n")
    assert [document.data for document in documents] == [{"first": "é"}, {"last": 1}]
    assert [(item.code, item.hint) for item in found] == [(problem.split()[1], hint)]


def test_the_message_about_a_long_value_is_short() -> None:
    (_, found) = read("a: " + "x" * 10_000 + ": y\n")
    assert len(found[0].message + found[0].hint) < 200
