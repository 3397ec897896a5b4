"""Each key of a schema node is a check of its own."""

from __future__ import annotations

from typing import Any

import pytest

from kaigen.check import codes
from kaigen.check.atoms import Mismatch
from kaigen.check.schema_check import check_object
from kaigen.check.schema_compiler import Schemas, fitting, not_fitting
from kaigen.kubernetes.schemas import DEFAULT_VERSION
from tests.unit.check.example_objects import example

FIELDS = {"p": {"a": "s", "b": "b", "c": "i"}}
NAMED = {"p": {"name": "s", "kind": "s"}}


def shown(node: Any, value: object) -> list[tuple[str, list[str | int], str]]:
    """Code, path and message of each mismatch of a value with a node."""
    check = Schemas(DEFAULT_VERSION)._compile(node)
    assert not isinstance(check, type)
    return [(each.code, each.path, each.message) for each in check(value) or []]


@pytest.mark.parametrize(
    ("node", "value"),
    [
        (FIELDS, {}),
        (FIELDS, {"a": "x", "b": True, "c": 1}),
        (FIELDS, {"a": None}),
        ({**FIELDS, "open": 1}, {"z": 1}),
        ({**FIELDS, "r": ["a"]}, {"a": "x"}),
        ({**FIELDS, "u": [0, ["a", "b"]]}, {}),
        ({**FIELDS, "u": [1, ["a", "b"]]}, {"a": "x", "c": 1}),
        ({**FIELDS, "u": [1, ["a", "b"]]}, {"a": "x", "b": None}),
        ({**FIELDS, "min": 1, "max": 2}, {"a": "x"}),
        ({**FIELDS, "min": 1, "max": 2}, {"a": "x", "b": True}),
        ({"m": "s"}, {"x": "y"}),
        ({"m": "i"}, {"x": 1}),
        ({"m": "s", "min": 1, "max": 1}, {"x": "y"}),
        ({"l": "s"}, ["x", "x"]),
        ({"l": "s"}, ("x",)),
        ({"l": "i", "min": 1, "max": 2}, [1]),
        ({"l": "i", "min": 1, "max": 2}, [1, 2]),
        ({"l": "s", "set": 1}, ["x", "y"]),
        ({"l": NAMED, "k": ["name"]}, [{"name": "a"}, {"name": "b"}]),
        ({"l": NAMED, "k": ["name", "kind"]}, [{"name": "a"}, {"name": "a", "kind": "x"}]),
        ({"t": "any", "null": 1, "enum": ["a"]}, None),
        ({"t": "label", "blank": 1}, ""),
        ({"t": "label", "blank": 1}, "a"),
        ({"enum": ["a", 1]}, 1),
        ({"t": "i", "min": 1, "max": 3}, 1),
        ({"t": "i", "min": 1, "max": 3}, 3),
        ({"t": "s", "minlen": 1, "maxlen": 3}, "abc"),
        ({"t": "s", "re": "^a$"}, "a"),
        ({"t": "any", "any": ["ipv4", "ipv6"]}, "10.0.0.1"),
        ({"t": "any", "any": ["ipv4", "ipv6"]}, "fd00::1"),
        ({"t": "any", "any": ["s", "any"]}, "both"),
        ({"t": "any", "one": ["i", "s"]}, 1),
        ({"t": "any", "none": "i"}, "a"),
    ],
)
def test_a_value_that_matches_its_node_has_no_mismatch(node: Any, value: object) -> None:
    assert shown(node, value) == []


