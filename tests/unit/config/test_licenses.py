"""The block `licenses`: which licences may be used, and those of sources that name none."""

from __future__ import annotations

import pytest

from kaigen.config.licenses import Licenses, Verdict

NAMED = Licenses(allow=["MIT", "apache-*", "llama3.1"], deny=["*-nc-*"], ask=["llama3*", "cc-by-nc-4.0"])


@pytest.mark.parametrize(
    ("policy", "licence", "verdict"),
    [
        (Licenses(), "anything", "allow"),
        (Licenses(allow=["mit"]), "mit", "allow"),
        (Licenses(allow=["mit"]), "mit-0", "deny"),
        (Licenses(allow=["mit"]), "apache-2.0", "deny"),
        (Licenses(deny=["mit"]), "mit", "deny"),
        (Licenses(deny=["mit"]), "apache-2.0", "allow"),
        (Licenses(ask=["mit"]), "mit", "ask"),
        (Licenses(ask=["mit"]), "apache-2.0", "allow"),
        (Licenses(allow=["mit"], ask=["gemma"]), "gemma", "ask"),
        (Licenses(allow=["mit"], deny=["mit"]), "mit", "deny"),
        (NAMED, "mit", "allow"),
        (NAMED, "MIT", "allow"),
        (NAMED, "Apache-2.0", "allow"),
        (NAMED, "llama3.1", "ask"),
        (NAMED, "cc-by-nc-4.0", "deny"),
        (NAMED, "cc-by-4.0", "deny"),
        (NAMED, "", "deny"),
        (Licenses(), " ", "deny"),
        (Licenses(), "()", "deny"),
    ],
)
def test_deny_precedes_ask_and_ask_precedes_allow(policy: Licenses, licence: str, verdict: Verdict) -> None:
    assert policy.verdict(licence) == verdict


@pytest.mark.parametrize(
    ("licence", "verdict"),
    [
        ("MIT AND Apache-2.0", "allow"),
        ("MIT OR llama3", "ask"),
        ("llama3 AND MIT", "ask"),
        ("(MIT OR llama3) AND cc-by-nc-4.0", "deny"),
        ("cc-by-nc-4.0 OR MIT", "deny"),
        ("(MIT)", "allow"),
        ("Apache-2.0 WITH LLVM-exception", "allow"),
        ("MIT and Apache-2.0", "deny"),
        ("MITOR", "deny"),
    ],
)
def test_the_strictest_verdict_counts_in_an_expression(licence: str, verdict: Verdict) -> None:
    assert NAMED.verdict(licence) == verdict


@pytest.mark.parametrize(
    ("source", "licence"),
    [
        ("acme/llama", "proprietary"),
        ("acme/base/llama", "proprietary"),
        ("s3://models/qwen", "apache-2.0"),
        ("other/llama", ""),
        ("Acme/llama", ""),
        ("my/acme/llama", ""),
        ("both/a", "first"),
    ],
)
def test_a_source_without_a_licence_gets_that_of_the_first_glob_in_order(source: str, licence: str) -> None:
    policy = Licenses(
        known={"acme/*": "proprietary", "s3://models/*": "apache-2.0", "both/?": "second", "both/*": "first"}
    )
    assert policy.licence_of(source) == licence
