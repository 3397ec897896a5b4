"""Which fields differ, and how values are put into words."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kaigen.diagnostics.problem import At
from kaigen.diff import ABSENT, FieldChange, Json
from kaigen.diff.formatting import clean, clip, listing, value
from kaigen.diff.pairing import diff_fields
from kaigen.kubernetes.quantities import nano

JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.text(max_size=4),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from(["name", "a", "b.c", "key"]), inner, max_size=4)
    ),
    max_leaves=12,
)


def changes(old: Json, new: Json) -> dict[str, tuple[object, object]]:
    return {change.path: (change.old, change.new) for change in diff_fields(old, new)}


class TestPaths:
    def test_elements_are_matched_by_name_in_any_order(self) -> None:
        old: Json = {"env": [{"name": "A", "value": "1"}, {"name": "B", "value": "2"}]}
        new: Json = {"env": [{"name": "C", "value": "3"}, {"name": "A", "value": "9"}]}
        assert changes(old, new) == {
            "env[A].value": ("1", "9"),
            "env[B]": ({"name": "B", "value": "2"}, ABSENT),
            "env[C]": (ABSENT, {"name": "C", "value": "3"}),
        }

    def test_another_order_is_a_difference_of_its_own(self) -> None:
        old: Json = {"initContainers": [{"name": "a"}, {"name": "b"}]}
        new: Json = {"initContainers": [{"name": "b"}, {"name": "a"}]}
        assert changes(old, new) == {"initContainers[order]": (["a", "b"], ["b", "a"])}

    def test_mounts_of_one_volume_are_matched_by_their_path(self) -> None:
        old: Json = {"volumeMounts": [{"name": "v", "mountPath": "/a"}, {"name": "v", "mountPath": "/b"}]}
        new: Json = {"volumeMounts": [{"name": "v", "mountPath": "/a"}, {"name": "w", "mountPath": "/b"}]}
        assert changes(old, new) == {"volumeMounts[/b].name": ("v", "w")}

    def test_ports_without_a_name_are_matched_by_number_and_protocol(self) -> None:
        old: Json = {"ports": [{"port": 53, "protocol": "TCP"}, {"port": 53, "protocol": "UDP"}]}
        new: Json = {"ports": [{"port": 53, "protocol": "UDP", "targetPort": 1}, {"port": 53, "protocol": "TCP"}]}
        assert changes(old, new)["ports[53/UDP].targetPort"] == (ABSENT, 1)

    def test_elements_without_a_name_are_matched_from_both_ends(self) -> None:
        assert changes({"args": ["a", "b", "c"]}, {"args": ["a", "x", "b", "c"]}) == {"args[1]": (ABSENT, "x")}
        assert changes({"args": ["a", "b", "c"]}, {"args": ["a", "c"]}) == {"args[1]": ("b", ABSENT)}
        assert changes({"args": ["a", "b"]}, {"args": ["a", "c"]}) == {"args[1]": ("b", "c")}

    def test_names_that_are_not_unique_are_not_relied_on(self) -> None:
        old: Json = {"x": [{"name": "a", "v": 1}, {"name": "a", "v": 2}]}
        new: Json = {"x": [{"name": "a", "v": 1}, {"name": "a", "v": 3}]}
        assert changes(old, new) == {"x[1].v": (2, 3)}

    def test_odd_keys_are_quoted(self) -> None:
        assert changes({"labels": {"a.b/c": "1"}}, {"labels": {"a.b/c": "2"}}) == {'labels["a.b/c"]': ("1", "2")}

    def test_an_added_or_removed_field_is_one_difference(self) -> None:
        assert changes({}, {"a": {"b": {"c": 1}}}) == {"a": (ABSENT, {"b": {"c": 1}})}
        assert changes({"a": None}, {}) == {"a": (None, ABSENT)}

    def test_true_is_not_one(self) -> None:
        assert changes({"a": 1}, {"a": True}) == {"a": (1, True)}
        assert changes({"a": [0]}, {"a": [False]}) == {"a[0]": (0, False)}

    def test_a_deep_true_is_not_one_either(self) -> None:
        assert changes({"a": {"b": {"c": 1}}}, {"a": {"b": {"c": True}}}) == {"a.b.c": (1, True)}

    def test_another_type_is_one_difference(self) -> None:
        assert changes({"a": [1]}, {"a": {"b": 1}}) == {"a": ([1], {"b": 1})}

    @given(JSON)
    def test_a_value_does_not_differ_from_itself(self, item: Json) -> None:
        assert list(diff_fields(item, item)) == []

    @given(JSON, JSON)
    def test_what_differs_one_way_differs_the_other_way(self, old: Json, new: Json) -> None:
        there, back = list(diff_fields(old, new)), list(diff_fields(new, old))
        assert bool(there) == bool(back)
        assert all(change.old is not ABSENT or change.new is not ABSENT for change in there)

    @given(JSON, JSON)
    def test_values_that_differ_have_a_difference(self, old: Json, new: Json) -> None:
        import json

        assert bool(list(diff_fields(old, new))) == (json.dumps(old, sort_keys=True) != json.dumps(new, sort_keys=True))

    def test_a_path_can_be_read_step_by_step(self) -> None:
        change = FieldChange(("spec", "containers", At("run"), "image"), "a", "b")
        assert change.path == "spec.containers[run].image"


class TestQuantities:
    @pytest.mark.parametrize(
        ("smaller", "larger"),
        [("1Gi", "1025Mi"), ("999m", 1), ("1G", "1Gi"), ("1e3", "1.5k"), (".5", 1), ("1Ti", "1Pi"), ("5u", "1m")],
    )
    def test_are_compared_by_value(self, smaller: Json, larger: Json) -> None:
        before, after = nano(smaller), nano(larger)
        assert before is not None
        assert after is not None
        assert before < after

    @pytest.mark.parametrize(("one", "other"), [("1Gi", "1024Mi"), ("1", 1), ("1000m", "1"), ("1k", "1e3"), ("0", 0)])
    def test_may_say_the_same_in_other_words(self, one: Json, other: Json) -> None:
        assert nano(one) == nano(other)

    @pytest.mark.parametrize("text", ["", "Gi", "1 Gi", "1GiB", "auto", True, None, [], "1e", "1e1000", "9" * 90])
    def test_what_is_none_is_nothing(self, text: Json) -> None:
        assert nano(text) is None


class TestWords:
    @pytest.mark.parametrize(
        ("item", "text"),
        [
            ("plain", "plain"),
            ("repo/app:v1", "repo/app:v1"),
            ("5", '"5"'),
            (5, "5"),
            (True, "true"),
            ("true", '"true"'),
            (None, "null"),
            ("", '""'),
            ("a: b", '"a: b"'),
            ("two\nlines", '"two\\nlines"'),
            ({"a": [1, "x"]}, "{a: [1, x]}"),
            ([], "[]"),
            (ABSENT, "not set"),
        ],
    )
    def test_values_are_written_as_yaml_would(self, item: Json, text: str) -> None:
        assert value(item) == text

    def test_long_values_keep_their_ends(self) -> None:
        assert value("a" * 50 + "b" * 50, 20) == "a" * 15 + "…" + "b" * 4

    @given(JSON, st.integers(1, 40))
    def test_values_are_never_longer_than_the_limit(self, item: Json, limit: int) -> None:
        assert len(value(item, limit)) <= limit

    def test_large_values_are_not_written_out(self) -> None:
        deep: Json = []
        for _ in range(40):
            deep = [deep, deep]
        assert len(value(deep)) <= 80

    def test_what_would_not_be_seen_is_escaped(self) -> None:
        assert clean("a\x1b[31m\u202eb\u200bc\ud800") == "a\\u001b[31m\\u202eb\\u200bc\\ud800"

    def test_lists_are_shortened(self) -> None:
        assert listing([]) == ""
        assert listing(["a"]) == "a"
        assert listing(["a", "b", "a"]) == "a and b"
        assert listing(["a", "b", "c", "d"]) == "a, b, c and d"
        assert listing(["a", "b", "c", "d", "e"]) == "a, b, c and 2 more"

    def test_clip_leaves_short_text_alone(self) -> None:
        assert clip("abc", 3) == "abc"
        assert clip("abcd", 1) == "…"
