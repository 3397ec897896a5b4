"""A tenant's ExternalSecrets do not read the entries of another tenant in the store."""

from __future__ import annotations

from itertools import product

import pytest
import yaml

from kaigen.config.secrets import NAMESPACE_IN_KEY
from kaigen.secrets.external import External
from tests.unit.security.hostile import CONFIG, JOB, Repository

TEMPLATES = {
    "{namespace}/{name}": True,
    "{namespace}": True,
    "{name}/{namespace}": True,
    "{name}/{namespace}/{key}": True,
    "{env}/{namespace}/{name}": True,
    "{env}/{namespace}/{name}/{key}": True,
    "{env}_{namespace}_{name}_{key}": True,
    "{env}.{namespace}.{name}": True,
    "{namespace}.{name}": True,
    "{namespace}:{name}": True,
    "kv/data/{env}/{namespace}/{name}": True,
    "team-{namespace}/{name}": True,
    "{name}/{namespace}/{namespace}-{name}": True,
    "{env}-{namespace}-{name}-{key}": False,
    "{env}-{namespace}/{name}": False,
    "{env}{namespace}/{name}": False,
    "{namespace}-{name}": False,
    "{namespace}{name}": False,
    "{namespace}x{name}": False,
    "{namespace}X{name}": False,
    "{namespace}0{name}": False,
    "{namespace}--{name}": False,
    "{name}-{namespace}": False,
    "{name}.{namespace}.{key}": False,
    "{name}/{key}-{namespace}": False,
    "{namespace}{env}/{name}": False,
    "{name}": False,
    "{env}/{name}": False,
    "all": False,
}
"""Templates, and whether they keep the entries of two namespaces apart."""


def config(template: str, *, tenants: bool = True, place: str = "") -> str:
    body = yaml.safe_load(CONFIG)
    secrets = {"externalSecrets": {"store": {"name": "vault"}, "keyTemplate": template}}
    body |= {"environments": {"prod": {"secrets": secrets}, "prod-x": {}}} if place else {"secrets": secrets}
    if tenants:
        body["tenants"] = {name: {"folders": [f"specs/{name}"], "namespaces": [name]} for name in ("team", "team-a")}
    return yaml.safe_dump(body)


@pytest.mark.parametrize("template", [each for each, safe in TEMPLATES.items() if safe])
def test_a_template_that_is_allowed_gives_each_namespace_its_own_keys(template: str) -> None:
    assert NAMESPACE_IN_KEY.fullmatch(template)
    seen: dict[str, str] = {}
    words = ("a", "a-b", "b", "b-a", "a-a", "prod", "x")
    for env, namespace, name, key in product(
        ("a", "a-b", "prod"), words, (*words, "a.b", "a.b.a"), ("a", "a.b", "a_b", "A", "a-b")
    ):
        entry, _ = External("vault", "x", "1h", template, env).location(namespace, name, key)
        assert seen.setdefault(entry, namespace) == namespace


@pytest.mark.parametrize("template", TEMPLATES)
def test_only_templates_that_delimit_the_namespace_are_allowed_with_tenants(
    repository: Repository, template: str
) -> None:
    repository.write({"kaigen.yaml": config(template), "specs/team/x.yaml": JOB})
    done = repository.kaigen("validate")
    assert ("KG0732" in done.err) is not TEMPLATES[template], done.text
    if not TEMPLATES[template]:
        assert done.code == 2
        assert "kaigen.yaml" in done.err
        assert "{namespace}/{name}" in done.err.split("hint", 1)[-1]
    repository.write({"kaigen.yaml": config(template, tenants=False)})
    assert "KG0732" not in repository.kaigen("validate").err


def test_a_template_of_an_environment_is_checked(repository: Repository) -> None:
    repository.write({"kaigen.yaml": config("{namespace}-{name}", place="prod")})
    done = repository.kaigen("validate")
    assert (done.code, "KG0732" in done.err) == (2, True), done.text


def test_a_changed_template_is_a_danger(repository: Repository) -> None:
    repository.write({"kaigen.yaml": config("{namespace}/{name}", tenants=False)})
    assert repository.kaigen("render").code == 0
    repository.commit()
    repository.write({"kaigen.yaml": config("{namespace}-{name}", tenants=False)})
    done = repository.kaigen("diff", "--base", "HEAD")
    assert "secrets.externalSecrets.keyTemplate" in done.out, done.text
    assert "danger" in done.out
