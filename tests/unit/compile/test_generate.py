"""The workload `generate` of a Job: the container, its problems, and the program, killed at any point."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kaigen.catalog.images import default_images
from kaigen.kinds.block import read_block
from kaigen.kinds.job import Job
from kaigen.programs import generate
from tests.unit.compile import generating
from tests.unit.compile.generating import BAD, StandIn, finish, found, stand_in, start
from tests.unit.compile.specs import context, model, objects, pod, problem_paths

SHARED = {"volume": {"size": "1Gi", "accessModes": ["ReadWriteMany"]}}
MODELS = {"weights": model(store=SHARED)}


def generator(block: dict[str, Any] | None = None, **spec: Any) -> Job:
    """Return a Job with the workload `generate`."""
    whole = {
        "workload": "generate",
        "model": "weights",
        "output": SHARED,
        "generate": {"input": "/output/in.jsonl", **(block or {})},
        **spec,
    }
    return read_block(Job, {"metadata": {"name": "j"}, "spec": whole})


def container(block: Job) -> Any:
    return pod(block, context(models=MODELS))["containers"][0]


def problems(block: Job) -> set[str]:
    return {path for _, path in problem_paths(block, context(models=MODELS))}


def test_the_program_starts_vllm_for_the_loopback_device_only() -> None:
    made = container(generator())
    assert made["image"] == default_images()["vllmCpu"]
    assert made["command"] == ["python3", "/etc/kaigen-programs/generate.py"]
    files = ["/etc/kaigen/params.json", "/output/in.jsonl", "/output", "weights", "/model", "--"]
    engine = ["vllm", "serve", "/model", "--served-model-name=weights", "--host=127.0.0.1", "--port=8000"]
    assert made["args"] == [*files, *engine, "--disable-uvicorn-access-log"]
    assert {"name": "KAIGEN_TABLES", "value": "/etc/kaigen-programs/kaigen_tables.py"} in made["env"]
    assert {"name": "VLLM_CPU_KVCACHE_SPACE", "value": "4"} in made["env"]
    # vLLM for CPUs ends without 160 MiB of it; container runtimes give 64 MiB.
    assert {"name": "shm", "mountPath": "/dev/shm"} in made["volumeMounts"]


def test_settings_of_the_engine_are_flags() -> None:
    block = {"task": "embed", "contextLength": 512, "engineArgs": {"max-num-seqs": 8, "enforce-eager": True}}
    made = container(generator(block, resources={"gpus": 2}))
    assert made["image"] == default_images()["vllm"]
    flags = ["--max-model-len=512", "--runner=pooling", "--disable-uvicorn-access-log", "--tensor-parallel-size=2"]
    assert made["args"][-6:] == [*flags, "--enforce-eager", "--max-num-seqs=8"]


def test_requests_of_openai_choose_what_vllm_is_started_for() -> None:
    assert "--runner=pooling" in container(generator({"format": "openai", "task": "embed"}))["args"]
    assert "--runner=pooling" not in container(generator({"format": "openai"}))["args"]


def test_openai_batch_files_are_json_lines() -> None:
    found = problem_paths(generator({"format": "openai", "results": "parquet"}), context(models=MODELS))
    assert ("KG0468", "spec.generate.results") in found


@pytest.mark.parametrize("flag", ["disable-uvicorn-access-log", "no-disable-uvicorn-access-log"])
def test_the_log_of_requests_can_be_chosen(flag: str) -> None:
    args = container(generator({"engineArgs": {flag: True}}))["args"]
    assert [each for each in args if "access-log" in each] == [f"--{flag}"]


def test_shards_fail_alone_until_too_many_have_failed() -> None:
    made = objects(generator(shards=4, maxFailedShards=1), context(models=MODELS))
    (job,) = (each for name, each in made.items() if name.startswith("Job"))
    assert (job["spec"]["completionMode"], job["spec"]["maxFailedIndexes"]) == ("Indexed", 1)
    rule = job["spec"]["podFailurePolicy"]["rules"][-1]
    codes = [generate.WRONG_SETTINGS, generate.WRONG_INPUT, generate.TOO_MANY]
    assert (rule["action"], rule["onExitCodes"]["values"]) == ("FailIndex", codes)


@pytest.mark.parametrize(
    ("block", "spec", "path"),
    [
        ({}, {"model": None}, "spec.workload"),
        ({"input": None}, {}, "spec.workload"),
        ({}, {"output": None}, "spec.workload"),
        ({}, {"nodes": 2}, "spec.nodes"),
        ({}, {"maxFailedShards": 1}, "spec.maxFailedShards"),
        ({"format": "openai", "prompt": "x"}, {}, "spec.generate.prompt"),
        ({"task": "embed", "system": "x"}, {}, "spec.generate.system"),
        ({"parameters": {"model": "x"}}, {}, "spec.generate.parameters.model"),
        ({"engineArgs": {"port": 1}}, {}, "spec.generate.engineArgs.port"),
        ({"engineArgs": {"no-such-flag": 1}}, {}, "spec.generate.engineArgs.no-such-flag"),
    ],
)
def test_contradictions_are_reported(block: dict[str, Any], spec: dict[str, Any], path: str) -> None:
    assert path in problems(generator(block, **spec))


@pytest.fixture(scope="module")
def server() -> Iterator[StandIn]:
    """The stand-in for vLLM."""
    with stand_in() as serving:
        yield serving


def write_lines(folder: Path, texts: list[str]) -> None:
    (folder / "in").mkdir(parents=True)
    (folder / "in" / "a.jsonl").write_text("".join(text + "\n" for text in texts), "utf-8")


def rows(count: int, bad: set[int]) -> list[str]:
    """Return lines, of which some are not JSON."""
    return ["{" if number in bad else json.dumps({"prompt": f"line {number}"}) for number in range(1, count + 1)]


class Killed(BaseException):
    """The pod is killed."""


def killing(write: Callable[..., None], kills: list[tuple[int, bool]]) -> Callable[..., None]:
    """Return a function that writes, and is killed before or after it does the first of `kills`."""

    def wrapped(path: str, pieces: Any) -> None:
        if kills and kills[0][0] == 0:
            _, after = kills.pop(0)
            if after:
                write(path, pieces)
            raise Killed
        if kills:
            kills[0] = (kills[0][0] - 1, kills[0][1])
        write(path, pieces)

    return wrapped


@settings(max_examples=25)
@given(
    count=st.integers(2, 40),
    shards=st.integers(1, 4),
    sizes=st.lists(st.integers(1, 9), min_size=1, max_size=5),
    bad=st.sets(st.integers(1, 40), max_size=3),
    kills=st.lists(st.tuples(st.integers(0, 4), st.booleans()), max_size=5),
)
def test_every_line_is_answered_once_and_in_order_after_any_kills(
    server: StandIn, count: int, shards: int, sizes: list[int], bad: set[int], kills: list[tuple[int, bool]]
) -> None:
    bad = {number for number in bad if number <= count} if count > 3 else set()
    original, before = generate.write, dict(os.environ)
    with TemporaryDirectory() as name, pytest.MonkeyPatch.context() as patch:
        folder = Path(name)
        write_lines(folder, rows(count, bad))
        (folder / "out").mkdir()
        patch.setattr(generate, "write", killing(original, [*kills]))
        patch.setenv("KAIGEN_ENGINE_PORT", str(server.server_port))
        patch.setenv("SHARDS", str(shards))
        waiting = [*range(shards)]
        attempt = 0
        while waiting:
            shard = waiting.pop(0)
            patch.setenv("JOB_COMPLETION_INDEX", str(shard))
            params = generating.settings(checkpointLines=sizes[attempt % len(sizes)])
            attempt += 1
            try:
                generate.run(params, str(folder / "in"), str(folder / "out"), "tiny", "/none", ())
            except Killed:
                waiting.append(shard)
        answers, failures = found(folder, "results.jsonl"), found(folder, "failures.jsonl")
        assert [answer["line"] for answer in answers] == [n for n in range(1, count + 1) if n not in bad]
        assert all(answer["output"] == f"line {answer['line']}" for answer in answers)
        assert [failure["line"] for failure in failures] == sorted(bad)
        assert sorted(path.name for path in (folder / "out").iterdir()) == [
            *("failures.jsonl", "results.json", "results.jsonl"),
        ]
    assert dict(os.environ) == before


def test_a_killed_pod_goes_on_after_the_last_part(tmp_path: Path) -> None:
    write_lines(tmp_path, rows(400, {250}))
    with stand_in(most=180) as server:
        first = start(tmp_path, server, 0, 2, checkpointLines=20)
        assert server.awaited.wait(30)
        first.send_signal(signal.SIGKILL)
        first.communicate()
        for shard in (1, 0):
            code, message = finish(start(tmp_path, server, shard, 2, checkpointLines=20))
            assert code == 0, message
        assert [answer["line"] for answer in found(tmp_path, "results.jsonl")] == [*range(1, 250), *range(251, 401)]
        (failure,) = found(tmp_path, "failures.jsonl")
        assert (failure["line"], failure["file"]) == (250, "a.jsonl")
        assert "not JSON" in failure["reason"]
        # What was asked again is at most a part and the window of requests.
        assert server.asked.total() - 399 <= 20 + 2 * 4 + 20
        assert message["results"] == 399


@pytest.mark.parametrize(
    ("changed", "row", "expected"),
    [
        ({"prompt": "{{{a.b}}} {n}"}, {"a": {"b": "ü"}, "n": 2}, {"output": "{ü} 2", "finishReason": "stop"}),
        ({}, {"messages": [{"role": "user", "content": "hi"}]}, {"output": "hi", "finishReason": "stop"}),
        ({"task": "complete"}, {"text": "once"}, {"output": "once", "finishReason": "stop"}),
        ({"task": "embed"}, {"text": "abc"}, {"output": [0.5, 3]}),
        ({"task": "classify"}, {"text": "abc"}, {"output": "long", "probabilities": [0.1, 0.9]}),
    ],
)
def test_each_task_has_its_result(
    tmp_path: Path, server: StandIn, changed: dict[str, Any], row: dict[str, Any], expected: dict[str, Any]
) -> None:
    write_lines(tmp_path, [json.dumps(row)])
    assert finish(start(tmp_path, server, 0, 1, **changed))[0] == 0
    (answer,) = found(tmp_path, "results.jsonl")
    assert answer["row"] == row
    assert answer.items() >= expected.items()


def test_openai_requests_become_openai_answers(tmp_path: Path, server: StandIn) -> None:
    def request(name: str, text: str) -> str:
        body = {"model": "gpt", "messages": [{"role": "user", "content": text}]}
        return json.dumps({"custom_id": name, "method": "POST", "url": "/v1/chat/completions", "body": body})

    write_lines(tmp_path, [request("a", "one"), request("b", BAD), '{"custom_id": "c", "url": "/v1/other"}'])
    assert finish(start(tmp_path, server, 0, 1, format="openai"))[0] == 0
    (answer,) = found(tmp_path, "results.jsonl")
    assert (answer["custom_id"], answer["error"], answer["response"]["status_code"]) == ("a", None, 200)
    assert answer["response"]["body"]["choices"][0]["message"]["content"] == "one"
    refused, other = found(tmp_path, "failures.jsonl")
    assert (refused["custom_id"], refused["reason"][:8]) == ("b", "HTTP 400")
    assert other["custom_id"] == "c"


def test_failures_have_reasons_and_a_limit(tmp_path: Path, server: StandIn) -> None:
    texts = ["[1]", '{"other": 1}', "", '{"prompt": NaN}', '{"n": 1e999, "prompt": "x"}', '{"prompt": "fine"}']
    write_lines(tmp_path, texts)
    code, message = finish(start(tmp_path, server, 0, 1, maxFailures=4))
    assert code == generate.TOO_MANY
    assert "5 lines failed, more than maxFailures (4)" in message["error"]
    assert finish(start(tmp_path, server, 0, 1, maxFailures=5))[0] == 0
    assert [failure["line"] for failure in found(tmp_path, "failures.jsonl")] == [1, 2, 3, 4, 5]
    assert [answer["output"] for answer in found(tmp_path, "results.jsonl")] == ["fine"]


def test_a_run_without_lines_or_answers_fails(tmp_path: Path, server: StandIn) -> None:
    (tmp_path / "in").mkdir()
    assert finish(start(tmp_path, server, 0, 1))[0] == generate.WRONG_INPUT
    (tmp_path / "in" / "a.jsonl").write_text("{\n")
    code, message = finish(start(tmp_path, server, 0, 1))
    assert (code, message["error"]) == (generate.TOO_MANY, "every line failed; failures.jsonl has the reasons")


def test_changed_settings_start_again(tmp_path: Path, server: StandIn) -> None:
    write_lines(tmp_path, rows(3, set()))
    for prompt in ("a {prompt}", "b {prompt}"):
        assert finish(start(tmp_path, server, 0, 1, prompt=prompt))[0] == 0
        assert found(tmp_path, "results.jsonl")[0]["output"] == prompt.format(prompt="line 1")
    asked = server.asked.total()
    assert finish(start(tmp_path, server, 0, 1, prompt="b {prompt}"))[1]["results"] == 3
    assert server.asked.total() == asked
