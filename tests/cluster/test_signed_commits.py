"""Argo CD syncs only the commits that a key of `gitops.argocd.signatureKeys` has signed."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest

from tests.cluster.argocd import ArgoCD
from tests.cluster.client import Object
from tests.cluster.git import Repository
from tests.cluster.plane import Plane
from tests.cluster.team import Team, bootstrap_argocd, remove_applications, wait_application
from tests.keys import signing_key

MAP = "v1/ConfigMap"
ENVIRONMENT = "signed"


def config_map(value: str) -> Object:
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "settings", "labels": {"app.kubernetes.io/name": "settings"}},
        "data": {"value": value},
    }


def is_refused(application: Object, revision: str) -> bool:
    """Whether an Application has seen a commit and does not compare the cluster with it."""
    conditions = application.get("status", {}).get("conditions", [])
    return any(each["type"] == "ComparisonError" and revision[:7] in each["message"] for each in conditions)


@pytest.mark.ran("AppProject", by="argocd")
def test_argocd_syncs_only_signed_commits(plane: Plane, argocd: ArgoCD, tmp_path: Path) -> None:
    plane.make_namespace(f"space-{ENVIRONMENT}")
    repository = Repository(tmp_path / "repository")
    team = Team(tmp_path / "clone", repository.url, ENVIRONMENT, {}, specs={"settings": config_map("first")})
    team.settings = {"passthrough": True}
    with signing_key("team@example.invalid") as key, signing_key("stranger@example.invalid") as stranger:
        for each in (key, stranger):
            (argocd.keys / each.id).write_text(each.public)
        team.gitops = {"argocd": {"namespace": argocd.namespace, "signatureKeys": [key.id]}}
        files = team.files()
        revision = repository.commit(files, key=key)
        bootstrap_argocd(plane, team, files)
        root, app = f"team-{ENVIRONMENT}-root", team.name(team.space, "settings")
        for name in (root, app):
            wait_application(plane, argocd, name, revision)

        for value, signer in (("unsigned", None), ("stranger", stranger)):
            team.specs["settings"] = config_map(value)
            revision = repository.commit(team.files(), key=signer)
            for name in (root, app):
                argocd.wait(name, partial(is_refused, revision=revision), "refused")
            assert plane.client.get(MAP, "settings", team.space)["data"] == {"value": "first"}

        team.specs["settings"] = config_map("second")
        revision = repository.commit(team.files(), key=key)
        for name in (root, app):
            argocd.wait_synced(name, revision)
        assert plane.client.get(MAP, "settings", team.space)["data"] == {"value": "second"}
        for each in (key, stranger):
            (argocd.keys / each.id).unlink()
    remove_applications(plane, argocd, ENVIRONMENT)
