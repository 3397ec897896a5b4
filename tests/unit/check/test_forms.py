"""The forms of single fields: what each accepts, and how it describes what it rejects."""

from __future__ import annotations

import pytest

from kaigen.check import codes
from kaigen.check.forms import FORMS, text_of


@pytest.mark.parametrize(
    ("form", "values"),
    [
        ("amount", ["1", "1n", 1, 0.5]),
        ("cidr", ["10.0.0.0/8", "10.0.0.1/8", "fd00::/8"]),
        ("cron", ["0 3 * * *", "@daily", "@every 1h30m", "0  3 * * MON", "*/5 1-3/2 1,15 jan-mar ?"]),
        ("provisioner", ["rancher.io/local-path", "kubernetes.io/no-provisioner", "ebs.csi.aws.com", "Local"]),
        ("relative", ["a", "a/b..c"]),
        ("share", [3, "100%"]),
        ("zone", ["Etc/UTC", "Europe/Berlin"]),
        ("dns", ["a", "a.b", "a" * 253]),
        ("field", ["metadata.name", "metadata.annotations['a.b/c']", "spec.nodeName", "status.podIP"]),
        ("host", ["*.a.b", "a"]),
        ("label", ["a", "1-a", "a" * 63]),
        ("path", ["/", "/a b", "/" + "a" * 4095, "/a\nb"]),
        ("percent", [0, 7, 2**31 - 1, "0%", "250%"]),
        ("pname", ["http", "8a", "a-b", "a" * 15]),
        ("port", [1, 65535, "http"]),
        ("qname", ["app", "example.com/app", "a" * 253 + "/b"]),
        ("text", ["a", " "]),
        ("value", ["", "a", "A_b.c-1", "a" * 63]),
    ],
)
def test_a_form_accepts_its_values_every_time(form: str, values: list[object]) -> None:
    for value in (*values, *values):
        assert FORMS[form](value) is None, value


