"""Topology spread constraints without a selector select the app's pods, in both forms."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.cases import write_chart
from tests.chart.test_digest import compiled
from tests.chart.test_equal import by_helm, written
from tests.differences import assert_same

ZONES = {"maxSkew": 1, "topologyKey": "topology.kubernetes.io/zone", "whenUnsatisfiable": "DoNotSchedule"}
ALL = {**ZONES, "whenUnsatisfiable": "ScheduleAnyway", "labelSelector": {}}
TEAM = {**ZONES, "topologyKey": "rack", "labelSelector": {"matchLabels": {"team": "a"}}, "matchLabelKeys": ["b"]}


def own(release: str) -> dict[str, Any]:
    labels = {"app.kubernetes.io/name": "work", "app.kubernetes.io/instance": release}
    return {**ZONES, "labelSelector": {"matchLabels": labels}}


def constraints(objects: list[dict[str, Any]]) -> Any:
    (job,) = [each for each in objects if each["kind"] == "Job"]
    return job["spec"]["template"]["spec"].get("topologySpreadConstraints")


@pytest.mark.parametrize("release", ["work", "other"])
def test_only_constraints_without_a_selector_get_one(tmp_path: Path, release: str) -> None:
    item = compiled({"image": "a", "placement": {"topologySpread": [ZONES, ALL, TEAM]}})
    rendered = by_helm(write_chart(tmp_path, item), item, release=release)
    assert constraints(rendered) == [own(release), ALL, TEAM]
    assert_same(rendered, written(item.app.render(release=release)))


@pytest.mark.parametrize("given", [[ZONES], [], [TEAM, {**ZONES, "labelSelector": None}]])
def test_constraints_set_at_deploy_time_get_a_selector_too(tmp_path: Path, given: list[Any]) -> None:
    item = compiled({"image": "a", "placement": {"topologySpread": [TEAM]}})
    values = {"topologySpreadConstraints": given}
    rendered = by_helm(write_chart(tmp_path, item), item, values)
    assert_same(rendered, written(item.app.render({**item.values, **values})))
    assert constraints(rendered) in ([own("work")], None, [TEAM, own("work")])


def test_pods_have_the_labels_of_the_selector() -> None:
    item = compiled({"image": "a", "placement": {"topologySpread": [ZONES]}})
    (job,) = [each.body for each in item.objects if each.body["kind"] == "Job"]
    template = job["spec"]["template"]
    wanted = template["spec"]["topologySpreadConstraints"][0]["labelSelector"]["matchLabels"]
    assert wanted.items() <= template["metadata"]["labels"].items()
