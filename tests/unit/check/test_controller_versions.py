"""Fields and values of custom kinds by the version of their controller in kaigen.yaml."""

from __future__ import annotations

from typing import Any

import pytest

from kaigen.catalog.json_tables import load_table
from kaigen.check.controller_versions import TITLES, known_versions, version_findings
from kaigen.config.cluster import ClusterVersions
from kaigen.diagnostics.diagnostic import Severity
from tests.unit.check.example_objects import example, objects

QUEUE: dict[str, Any] = {"concurrentAdmissionPolicy": {"migration": {}}}
CLAIMS: dict[str, Any] = {"leaderWorkerTemplate": {"volumeClaimTemplates": []}}
FALLBACK = {"fallback": {"behavior": "currentReplicas"}}
NODES = {"template": {"spec": {"requirements": [{"operator": "In"}, {"operator": "Gte"}]}}}
RESTART = {"failurePolicy": {"rules": [{"action": "RestartJob"}]}}


@pytest.mark.parametrize(
    ("kind", "spec", "version", "where", "message"),
    [
        ("ClusterQueue", QUEUE, {"kueue": "0.16.2"}, "concurrentAdmissionPolicy", "Kueue 0.16.2 has no field"),
        (
            "LeaderWorkerSet",
            CLAIMS,
            {"lws": "0.7"},
            "leaderWorkerTemplate.volumeClaimTemplates",
            "LeaderWorkerSet 0.7.0",
        ),
        ("LeaderWorkerSet", CLAIMS, {"lws": "0.1.0"}, "leaderWorkerTemplate.volumeClaimTemplates", "Set 0.6.2 has no"),
        ("ScaledObject", FALLBACK, {"keda": "2.16.0"}, "fallback.behavior", "KEDA 2.16.1 has no field"),
        ("NodePool", NODES, {"karpenter": "1.6.0"}, "template.spec.requirements[1].operator", "does not accept `Gte`"),
        ("JobSet", RESTART, {"jobset": "0.11.0"}, "failurePolicy.rules[0].action", "does not accept `RestartJob`"),
    ],
)
def test_what_a_version_does_not_have_is_an_error_at_its_field(
    kind: str, spec: dict[str, Any], version: dict[str, str], where: str, message: str
) -> None:
    (found,) = version_findings({**example(kind), "spec": spec}, version)
    assert (found.where, found.severity) == (f"spec.{where}", Severity.ERROR)
    assert message in found.message
    assert f"`cluster.{next(iter(version))}`" in found.hint


def test_between_two_versions_that_are_known_it_is_a_warning() -> None:
    (found,) = version_findings({**example("ScaledObject"), "spec": FALLBACK}, {"keda": "2.18.0"})
    assert found.severity is Severity.WARNING
    assert found.message == "KEDA 2.16.1 has no field `spec.fallback.behavior`"


@pytest.mark.parametrize("version", ["0.18.2", "0.19.0", "0.25.0"])
def test_a_version_that_has_it_or_is_newer_than_all_is_not_reported(version: str) -> None:
    assert list(version_findings({**example("ClusterQueue"), "spec": QUEUE}, {"kueue": version})) == []


def test_an_api_version_that_is_no_longer_served_is_an_error() -> None:
    pool = {**example("NodePool"), "apiVersion": "karpenter.sh/v1beta1", "spec": {}}
    (found,) = version_findings(pool, {"karpenter": "1.15.0"})
    assert found.message == "Karpenter 1.15.0 does not serve karpenter.sh/v1beta1 NodePool"
    assert list(version_findings(pool, {"karpenter": "1.0.8"})) == []


def test_a_kind_of_a_part_that_is_not_in_the_table_is_not_reported() -> None:
    assert list(version_findings(example("GitRepository"), {"flux": "2.7.5"})) == []


def test_the_newest_versions_have_everything_that_kaigen_writes() -> None:
    newest = {name: known_versions(name)[-1] for name in TITLES}
    assert [found for body in objects() for found in version_findings(body, newest)] == []


def test_each_version_has_its_source_and_a_key_in_kaigen_yaml() -> None:
    table = load_table("controller_versions")
    assert list(table) == list(TITLES) == list(ClusterVersions.__struct_fields__)
    for controller in table.values():
        assert all(row["source"] and row["date"] > "2024" for row in controller["versions"].values())
