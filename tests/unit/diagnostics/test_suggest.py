"""The nearest name."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kaigen.diagnostics.suggest import did_you_mean, nearest

FIELDS = ["image", "model", "command", "resources", "storageClassName", "replicas", "gpus", "size", "name"]


@pytest.mark.parametrize(
    ("word", "meant"),
    [
        ("imgae", "image"),
        ("modle", "model"),
        ("Model", "model"),
        ("comand", "command"),
        ("storage-class-name", "storageClassName"),
        ("storage_class", "storageClassName"),
        ("resource", "resources"),
        ("gpu", "gpus"),
        ("siez", "size"),
        ("repl", "replicas"),
        ("modelName", "model"),
        ("sizeLimit", "size"),
    ],
)
def test_a_slip_finds_its_name(word: str, meant: str) -> None:
    assert nearest(word, FIELDS) == [meant]
    assert did_you_mean(word, FIELDS) == f"did you mean `{meant}`?"


@pytest.mark.parametrize(
    ("word", "meant"),
    [
        ("RWO", "ReadWriteOnce"),
        ("ROX", "ReadOnlyMany"),
        ("RWX", "ReadWriteMany"),
        ("rwx", "ReadWriteMany"),
        ("RWOP", "ReadWriteOncePod"),
    ],
)
def test_an_access_mode_is_known_by_what_kubectl_prints_for_it(word: str, meant: str) -> None:
    modes = ["ReadWriteOnce", "ReadOnlyMany", "ReadWriteMany", "ReadWriteOncePod"]
    assert nearest(word, modes) == [meant]
    assert nearest(word, FIELDS) == []


@pytest.mark.parametrize("word", ["", "-", "x", "zz", "namespace", "token", "volume", "q" * 1_000_000])
def test_a_word_that_is_not_near_finds_nothing(word: str) -> None:
    assert nearest(word, FIELDS) == []
    assert did_you_mean(word, FIELDS) == ""


def test_the_nearest_comes_first_whatever_the_order() -> None:
    names = ["modes", "model", "modern", "models"]
    assert (
        nearest("model", names, limit=3) == nearest("model", reversed(names), limit=3) == ["model", "models", "modes"]
    )


def test_without_candidates_there_is_nothing_to_mean() -> None:
    assert did_you_mean("a", []) == ""
    assert nearest("a", [""]) == []


@given(st.text(max_size=12), st.lists(st.text(max_size=12), max_size=6), st.integers(1, 4))
def test_what_is_found_is_a_candidate(word: str, candidates: list[str], limit: int) -> None:
    found = nearest(word, candidates, limit=limit)
    assert len(found) <= limit
    assert set(found) <= set(candidates)


@given(st.sampled_from(FIELDS), st.integers(0, 20), st.sampled_from("abcxyz"))
def test_one_wrong_letter_in_a_long_name_is_always_forgiven(name: str, place: int, letter: str) -> None:
    place %= len(name)
    assert nearest(name[:place] + letter + name[place + 1 :], [name]) == [name]


@pytest.mark.parametrize(("word", "known"), [("aws", "eks"), ("azure", "aks"), ("gcp", "gke"), ("GCP", "gke")])
def test_names_of_clouds_are_their_profiles(word: str, known: str) -> None:
    assert did_you_mean(word, ["generic", "k3s", "kind", "aks", "eks", "gke"]) == f"did you mean `{known}`?"


def test_the_last_part_of_one_name_is_enough() -> None:
    fields = ["issuer", "clientId", "allowedGroups", "allowedEmails"]
    assert nearest("groups", fields) == ["allowedGroups"]
    assert nearest("groups", [*fields, "deniedGroups"]) == [], "of two names, none is meant"
    assert nearest("Id", fields) == [], "two letters say too little"
