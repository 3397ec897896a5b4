"""Reports of gates: from a cluster into files, and from the files to a promotion that passes or does not."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kaigen.cli import gates
from kaigen.cli.gates import MOST_REPORTS, reports_section
from kaigen.cli.main import run
from kaigen.config.load import load_config
from kaigen.diagnostics.errors import InputError
from kaigen.gates.reports import make_report, read_report, report_path, write_report
from kaigen.gates.verdicts import Gate, collect_reports, find_gates, read_verdicts
from tests.unit.cluster.api_server import api_server

CONFIG = """
apiVersion: kaigen.dev/v1alpha1
kind: Config
promotion: [staging, prod]
environments:
  staging: {namespace: ml-staging}
  prod: {namespace: ml-prod}
"""
SPECS = """
apiVersion: kaigen.dev/v1alpha1
kind: Topology
metadata: {name: assistant}
spec: {engine: container, image: "registry.example/engine:1", args: [--fast]}
---
apiVersion: kaigen.dev/v1alpha1
kind: Job
metadata: {name: speed}
spec: {workload: benchmark, target: assistant, require: {ttft: {p95: 500ms}}}
---
apiVersion: kaigen.dev/v1alpha1
kind: Job
metadata: {name: other}
spec: {image: "registry.example/other:1"}
"""
CHECK = {"name": "ttft.p95", "bound": "max", "limit": 500, "value": 812, "passed": False}
WHY = "ttft.p95 is 812 ms, more than 500 ms"
DEEP = f"x\n```json\n{'[' * 100_000}\n```\n"
HOSTILE = "</details>\n\n<!-- ## No gates\n::stop-commands::x\n@org/admins #1 ![x](https://evil.example/x) | \x1b[2J"


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a repository with a Topology and its gate."""
    (tmp_path / "specs").mkdir()
    (tmp_path / "specs/all.yaml").write_text(SPECS)
    (tmp_path / "kaigen.yaml").write_text(CONFIG)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def gate(root: Path) -> Gate:
    """Return the gate of staging."""
    (found,) = find_gates(load_config(root, "staging"))
    return found


def data(run: str, *, passed: bool) -> dict[str, Any]:
    """Return a report as the program writes it."""
    return {"gate": "speed", "run": run, "passed": passed, "reason": "" if passed else WHY, "checks": [CHECK]}


def write(root: Path, *, passed: bool, run: str = "") -> None:
    """Write the report about the gate of staging, or about another run."""
    found = gate(root)
    report = make_report(data(run or found.run, passed=passed))
    write_report(report_path(root, "staging", found.namespace, found.app), report)


Promote = Callable[..., tuple[int, str]]


@pytest.fixture
def promote(root: Path, capsys: pytest.CaptureFixture[str]) -> Promote:
    """Return what runs the promotion: its exit code and what it prints."""

    def run_promotion(*more: str) -> tuple[int, str]:
        code = run(["promote", "--from", "staging", "--to", "prod", *more])
        printed = capsys.readouterr()
        return code, printed.out + printed.err

    return run_promotion


def test_a_report_is_read_as_it_was_written(tmp_path: Path) -> None:
    report = make_report({**data("speed-1", passed=False), "reason": "\n```json\nnot the data\n```\n"})
    path = report_path(tmp_path, "staging", "ml", "speed")
    write_report(path, report)
    assert read_report(path, tmp_path) == report
    assert [each.name for each in path.parent.iterdir()] == ["speed.md"]


@pytest.mark.parametrize("text", ["", "# notes\n", "x\n```json\n{\n```\n", "x\n```json\n[]\n```\n", DEEP])
def test_a_file_that_is_not_a_report_is_an_error(tmp_path: Path, text: str) -> None:
    (tmp_path / "a.md").write_text(text)
    with pytest.raises(InputError) as caught:
        read_report(tmp_path / "a.md", tmp_path)
    assert [item.code for item in caught.value.diagnostics] == ["KG0467"]