@pytest.mark.parametrize(
    ("form", "value", "code", "message"),
    [
        ("amount", "0", codes.OUT_OF_RANGE, "must be more than 0, not 0"),
        ("amount", "-1n", codes.OUT_OF_RANGE, "must be more than 0, not -1n"),
        ("amount", "1 Gi", codes.BAD_VALUE, "`1 Gi` is not a quantity such as 500m or 16Gi"),
        ("amount", [], codes.WRONG_TYPE, "must be a quantity such as 500m or 16Gi, not a list"),
        ("cidr", "10.0.0.0", codes.BAD_VALUE, "`10.0.0.0` is not an address range such as 10.0.0.0/8"),
        ("cidr", "a/8", codes.BAD_VALUE, "`a/8` is not an address range such as 10.0.0.0/8"),
        ("cidr", 8, codes.WRONG_TYPE, "must be a string, not the number 8"),
        ("cron", "0 3 * *", codes.BAD_VALUE, "`0 3 * *` is not a schedule such as `0 3 * * *`"),
        ("cron", "@dailyx", codes.BAD_VALUE, "`@dailyx` is not a schedule such as `0 3 * * *`"),
        ("cron", "0 25 * * *", codes.BAD_VALUE, "`25` is not a number from 0 to 23 (hour)"),
        ("cron", "0 3 * * fri-mon", codes.BAD_VALUE, "`fri-mon` is not a number from 0 to 6 (day of the week)"),
        ("cron", "TZ=UTC 0 3 * * *", codes.BAD_VALUE, "a schedule must not have a time zone"),
        ("zone", "Mars/Olympus", codes.BAD_VALUE, "unknown time zone `Mars/Olympus`"),
        ("share", "101%", codes.OUT_OF_RANGE, "must be at most 100%, not 101%"),
        ("relative", "/a", codes.BAD_VALUE, "`/a` is not a relative path"),
        ("relative", "a/../..", codes.BAD_VALUE, "`a/../..` leads out of its folder"),
        ("provisioner", "a/b/c", codes.BAD_VALUE, "`a/b/c` is not a name such as example.com/driver"),
        ("trimmed", "a:1 ", codes.BAD_VALUE, "`a:1 ` has spaces around it"),
        ("ip", "10.0.0.256", codes.BAD_VALUE, "`10.0.0.256` is not an IP address"),
        ("dns", "a_b", codes.BAD_VALUE, "`a_b` is not a DNS name in lower case"),
        ("dns", "a.b!", codes.BAD_VALUE, "`a.b!` is not a DNS name in lower case"),
        ("dns", "a" * 254, codes.OUT_OF_RANGE, "must have at most 253 characters, not 254"),
        ("dns", "", codes.OUT_OF_RANGE, "must not be empty"),
        ("field", "spec.nodeNames", codes.BAD_VALUE,
         "`spec.nodeNames` is not a field of the pod such as metadata.name"),
        ("field", "x" * 1025, codes.OUT_OF_RANGE, "must have at most 1024 characters, not 1025"),
        ("host", "a.*", codes.BAD_VALUE, "`a.*` is not a DNS name in lower case"),
        ("host", "a" * 254, codes.OUT_OF_RANGE, "must have at most 253 characters, not 254"),
        ("label", "a.b", codes.BAD_VALUE, "`a.b` is not a DNS label in lower case"),
        ("label", "a" * 64, codes.OUT_OF_RANGE, "must have at most 63 characters, not 64"),
        ("path", "a", codes.BAD_VALUE, "`a` is not a path that starts with /"),
        ("path", "/\0", codes.BAD_VALUE, "`/\0` is not a path that starts with /"),
        ("path", "/" * 4097, codes.OUT_OF_RANGE, "must have at most 4096 characters, not 4097"),
        ("percent", -1, codes.OUT_OF_RANGE, "must be at least 0, not -1"),
        ("percent", 2**31, codes.OUT_OF_RANGE, "2147483648 exceeds 32 bits"),
        ("percent", "5", codes.BAD_VALUE, "`5` is not a percentage such as 25%"),
        ("percent", "5%%", codes.BAD_VALUE, "`5%%` is not a percentage such as 25%"),
        ("percent", 0.5, codes.WRONG_TYPE,
         "must be an integer or a percentage such as 25%, not the number 0.5"),
        ("pname", "80", codes.BAD_VALUE,
         "`80` is not a port name: lower-case letters, digits and single '-' between them"),
        ("pname", "a" * 16, codes.OUT_OF_RANGE, "must have at most 15 characters, not 16"),
        ("port", 0, codes.OUT_OF_RANGE, "must be between 1 and 65535, not 0"),
        ("port", 65536, codes.OUT_OF_RANGE, "must be between 1 and 65535, not 65536"),
        ("port", True, codes.WRONG_TYPE, "must be the number or name of a port, not true"),
        ("port", "a--b", codes.BAD_VALUE,
         "`a--b` is not a port name: lower-case letters, digits and single '-' between them"),
        ("qname", "a b", codes.BAD_VALUE, "`a b` is not a name such as app or example.com/app"),
        ("qname", 1, codes.WRONG_TYPE, "must be a string, not the number 1"),
        ("text", "", codes.OUT_OF_RANGE, "must not be empty"),
        ("text", None, codes.WRONG_TYPE, "must be a string, not null"),
        ("value", "-a", codes.BAD_VALUE,
         "`-a` is not a label value: letters, digits, and '-', '_', '.' between them"),
        ("value", "a" * 64, codes.OUT_OF_RANGE, "must have at most 63 characters, not 64"),
    ],
)  # fmt: skip
def test_a_form_describes_a_value_that_it_rejects(form: str, value: object, code: str, message: str) -> None:
    found = FORMS[form](value)
    assert found is not None
    assert [(each.code, each.message, each.path) for each in found] == [(code, message, [])]


def test_a_text_must_match_its_pattern_from_the_first_to_the_last_character() -> None:
    check = text_of("[a-z]+", 3, "a word")
    assert check("abc") is None
    for value in ("1ab", "ab1", "ab\n"):
        (mismatch,) = check(value) or []
        assert (mismatch.code, mismatch.message) == (codes.BAD_VALUE, f"`{value}` is not a word")


def test_a_text_has_a_greatest_length() -> None:
    check = text_of("[a-z]+", 3, "a word")
    (mismatch,) = check("abcd") or []
    assert (mismatch.code, mismatch.message) == (codes.OUT_OF_RANGE, "must have at most 3 characters, not 4")
    assert [each.message for each in check(3) or []] == ["must be a string, not the number 3"]


def test_only_a_text_that_may_be_empty_accepts_no_characters() -> None:
    (mismatch,) = text_of("[a-z]*", 3, "a word")("") or []
    assert (mismatch.code, mismatch.message) == (codes.OUT_OF_RANGE, "must not be empty")
    assert text_of("[a-z]+", 3, "a word", empty=True)("") is None
