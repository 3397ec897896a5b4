"""What bodies mean, and the queue they wait in."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable
from pathlib import Path

import pytest
from kaigen_chat import kaito
from kaigen_chat.errors import Refused
from kaigen_chat.job import Job, Waiting
from kaigen_chat.machine import cpus
from kaigen_chat.sampling import Defaults, Sampling
from kaigen_chat.schemas import parse_chat, parse_completion
from pydantic import JsonValue

HELLO: dict[str, JsonValue] = {"messages": [{"role": "user", "content": "Hello"}]}
USUAL = Defaults(temperature=0.6, top_p=0.9, top_k=20, repetition_penalty=1.1)


def test_what_a_body_does_not_say_is_the_models_default() -> None:
    sampling = parse_chat(HELLO).sampling(USUAL, 10, None)
    assert sampling == Sampling(10, temperature=0.6, top_p=0.9, top_k=20, repetition_penalty=1.1)
    said = parse_chat(HELLO | {"temperature": 0, "top_p": 1, "top_k": -1, "repetition_penalty": 1})
    assert said.sampling(USUAL, 10, None) == Sampling(10, temperature=0)
    assert said.sampling(USUAL, 10, None).greedy


def test_null_is_the_same_as_nothing() -> None:
    names = ["n", "stream", "stop", "temperature", "presence_penalty", "logprobs", "tools", "seed", "min_tokens"]
    nothing: dict[str, JsonValue] = dict.fromkeys(names)
    assert parse_chat(HELLO | nothing) == parse_chat(HELLO)


def test_fields_about_the_account_are_taken_and_ignored() -> None:
    more: dict[str, JsonValue] = {
        "user": "me",
        "metadata": {"a": "b"},
        "store": False,
        "tools": [],
        "response_format": {"type": "text"},
    }
    assert parse_chat(HELLO | more) == parse_chat(HELLO)


@pytest.mark.parametrize(
    ("more", "param"),
    [
        ({"tools": [{}]}, "tools"),
        ({"response_format": {"type": "json_object"}}, "response_format"),
        ({"temprature": 1}, "temprature"),
        ({"temperature": "hot"}, "temperature"),
        ({"temperature": 2.1}, "temperature"),
        ({"stop": ["a"] * 17}, "stop"),
        ({"stop_token_ids": [1] * 5000}, "stop_token_ids"),
        ({"logit_bias": {str(token): 1 for token in range(5000)}}, "logit_bias"),
        ({"messages": [{"role": "user", "content": "x"}] * 5000}, "messages"),
        ({"messages": [{"role": "tool", "content": "x"}]}, "messages.0.role"),
        ({"messages": [{"role": "user", "content": "x", "tool_calls": []}]}, "messages.0.tool_calls"),
        ({"stream_options": {"include_usage": True, "x": 1}}, "stream_options.x"),
        ({"logit_bias": {"a": 1}}, "logit_bias.a"),
    ],
)
def test_what_is_not_honoured_is_refused_by_its_name(more: dict[str, JsonValue], param: str) -> None:
    with pytest.raises(Refused) as caught:
        parse_chat(HELLO | more)
    assert (caught.value.status, caught.value.param) == (400, param)
    assert "\n" not in str(caught.value)


MANY: JsonValue = [{}] * 1_000_000
KEYS: JsonValue = {str(key): 1 for key in range(1_000_000)}


@pytest.mark.parametrize(
    ("body", "param"),
    [
        ({"messages": MANY}, "messages.0.role"),
        ({"messages": [KEYS]}, "messages.0"),
        ({"messages": [{"role": "user", "content": MANY}]}, "messages.0.content"),
        (HELLO | {"stop": MANY}, "stop"),
        (HELLO | {"stop_token_ids": MANY}, "stop_token_ids.0"),
        (HELLO | {"logit_bias": KEYS}, "logit_bias"),
        (HELLO | {"stream_options": KEYS}, "stream_options"),
    ],
)
def test_a_body_with_a_million_errors_is_refused_for_the_first(body: dict[str, JsonValue], param: str) -> None:
    tracemalloc.start()
    with pytest.raises(Refused) as caught:
        parse_chat(body)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert (caught.value.status, str(caught.value.param).startswith(param)) == (400, True)
    assert peak < 1 << 20


@pytest.mark.parametrize(
    ("parse", "body", "param"),
    [
        (parse_completion, {"prompt": ["x"] * 3}, "prompt"),
        (parse_completion, {"prompt": [[1]] * 3}, "prompt"),
        (parse_completion, {"prompt": MANY}, "prompt"),
        (kaito.parse_generate, {"prompts": ["x"] * 3}, "prompts"),
        (kaito.parse_generate, {"prompts": MANY}, "prompts"),
        (kaito.parse_chat, {"input_data": {"input_string": [[HELLO]] * 3}}, "input_data.input_string"),
        (kaito.parse_chat, {"input_data": {"input_string": MANY}}, "input_data.input_string"),
    ],
)
def test_more_prompts_than_the_server_takes_are_refused(
    parse: Callable[[JsonValue, int], object], body: JsonValue, param: str
) -> None:
    with pytest.raises(Refused, match="at most 2 prompts") as caught:
        parse(body, 2)
    assert (caught.value.status, caught.value.param) == (400, param)


def test_a_prompt_may_have_more_tokens_than_there_may_be_prompts() -> None:
    assert parse_completion({"prompt": [1] * 5000}, 2).prompts == [[1] * 5000]


def test_prompts_come_in_four_shapes() -> None:
    shapes: list[JsonValue] = ["a", ["a", "b"], [1, 2], [[1], [2]]]
    assert [parse_completion({"prompt": prompt}, 2).prompts for prompt in shapes] == [
        ["a"],
        ["a", "b"],
        [[1, 2]],
        [[1], [2]],
    ]


def test_kaito_counts_the_prompt_in_max_length() -> None:
    asked = kaito.parse_chat({"prompt": "x", "max_length": 50, "min_length": 20}, 2)
    assert isinstance(asked, kaito.Text)
    sampling = kaito.sampling(asked.generate, prompt=12, context=512)
    assert (sampling.max_tokens, sampling.min_tokens) == (38, 8)
    assert kaito.sampling(asked.generate, prompt=60, context=512).max_tokens == 1
    assert kaito.sampling(asked.generate, prompt=500, context=512).max_tokens == 1
    assert kaito.sampling(asked.generate, prompt=40, context=45).max_tokens == 5


def test_kaitos_defaults_are_what_they_were() -> None:
    asked = kaito.parse_chat({"prompt": "x"}, 2)
    assert isinstance(asked, kaito.Text)
    assert asked.full
    assert kaito.sampling(asked.generate, 10, 512) == Sampling(190, temperature=1, top_k=10, top_p=1)
    texts = kaito.parse_generate({"prompts": ["x"]}, 2)
    assert kaito.llama_sampling(texts.parameters, 10, 512) == Sampling(502, temperature=0.6, top_p=0.9)


def job(choices: int = 1) -> Job:
    return Job([1, 2], Sampling(5), choices)


def test_the_queue_is_bounded_by_rows_in_and_waiting() -> None:
    waiting = Waiting(rows=2, queue=3)
    waiting.push([job(2), job(2)])
    with pytest.raises(Refused) as caught:
        waiting.push([job(2)])
    assert caught.value.status == 429
    assert caught.value.headers() == {"Retry-After": "2"}
    waiting.push([job()])
    assert waiting.rows == 5
    assert waiting.pop().choices == 2
    assert waiting.rows == 3
    with pytest.raises(Refused):
        waiting.push([job()])
    waiting.done(2, 3.0)
    waiting.push([job(2)])


def test_several_prompts_are_taken_together_or_not_at_all() -> None:
    waiting = Waiting(rows=1, queue=1)
    with pytest.raises(Refused):
        waiting.push([job(), job(), job()])
    assert waiting.rows == 0
    waiting.push([job(), job()])


def test_who_does_not_wait_any_more_leaves_the_queue() -> None:
    waiting = Waiting(rows=1, queue=9)
    jobs = [job(), job(2), job()]
    waiting.push(jobs)
    jobs[1].cancelled = True
    assert waiting.drop_cancelled() == [jobs[1]]
    assert waiting.rows == 2
    assert [waiting.pop(), waiting.pop()] == [jobs[0], jobs[2]]
    assert waiting.head() is None


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({"cpu.max": "50000 100000"}, 1),
        ({"cpu.max": "max 100000"}, None),
        ({"cpu/cpu.cfs_quota_us": "100000", "cpu/cpu.cfs_period_us": "100000"}, 1),
        ({"cpu/cpu.cfs_quota_us": "-1", "cpu/cpu.cfs_period_us": "100000"}, None),
        ({}, None),
    ],
)
def test_the_cpu_limit_of_a_container_is_read(tmp_path: Path, files: dict[str, str], expected: int | None) -> None:
    all_of_them = cpus(tmp_path / "none")
    for name, text in files.items():
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text + "\n")
    assert cpus(tmp_path) == (expected or all_of_them)
