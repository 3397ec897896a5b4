"""Templates of a user's kind: values, the sandbox, limits, and errors at their line."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kaigen.config.load import load_config
from kaigen.core.json_types import Json
from kaigen.pipeline.run import compile_specs
from tests.unit.extend.repository import HEAD, SPEC, app_of, compiled, messages, repository

FORBIDDEN = [
    ("{{ ''.__class__.__mro__[1].__subclasses__() }}", "1:1 e KG1005 a template cannot access `__class__`"),
    ("{{ spec.text['__class__'] }}", "1:1 e KG1005 a template cannot access `__class__`"),
    ("{{ [].__init__.__globals__ }}", "1:1 e KG1005 a template cannot access `__init__`"),
    ("{{ self._TemplateReference__context }}", "KG1005 "),
    ("{{ range.__self__ }}", "KG1005 "),
    ("{% macro m() %}{% endmacro %}{{ m.__globals__ }}", "KG1005 "),
    ("{{ (1).bit_length() }}", "a number has no `bit_length`"),
    ("{{ 'a{0.__class__}'.format(1) }}", "a string has no `format`"),
    ("{{ 'a'.encode() }}", "a string has no `encode`"),
    ("{{ spec.update({'a': 1}) }}", "unknown field `update`"),
    ("{{ spec.any.append(1) }}", "a list has no `append`"),
    ("{{ cycler }}", "`cycler` is not defined"),
    ("{{ lipsum() }}", "`lipsum` is not defined"),
    ("{{ environment }}", "`environment` is not defined"),
    ("{{ spec | attr('text') }}", "unknown filter `attr`"),
    ("{{ spec | pprint }}", "unknown filter `pprint`"),
    ("{{ spec.text | safe }}", "unknown filter `safe`"),
    ("{% include '/etc/passwd' %}", "template `/etc/passwd` not found"),
    ("{% include '../../../kaigen.yaml' %}", "template `../../../kaigen.yaml` not found"),
    ("{% import '../kind.yaml' as k %}", "template `../kind.yaml` not found"),
    ("{% extends 'mop.yaml.jinja' %}", "template `mop.yaml.jinja` not found (did you mean `map.yaml.jinja`?)"),
]
ENDLESS = [
    "{% for i in range(100000) %}{% for j in range(100000) %}{% endfor %}{% endfor %}",
    "{% for i in range(100000) %}{% for j in range(100000) %}aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa{% endfor %}{% endfor %}",
    "{{ range(1000000000) }}",
    "{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}",
    "{% macro f(n) %}{% if n %}{{ f(n - 1) }}{{ f(n - 1) }}{% endif %}{% endmacro %}{{ f(60) }}",
    "{% include 'x.yaml.jinja' %}",
    "{{ 'a' * 10000000000 }}",
    "{{ [0] * 10000000000 }}",
    "{{ 9 ** 99999999 }}",
    "{{ 2 ** 9999999999999.5 }}",
    "{{ '%0999999999d' % 1 }}",
    "{{ 'a' | indent(99999999999) }}",
    "{% macro f(x, n) %}{% if n %}{{ f(x ~ x, n - 1) }}{% endif %}{% endmacro %}{{ f('aaaaaaaaaa', 60) }}",
    "{% macro f(x, n) %}{% if n %}{{ f(x + x, n - 1) }}{% endif %}{% endmacro %}{{ f('aaaaaaaaaa', 60) }}",
    "{% macro f(x, n) %}{% if n %}{{ f(x + x, n - 1) }}{% endif %}{% endmacro %}{{ f([1, 2, 3], 60) }}",
    "{% macro f(x, n) %}{% if n %}{{ f(x * x, n - 1) }}{% endif %}{% endmacro %}{{ f(99, 60) }}",
    "{% macro f(x, n) %}{% if n %}{{ f(x | replace('a', x), n - 1) }}{% endif %}{% endmacro %}{{ f('aaaa', 60) }}",
    "{% macro f(x, n) %}{% if n %}{{ f([x, x] | join, n - 1) }}{% endif %}{% endmacro %}{{ f('aaaa', 60) }}",
    "{% macro f(x, n) %}{% if n %}{{ f([x, x], n - 1) }}{% else %}{{ x }}{% endif %}{% endmacro %}{{ f(1, 30) }}",
]


@pytest.mark.parametrize(("text", "message"), FORBIDDEN)
def test_a_template_cannot_leave_the_sandbox(tmp_path: Path, text: str, message: str) -> None:
    spec = SPEC.replace("{text: hello}", "{any: [1]}")
    (found,) = messages(repository(tmp_path, {"t/x.yaml.jinja": text, "specs/one.yaml": spec}))
    assert found.startswith("x.yaml.jinja:1:")
    assert message in found


@pytest.mark.parametrize("text", ENDLESS)
def test_an_endless_template_is_stopped(tmp_path: Path, text: str) -> None:
    (found,) = messages(repository(tmp_path, {"t/x.yaml.jinja": text}))
    assert found.startswith("x.yaml.jinja:1:")
    assert " e KG1005 " in found


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (HEAD + "  a: {{ spec.txt }}", "6:14 e KG1005 unknown field `txt` (did you mean `text`?)"),
        (HEAD + "  a: {{ relase }}", "6:9 e KG1005 `relase` is not defined (did you mean `release`?)"),
        (HEAD + "  a: b\n{% if spec.text %}", "7:1 e KG1004 Jinja2 syntax error: unexpected end of template"),
        (HEAD + "  a: {{ spec.text | uper }}", "6:21 e KG1004 unknown filter `uper` (did you mean `upper`?)"),
        (HEAD + "  a: {{ spec.text | int + 'x' }}", "6:3 e KG1005 a string and a number cannot be added"),
        (HEAD + "  a: {{ 1 // 0 }}", "6:3 e KG1005 the template failed: integer division or modulo by zero"),
        (HEAD + "  a: [1\n  b: 2", "6:6 e KG0113 this `[` is never closed"),
        (HEAD + "  a: x\n  a: y", "7:3 e KG0130 duplicate key `a`, first on line 6"),
        (HEAD + "  a:", "6:3 e KG1006 `data.a` has no value"),
        (HEAD + "  {{ release }}: a", "6:18 e KG1006 a key must be known at render time"),
        (HEAD + "  {{ spec.count }}: a\n  2: b", "duplicate key `2`"),
        (HEAD + "  a: {{ run }}", "6:3 e KG1006 `run` can only be the whole name of an object"),
        (HEAD + "  a: {{ release | upper }}", "6:3 e KG1006 a filter cannot change a value that is known only"),
        (HEAD + "  a: {{ 'x' if release == 'one' }}", "6:3 e KG1005 `release` is known only at deploy time"),
        (HEAD + "  a: {{ release | length }}", "6:3 e KG1005 `release` is known only at deploy time"),
        (HEAD + "  a: {{ setting('a b', 1) }}", "6:3 e KG1005 `a b` is not a valid name of a setting"),
        (HEAD + "  a: {{ setting('global.x', 1) }}", "6:3 e KG1005 `global.x` is not a valid name of a setting"),
        (HEAD + "  a: {{ setting('a') }}", "6:3 e KG1005 the setting `a` requires a default"),
        (HEAD + "  a: {{ setting('a', release) }}", "6:3 e KG1005 the default of `a` must be known"),
        (HEAD + "  a: {{ setting('a', release ~ 'x') }}", "6:3 e KG1005 the default of `a` must be known"),
        (HEAD + "  a: {{ setting('a', 'x') | b64encode }}", "6:3 e KG1005 `b64encode` requires a string that is known"),
        (HEAD + "  a: {{ setting('a', 'x') | int }}", "6:3 e KG1005 the setting `a` is known only at deploy time"),
        (HEAD + "{% set b = setting('a', 'x') %}\n  a: b", "6:21 e KG1007 no object uses the setting `a`"),
        ("just text", "1:1 e KG1006 not a Kubernetes object"),
        ("kind: ConfigMap\nmetadata: {name: '{{ release }}'}", "1:1 e KG1006 the object has no `apiVersion`"),
        ("apiVersion: v1\nkind: ConfigMap\nmetadata: {}", "3:1 e KG1006 the ConfigMap has no `metadata.name`"),
        ("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}", "3:18 e KG1006 the name `a` is the same in every"),
        (HEAD.replace("\ndata:", "\ndta: {}"), "5:1 e KG0504 ConfigMap one at dta: unknown field `dta`"),
    ],
)
def test_errors_are_reported_at_the_line_of_the_template(tmp_path: Path, text: str, message: str) -> None:
    found = messages(repository(tmp_path, {"t/map.yaml.jinja": text + "\n"}))
    assert len(found) == 1
    assert found[0].startswith("map.yaml.jinja:")
    assert message in found[0]


def test_errors_in_an_included_template_are_reported_at_its_own_line(tmp_path: Path) -> None:
    include = "  a: x\n{% for i in range(3) %}\n  b{{ i }}: y\n{% endfor %}\n  c: [\n"
    text = HEAD + "{% for i in range(5) %}\n  k{{ i }}: v\n{% endfor %}\n{% include 'more.jinja' %}\n"
    (found,) = messages(repository(tmp_path, {"t/map.yaml.jinja": text, "t/more.jinja": include}))
    assert found.startswith("more.jinja:5:6 e KG0113 ")


def test_a_policy_violation_names_the_template_and_the_document(tmp_path: Path) -> None:
    pod = "apiVersion: v1\nkind: Pod\nmetadata: {name: '{{ release }}'}\nspec:\n  hostNetwork: true\n  containers: []\n"
    found = messages(repository(tmp_path, {"t/pod.yaml.jinja": pod}))
    assert any(
        item.startswith("pod.yaml.jinja:5:") and "hostNetwork" in item and "it is made for specs/one.yaml:3:18" in item
        for item in found
    )


def value_of(folder: Path, written: str, spec: Json) -> Any:
    """Return the value of an expression in a field of any type."""
    import json

    text = (
        "apiVersion: acme.example/v1\nkind: Any\nmetadata: {name: '{{ release }}'}\n" + f"spec: {{value: {written}}}\n"
    )
    document = json.dumps(
        {"apiVersion": "acme.example/v1", "kind": "Thing", "metadata": {"name": "one"}, "spec": {"any": spec}}
    )
    app = app_of(repository(folder, {"t/map.yaml.jinja": text, "specs/one.yaml": "", "specs/one.json": document}))
    return app.render()[0].body["spec"]["value"]


@pytest.mark.parametrize(
    ("written", "value", "result"),
    [
        ("{{ spec.any }}", "1.10", "1.10"),
        ("{{ spec.any }}", "a: {b, *c}\n- d #", "a: {b, *c}\n- d #"),
        ("{{ spec.any }}", {"items": [1, {"keys": True}]}, {"items": [1, {"keys": True}]}),
        ("'{{ spec.any }}'", 1.5, "1.5"),
        ('"a {{ spec.any }} b"', True, "a true b"),
        ("'{{ spec.any }}'", {"a": [1]}, '{"a": [1]}'),
        ("{{ spec.any | toJson }}", {"a": "<é>"}, '{"a": "<é>"}'),
        ("{{ spec.any.items }}", {"items": 7}, 7),
        ("{{ spec.any['items'] }}", {"items": 7}, 7),
        ("{{ spec.any | length }}", [1, 2, 3], 3),
        ("{{ spec.any.a | default('d') }}", {}, "d"),
        ("{{ spec.any ~ '&' ~ 1 }}", "<b>", "<b>&1"),
        ("{{ release ~ '-' ~ spec.any }}", "x", "one-x"),
        ("{{ [release, spec.any] | join('/') }}", 3, "one/3"),
        ("{{ {'n': release, 's': setting('s', spec.any)} }}", 3, {"n": "one", "s": 3}),
        ("'{{ setting('s', spec.any) }}'", 3, "3"),
        ("{{ namespace }}-{{ name }}", "", "ml-one"),
        ("{{ spec.any | map('upper') | list }}", ["a"], ["A"]),
        ("{{ spec.any | b64encode }}", "é", "w6k="),
    ],
)
def test_an_expression_becomes_its_value(tmp_path: Path, written: str, value: Json, result: object) -> None:
    assert value_of(tmp_path, written, value) == result


@given(
    st.text(st.characters(exclude_categories=["Cs", "Cc"], exclude_characters="\u2028\u2029\ufffe\uffff"), max_size=30)
)
@settings(max_examples=25)
def test_text_of_a_spec_never_changes_the_yaml_of_a_template(
    tmp_path_factory: pytest.TempPathFactory, text: str
) -> None:
    assert value_of(tmp_path_factory.mktemp("any"), "{{ spec.any }}, other: [{{ spec.any }}]", text) == text


def test_output_of_a_macro_is_yaml_but_its_values_are_not(tmp_path: Path) -> None:
    text = (
        "{% macro pair(value) %}\nkey: {{ value }}\nlist:\n  - {{ value }}\n{% endmacro %}\n"
        "apiVersion: acme.example/v1\nkind: Any\nmetadata: {name: '{{ release }}'}\n"
        "spec:\n  deep:\n    {{ pair('a: b') | indent(4) }}\n"
    )
    app = app_of(repository(tmp_path, {"t/map.yaml.jinja": text}))
    assert app.render()[0].body["spec"] == {"deep": {"key": "a: b", "list": ["a: b"]}}


def test_a_symbolic_link_out_of_the_repository_is_not_a_template(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text(HEAD, encoding="utf-8")
    folder = repository(tmp_path / "repository")
    os.symlink(secret, folder / "kinds/thing/templates/link.jinja")
    (found,) = messages(folder)
    assert found.startswith("link.jinja e KG0103 a symbolic link on this path leads out of the repository")


def test_a_template_may_produce_nothing_but_a_kind_may_not(tmp_path: Path) -> None:
    gated = "{% if spec.count > 5 %}\n" + HEAD + "  a: b\n{% endif %}\n"
    folder = repository(tmp_path, {"t/more.yaml.jinja": gated})
    assert [item.object.role for item in compiled(folder).objects] == ["map"]
    assert messages(repository(tmp_path, {"t/map.yaml.jinja": gated})) == [
        "specs/one.yaml:4:7 e KG1008 the templates of `Thing` produce no object for this spec"
    ]


def test_a_setting_takes_its_description_and_schema_from_its_field(tmp_path: Path) -> None:
    text = HEAD + "  a: '{{ setting('how.many', spec.count) }}'\n  b: '{{ setting('other', true, 'A flag.') }}'\n"
    found = {item.path: item for item in compiled(repository(tmp_path, {"t/map.yaml.jinja": text})).app.settings}
    assert found["how.many"].doc == "How many."
    assert found["how.many"].schema == {"type": "integer", "minimum": 1, "maximum": 9}
    assert found["how.many"].origin == ("spec", "count")
    assert (found["other"].doc, found["other"].schema, found["other"].default) == ("A flag.", {"type": "boolean"}, True)


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ("  a: '{{ setting('x', 1) }}'\n  b: '{{ setting('x', 2) }}'\n", "the setting `x` has two different defaults"),
        ("  a: '{{ setting('x', 1) }}'\n  b: '{{ setting('x.y', 2) }}'\n", "the setting `x` cannot have both a value"),
    ],
)
def test_conflicting_settings_are_reported(tmp_path: Path, lines: str, message: str) -> None:
    (found,) = messages(repository(tmp_path, {"t/map.yaml.jinja": HEAD + lines}))
    assert message in found


def test_values_of_an_imported_template_are_those_of_each_document(tmp_path: Path) -> None:
    folder = repository(
        tmp_path,
        {
            "t/lib.jinja": "{% set greeting %}hello {{ 1 + 1 }}{% endset %}",
            "t/map.yaml.jinja": "{% import 'lib.jinja' as lib %}\n" + HEAD + "  text: {{ lib.greeting }}\n",
            "specs/two.yaml": SPEC.replace("name: one", "name: two"),
        },
    )
    config = load_config(folder)
    apps = compile_specs((), config).apps
    assert [item.objects[0].body["data"] for item in apps] == [{"text": "hello 2"}, {"text": "hello 2"}]
