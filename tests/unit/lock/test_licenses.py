"""The policy on licences in kaigen.yaml, checked against the lock and the catalogue."""

from __future__ import annotations

import pytest

from kaigen.config.block_settings import LicensePolicy
from runtimes.downloader.tests.hub import Hub
from tests.unit.lock.conftest import Repository, model


@pytest.mark.parametrize(
    ("policy", "licence", "verdict"),
    [
        (LicensePolicy(), "mit", "allow"),
        (LicensePolicy(allow=("apache-2.0", "MIT")), "mit", "allow"),
        (LicensePolicy(allow=("apache-2.0",)), "mit", "deny"),
        (LicensePolicy(deny=("*-nc-*",)), "cc-by-nc-4.0", "deny"),
        (LicensePolicy(allow=("cc-*",), deny=("*-nc-*",)), "cc-by-nc-4.0", "deny"),
        (LicensePolicy(allow=("mit",), ask=("llama3*",)), "llama3.1", "ask"),
        (LicensePolicy(allow=("mit",)), "unknown", "deny"),
    ],
)
def test_verdict(policy: LicensePolicy, licence: str, verdict: str) -> None:
    assert policy.verdict(licence) == verdict


def test_a_licence_that_is_not_allowed_is_an_error_at_the_repository(
    repository: Repository, hub: Hub
) -> None:
    repository.write(model(hub))
    repository.configure("licenses: {allow: [mit]}\n")
    # The policy does not keep the lock from being written: it shows the licence.
    assert repository.run("lock")[0] == 0
    code, printed = repository.run("render")
    assert code == 2
    assert "specs/a.yaml:7:" in printed
    assert "KG0752" in printed
    assert "owner/name has the licence `apache-2.0`" in printed
    repository.configure("licenses: {allow: [mit, apache-2.0]}\n")
    code, printed = repository.run("render")
    assert code == 0, printed


def test_a_licence_to_ask_about_is_a_warning(repository: Repository, hub: Hub) -> None:
    repository.write(model(hub))
    repository.configure("licenses: {ask: ['apache-*']}\n")
    repository.run("lock")
    code, printed = repository.run("validate")
    assert code == 0, printed
    assert "warning[KG0752]" in printed


def test_a_licence_that_nobody_locked_is_an_error(repository: Repository, hub: Hub) -> None:
    repository.write(model(hub))
    repository.configure("licenses: {deny: [mit]}\n")
    code, printed = repository.run("validate")
    assert code == 2
    assert "the licence of owner/name is not known" in printed
    assert "run `kaigen lock`" in printed


def test_the_catalogue_knows_licences_without_a_lock(repository: Repository) -> None:
    repository.write(
        "apiVersion: kaigen.dev/v1alpha1\nkind: Topology\nmetadata: {name: chat}\n"
        "spec: {preset: phi-4, resources: {instanceType: g6.12xlarge}}\n"
    )
    repository.configure("licenses: {deny: [mit]}\n")
    code, printed = repository.run("validate")
    assert code == 2
    assert "microsoft/phi-4 has the licence `mit`" in printed
