"""The names that kaigen.yaml takes for itself are those of the objects that kaigen writes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args, get_origin, get_type_hints

import pytest
import yaml
from msgspec import Struct

from kaigen.config.file import ConfigFile
from kaigen.config.globs import is_granted
from kaigen.config.load import load_config
from kaigen.config.reserved import syncer_secrets
from kaigen.kinds.block import Later
from kaigen.pipeline.run import Run
from kaigen.pipeline.summary import ObjectKey
from kaigen.pipeline.sync_checks import may_be_synced, synced_objects
from kaigen.tenancy.violations import binding_findings, violations
from tests.cases import app_cases
from tests.tenancy.tenants import GITOPS, TENANT, Body
from tests.unit.security.hostile import CONFIG, JOB

_DECIDED: dict[str, bool] = {
    "gitops.flux.secret": True,
    "gitops.flux.chartsSecret": True,
    "gitops.flux.verifySecret": True,
    "gitops.flux.decryption.secret": True,
    # Lists of what specs may use, and how Secrets that apps name are made.
    "allow.secrets": False,
    "allow.volumes.secrets": False,
    "secrets": False,
    "secrets.externalSecrets": False,
    # Of pods.
    "dialects.substratus.artifacts.credentials.secret": False,
    "dialects.substratus.artifacts.mount.secret": False,
    "dialects.substratus.pullSecret": False,
    "dialects.substratus.pushSecret": False,
}
"""Whether a syncer reads the Secret that a field of kaigen.yaml names."""


def _fields(model: Any, path: tuple[str, ...] = ()) -> Iterator[str]:
    """Yield the dotted path of every field of a model."""
    for name, hint in get_type_hints(model).items():
        encoded = dict(zip(model.__struct_fields__, model.__struct_encode_fields__, strict=True)).get(name)
        if encoded is None:
            continue
        yield ".".join((*path, encoded))
        for inner in _models(hint):
            yield from _fields(inner, (*path, encoded))


def _models(hint: Any) -> Iterator[Any]:
    if isinstance(hint, Later):
        hint = hint.block()
    if isinstance(hint, type) and issubclass(hint, Struct):
        yield hint
    if get_origin(hint) is not None:
        for each in get_args(hint):
            yield from _models(each)


def test_every_field_that_names_a_secret_is_decided() -> None:
    named = {path for path in _fields(ConfigFile) if path.lower().rpartition(".")[2].endswith(("secret", "secrets"))}
    shared = {path.removeprefix("environments.") for path in named}
    assert shared == {*_DECIDED}, "say whether a syncer reads the Secret, and reserve it in `kaigen.config.reserved`"


def test_the_secrets_that_syncers_read_are_reserved(tmp_path: Path) -> None:
    block: Body = {"repository": "https://git.example.com/x.git", "flux": {"oci": "oci://registry.example.com/ml"}}
    expected = {}
    for path, is_read in _DECIDED.items():
        if is_read:
            *_, field = path.split(".")
            name = path.replace(".", "-").lower()
            target = block["flux"].setdefault("decryption", {}) if "decryption" in path else block["flux"]
            target[field] = name
            expected[name] = path
    (tmp_path / "kaigen.yaml").write_text(CONFIG + yaml.safe_dump({"gitops": block}), encoding="utf-8")
    assert dict(syncer_secrets(load_config(tmp_path).gitops).fields) == expected


@pytest.mark.parametrize("environment", ["", "prod"])
@pytest.mark.parametrize("argocd", [True, False])
def test_all_objects_that_kaigen_writes_are_reserved(tmp_path: Path, argocd: bool, environment: str) -> None:
    gitops = {**GITOPS, **({"argocd": {}} if argocd else {})}
    network = {"network": {"httpProxy": "http://proxy.example.com"}}
    more = {"environments": {"prod": {"namespace": "team-a"}}} if environment else {}
    text = yaml.safe_dump({"tenants": {"a": TENANT}, "gitops": gitops, **network, **more})
    (tmp_path / "kaigen.yaml").write_text(CONFIG.replace(": ml", ": team-a") + text, encoding="utf-8")
    (tmp_path / "specs/a").mkdir(parents=True)
    (tmp_path / "specs/a/x.yaml").write_text(JOB, encoding="utf-8")
    config = load_config(tmp_path, environment)
    assert config.gitops is not None
    run = Run.load((), config)
    run.raise_errors()
    made = synced_objects([(None, app) for app in _summaries(run)], config, config.gitops)
    assert len(made) > 8
    for key in made:
        assert may_be_synced(key, config.gitops), key
        if key.namespace == "team-a" or key.kind == "Namespace":
            assert is_granted(f"{_type(key)}/{key.name}", config.tenants[0].reserved.objects), key


def _summaries(run: Any) -> list[Any]:
    return [app for unit in run.units for app in unit.summary.apps]


def _type(key: ObjectKey) -> str:
    return f"{key.kind}.{key.group}" if key.group else key.kind


_LIMITED = ("the right", "the subject", "a role of kind", "connections", "kaigen's own", "the ServiceAccount")


@pytest.mark.parametrize("case", app_cases(), ids=lambda case: case.name)
def test_what_kaigen_compiles_needs_no_grant_of_rights_or_connections(tmp_path: Path, case: Any) -> None:
    app = case.compiled.app
    objects = [item.body for item in app.render(case.compiled.values, tests=True)]
    text = yaml.safe_dump({"tenants": {"a": {"folders": ["."], "namespaces": [app.namespace]}}, "gitops": GITOPS})
    (tmp_path / "kaigen.yaml").write_text(CONFIG + text, encoding="utf-8")
    config = load_config(tmp_path)
    (tenant,) = config.tenants
    found = [each.message for body in objects for each in violations(body, app.namespace, tenant)]
    assert not [message for message in found if any(what in message for what in _LIMITED)]
    assert not [*binding_findings(objects, app.namespace, "x.yaml", config.tenants)]
