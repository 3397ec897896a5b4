"""Days on which clocks change, and runs that are late: Kubernetes' controller and KEDA's scaler with a moved clock.

Both are Go packages, which Go tests run in a bubble of `testing/synctest` whose clock moves when nothing else happens.
"""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest

from tests.cluster.apps import compiled, find, spec
from tests.cluster.client import Object
from tests.cluster.tools.parts import ALL_PARTS

pytestmark = pytest.mark.engine

Asks = Callable[[list[Object]], list[list[str]]]
ZONE = "Europe/Berlin"
_PROGRAMS = Path(__file__).parent / "clock"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("clock")


def built(folder: Path, part_name: str, source: str) -> Asks:
    """Build a Go test with the modules of a part, and return what runs it."""
    (part,) = [each for each in ALL_PARTS if each.name == part_name]
    place = folder / part_name
    place.mkdir()
    for file in (_PROGRAMS / source, part.folder / "go.mod", part.folder / "go.sum"):
        (place / file.name).write_bytes(file.read_bytes())
    memory = {"GOGC": "off", "GOMEMLIMIT": "2GiB"}
    command = ["go", "test", "-c", "-mod=readonly", "-buildvcs=false", "-trimpath", "-o", "run", "."]
    environment = memory | os.environ | {"CGO_ENABLED": "0", "GOWORK": "off"}
    done = subprocess.run(command, cwd=place, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr

    def ask(asked: list[Object]) -> list[list[str]]:
        found = place / "found.json"
        own = {"ASKED": json.dumps(asked), "FOUND": str(found)}
        run = subprocess.run([place / "run"], env=os.environ | own, capture_output=True, text=True, timeout=120)
        assert run.returncode == 0, run.stdout + run.stderr
        answers: list[list[str]] = json.loads(found.read_bytes())
        return answers

    return ask


@pytest.fixture(scope="module")
def kubernetes(folder: Path) -> Asks:
    """The controller of CronJobs; asked about CronJobs, it answers when their runs started."""
    return built(folder, "kubernetes", "cronjob_test.go")


@pytest.fixture(scope="module")
def keda(folder: Path) -> Asks:
    """The scaler; asked about windows, it answers when they open and close."""
    return built(folder, "keda", "keda_test.go")


def moment(day: str, time: str = "00:00") -> str:
    return datetime.fromisoformat(f"{day}T{time}").replace(tzinfo=UTC).isoformat()


def asked_run(folder: Path, day: str, hours: int, schedule: Object, suspended: tuple[str, str] = ("", "")) -> Object:
    """Return the question when the runs of a schedule, as kaigen renders it, start from midnight UTC of a day."""
    job = spec("Job", "evaluate", image="registry.example.com/evaluate:1", schedule=schedule)
    cron = find(compiled(folder, [job], "default")["evaluate"], "CronJob")
    cron["metadata"].update(namespace="default", uid="1")
    begin, end = [moment(day, time or "00:00") for time in suspended]
    return {"CronJob": cron, "From": moment(day), "Hours": hours, "Suspended": begin, "Resumed": end}


def test_a_time_that_is_left_out_has_no_run_and_one_that_comes_twice_has_two(kubernetes: Asks, tmp_path: Path) -> None:
    night, morning, utc = [
        {"cron": cron, "timeZone": zone}
        for cron, zone in (("30 2 * * *", ZONE), ("0 3 * * *", ZONE), ("30 2 * * *", "Etc/UTC"))
    ]
    spring = [asked_run(tmp_path, "2026-03-28", 72, each) for each in (night, morning, utc)]
    assert kubernetes(spring) == [
        ["28 02:30 CET", "30 02:30 CEST"],
        ["28 03:00 CET", "29 03:00 CEST", "30 03:00 CEST"],
        ["28 02:30 UTC", "29 02:30 UTC", "30 02:30 UTC"],
    ]
    autumn = [asked_run(tmp_path, "2026-10-24", 72, each) for each in (night, morning, utc)]
    assert kubernetes(autumn) == [
        ["24 02:30 CEST", "25 02:30 CEST", "25 02:30 CET", "26 02:30 CET"],
        ["24 03:00 CEST", "25 03:00 CET", "26 03:00 CET"],
        ["24 02:30 UTC", "25 02:30 UTC", "26 02:30 UTC"],
    ]


def test_a_run_that_was_missed_starts_if_it_is_not_too_late(kubernetes: Asks, tmp_path: Path) -> None:
    schedule = {"cron": "0 2 * * *", "timeZone": "Etc/UTC", "startingDeadline": "1h"}
    asked = [
        asked_run(tmp_path, "2026-11-02", 30, schedule, suspended)
        for suspended in (("", ""), ("01:30", "02:30"), ("01:30", "03:30"))
    ]
    assert kubernetes(asked) == [
        ["02 02:00 UTC", "03 02:00 UTC"],
        ["02 02:30 UTC", "03 02:00 UTC"],
        ["03 02:00 UTC"],
    ]


def test_a_window_that_starts_or_ends_at_a_time_that_is_left_out_is_closed_or_open_for_a_day(keda: Asks) -> None:
    def changes(day: str, start: str, end: str) -> list[str]:
        (found,) = keda([{"Zone": ZONE, "Start": start, "End": end, "From": moment(day), "Hours": 60}])
        return found[1:]  # without the state at the beginning

    # The evening of the 28th is missing.
    assert changes("2026-03-28", "0 20 * * *", "30 2 * * *") == [
        "28 02:30 CET closed",
        "29 20:00 CEST open",
        "30 02:30 CEST closed",
    ]
    # The morning of the 28th has no end.
    assert changes("2026-03-28", "30 2 * * *", "0 6 * * *") == [
        "28 02:30 CET open",
        "29 06:00 CEST closed",
        "30 02:30 CEST open",
        "30 06:00 CEST closed",
    ]
    # Of two equal times, the second one counts.
    assert changes("2026-10-24", "0 20 * * *", "30 2 * * *")[1:3] == ["24 20:00 CEST open", "25 02:30 CET closed"]
    assert changes("2026-10-24", "30 2 * * *", "0 6 * * *")[2:4] == ["25 02:30 CET open", "25 06:00 CET closed"]
    assert changes("2026-03-28", "0 6 * * *", "0 20 * * *") == [
        "28 06:00 CET open",
        "28 20:00 CET closed",
        "29 06:00 CEST open",
        "29 20:00 CEST closed",
        "30 06:00 CEST open",
    ]
