"""A hostile kind ends with an error at its line: no traceback, and no work without a bound."""

from __future__ import annotations

import time

import pytest

from tests.unit.extend.repository import HEAD, KIND, SCHEMA, SPEC
from tests.unit.security.hostile import CONFIG, JOB, Repository


def kind(repository: Repository, body: str) -> None:
    repository.write(
        {
            "kaigen.yaml": CONFIG + "kinds: [kinds]\n",
            "kinds/thing/kind.yaml": KIND,
            "kinds/thing/schema.yaml": SCHEMA,
            "kinds/thing/templates/object.yaml.jinja": HEAD + body,
            "specs/one.yaml": SPEC,
        }
    )


@pytest.mark.parametrize(
    "body",
    [
        '  a: {{ 1.5|round(100000000000,"ceil") }}\n',
        '  a: {{ range(100000)|map(attribute="x",default=[1]*1000)|sum(start=[]) }}\n',
        '  a: {{ range(100000)|map(attribute="x",default=range(1000)|list)|sum(start=[]) }}\n',
        "{% for i in range(100000) %}{% set x = range(100000)|sort %}{% endfor %}  a: b\n",
        "{% for i in range(100000) %}{% set x = range(100000)|list|unique|list %}{% endfor %}  a: b\n",
    ],
)
def test_a_template_without_end_is_stopped(repository: Repository, body: str) -> None:
    kind(repository, body)
    begin = time.monotonic()
    done = repository.kaigen("validate")
    assert (done.code, "KG100" in done.err) == (2, True), done.text
    assert time.monotonic() - begin < 60


@pytest.mark.parametrize(
    "body",
    [
        "  a: {{ " + "(" * 5000 + "1" + ")" * 5000 + " }}\n",
        "{% for i in [1] %}" * 30 + "  a: b\n" + "{% endfor %}" * 30,
        '  a: {{ [1]|map("nosuch")|list }}\n',
        '  a: {{ [1]|select("nosuch")|list }}\n',
        '  a: {{ setting("x", 1, _line=2) }}\n',
        '  a: {{ setting("x", 1, _origin=2) }}\n',
        '  a: {{ setting("x", 1, _place=2) }}\n',
        "  a: {{ spec.text|round }}\n",
        "  a: {{ [[1]]|sum }}\n",
    ],
)
def test_an_odd_template_is_an_error_and_no_traceback(repository: Repository, body: str) -> None:
    kind(repository, body)
    done = repository.kaigen("validate")
    assert (done.code, "error[KG" in done.err) == (2, True), done.text
    assert "Traceback" not in done.text


@pytest.mark.parametrize("target", ["/dev/zero", "/etc/passwd", "loop"])
def test_links_among_kinds_are_not_read(repository: Repository, target: str) -> None:
    kind(repository, "  a: b\n")
    (repository.folder / "kinds" / "thing" / "loop").symlink_to(target)
    begin = time.monotonic()
    done = repository.kaigen("validate")
    assert time.monotonic() - begin < 30
    assert "root:" not in done.text


def test_many_unknown_fields_are_reported_up_to_a_limit(repository: Repository) -> None:
    fields = "".join(f"  unknown{number}: 1\n" for number in range(20_000))
    repository.write({"specs/evaluate.yaml": JOB + fields})
    begin = time.monotonic()
    done = repository.kaigen("validate")
    assert done.code == 2
    assert time.monotonic() - begin < 60
    assert done.err.count("error[KG0201]") <= 1000
    assert "more problems" in done.err
