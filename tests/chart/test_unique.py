"""Items of a list that the API server identifies by a name, and names of releases that objects may not have."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from kaigen.config.value_layers import Overrides
from kaigen.emit.values import check_values, effective_values
from kaigen.pipeline.result import Compiled
from tests import helm
from tests.cases import app_cases, write_chart
from tests.chart.test_digest import compiled
from tests.chart.test_equal import by_helm, written
from tests.differences import assert_same

ZONE = {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "ScheduleAnyway"}
ITEM: dict[str, Any] = {"image": "a", "env": {"MINE": "1"}, "volumes": {"own": {"emptyDir": {}, "mountPath": "/own"}}}


def item() -> Compiled:
    return compiled({**ITEM, "sidecars": {"log": {"image": "b"}}})


@pytest.mark.parametrize(
    ("setting", "value", "key"),
    [
        ("extraEnv", [{"name": "MINE", "value": "2"}], "MINE"),
        ("extraEnv", [{"name": "A"}, {"name": "A"}], "A"),
        ("extraVolumes", [{"name": "scratch", "emptyDir": {}}], "scratch"),
        ("extraVolumeMounts", [{"name": "other", "mountPath": "/tmp"}], "/tmp"),
        ("topologySpreadConstraints", [ZONE, {**ZONE, "maxSkew": 2}], "zone ScheduleAnyway"),
    ],
)
def test_an_item_that_is_there_already_stops_both_forms(
    tmp_path: Path, setting: str, value: list[Any], key: str
) -> None:
    made = item()
    with pytest.raises(helm.HelmError, match=f"{setting}: `{key}` is there already"):
        by_helm(write_chart(tmp_path, made), made, {setting: value})
    layers: list[Overrides] = [{made.app.name: {setting: value}}]
    (problem,) = check_values(made.app, effective_values(made.app, layers), layers)
    assert (problem.code, problem.message) == (
        "KG0706",
        f"`{made.app.name}.{setting}[{len(value) - 1}]`: `{key}` is there already",
    )


def test_items_with_names_of_their_own_are_added(tmp_path: Path) -> None:
    made = item()
    values: dict[str, Any] = {
        "extraEnv": [{"name": "MORE", "value": "1"}],
        "extraVolumes": [{"name": "more", "emptyDir": {}}],
    }
    rendered = by_helm(write_chart(tmp_path, made), made, values)
    assert_same(rendered, written(made.app.render({**made.values, **values})))
    layers: list[Overrides] = [{made.app.name: values}]
    assert check_values(made.app, effective_values(made.app, layers), layers) == []


def test_dots_in_the_name_of_a_release_become_dashes(tmp_path: Path) -> None:
    made = item()
    rendered = by_helm(write_chart(tmp_path, made), made, release="qwen-1.5")
    assert_same(rendered, written(made.app.render(release="qwen-1.5")))
    assert all("." not in each["metadata"]["name"] for each in rendered)


def test_a_service_may_not_begin_with_a_digit(tmp_path: Path) -> None:
    (made,) = [case.compiled for case in app_cases() if case.case.name == "topology/one-gpu"][:1]
    chart = write_chart(tmp_path, made)
    with pytest.raises(helm.HelmError, match="a Service may not begin with a digit, as the release `9b` does"):
        by_helm(chart, made, release="9b")
    assert by_helm(chart, made, {"fullnameOverride": "b9"}, release="9b")
    job = item()
    assert by_helm(write_chart(tmp_path / "job", job), job, release="9b")