@pytest.mark.parametrize(
    ("node", "value", "mismatches"),
    [
        (FIELDS, [], [(codes.WRONG_TYPE, [], "must be a mapping, not a list")]),
        (FIELDS, {"z": 1, "a": 1, "b": "x", "c": "y"}, [
            (codes.UNKNOWN_FIELD, ["z"], "unknown field `z`"),
            (codes.WRONG_TYPE, ["a"], "must be a string, not the number 1"),
            (codes.WRONG_TYPE, ["b"], "must be true or false, not `x`"),
            (codes.WRONG_TYPE, ["c"], "must be an integer, not `y`")]),
        ({**FIELDS, "open": 1}, {"z": 1, "a": 1}, [
            (codes.WRONG_TYPE, ["a"], "must be a string, not the number 1")]),
        (FIELDS, {"a": None, "b": 1}, [(codes.WRONG_TYPE, ["b"], "must be true or false, not the number 1")]),
        ({**FIELDS, "r": ["a", "c"]}, {"b": True}, [
            (codes.MISSING_FIELD, [], "missing field `a`"), (codes.MISSING_FIELD, [], "missing field `c`")]),
        ({**FIELDS, "r": ["a"]}, {"a": None}, [(codes.WRONG_TYPE, ["a"], "must be a string, not null")]),
        ({**FIELDS, "u": [0, ["a", "b"]]}, {"a": "x", "b": True}, [
            (codes.FIELD_CONFLICT, [], "a and b are mutually exclusive")]),
        ({**FIELDS, "u": [1, ["a", "b"]]}, {"a": None}, [(codes.FIELD_CONFLICT, [], "needs one of a, b")]),
        ({"p": {"a": "s", "b": {"l": "s"}}, "u": [1, ["a", "b"]]}, {"b": []}, [
            (codes.FIELD_CONFLICT, [], "needs one of a, b")]),
        ({**FIELDS, "u": [1, list("abdefghi")]}, {}, [
            (codes.FIELD_CONFLICT, [], "needs one of a, b, d, e, f, g, h, i")]),
        ({**FIELDS, "u": [1, list("abdefghij")]}, {}, [(codes.FIELD_CONFLICT, [], "needs a source")]),
        ({**FIELDS, "min": 1}, {}, [(codes.OUT_OF_RANGE, [], "must not be empty")]),
        ({**FIELDS, "min": 2}, {"a": "x"}, [(codes.OUT_OF_RANGE, [], "must have at least 2 entries, not 1")]),
        ({**FIELDS, "max": 1}, {"a": "x", "b": True}, [
            (codes.OUT_OF_RANGE, [], "must have at most 1 entries, not 2")]),
        ({"m": "s"}, "x", [(codes.WRONG_TYPE, [], "must be a mapping, not `x`")]),
        ({"m": "s"}, {"a": 1, 2: "b"}, [
            (codes.WRONG_TYPE, ["a"], "must be a string, not the number 1"),
            (codes.WRONG_TYPE, ["2"], "must be a string, not the number 2")]),
        ({"m": "i"}, {"a": "b", "c": 1}, [(codes.WRONG_TYPE, ["a"], "must be an integer, not `b`")]),
        ({"m": "s", "min": 1}, {}, [(codes.OUT_OF_RANGE, [], "must not be empty")]),
        ({"m": "s", "min": 2}, {"a": "x"}, [(codes.OUT_OF_RANGE, [], "must have at least 2 entries, not 1")]),
        ({"m": "s", "max": 1}, {"a": "x", "b": "y"}, [
            (codes.OUT_OF_RANGE, [], "must have at most 1 entries, not 2")]),
        ({"l": "s"}, {}, [(codes.WRONG_TYPE, [], "must be a list, not a mapping")]),
        ({"l": "s"}, ["a", 1, "b", 2], [
            (codes.WRONG_TYPE, [1], "must be a string, not the number 1"),
            (codes.WRONG_TYPE, [3], "must be a string, not the number 2")]),
        ({"l": "i"}, ["a"], [(codes.WRONG_TYPE, [0], "must be an integer, not `a`")]),
        ({"l": "s", "min": 2}, ["a"], [(codes.OUT_OF_RANGE, [], "must have at least 2 items, not 1")]),
        ({"l": "s", "max": 1}, ["a", "b"], [(codes.OUT_OF_RANGE, [], "must have at most 1 items, not 2")]),
        ({"l": "s", "min": 2, "max": 3}, ["a"], [
            (codes.OUT_OF_RANGE, [], "must have between 2 and 3 items, not 1")]),
        ({"l": "s", "set": 1}, ["a", "b", "a", "a"], [
            (codes.DUPLICATE_ENTRY, [2], "duplicate item `a`"),
            (codes.DUPLICATE_ENTRY, [3], "duplicate item `a`")]),
        ({"l": NAMED, "k": ["name"]}, [{"name": "a"}, {"name": "b"}, {"name": "b"}], [
            (codes.DUPLICATE_ENTRY, [2], "has the same name `b` as item 1")]),
        ({"l": NAMED, "k": ["name", "kind"], "kd": {"kind": "x"}}, [{"name": "a"}, {"name": "a", "kind": "x"}], [
            (codes.DUPLICATE_ENTRY, [1], "has the same name `a` and kind `x` as item 0")]),
        ({"l": NAMED, "k": ["name"]}, [{"name": 1}, {"name": 1}], [
            (codes.WRONG_TYPE, [0, "name"][::-1], "must be a string, not the number 1"),
            (codes.WRONG_TYPE, [1, "name"][::-1], "must be a string, not the number 1")]),
        ({"t": "label", "blank": 1}, "A", [(codes.BAD_VALUE, [], "`A` is not a DNS label in lower case")]),
        ({"t": "s", "enum": ["a"]}, "b", [(codes.BAD_VALUE, [], "must be a, not `b`")]),
        ({"enum": ["a", ""]}, 3, [(codes.WRONG_TYPE, [], "must be a, not the number 3")]),
        ({"enum": [1, 2]}, True, [(codes.WRONG_TYPE, [], "must be one of 1, 2, not true")]),
        ({"t": "i", "min": 1}, 0, [(codes.OUT_OF_RANGE, [], "must be at least 1, not 0")]),
        ({"t": "i", "max": 1}, 2, [(codes.OUT_OF_RANGE, [], "must be at most 1, not 2")]),
        ({"t": "n", "min": 1, "max": 2}, 2.5, [(codes.OUT_OF_RANGE, [], "must be between 1 and 2, not 2.5")]),
        ({"t": "s", "minlen": 2}, "a", [(codes.OUT_OF_RANGE, [], "must have at least 2 characters, not 1")]),
        ({"t": "s", "maxlen": 2}, "abc", [(codes.OUT_OF_RANGE, [], "must have at most 2 characters, not 3")]),
        ({"t": "s", "minlen": 1}, "", [(codes.OUT_OF_RANGE, [], "must not be empty")]),
        ({"t": "s", "re": "^a$"}, "a\n", [(codes.BAD_VALUE, [], "`a\n` does not match ^a$")]),
        ({"t": "s", "re": "^a$", "minlen": 3}, "b", [(codes.BAD_VALUE, [], "`b` does not match ^a$")]),
        ({"t": "any", "any": ["ipv4", "ipv6"]}, "x", [(codes.BAD_VALUE, [], "`x` is not an IPv4 address")]),
        ({"t": "any", "one": ["s", "any"]}, "x", [(codes.BAD_VALUE, [], "matches 2 mutually exclusive forms")]),
        ({"t": "any", "one": ["i", "b"]}, "x", [(codes.WRONG_TYPE, [], "must be an integer, not `x`")]),
        ({"t": "any", "none": "s"}, "x", [(codes.BAD_VALUE, [], "must not be `x`")]),
        ({"t": "any", "none": "b"}, True, [(codes.BAD_VALUE, [], "must not be true")]),
    ],
)  # fmt: skip
def test_a_mismatch_has_a_code_a_path_and_a_message(
    node: Any, value: object, mismatches: list[tuple[str, list[str | int], str]]
) -> None:
    assert shown(node, value) == mismatches


