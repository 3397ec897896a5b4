"""`kaigen diff` marks a change of `licenses` in kaigen.yaml that allows more."""

from __future__ import annotations

from typing import Any

import pytest
import yaml
from msgspec.structs import replace

from kaigen.config.licenses import Licenses
from kaigen.pipeline.grant_changes import wider_licenses
from tests.unit.security.hostile import CONFIG, Repository


def policy(**fields: Any) -> Licenses:
    return Licenses(**fields)


STRICT = policy(allow=["mit", "apache-2.0"], deny=["*-nc-*"], ask=["llama3*"])


@pytest.mark.parametrize(
    ("now", "found"),
    [
        (STRICT, []),
        (policy(allow=["MIT"], deny=["*-nc-*", "gpl-*"], ask=["llama3*", "gemma"]), ["gemma with a warning"]),
        (policy(allow=["mit"], deny=["*-nc-*"]), []),
        (policy(allow=["mit", "apache-2.0", "gemma"], deny=["*-nc-*"], ask=["llama3*"]), ["gemma"]),
        (policy(allow=["mit", "apache-*"], deny=["*-nc-*"], ask=["llama3*"]), ["apache-*"]),
        (policy(allow=["mit", "llama3*"], deny=["*-nc-*"]), ["llama3*"]),
        (policy(allow=["mit"], ask=["llama3*"]), []),
        (policy(allow=["mit", "cc-*"]), ["*-nc-*, cc-*"]),
        (policy(allow=["mit", "unknown"], deny=["*-nc-*"], ask=["llama3*"]), ["unknown"]),
    ],
)
def test_licences_that_were_not_allowed_are_named(now: Licenses, found: list[str]) -> None:
    assert list(wider_licenses(STRICT, now)) == [f"sources with the licence {each}" for each in found]


def test_a_policy_without_a_list_allows_what_it_does_not_name() -> None:
    now = policy(deny=["*-nc-*"], ask=["llama3*"])
    assert list(wider_licenses(STRICT, now)) == [
        "sources with the licence unknown",
        "sources with every licence that `licenses` does not name",
    ]


def test_without_a_policy_every_licence_is_allowed() -> None:
    assert list(wider_licenses(None, STRICT)) == []
    assert list(wider_licenses(STRICT, None)) == ["sources of every licence: kaigen.yaml has no `licenses` any more"]


@pytest.mark.parametrize(("licence", "count"), [("mit", 1), ("proprietary", 0), ("unknown", 0)])
def test_a_licence_that_is_given_to_a_source_is_named_if_it_is_allowed(licence: str, count: int) -> None:
    now = replace(STRICT, known={"s3://acme/*": licence})
    found = list(wider_licenses(STRICT, now))
    assert found == [f"s3://acme/*, as it has the licence {licence} in `licenses.known`"] * count


@pytest.mark.parametrize(
    ("before", "now", "text"),
    [
        ({"allow": ["mit"]}, {"allow": ["mit", "gemma"]}, "specs may now use sources with the licence gemma"),
        ({"deny": ["gpl-*"]}, {"allow": ["mit"]}, ""),
        ({"deny": ["gpl-*"]}, None, "sources of every licence"),
    ],
)
def test_diff_shows_a_looser_policy_as_a_danger(
    repository: Repository, before: dict[str, Any], now: dict[str, Any] | None, text: str
) -> None:
    repository.write({"kaigen.yaml": CONFIG + yaml.safe_dump({"licenses": before})})
    repository.rendered()
    repository.write({"kaigen.yaml": CONFIG + (yaml.safe_dump({"licenses": now}) if now else "")})
    done = repository.kaigen("diff", "--base", "HEAD")
    assert text in done.out, done.text
    assert ("danger" in done.out) is bool(text), done.text
