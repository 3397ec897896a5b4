"""Types and values of scalars."""

from __future__ import annotations

import math

import pytest

from kaigen.diagnostics.problem import ProblemError
from kaigen.yaml.scalars import kubernetes_value, manifest_value
from tests.unit.yaml.texts import load, problems, read


@pytest.mark.parametrize(
    ("written", "value"),
    [
        ("", None),
        ("~", None),
        ("null", None),
        ("Null", None),
        ("NULL", None),
        ("nULL", "nULL"),
        ("true", True),
        ("True", True),
        ("TRUE", True),
        ("false", False),
        ("tRUE", "tRUE"),
        ("0", 0),
        ("-0", 0),
        ("+12", 12),
        ("-12", -12),
        ("0x1F", 31),
        ("0o17", 15),
        ("9223372036854775807", 2**63 - 1),
        ("-9223372036854775808", -(2**63)),
        ("1.10", 1.1),
        ("1.", 1.0),
        (".5", 0.5),
        ("-.5", -0.5),
        ("1e3", 1000.0),
        ("1E-3", 0.001),
        ("6.02e+23", 6.02e23),
    ],
)
def test_a_plain_scalar_has_the_type_of_the_core_schema(written: str, value: object) -> None:
    assert load(f"a: {written}\n") == {"a": value}
    assert type(load(f"[{written or '~'}]\n")[0]) is type(value)  # type: ignore[index]


@pytest.mark.parametrize(
    "written",
    [
        "0123",
        "-0123",
        "00",
        "01.5",
        "12:30",
        "12:30:45",
        "2024-01-01",
        "2024-01-01T10:00:00Z",
        "1_000",
        "0b101",
        "-0x1F",
        "0xG",
        "0o8",
        "1.2.3",
        "1e",
        "e5",
        "+",
        ".",
        "--",
        "y",
        "n",
        "Y",
        "N",
        "inf",
        "nan",
        ".info",
        "=",
        "10Gi",
        "100m",
        "١٢",
    ],
)
def test_text_that_resembles_another_type_is_text(written: str) -> None:
    assert load(f"a: {written}\n") == {"a": written}


@pytest.mark.parametrize(
    ("word", "meant"), [("yes", "true"), ("Yes", "true"), ("ON", "true"), ("no", "false"), ("Off", "false")]
)
def test_unquoted_yes_no_on_and_off_are_rejected(word: str, meant: str) -> None:
    (found,) = read(f"a:\n  - b: {word} # why\n")[1]
    assert (str(found.mark), found.code, found.path) == ("a.yaml:2:8", "KG0140", "a[0].b")
    assert found.message == f"unquoted `{word}` is the boolean {meant} to Kubernetes and text to other parsers"
    assert found.hint == f'write `{meant}`, or quote it to make it text: "{word}"'
    assert found.mark is not None
    assert found.mark.length == len(word)
    assert load(f'a: "{word}"\n') == {"a": word}


def test_yes_no_on_and_off_are_allowed_as_keys() -> None:
    assert load("on: 1\nno: {yes: 2}\n") == {"on": 1, "no": {"yes": 2}}


def test_keys_are_text_as_written() -> None:
    written = '1: a\n0x1F: b\n1.10: c\ntrue: d\nnull: e\n~: f\n2024-01-01: g\n"": h\n'
    assert load(written) == {
        "1": "a",
        "0x1F": "b",
        "1.10": "c",
        "true": "d",
        "null": "e",
        "~": "f",
        "2024-01-01": "g",
        "": "h",
    }


@pytest.mark.parametrize("written", [".inf", "-.Inf", "+.INF", ".nan", ".NaN", "1e999", "-1" + "0" * 400 + ".0"])
def test_infinity_and_nan_are_rejected(written: str) -> None:
    (found,) = problems(f"a: {written}\n")
    assert found.startswith("1:4 KG0141 ")


@pytest.mark.parametrize(
    "written", ["9223372036854775808", "-9223372036854775809", "0xFFFFFFFFFFFFFFFF", "0o7" + "7" * 30, "9" * 10_000]
)
def test_integers_beyond_64_bits_are_rejected(written: str) -> None:
    (found,) = problems(f"a: {written}\n")
    assert found.startswith("1:4 KG0142 ")
    assert len(found) < 100


def test_standard_tags_set_the_type_of_a_scalar() -> None:
    written = 'a: !!str 12\nb: !!int "12"\nc: !!float 1\nd: !!bool "true"\ne: !!null ""\nf: !!map {}\ng: !!seq []\n'
    data = load(written)
    assert data == {"a": "12", "b": 12, "c": 1.0, "d": True, "e": None, "f": {}, "g": []}
    assert isinstance(data, dict)
    assert type(data["c"]) is float


