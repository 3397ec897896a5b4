"""`put --run-of`: the results of each run of a schedule, stored by a Job that starts at the same minute."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from api import Api
from hub import Hub
from runs import Done, Runner, files, marker, until
from test_job import job

RUN = "label-29402640"
PATH = f"apis/batch/v1/namespaces/models/jobs/{RUN}"


@contextlib.contextmanager
def once_seen(api: Api, change: Callable[[], object]) -> Iterator[None]:
    """Change what the API server has when the program has seen it."""

    def act() -> None:
        until(lambda: bool(api.calls))
        change()

    thread = threading.Thread(target=act)
    thread.start()
    yield
    thread.join()


def put(run: Runner, api: Api, output: Path, dest: Path, *more: str, name: str = "label-upload-29402640") -> Done:
    argv = ("put", str(output), "--run-of", "label", "--dest", str(dest), "--identity", "label", "--timeout", "5s")
    return run(*argv, *more, JOB_NAME=name, **api.env)


@pytest.fixture
def output(tmp_path: Path) -> Path:
    """A volume with the folders of two runs."""
    for name in (RUN, "label-29401200"):
        (tmp_path / "output" / name).mkdir(parents=True)
        (tmp_path / "output" / name / "result").write_text(name)
    return tmp_path / "output"


def test_the_folder_of_the_run_of_this_minute_is_stored_when_it_is_complete(
    run: Runner, api: Api, output: Path, dest: Path
) -> None:
    api.objects[PATH] = job(active=1, ready=1)
    with once_seen(api, lambda: api.objects.update({PATH: job("Complete")})):
        done = put(run, api, output, dest)
    assert done.code == 0, done.err
    assert f"Job models/{RUN} has not completed: 1 active pod" in done.err
    assert files(dest / RUN) == {"result"}
    assert [path.name for path in dest.iterdir()] == [RUN]
    found = marker(dest / RUN)
    assert found is not None
    assert found["identity"] == RUN


def test_a_run_that_was_left_out_stores_nothing(run: Runner, api: Api, output: Path, dest: Path) -> None:
    done = put(run, api, output, dest, "--left-out-after", "0.2s")
    assert done.code == 0, done.err
    assert done.err.splitlines()[-1] == f"Job models/{RUN} was left out or deleted: nothing to store"
    assert not (dest / RUN).exists()


def test_a_run_that_is_deleted_while_it_runs_stores_nothing(run: Runner, api: Api, output: Path, dest: Path) -> None:
    api.objects[PATH] = job(active=1, ready=1)
    with once_seen(api, lambda: api.objects.pop(PATH)):
        done = put(run, api, output, dest, "--left-out-after", "0.2s")
    assert done.code == 0, done.err
    assert not (dest / RUN).exists()


def test_a_run_that_starts_late_is_not_left_out(run: Runner, api: Api, output: Path, dest: Path) -> None:
    with once_seen(api, lambda: api.objects.update({PATH: job("Complete")})):
        assert put(run, api, output, dest, "--left-out-after", "20s").code == 0
    assert files(dest / RUN) == {"result"}


def test_an_api_server_that_is_away_is_no_run_that_was_left_out(
    run: Runner, api: Api, output: Path, dest: Path
) -> None:
    api.statuses = [403, 500, 500]
    api.objects[PATH] = job("Complete")
    assert put(run, api, output, dest, "--left-out-after", "0.01s").code == 0
    assert files(dest / RUN) == {"result"}


def test_a_run_that_failed_stores_nothing(run: Runner, api: Api, output: Path, dest: Path) -> None:
    api.objects[PATH] = job("Failed")
    done = put(run, api, output, dest)
    assert done.code == 14
    assert done.err.endswith(f"-l batch.kubernetes.io/job-name={RUN}`\n")
    assert not dest.exists()


@pytest.mark.parametrize("name", ["", "label", "label-"])
def test_a_pod_that_is_of_no_schedule_ends(run: Runner, api: Api, output: Path, dest: Path, name: str) -> None:
    done = put(run, api, output, dest, name=name)
    assert done.code == 13
    assert "JOB_NAME is not the name of a Job that a CronJob started" in done.err


def test_the_list_of_downloaded_inputs_is_stored_with_the_results(
    run: Runner, api: Api, output: Path, dest: Path, hub: Hub
) -> None:
    assert run.fetch(hub, output / RUN / "in").code == 0
    api.objects[PATH] = job("Complete")
    done = put(run, api, output, dest)
    assert done.code == 0, done.err
    assert (dest / RUN / "in" / ".kaigen" / "model.json").is_file()
    assert (dest / RUN / "in" / "config.json").is_file()
    assert not (dest / RUN / "in" / ".kaigen" / "lock").exists()
