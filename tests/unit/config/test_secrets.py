"""The block `secrets`: whether ExternalSecrets are written, their settings, and templates that mix up namespaces."""

from __future__ import annotations

from pathlib import Path

import pytest

from kaigen.config.block_settings import ExternalSecretsSettings
from kaigen.config.merge import read_config
from tests.unit.config.reports import problems_of


@pytest.mark.parametrize(
    ("block", "settings"),
    [
        ("{}", None),
        ("{provider: references}", None),
        ("{provider: references, externalSecrets: {store: {name: v}}}", None),
        ("{externalSecrets: {store: {name: v}}}", ("v", "ClusterSecretStore", "1h", "{namespace}/{name}")),
        (
            "{provider: externalSecrets, externalSecrets: {store: {name: v, kind: SecretStore}}}",
            ("v", "SecretStore", "1h", "{namespace}/{name}"),
        ),
        (
            "{externalSecrets: {store: {name: v}, refreshInterval: 5m, keyTemplate: 'a/{name}'}}",
            ("v", "ClusterSecretStore", "5m", "a/{name}"),
        ),
    ],
)
def test_the_block_with_a_store_gives_external_secrets(
    tmp_path: Path, block: str, settings: tuple[str, str, str, str] | None
) -> None:
    (tmp_path / "kaigen.yaml").write_text(f"secrets: {block}\n", encoding="utf-8")
    found = read_config(tmp_path, "").external_secrets
    given = found and (found.store, found.store_kind, found.refresh_interval, found.key_template)
    assert given == settings
    assert found is None or isinstance(found, ExternalSecretsSettings)


@pytest.mark.parametrize(
    ("text", "environment", "place"),
    [
        ("secrets: {externalSecrets: {}}\n", "", "1:11 KG0730 [secrets."),
        ("secrets: {externalSecrets: {store: {kind: SecretStore}}}\n", "", "1:36 KG0730 [secrets."),
        ("secrets: {provider: externalSecrets}\n", "", "1:1 KG0730 [secrets."),
        (
            "secrets: {}\nenvironments: {prod: {secrets: {provider: externalSecrets}}}\n",
            "prod",
            "2:23 KG0730 [environments.prod.secrets.",
        ),
    ],
)
def test_external_secrets_need_a_store(tmp_path: Path, text: str, environment: str, place: str) -> None:
    assert problems_of(tmp_path, text, environment) == [
        f"kaigen.yaml:{place}externalSecrets.store.name] ExternalSecrets need the name of a store "
        "| write, for example, `externalSecrets: {store: {name: vault}}`"
    ]


TENANTS = "tenants: {a: {folders: [a], namespaces: [a]}}\n"


@pytest.mark.parametrize(
    ("template", "safe"),
    [
        ("{name}", "{namespace}/{name}"),
        ("{env}-{namespace}-{name}-{key}", "{env}/{namespace}/{name}/{key}"),
        ("{namespace}{name}", "{namespace}/{name}"),
        ("{namespace}-{key}", "{namespace}/{name}/{key}"),
        ("{name}-{namespace}", "{namespace}/{name}"),
        ("{env}{namespace}", "{env}/{namespace}/{name}"),
    ],
)
def test_a_template_that_gives_two_namespaces_one_entry_is_an_error_with_tenants(
    tmp_path: Path, template: str, safe: str
) -> None:
    block = f"secrets: {{externalSecrets: {{store: {{name: v}}, keyTemplate: '{template}'}}}}\n"
    assert problems_of(tmp_path, TENANTS + block) == [
        f"kaigen.yaml:2:60 KG0732 [secrets.externalSecrets.keyTemplate] with `{template}`, Secrets of two namespaces "
        "can have the same entry of the store, so one tenant reads the values of another one "
        "| put a character that no namespace has, such as `/` or `_`, before `{namespace}` (unless it is at the "
        f"start) and after it: `{safe}`"
    ]
    (tmp_path / "kaigen.yaml").write_text(block, encoding="utf-8")
    assert read_config(tmp_path, "").external_secrets is not None, "one team may use any template"


def test_a_template_of_an_environment_is_reported_there(tmp_path: Path) -> None:
    text = f"""\
{TENANTS}secrets: {{externalSecrets: {{store: {{name: v}}}}}}
environments: {{prod: {{secrets: {{externalSecrets: {{keyTemplate: '{{name}}'}}}}}}}}
"""
    (problem,) = problems_of(tmp_path, text, "prod")
    assert problem.startswith("kaigen.yaml:3:64 KG0732 [environments.prod.secrets.externalSecrets.keyTemplate] ")


@pytest.mark.parametrize(
    "template", ["{namespace}/{name}", "{namespace}", "a/{env}/{namespace}/{key}", "{namespace}_{name}"]
)
def test_a_template_that_separates_the_namespace_is_valid_with_tenants(tmp_path: Path, template: str) -> None:
    block = f"secrets: {{externalSecrets: {{store: {{name: v}}, keyTemplate: '{template}'}}}}\n"
    (tmp_path / "kaigen.yaml").write_text(TENANTS + block, encoding="utf-8")
    found = read_config(tmp_path, "").external_secrets
    assert found is not None
    assert found.key_template == template