@pytest.mark.parametrize("written", ["!!int x", "!!int 1.5", "!!int true", "!!bool 1", "!!null x", "!!float yes"])
def test_a_standard_tag_must_match_its_value(written: str) -> None:
    assert len(problems(f"a: {written}\n")) == 1


@pytest.mark.parametrize(
    "written",
    [
        "!custom x",
        "!!python/object:os.system x",
        "!!binary aGVsbG8=",
        "!!timestamp 2024-01-01",
        "!!set {a, b}",
        "!<tag:example.com,2024:x> y",
        "!custom {a: 1}",
        "!custom [1]",
        "! x",
        "!",
        "{!custom k: 1}",
    ],
)
def test_other_tags_are_rejected(written: str) -> None:
    (found,) = problems(f"a: {written}\n")
    assert " KG0132 " in found


@pytest.mark.parametrize("written", [r'"\0"', r'"a\u0000b"', r'!!str "\x00"'])
def test_an_escape_cannot_produce_nul(written: str) -> None:
    (found,) = problems(f"a: {written}\n")
    assert found.startswith("1:4 KG0120 ")


def test_other_escapes_produce_their_characters() -> None:
    assert load(r'a: "\x1b\t\u263A\U0001F600\n\/"') == {"a": "\x1b\t☺😀\n/"}


def test_block_scalars_keep_their_lines() -> None:
    assert load("a: |\n  #!/bin/sh\n  \tindented\n\n  end\nb: >-\n  x\n  y\n") == {
        "a": "#!/bin/sh\n\tindented\n\nend\n",
        "b": "x y",
    }


def test_floats_are_never_infinite_and_integers_never_floats() -> None:
    data = load("[1, 1.0, 1e308]\n")
    assert isinstance(data, list)
    assert [type(value) for value in data] == [int, float, float]
    assert all(math.isfinite(value) for value in data if isinstance(value, float))


@pytest.mark.parametrize(
    ("written", "value"),
    [
        ("yes", True),
        ("On", True),
        ("y", True),
        ("NO", False),
        ("off", False),
        ("N", False),
        ("yEs", "yEs"),
        ("00", 0),
        ("0123", 83),
        ("-010", -8),
        ("+0o17", 15),
        ("0O17", 15),
        ("-0x1F", -31),
        ("0b101", 5),
        ("-0B11", -3),
        ("1_000", 1000),
        ("0x_F", 15),
        ("1_0.5", 10.5),
        ("0189", 189.0),
        ("00.0", 0.0),
        ("1e3", 1000.0),
        ("12:30", "12:30"),
        ("2026-01-02", "2026-01-02"),
        ("1.2.3", "1.2.3"),
        ("._5", "._5"),
        ("--5", "--5"),
        ("0b2", "0b2"),
        ("0xG", "0xG"),
        ("-", "-"),
        ("nginx", "nginx"),
        ("~", None),
    ],
)
def test_kubernetes_reads_old_forms_of_booleans_and_numbers(written: str, value: object) -> None:
    found = kubernetes_value(written)
    assert (found, type(found)) == (value, type(value))


@pytest.mark.parametrize("written", [".inf", "-.inf", ".nan", "1e999", "9223372036854775808", "0" + "7" * 40])
def test_numbers_that_json_does_not_have_are_rejected_for_kubernetes_too(written: str) -> None:
    with pytest.raises(ProblemError):
        kubernetes_value(written)


@pytest.mark.parametrize(
    ("written", "value"), [("0022", 18), ("09", 9), ("1_000", 1000), ("1e3", 1000), ("685.230_15e+03", 685230.15)]
)
def test_numbers_of_manifests_are_those_of_their_json(written: str, value: float) -> None:
    found = manifest_value(written)
    assert (found, type(found)) == (value, type(value))


def test_sexagesimal_numbers_are_text_in_manifests_as_for_kubectl_and_kustomize() -> None:
    assert manifest_value("190:20:30") == "190:20:30"


@pytest.mark.parametrize("word", ["y", "N", "yes", "Off"])
def test_words_that_only_kubectl_reads_as_booleans_are_rejected_in_manifests(word: str) -> None:
    with pytest.raises(ProblemError, match=f"unquoted `{word}` is the boolean"):
        manifest_value(word)


@pytest.mark.parametrize(
    ("written", "value"),
    [("0755", 493), ("0400", 256), ("00", 0), ("0o644", 420), ("420", 420), ("0800", "0800"), ('"0755"', "0755")],
)
def test_modes_of_files_are_octal_as_in_yaml_1_1(written: str, value: object) -> None:
    assert load(f"volume: {{defaultMode: {written}, items: [{{mode: {written}}}]}}\n") == {
        "volume": {"defaultMode": value, "items": [{"mode": value}]}
    }