def test_forms_are_compared_with_the_defaults_of_a_value() -> None:
    seen: list[object] = []

    def record(value: object) -> list[Mismatch] | None:
        seen.append(value)
        return None

    assert fitting([record], 1, {"a": 1, "b": 2})({"a": None, "b": 3, "c": None}) is None
    assert fitting([record], 1, {"a": 1})("text") is None
    assert seen == [{"a": 1, "b": 3}, "text"]
    assert not_fitting(record)({"a": 1}) is not None


def test_known_fields_are_listed_where_there_are_few() -> None:
    check = Schemas(DEFAULT_VERSION)._compile({"p": {name: "s" for name in "bacdefghijkl"}})
    assert not isinstance(check, type)
    (mismatch,) = check({"zzzzzz": 1}) or []
    assert mismatch.hint == "known fields are a, b, c, d, e, f, g, h, i, j, k, l"
    for names in ("", "bacdefghijklm"):
        check = Schemas(DEFAULT_VERSION)._compile({"p": {name: "s" for name in names}})
        assert not isinstance(check, type)
        (mismatch,) = check({"zzzzzz": 1}) or []
        assert mismatch.hint == ""


def test_a_definition_that_a_target_lacks_raises_key_error() -> None:
    with pytest.raises(KeyError):
        Schemas("1.0").check_of("resource.v1/ResourceClaim")


