"""Objects of tenants name only backends, parents, projects, accounts and Secrets that are theirs or granted."""

from __future__ import annotations

import pytest
import yaml

from kaigen.config.load import load_config
from kaigen.config.reserved import SyncerSecrets
from kaigen.config.tenant_settings import Tenant
from kaigen.tenancy.violations import syncer_secret_findings, violations
from tests.tenancy.references import ALLOWED, DENIED, GRANTED, UNSERVED, account_places, secret_places
from tests.tenancy.tenants import GITOPS, Body
from tests.unit.security.hostile import CONFIG

_ROUTES = tuple(f"{kind}.gateway.networking.k8s.io" for kind in ("TLSRoute", "TCPRoute", "UDPRoute"))
_SECRETS = SyncerSecrets({"sops-age": "gitops.flux.decryption.secret"})


@pytest.fixture(scope="module")
def tenant(tmp_path_factory: pytest.TempPathFactory) -> Tenant:
    """The tenant of a repository that Flux syncs."""
    root = tmp_path_factory.mktemp("references")
    granted = {**GRANTED, "kinds": [*GRANTED["kinds"], *_ROUTES]}
    text = yaml.safe_dump({"tenants": {"a": granted}, "gitops": GITOPS})
    (root / "kaigen.yaml").write_text(CONFIG.replace(": ml", ": team-a") + text, encoding="utf-8")
    (found,) = load_config(root).tenants
    return found


@pytest.mark.parametrize(("body", "what"), [*DENIED.values(), *UNSERVED.values()], ids=[*DENIED, *UNSERVED])
def test_what_an_object_names_must_be_granted(tenant: Tenant, body: Body, what: str) -> None:
    assert any(what in each.message for each in violations(body, "team-a", tenant))


@pytest.mark.parametrize("body", ALLOWED.values(), ids=[*ALLOWED])
def test_own_names_need_no_grant(tenant: Tenant, body: Body) -> None:
    assert not [each.message for each in violations(body, "team-a", tenant)]
    assert not [*syncer_secret_findings(body, "team-a", "x.yaml", (tenant,), _SECRETS)]


@pytest.mark.parametrize("body", account_places("runner").values(), ids=[*account_places("runner")])
def test_other_accounts_may_be_named(tenant: Tenant, body: Body) -> None:
    assert not [each.message for each in violations(body, "team-a", tenant)]


@pytest.mark.parametrize("name", ["sops-age", "own"])
@pytest.mark.parametrize("case", secret_places("x"))
def test_no_kind_names_a_secret_of_flux(tenant: Tenant, case: str, name: str) -> None:
    body = secret_places(name)[case]
    found = [*syncer_secret_findings(body, "team-a", "x.yaml", (tenant,), _SECRETS)]
    assert [each.code for each in found] == ["KG0583"] * (name == "sops-age")