def test_a_gate_concerns_what_it_judges(root: Path) -> None:
    found = gate(root)
    assert (found.namespace, found.app, found.judged) == ("ml-staging", "speed", (("ml-staging", "assistant"),))
    assert found.concerns(())
    assert found.concerns(["assistant"])
    assert found.concerns(["ml-staging/speed"])
    assert not found.concerns(["other"])


def test_a_promotion_needs_the_report_of_what_is_promoted(root: Path, promote: Promote) -> None:
    code, printed = promote()
    assert (code, "**missing:** there is no report" in printed) == (1, True)
    assert "1 of 1 gates of staging have not passed, so nothing is promoted to prod" in printed
    write(root, passed=False)
    code, printed = promote()
    assert (code, WHY in printed) == (1, True)
    write(root, passed=True, run="speed-00000000")
    code, printed = promote()
    assert (code, "the report is about speed-00000000, and Git has" in printed) == (1, True)
    assert not (root / "pins").exists()
    write(root, passed=True)
    assert promote()[0] == 0
    assert (root / "pins/prod.yaml").exists()


def test_a_change_of_the_topology_needs_a_new_report(root: Path, promote: Promote) -> None:
    write(root, passed=True)
    (root / "specs/all.yaml").write_text(SPECS.replace("--fast", "--slow"))
    assert promote()[0] == 1


def test_apps_that_no_gate_judges_are_promoted_without_one(promote: Promote) -> None:
    assert promote("other")[0] == 0
    assert promote("assistant")[0] == 1


def test_the_comment_of_a_pull_request_has_the_reports(root: Path) -> None:
    configs = [load_config(root, name) for name in ("staging", "prod")]
    assert reports_section(configs) == ""
    write(root, passed=False)
    section = reports_section(configs)
    assert section.startswith("\n## Gates of staging\n")
    row = f"| `ml-staging/speed` | `{gate(root).run}` | **failed** | {WHY} |"
    assert row in section.splitlines()
    assert f"<details><summary>speed</summary>\n\n### speed: failed\n\n{WHY}\n" in section
    assert "| ttft.p95 | max 500 ms | 812 ms | not met |" in section.splitlines()
    assert "prod" not in section
    write(root, passed=True)
    assert f"| `{gate(root).run}` | passed | - |" in reports_section(configs)


def test_a_long_report_does_not_hide_the_state_of_gates(root: Path) -> None:
    found = gate(root)
    path = report_path(root, "staging", found.namespace, found.app)
    checks = [{**CHECK, "name": f"{number}{'x' * 300}"} for number in range(1000)]
    write_report(path, make_report({**data(found.run, passed=False), "reason": "a|b @all", "checks": checks}))
    section = reports_section([load_config(root, "staging")])
    assert "xxx" not in section
    assert "| **failed** | a\\|b @\u200ball |" in section
    write_report(path, make_report({**data(found.run, passed=False), "reason": "y" * 70_000}))
    assert len(reports_section([load_config(root, "staging")])) < MOST_REPORTS


@pytest.mark.parametrize("field", ["reason", "gate", "target", "tool", "finished", "name", "bound", "limit", "value"])
def test_nothing_of_a_report_is_markup_or_a_command(root: Path, promote: Promote, field: str) -> None:
    found = gate(root)
    known = {**data(found.run, passed=False), "target": "assistant", "tool": "t", "finished": "now"}
    known = {**known, "checks": [{**CHECK, field: HOSTILE}]} if field in CHECK else {**known, field: HOSTILE}
    path = report_path(root, "staging", found.namespace, found.app)
    path.parent.mkdir(parents=True)
    # The text is another's, too: of an author who changes the file.
    path.write_text(f"{HOSTILE}\n\n```json\n{json.dumps(known)}\n```\n", encoding="utf-8")
    for text in (reports_section([load_config(root, "staging")]), promote()[1]):
        assert not any(line.lstrip().startswith("::") for line in text.splitlines())
        assert "\x1b" not in text
        markup = re.sub("`[^`\n]*`", "", text)
        assert not any(word in markup for word in ("<!--", "@org", "#1", "![x]"))
        assert markup.count("</details>") == markup.count("<details>")


