"""Valid values of a chart pass `helm lint`; both Helm and kaigen reject invalid ones."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kaigen.compile.expressions import Setting
from kaigen.emit.values import check_values
from tests import helm
from tests.cases import AppCase, app_cases, write_chart
from tests.chart.synthesis import filled
from tests.chart.test_equal import by_helm, without_tests, written
from tests.differences import assert_same

LINTED = 30
"""Apps whose charts one run of Helm lints."""

every_app = pytest.mark.parametrize("app_case", app_cases(), ids=lambda case: case.name)


def settings_once() -> Iterator[Any]:
    """Return each setting of each schema, with one app that has it."""
    seen = set()
    for case in app_cases():
        for setting in case.compiled.app.settings:
            key = ("env.*" if setting.path.startswith("env.") else setting.path, repr(setting.schema))
            if key not in seen:
                seen.add(key)
                yield pytest.param(case, setting, id=setting.path)


every_setting = pytest.mark.parametrize(("app_case", "setting"), list(settings_once()))


def nested(path: tuple[str, ...], value: Any) -> dict[str, Any]:
    for key in reversed(path):
        value = {key: value}
    return dict(value)


def wrong_value(setting: Setting) -> Any:
    """Return a value of a type that the setting does not allow."""
    schema = setting.schema
    if "enum" in schema:
        return "something else"
    types = {schema["type"]} if isinstance(schema["type"], str) else set(schema["type"])
    samples = {"string": "text", "array": [1], "boolean": True, "number": 1.5, "object": {"a": 1}}
    return next(
        value for name, value in samples.items() if name not in types and not (name == "number" and "integer" in types)
    )


@pytest.fixture(scope="module")
def chart_of(tmp_path_factory: pytest.TempPathFactory) -> Callable[[AppCase], Path]:
    """Gives the chart of an app, which is written once. Tests only read it."""
    root = tmp_path_factory.mktemp("charts")
    written_charts: dict[str, Path] = {}

    def get(case: AppCase) -> Path:
        if case.name not in written_charts:
            written_charts[case.name] = write_chart(root / f"{len(written_charts)}", case.compiled)
        return written_charts[case.name]

    return get


def refused_by_both(app_case: AppCase, chart: Path, values: dict[str, Any]) -> None:
    item = app_case.compiled
    assert check_values(item.app, app_case.effective(values)) != []
    with pytest.raises(helm.HelmError):
        helm.template(chart, item.app.name, item.app.namespace, values, fast=True)


@pytest.mark.parametrize("first", range(0, len(app_cases()), LINTED))
def test_lint_finds_nothing(first: int, tmp_path: Path) -> None:
    charts = []
    for number, case in enumerate(app_cases()[first : first + LINTED]):
        charts.append(write_chart(tmp_path / f"{number}", case.compiled))
        # Helm lints many charts at once only with the same values, so these are in the chart.
        charts.append(write_chart(tmp_path / f"{number}-filled", case.compiled))
        values = case.effective({**filled(case.compiled.app), "global": {"anything": ["at", "all"]}})
        (charts[-1] / "values.yaml").write_text(helm.as_yaml(values))
    assert f"{len(charts)} chart(s) linted, 0 chart(s) failed" in helm.lint(*charts)


@every_app
def test_a_misspelled_setting_is_rejected(app_case: AppCase, chart_of: Callable[[AppCase], Path]) -> None:
    chart = chart_of(app_case)
    refused_by_both(app_case, chart, {"retriez": 3})
    groups = {setting.keys[:-1] for setting in app_case.compiled.app.settings if len(setting.keys) > 1}
    for group in groups:
        refused_by_both(app_case, chart, nested((*group, "unknown"), "x"))


@every_setting
def test_a_value_of_the_wrong_type_is_rejected(
    app_case: AppCase, setting: Setting, chart_of: Callable[[AppCase], Path]
) -> None:
    refused_by_both(app_case, chart_of(app_case), nested(setting.keys, wrong_value(setting)))


@every_setting
def test_a_setting_cannot_be_null(app_case: AppCase, setting: Setting, chart_of: Callable[[AppCase], Path]) -> None:
    refused_by_both(app_case, chart_of(app_case), nested(setting.keys, None))


def test_a_misspelled_setting_gets_the_nearest_name_as_a_hint() -> None:
    case = next(case for case in app_cases() if case.name == "demo/qwen")
    found = check_values(case.compiled.app, case.effective({"storage": {"sise": "10Gi"}, "retries": "3"}))
    by_code = {item.code: item for item in found}
    assert len(found) == len(by_code) == 2
    assert "`qwen.storage.sise`" in by_code["KG0705"].message
    assert "`size`" in by_code["KG0705"].hint
    assert "`qwen.retries`" in by_code["KG0706"].message


def together() -> list[tuple[AppCase, ...]]:
    """Return every app in groups of one namespace without two of one name, so that one chart can depend on them."""
    turns: dict[tuple[str, str], int] = {}
    groups: dict[tuple[str, int], list[AppCase]] = {}
    for case in app_cases():
        app = case.compiled.app
        turn = turns[app.namespace, app.name] = turns.get((app.namespace, app.name), -1) + 1
        groups.setdefault((app.namespace, turn), []).append(case)
    return [tuple(group[at : at + LINTED]) for group in groups.values() for at in range(0, len(group), LINTED)]


# Each chart with the most that can be set, by the program: one start of it for many charts.
@pytest.mark.parametrize("group", together(), ids=lambda group: f"{group[0].name} and {len(group) - 1} more")
def test_charts_work_as_dependencies(group: tuple[AppCase, ...], tmp_path: Path) -> None:
    apps = {case.compiled.app.name: case.compiled.app for case in group}
    parent = tmp_path / "parent"
    for folder in ("charts", "templates"):
        (parent / folder).mkdir(parents=True)
    for case in group:
        name = case.compiled.app.name
        write_chart(tmp_path / "own", case.compiled).rename(parent / "charts" / name)
    (parent / "templates" / "own.yaml").write_text("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: parents-own}\n")
    about = {"apiVersion": "v2", "name": "parent", "version": "1.0.0"}
    needed = [{"name": name, "version": app.version, "repository": ""} for name, app in apps.items()]
    (parent / "Chart.yaml").write_text(helm.as_yaml({**about, "dependencies": needed}))
    (parent / "values.yaml").write_text("global: {region: here}\n")
    values = {name: filled(app) for name, app in apps.items()}
    namespace = group[0].compiled.app.namespace
    found = helm.template_dependencies(parent, "whole", namespace, values)
    assert [each["metadata"]["name"] for each in found.pop("")] == ["parents-own"]
    assert found.keys() <= apps.keys()
    for case in group:
        app = case.compiled.app
        expected = written(app.render(case.effective(values[app.name]), release="whole"))
        assert_same({case.name: without_tests(found.get(app.name, []))}, {case.name: expected})


# A few types of values, valid and invalid, for any setting.
_LEAVES = st.one_of(
    st.none(),
    st.booleans(),
    st.sampled_from([0, -1, 3, 2**40, 1.5, "", "5", "8Gi", "8Gi\n", "Always", "text", "yes", "1e3"]),
)
_VALUES = st.recursive(
    _LEAVES,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from(["a", "cpu"]), inner, max_size=2),
    max_leaves=4,
)


@pytest.fixture(scope="module")
def rich(tmp_path_factory: pytest.TempPathFactory) -> tuple[AppCase, Path]:
    case = next(case for case in app_cases() if case.name.endswith("/its-own"))
    return case, write_chart(tmp_path_factory.mktemp("rich"), case.compiled)


@given(data=st.data())
def test_kaigen_and_helm_agree_on_any_values(data: st.DataObject, rich: tuple[AppCase, Path]) -> None:
    case, chart = rich
    app = case.compiled.app
    values: dict[str, Any] = {}
    for setting in data.draw(st.lists(st.sampled_from(app.settings), min_size=1, max_size=3, unique=True)):
        here = values
        for key in setting.keys[:-1]:
            here = here.setdefault(key, {})
        here[setting.keys[-1]] = data.draw(_VALUES)
    effective = case.effective(values)
    wrong = check_values(app, effective)
    try:
        found = by_helm(chart, case.compiled, values)
    except helm.HelmError as error:
        refusal = str(error)
    else:
        # The only difference: kaigen rejects a null in free-form values, Helm accepts it.
        assert {item.hint for item in wrong} <= {"delete it"}
        if not wrong:
            assert_same(found, written(app.render(effective)))
        return
    assert "don't meet the specifications of the schema" in refusal
    assert wrong != []
