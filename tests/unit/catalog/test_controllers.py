"""The table of labels and annotations that controllers obey."""

from __future__ import annotations

import re

import pytest

from kaigen.catalog import controllers, yaml_files
from kaigen.config.controller_keys import allowed_entries, is_controller_key, is_raw_key
from kaigen.config.globs import is_granted
from kaigen.kubernetes.metadata_keys import labels_for_identity
from kaigen.tenancy.conditions.metadata import FREE


@pytest.mark.parametrize("name", yaml_files.load("controllers"))
def test_each_group_has_a_source(name: str) -> None:
    group = yaml_files.load("controllers")[name]
    assert "http" in group["source"]
    assert set(group) <= {"source", "date", "domains", "keys", "hosts", "raw", "harmless"}


def test_annotations_against_the_limits_of_proxies_need_no_grant() -> None:
    for entry in yaml_files.load("proxies")["ingress"]:
        for key, value in entry["annotations"].items():
            assert is_controller_key(key)
            assert is_granted(key, allowed_entries()) or is_granted(f"{key}={value}", allowed_entries())


def test_the_label_of_an_identity_needs_no_grant() -> None:
    for key, value in labels_for_identity({"azure.workload.identity/client-id": "x"}).items():
        assert is_controller_key(key)
        assert is_granted(f"{key}={value}", allowed_entries())


@pytest.mark.parametrize("entry", allowed_entries())
def test_what_needs_no_grant_would_need_one_without_its_entry(entry: str) -> None:
    assert is_controller_key(entry.partition("=")[0])


@pytest.mark.parametrize("key", controllers.raw_keys())
def test_raw_configuration_is_no_key_that_needs_no_grant(key: str) -> None:
    named = key.replace("*haproxy*", "haproxy.org").replace("*", "x")
    assert is_raw_key(named)
    assert is_controller_key(named)
    assert not is_granted(named, allowed_entries())


@pytest.mark.parametrize(
    ("key", "expected"),
    [
        ("nginx.ingress.kubernetes.io/server-alias", True),
        ("ingress.kubernetes.io/server-alias", True),
        ("xingress.kubernetes.io/server-alias", False),
        ("example.com/ingress.kubernetes.io/a", False),
        ("ingress.kubernetes.io", False),
        ("kubernetes.io/ingress.class", False),
        ("app.kubernetes.io/name", False),
    ],
)
def test_a_domain_includes_its_subdomains(key: str, expected: bool) -> None:
    assert is_controller_key(key) is expected


@pytest.mark.parametrize("domain", controllers.domains())
def test_policies_search_the_table_for_every_domain(domain: str) -> None:
    assert not re.match(FREE, f"{domain}/x")
    assert not re.match(FREE, f"a.{domain}/x")