def test_a_report_is_not_read_through_a_link_out_of_the_repository(root: Path, tmp_path_factory: Any) -> None:
    other = tmp_path_factory.mktemp("other") / "speed.md"
    found = gate(root)
    write_report(other, make_report(data(found.run, passed=True)))
    path = report_path(root, "staging", found.namespace, found.app)
    path.parent.mkdir(parents=True)
    path.symlink_to(other)
    with pytest.raises(InputError):
        read_verdicts(root, [found])


def test_gates_that_have_not_passed_come_first_and_others_are_counted(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(root, passed=True)
    more = [SPECS.replace("name: speed", f"name: speed-{number}").split("---")[1] for number in range(9)]
    (root / "specs/more.yaml").write_text("---".join(more), encoding="utf-8")
    whole = reports_section([load_config(root, "staging")]).splitlines()
    rows = [line for line in whole if line.startswith("| `")]
    assert ["**missing**" in line for line in rows] == [True] * 9 + [False]
    monkeypatch.setattr(gates, "MOST_REPORTS", sum(map(len, rows[:4])) + 4)
    lines = reports_section([load_config(root, "staging")]).splitlines()
    assert [line for line in lines if line.startswith("| `")] == rows[:4]
    assert "| and 6 more | | | |" in lines


def answers(run: str, condition: str | None, config_map: dict[str, str] | None) -> dict[str, tuple[int, Any]]:
    """Return what an API server has about a gate."""
    conditions = [{"type": condition, "status": "True", "message": "a pod failed"}] if condition else []
    job = {"kind": "Job", "metadata": {"name": run}, "spec": {}, "status": {"conditions": conditions}}
    found: dict[str, tuple[int, Any]] = {f"/apis/batch/v1/namespaces/ml-staging/jobs/{run}": (200, job)}
    if config_map is not None:
        found["/api/v1/namespaces/ml-staging/configmaps/speed-facts"] = (200, {"kind": "ConfigMap", "data": config_map})
    return found


def collected(root: Path, folder: Path, replies: dict[str, tuple[int, Any]]) -> tuple[str, str]:
    """Collect from a server; return the state and the reason."""
    folder.mkdir()
    with api_server(folder, replies) as (cluster, _):
        (verdict,) = collect_reports(root, [gate(root)], cluster)
    assert (verdict.state, verdict.reason) == ((found := read_verdicts(root, [gate(root)])[0]).state, found.reason) or (
        verdict.state == "missing"
    )
    return verdict.state, verdict.reason


def test_reports_come_from_the_cluster(root: Path, tmp_path: Path) -> None:
    name = gate(root).run
    assert collected(root, tmp_path / "a", {}) == ("missing", f"Job {name} is not in the cluster")
    assert collected(root, tmp_path / "b", answers(name, None, None))[0] == "missing"
    stored = {"run": name, "report.json": json.dumps(data(name, passed=False))}
    assert collected(root, tmp_path / "c", answers(name, "Failed", stored)) == ("failed", WHY)
    stored["report.json"] = json.dumps(data(name, passed=True))
    assert collected(root, tmp_path / "d", answers(name, "Complete", stored)) == ("passed", "")


def test_the_job_decides_where_the_report_says_otherwise(root: Path, tmp_path: Path) -> None:
    name = gate(root).run
    stored = {"run": name, "report.json": json.dumps(data(name, passed=True))}
    assert collected(root, tmp_path / "a", answers(name, "Failed", stored)) == ("failed", "a pod failed")
    old = {**stored, "run": "speed-00000000"}
    assert collected(root, tmp_path / "b", answers(name, "Failed", old)) == ("failed", "a pod failed")


@pytest.mark.parametrize("text", ["", "{", "[]", "null", '"passed"', "[" * 100_000])
def test_a_report_in_the_cluster_that_cannot_be_read_is_no_report(root: Path, tmp_path: Path, text: str) -> None:
    stored = {"run": gate(root).run, "report.json": text}
    assert collected(root, tmp_path / "a", answers(gate(root).run, "Failed", stored)) == ("failed", "a pod failed")
