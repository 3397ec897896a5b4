"""Every alert that kaigen renders, as promtool evaluates it."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from kaigen.compile.builders.alerts import RUNBOOK
from tests import helm
from tests.cluster import reaper
from tests.cluster.apps import compiled
from tests.cluster.client import Object
from tests.cluster.prometheus import program

pytestmark = pytest.mark.engine

ROOT = Path(__file__).parents[2]
FOLDER = Path(__file__).parent / "alerts"
RULE = "PrometheusRule"
REAPER_VALUES = {"podMonitor": {"enabled": True}, "prometheusRule": {"enabled": True}}


@pytest.fixture(scope="module")
def objects(tmp_path_factory: pytest.TempPathFactory) -> dict[tuple[str, str], Object]:
    """Return the objects of the specs by app and kind, and the rules of the reaper's chart."""
    specs = list(yaml.safe_load_all((FOLDER / "specs.yaml").read_text()))
    apps = compiled(tmp_path_factory.mktemp("specs"), specs, "ml")
    release = helm.template(reaper.CHART, reaper.ACCOUNT, "tools", REAPER_VALUES)
    of_apps = {(name, each.body["kind"]): each.body for name, app in apps.items() for each in app.objects}
    return of_apps | {(reaper.ACCOUNT, each["kind"]): each for each in release if each["kind"] == RULE}


@pytest.fixture(scope="module")
def rules(objects: dict[tuple[str, str], Object], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the file with the rules of all apps."""
    path = tmp_path_factory.mktemp("rules") / "rules.yaml"
    groups = [group for (_, kind), body in objects.items() if kind == RULE for group in body["spec"]["groups"]]
    path.write_text(yaml.safe_dump({"groups": groups}))
    return path


def promtool(*arguments: str) -> None:
    done = subprocess.run([program("promtool"), *arguments], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def cases() -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = yaml.safe_load((FOLDER / "tests.yaml").read_text())
    return found


def test_prometheus_accepts_every_rule(rules: Path) -> None:
    promtool("check", "rules", "--lint-fatal", str(rules))


def test_every_rule_has_a_case(objects: dict[tuple[str, str], Object]) -> None:
    made = {
        (rule["alert"], app)
        for (app, kind), body in objects.items()
        if kind == RULE
        for rule in body["spec"]["groups"][0]["rules"]
    }
    assert made == {(case["alert"], case["app"]) for case in cases()}


def test_each_alert_fires_by_its_cause_only(objects: dict[tuple[str, str], Object], rules: Path) -> None:
    names = {
        "ONCE": objects["once", "Job"]["metadata"]["name"],
        "WEIGHTS": objects["weights", "Job"]["metadata"]["name"],
        "SEVERAL": objects["several", "JobSet"]["metadata"]["name"],
        "TRAINED": objects["trained", "TrainJob"]["metadata"]["name"],
    }
    alerts = {
        (rule["alert"], app): rule
        for (app, kind), body in objects.items()
        if kind == RULE
        for rule in body["spec"]["groups"][0]["rules"]
    }

    def series(given: dict[str, str]) -> list[dict[str, str]]:
        found = []
        for name, values in given.items():
            for word, real in names.items():
                name = name.replace(word, real)
            found.append({"series": name, "values": str(values)})
        return found

    tests = []
    for case in cases():
        assert alerts[case["alert"], case["app"]]["labels"]["severity"] in ("critical", "warning")
        query = f'count(ALERTS{{alertname="{case["alert"]}",app="{case["app"]}",alertstate="firing"}}) or vector(0)'
        for state, count, at in (("fires", 1, case["at"]), ("quiet", 0, case.get("quietAt", case["at"]))):
            expected = [{"labels": "{}", "value": count}]
            tests.append(
                {
                    "name": f"{case['alert']} of {case['app']} {state}",
                    "interval": "1m",
                    "input_series": series(case[state]),
                    "promql_expr_test": [{"expr": query, "eval_time": at, "exp_samples": expected}],
                }
            )
    path = rules.parent / "tests.yaml"
    content = {"rule_files": [rules.name], "evaluation_interval": "1m", "tests": tests}
    path.write_text(yaml.safe_dump(content, sort_keys=False))
    promtool("test", "rules", str(path))


@pytest.mark.parametrize(
    ("labels", "receivers"),
    [
        ({"team": "search", "severity": "warning"}, "search"),
        ({"team": "search", "severity": "critical"}, "on-call,search"),
        ({"team": "vision", "severity": "warning"}, "platform"),
        ({"severity": "critical"}, "on-call"),
    ],
)
def test_alertmanager_routes_by_team_as_documented(tmp_path: Path, labels: dict[str, str], receivers: str) -> None:
    text = (ROOT / "docs" / f"{RUNBOOK}.md").read_text()
    (block,) = [each for each in re.findall("```yaml\n(.*?)```", text, re.DOTALL) if "receivers:" in each]
    (tmp_path / "alertmanager.yaml").write_text(block)
    given = {"alertname": "KaigenQueue", "namespace": "ml", "app": "chat", **labels}
    config = [f"--config.file={tmp_path / 'alertmanager.yaml'}"]
    command = [program("amtool"), "config", "routes", "test", *config]
    done = subprocess.run(
        [*command, f"--verify.receivers={receivers}", *(f"{key}={value}" for key, value in given.items())],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_labels_of_an_alert_are_those_that_are_routed(objects: dict[tuple[str, str], Object]) -> None:
    rules = [rule for (_, kind), body in objects.items() if kind == RULE for rule in body["spec"]["groups"][0]["rules"]]
    assert all(rule["labels"].keys() >= {"severity", "app", "namespace"} for rule in rules)
    assert {rule["labels"].get("team") for rule in rules if rule["labels"]["app"] == "once"} == {"search"}
