"""References to objects that other files make, or that only the cluster has."""

from __future__ import annotations

from pathlib import Path

import pytest

from kaigen.config.load import load_config
from kaigen.diagnostics.diagnostic import Severity
from kaigen.pipeline.check_manifests import check_manifests
from kaigen.pipeline.run import Run
from tests.unit.graph.graphs import graph_of

JOB = """\
apiVersion: kaigen.dev/v1alpha1
kind: Job
metadata: {name: train}
spec:
  image: python:3.12-slim
  serviceAccount: trainer
  env: {LEVEL: {config: {name: levels, key: level}}}
"""
ACCOUNT = "apiVersion: v1\nkind: ServiceAccount\nmetadata: {name: trainer, namespace: ml}\n"
CONFIG = "namespace: ml\npassthrough: true\n"
MISSING = [("KG0570", Severity.WARNING, "train.yaml", 6)]


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("KAIGEN_CACHE_DIR", str(tmp_path / "cache"))
    folder = tmp_path / "repository"
    (folder / "specs").mkdir(parents=True)
    (folder / "specs" / "train.yaml").write_text(JOB, encoding="utf-8")
    (folder / "kaigen.yaml").write_text(CONFIG, encoding="utf-8")
    monkeypatch.chdir(folder)
    return folder


def found(repository: Path, environment: str = "", *paths: str) -> list[tuple[str, Severity, str, int]]:
    """Return the diagnostics of two runs, which are equal although the second one uses the cache."""
    rounds = []
    for _ in range(2):
        run = Run.load(paths, load_config(repository, environment))
        rounds.append(
            [
                (item.code, item.severity, Path(item.mark.file).name, item.mark.line)
                for item in run.diagnostics
                if item.mark is not None
            ]
        )
        run.save()
    assert rounds[0] == rounds[1]
    return rounds[0]


def declare(repository: Path, text: str) -> None:
    """Append to kaigen.yaml."""
    (repository / "kaigen.yaml").write_text(CONFIG + text, encoding="utf-8")


def test_an_account_that_nothing_makes_is_a_warning(repository: Path) -> None:
    assert found(repository) == MISSING


def test_an_object_of_another_file_is_found(repository: Path) -> None:
    (repository / "specs" / "account.yaml").write_text(ACCOUNT, encoding="utf-8")
    assert found(repository) == []
    assert found(repository, "", "specs/train.yaml") == []
    (repository / "specs" / "account.yaml").write_text(ACCOUNT.replace("ml", "other"), encoding="utf-8")
    assert found(repository) == MISSING


@pytest.mark.parametrize(
    ("entry", "known"),
    [
        ("{kind: ServiceAccount, name: trainer}", True),
        ("{kind: ServiceAccount, name: 'train*', namespace: ml}", True),
        ("{kind: ServiceAccount, name: trainer, namespace: prod}", False),
        ("{kind: ServiceAccount, name: serving}", False),
        ("{kind: Role, name: trainer}", False),
    ],
)
def test_a_listed_account_is_no_warning(repository: Path, entry: str, known: bool) -> None:
    declare(repository, f"external: [{entry}]\n")
    assert found(repository) == ([] if known else MISSING)


def test_an_environment_lists_objects_of_its_own(repository: Path) -> None:
    account = "{kind: ServiceAccount, name: trainer}"
    declare(repository, f"environments: {{dev: {{}}, prod: {{external: [{account}]}}}}\n")
    assert found(repository, "dev") == MISSING
    assert found(repository, "prod") == []


def test_config_maps_are_compared_once_some_are_listed(repository: Path) -> None:
    account = "{kind: ServiceAccount, name: trainer}"
    declare(repository, f"external: [{account}, {{kind: ConfigMap, name: limits}}]\n")
    assert [(code, line) for code, _, _, line in found(repository)] == [("KG0570", 7)]
    declare(repository, f"external: [{account}, {{kind: ConfigMap, name: levels}}]\n")
    assert found(repository) == []


def test_graph_and_check_know_listed_objects(repository: Path) -> None:
    node = next(node for node in graph_of(repository).externals if node.kind == "ServiceAccount")
    assert not node.declared
    run = Run.load((), load_config(repository))
    tree = run.tree(repository / "rendered")
    tree.write()
    assert [item.code for item in check_manifests(["rendered"], load_config(repository)).diagnostics] == [
        "KG0570",
        "KG0570",
    ]
    declare(repository, "external: [{kind: ServiceAccount, name: trainer}, {kind: ConfigMap, name: levels}]\n")
    node = next(node for node in graph_of(repository).externals if node.kind == "ServiceAccount")
    assert node.declared
    assert check_manifests(["rendered"], load_config(repository)).diagnostics == ()
