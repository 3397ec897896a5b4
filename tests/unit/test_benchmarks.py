"""The calculations of the benchmark. No test depends on speed."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path

import pytest

import kaigen
from benchmarks.command import Command, CommandFailed, Sample, run
from benchmarks.objects import NotTheSame, names, read_objects, require_same, write_objects
from benchmarks.peers import PEERS
from benchmarks.report import as_data, as_text
from benchmarks.results import tabulate
from benchmarks.rounds import Contender, measure
from benchmarks.workload import DEPLOYMENT, edit_specs, write_lone_job, write_repository

PEER_FILES = Path(__file__).parents[2] / "benchmarks" / "peers"


def command(folder: Path, code: str, status: int = 0) -> Command:
    return Command((sys.executable, "-I", "-c", code), folder, dict(os.environ), folder / "out.yaml", True, status)


def sample(wall: float, cpu: float = 1.0, peak: int = 1024) -> Sample:
    return Sample(wall, cpu, peak)


@pytest.mark.parametrize("specs", [1, 2, 5])
def test_workload_has_the_requested_number_of_valid_specs(tmp_path: Path, specs: int) -> None:
    repository = write_repository(tmp_path / "repository", specs)
    config = kaigen.load_config(repository)
    run = kaigen.Run.load((), config, use_cache=False)
    assert [run.load_diagnostics, len(run.specs), len(run.paths)] == [(), specs, specs]
    assert run.compilation().diagnostics == ()


def test_the_lone_job_is_valid(tmp_path: Path) -> None:
    repository = write_lone_job(tmp_path / "repository")
    assert kaigen.validate((), kaigen.load_config(repository))[0] == []


def test_editing_specs_changes_the_output_of_that_many_jobs(tmp_path: Path) -> None:
    repository = write_repository(tmp_path / "repository", 6)
    config = kaigen.load_config(repository)
    before = kaigen.render((), config)
    edit_specs(repository, "second", 2)
    after = kaigen.render((), config)
    apps = {path.split("/")[1] for path in before.keys() | after.keys() if before.get(path) != after.get(path)}
    assert apps == {"job-00000", "job-00001"}


def test_objects_are_read_back_as_they_were_written(tmp_path: Path) -> None:
    objects = [DEPLOYMENT, {**DEPLOYMENT, "kind": "Other"}]
    files = write_objects(tmp_path / "objects", objects)
    assert [path.stem for path in files] == names(objects) == ["00000-deployment-web", "00001-other-web"]
    require_same(read_objects(tmp_path / "objects"), reversed(objects))


@pytest.mark.parametrize("found", [[], [DEPLOYMENT] * 2, [{**DEPLOYMENT, "spec": {}}]])
def test_missing_extra_or_changed_objects_are_reported(found: list[dict[str, object]]) -> None:
    with pytest.raises(NotTheSame, match="missing"):
        require_same(found, [DEPLOYMENT])


def test_a_run_measures_the_memory_of_the_command_and_not_of_its_parent(tmp_path: Path) -> None:
    ballast = bytearray(200 << 20)
    took = run(command(tmp_path, "sum(range(10**6)); print('x' * 10)"))
    assert took.wall_s >= took.cpu_s / 2 > 0
    assert 1024 < took.peak_kib < len(ballast) // 1024 // 2
    assert (tmp_path / "out.yaml").read_text() == "x" * 10 + "\n"


def test_a_run_with_an_unexpected_exit_code_fails_with_its_error_output(tmp_path: Path) -> None:
    code = "import sys; sys.exit('no such luck')"
    assert run(command(tmp_path, code, status=1)).wall_s > 0
    with pytest.raises(CommandFailed, match=r"exit code 1\nno such luck"):
        run(command(tmp_path, code))


def test_rounds_run_every_contender_in_turn_and_continue_without_a_failed_peer(tmp_path: Path) -> None:
    order: list[str] = []

    def contender(name: str, code: str = "", is_peer: bool = False) -> Contender:
        return Contender(name, command(tmp_path, code), before=lambda: order.append(name), is_peer=is_peer)

    contenders = [contender("a"), contender("broken", "1/0", is_peer=True), contender("b", is_peer=True)]
    samples = measure(contenders, 2, "a test")
    assert order == ["a", "broken", "b", "a", "b", "a", "b"]
    assert {name: len(each) for name, each in samples.items()} == {"a": 2, "b": 2}
    with pytest.raises(CommandFailed, match="ZeroDivisionError"):
        measure([contender("own", "1/0")], 1, "a test")


def test_ratios_compare_runs_of_the_same_round() -> None:
    table = tabulate("title", {"ruler": [sample(1), sample(10)], "row": [sample(2), sample(30)]}, "ruler")
    row = table.row("row")
    assert row is not None
    assert [list(row.ratios), row.ratio] == [[2, 3], 2.5]


def test_a_peer_that_ran_once_is_compared_with_the_rulers_median() -> None:
    samples = {"ruler": [sample(1), sample(2), sample(9)], "slow": [sample(100, cpu=3)]}
    row = tabulate("title", samples, "ruler").row("slow")
    assert row is not None
    assert [list(row.ratios), row.cpu_ratio] == [[50], 3]


def test_targets_are_met_or_missed_and_skipped_for_missing_rows() -> None:
    samples = {"ruler": [sample(2)], "quick": [sample(1)], "slow": [sample(12)]}
    table = tabulate("title", samples, "ruler")
    table.expect("quick", "at most a half", 0.5)
    table.expect("slow", "at most five", 5)
    table.expect("slow", "at least six", 6, at_least=True)
    table.expect("absent", "nothing", 1)
    assert [(target.what, target.is_met) for target in table.targets] == [
        ("at most a half", True),
        ("at most five", False),
        ("at least six", True),
    ]
    assert "target MISSED: at most five: 6.00" in as_text(table)
    assert [row["name"] for row in as_data([table])["tables"][0]["rows"]] == ["ruler", "quick", "slow"]


def test_without_its_ruler_a_table_has_times_and_no_ratios() -> None:
    table = tabulate("title", {"row": [sample(0.25)]}, "ruler")
    table.expect("row", "nothing", 1)
    assert table.targets == []
    assert re.search(r"row \(1 run\) +250 +250-250 +1000 +1$", as_text(table), re.MULTILINE)


def test_locks_of_peers_have_hashes_and_name_no_registry() -> None:
    assert list(PEERS) == ["helm", "kustomize", "kapitan", "cdk8s-node", "cdk8s-node-files", "cdk8s-python"]
    for lock in PEER_FILES.glob("*.txt"):
        text = lock.read_text()
        entries = re.split(r"^(?=[a-z0-9])", text, flags=re.MULTILINE)[1:]
        assert entries
        assert [entry for entry in entries if "--hash=sha256:" not in entry] == []
        assert "://" not in text
    modules = (PEER_FILES / "package-lock.json").read_text()
    assert '"resolved"' not in modules
    assert modules.count('"integrity": "sha512-') == 2
