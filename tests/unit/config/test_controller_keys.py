"""Labels and annotations of tenants: which need a grant, and who obeys them."""

from __future__ import annotations

import re

import pytest

from kaigen.catalog import controllers
from kaigen.config.controller_keys import (
    FREE_DOMAINS,
    allowed_entries,
    common_entries,
    controller_of,
    free_pattern,
    is_free,
    is_raw_key,
    obeyed_by,
)

HARMLESS = "alb.ingress.kubernetes.io/load-balancer-attributes"


@pytest.mark.parametrize(
    ("key", "value", "free"),
    [
        ("team", "x", True),
        ("te-am_1", "x", True),
        ("a.b", "x", False),
        ("-a", "x", False),
        ("app.kubernetes.io/part-of", "x", True),
        ("prometheus.io/scrape", "true", True),
        ("kaigen.dev/a.b", "x", True),
        ("kaigen.dev/", "x", False),
        ("x.kaigen.dev/a", "x", False),
        ("own.example/a", "x", True),
        ("sub.own.example/a", "x", True),
        ("ownxexample/a", "x", False),
        ("other.example/a", "x", False),
        (HARMLESS, "idle_timeout.timeout_seconds=3600", True),
        (HARMLESS, "idle_timeout.timeout_seconds=3601", False),
        ("nginx.ingress.kubernetes.io/server-alias", "any.example", True),
    ],
)
def test_keys_without_a_domain_and_of_free_or_own_domains_need_no_grant(key: str, value: str, free: bool) -> None:
    assert is_free(key, value, ("own.example",)) is free


def test_words_that_controllers_obey_need_a_grant() -> None:
    word = sorted(controllers.words())[0]
    assert not is_free(word, "x", ())
    assert not is_free(word.upper(), "x", ())
    assert obeyed_by(word.upper()) == "some controllers"


def test_what_needs_no_grant_is_harmless_or_a_host() -> None:
    assert allowed_entries() == {*controllers.harmless_entries(), *controllers.host_keys()}


@pytest.mark.parametrize("domains", [(), ("a.example", "b.example")])
def test_the_pattern_of_free_keys_is_that_of_the_domains(domains: tuple[str, ...]) -> None:
    pattern = re.compile(free_pattern(domains))
    for domain in (*FREE_DOMAINS, *domains):
        assert pattern.fullmatch(f"{domain}/a")
    assert bool(pattern.fullmatch("x.b.example/a")) is bool(domains)


@pytest.mark.parametrize(
    ("domain", "by"),
    [
        ("nginx.org", "Ingress controllers"),
        ("sub.nginx.org", "Ingress controllers"),
        ("ingress.kubernetes.io", "Ingress controllers"),
        ("networking.gke.io", "Ingress controllers"),
        ("gke.io", "Ingress controllers"),
        ("xnginx.org", ""),
        ("team.example.com", ""),
    ],
)
def test_a_controller_obeys_its_domains_those_below_and_those_above(domain: str, by: str) -> None:
    assert controller_of(domain) == by
    assert obeyed_by(f"{domain}/key") == by


@pytest.mark.parametrize(
    ("key", "raw"),
    [
        ("nginx.ingress.kubernetes.io/server-snippet", True),
        ("nginx.ingress.kubernetes.io/server-alias", False),
        ("haproxy.org/config-a", True),
    ],
)
def test_some_annotations_are_configuration_of_a_controller(key: str, raw: bool) -> None:
    assert is_raw_key(key) is raw


def test_entries_of_every_object_that_need_a_grant_are_globs_without_wildcards() -> None:
    assert common_entries({"team": "x", "a.example/b": "1*2?"}, {"c.example/d": "3"}) == (
        "a.example/b=1?2?",
        "c.example/d=3",
    )
    assert common_entries() == ()