def test_an_ip_address_of_a_gateway_has_version_4_or_6() -> None:
    gateway = example("Gateway")
    for value, messages in [
        ("10.0.0.1", []),
        ("fd00::1", []),
        ("gateway.example.com", ["`gateway.example.com` is not an IPv4 address"]),
    ]:
        gateway["spec"]["addresses"] = [{"type": "IPAddress", "value": value}]
        assert [each.message for each in check_object(gateway)] == messages


@pytest.mark.parametrize(
    ("api_version", "kind", "target", "hint"),
    [
        ("policy/v1beta1", "PodSecurityPolicy", "1.36", ""),
        ("batch/v1beta1", "CronJob", "1.36", "use apiVersion batch/v1"),
        ("autoscaling/v2beta2", "HorizontalPodAutoscaler", "1.36",
         "use apiVersion autoscaling/v1 or autoscaling/v2"),
        ("apps/v2", "Deployment", "1.36", "use apiVersion apps/v1"),
        ("gateway.networking.k8s.io/v2", "HTTPRoute", "1.36", "use apiVersion gateway.networking.k8s.io/v1"),
        ("kaito.sh/v1", "Workspace", "1.36", "use apiVersion kaito.sh/v1beta1"),
    ],
)  # fmt: skip
def test_the_stable_versions_of_a_kind_are_suggested(api_version: str, kind: str, target: str, hint: str) -> None:
    (finding,) = check_object({"apiVersion": api_version, "kind": kind}, target=target)
    assert (finding.hint, finding.path) == (hint, ("apiVersion",))


def test_a_job_template_of_a_cron_job_is_checked_like_a_job() -> None:
    cron_job = example("CronJob")
    job = cron_job["spec"]["jobTemplate"]["spec"]
    job["completionMode"] = "Indexed"
    job.pop("completions", None)
    (finding,) = check_object(cron_job)
    assert (finding.where, finding.message) == ("spec.jobTemplate.spec", "completionMode Indexed needs completions")


def test_a_deprecated_version_is_reported_at_its_field() -> None:
    queue = example("LocalQueue") | {"apiVersion": "kueue.x-k8s.io/v1beta1"}
    (finding,) = check_object(queue)
    assert (finding.path, finding.message) == (("apiVersion",), "kueue.x-k8s.io/v1beta1 LocalQueue is deprecated")


def test_a_definition_is_compiled_once() -> None:
    schemas = Schemas(DEFAULT_VERSION)
    assert schemas.check_of("core.v1/Container") is schemas.check_of("core.v1/Container")
