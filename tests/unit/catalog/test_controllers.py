"""The table of labels and annotations that controllers obey."""

from __future__ import annotations

import pytest

from kaigen.catalog import controllers, yaml_files
from kaigen.config.controller_keys import allowed_entries, common_entries, controller_of, is_free, is_raw_key, obeyed_by
from kaigen.config.globs import is_entry_granted
from kaigen.kubernetes.metadata_keys import labels_for_identity


@pytest.mark.parametrize("name", yaml_files.load("controllers"))
def test_each_group_has_a_source(name: str) -> None:
    group = yaml_files.load("controllers")[name]
    assert "http" in group["source"] or "kaigen's own" in group["source"]
    assert set(group) <= {"by", "source", "date", "domains", "words", "hosts", "raw", "harmless"}
    assert group["by"]
    assert group["domains"]


def test_annotations_against_the_limits_of_proxies_need_no_grant() -> None:
    for entry in yaml_files.load("proxies")["ingress"]:
        for key, value in entry["annotations"].items():
            assert is_free(key, value, ())


def test_the_label_of_an_identity_needs_no_grant() -> None:
    for key, value in labels_for_identity({"azure.workload.identity/client-id": "x"}).items():
        assert is_free(key, value, ())
        assert not is_free(key, "false", ())


@pytest.mark.parametrize("entry", sorted(allowed_entries()))
def test_what_needs_no_grant_is_in_a_domain_of_its_group(entry: str) -> None:
    assert "*" not in entry
    assert "?" not in entry
    key = entry.partition("=")[0]
    # The API server has set the last one since before keys had domains.
    assert obeyed_by(key) or key in ("gke-gcsfuse/volumes", "deprecated.daemonset.template.generation")


@pytest.mark.parametrize("key", controllers.raw_keys())
def test_raw_configuration_is_no_key_that_needs_no_grant(key: str) -> None:
    named = key.replace("*haproxy*", "haproxy.org").replace("*", "x")
    assert is_raw_key(named)
    assert not is_free(named, "x", ())


@pytest.mark.parametrize("word", controllers.words())
def test_a_word_that_controllers_obey_needs_a_grant(word: str) -> None:
    assert not is_free(word, "x", ())
    assert not is_free(word.upper(), "x", ())
    assert is_free(f"{word}x", "x", ())


@pytest.mark.parametrize(
    ("domain", "expected"),
    [
        ("istio.io", True),
        ("a.b.istio.io", True),
        ("hashicorp.com", True),
        ("kubernetes.io", True),
        ("team.k8s.io", True),
        ("x-k8s.io", True),
        ("myistio.io", False),
        ("istio.io.example.com", False),
        ("team-a.example.com", False),
    ],
)
def test_a_domain_includes_its_subdomains(domain: str, expected: bool) -> None:
    assert bool(controller_of(domain)) is expected


def test_what_kaigen_yaml_gives_to_every_object_is_allowed_with_its_value() -> None:
    entries = common_entries({"istio.io/rev": "stable", "team": "a"}, {"example.com/hosts": "*.a"})
    assert entries == ("istio.io/rev=stable", "example.com/hosts=?.a")
    assert is_entry_granted("example.com/hosts", "*.a", entries)
    assert not is_entry_granted("example.com/hosts", "anything.a", entries)
