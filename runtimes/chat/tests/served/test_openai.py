"""OpenAI's own client against the server: what it asks for, it gets."""

from __future__ import annotations

import math

import openai
import pytest
from served.server import Server

HELLO = [{"role": "user", "content": "Hello"}]


def test_a_chat_is_answered(client: openai.OpenAI) -> None:
    answer = client.chat.completions.create(model="tiny", messages=HELLO, max_tokens=8, temperature=0)
    [choice] = answer.choices
    assert choice.message.role == "assistant"
    assert choice.message.content
    assert choice.finish_reason == "length"
    assert answer.object == "chat.completion"
    assert answer.model == "tiny"
    assert answer.usage is not None
    assert answer.usage.completion_tokens == 8
    assert answer.usage.total_tokens == answer.usage.prompt_tokens + 8


def test_a_stream_gives_the_same_text_in_parts(client: openai.OpenAI) -> None:
    whole = client.chat.completions.create(model="tiny", messages=HELLO, max_tokens=40, temperature=0)
    parts = list(
        client.chat.completions.create(
            model="tiny",
            messages=HELLO,
            max_tokens=40,
            temperature=0,
            stream=True,
            stream_options={"include_usage": True},
        )
    )
    assert parts[0].choices[0].delta.role == "assistant"
    assert len(parts) > 10
    text = "".join(part.choices[0].delta.content or "" for part in parts if part.choices)
    assert text == whole.choices[0].message.content
    reasons = [part.choices[0].finish_reason for part in parts if part.choices]
    assert [reason for reason in reasons if reason] == ["length"]
    assert reasons[-1] == "length"
    assert parts[-1].choices == []
    assert parts[-1].usage == whole.usage
    assert all(part.usage is None for part in parts[:-1])
    assert len({part.id for part in parts}) == 1


def test_a_stream_reports_usage_only_on_request(client: openai.OpenAI) -> None:
    parts = list(client.chat.completions.create(model="tiny", messages=HELLO, max_tokens=2, stream=True))
    assert all(part.choices and part.usage is None for part in parts)


def test_a_stop_text_ends_the_answer_and_is_no_part_of_it(client: openai.OpenAI) -> None:
    def ask(**more: object) -> openai.types.chat.chat_completion.Choice:
        answer = client.chat.completions.create(model="tiny", messages=HELLO, max_tokens=40, temperature=0, **more)
        return answer.choices[0]

    text = ask().message.content
    stop = text[10:14]
    assert text.index(stop) == 10
    choice = ask(stop=["never said", stop])
    assert choice.message.content == text[:10]
    assert choice.finish_reason == "stop"


def test_a_stop_text_is_never_seen_in_a_stream_either(client: openai.OpenAI) -> None:
    asked = {"model": "tiny", "prompt": "The fox", "max_tokens": 40, "temperature": 0}
    text = client.completions.create(**asked).choices[0].text
    stop = text[12:17]
    parts = list(client.completions.create(**asked, stop=stop, stream=True))
    assert "".join(part.choices[0].text for part in parts) == text[: text.index(stop)]
    assert parts[-1].choices[0].finish_reason == "stop"


def test_n_gives_as_many_answers_that_differ(client: openai.OpenAI) -> None:
    answer = client.chat.completions.create(model="tiny", messages=HELLO, max_tokens=16, n=3, temperature=1, seed=5)
    assert [choice.index for choice in answer.choices] == [0, 1, 2]
    assert len({choice.message.content for choice in answer.choices}) == 3
    assert answer.usage is not None
    assert answer.usage.completion_tokens == 3 * 16


def test_n_streams_are_distinguished_by_their_index(client: openai.OpenAI) -> None:
    asked = {"model": "tiny", "messages": HELLO, "max_tokens": 16, "n": 3, "seed": 5}
    whole = client.chat.completions.create(**asked)
    texts = {0: "", 1: "", 2: ""}
    for part in client.chat.completions.create(**asked, stream=True):
        texts[part.choices[0].index] += part.choices[0].delta.content or ""
    assert texts == {choice.index: choice.message.content for choice in whole.choices}


def test_the_same_seed_gives_the_same_answer_and_another_one_another(client: openai.OpenAI) -> None:
    def ask(seed: int) -> object:
        return client.completions.create(model="tiny", prompt="A", max_tokens=24, seed=seed).choices[0].text

    assert ask(1) == ask(1)
    assert ask(1) != ask(2)


@pytest.mark.parametrize("narrow", [{"top_p": 0.0001}, {"extra_body": {"top_k": 1}}])
def test_sampling_among_one_token_is_greedy(client: openai.OpenAI, narrow: dict[str, object]) -> None:
    asked = {"model": "tiny", "prompt": "A model", "max_tokens": 24}
    greedy = client.completions.create(**asked, temperature=0)
    assert client.completions.create(**asked, temperature=1.5, **narrow).choices[0].text == greedy.choices[0].text


def test_a_bias_forbids_and_forces_tokens(client: openai.OpenAI) -> None:
    asked = {"model": "tiny", "prompt": "A model", "max_tokens": 4, "temperature": 0, "logprobs": 0}
    asked["extra_body"] = {"ignore_eos": True}
    forced = client.completions.create(**asked, logit_bias={"70": 100})
    [token] = set(forced.choices[0].logprobs.tokens)
    again = client.completions.create(**asked, logit_bias={"70": -100})
    assert token not in again.choices[0].logprobs.tokens


def test_penalties_end_repetition(client: openai.OpenAI) -> None:
    asked = {"model": "tiny", "prompt": "A model", "max_tokens": 12, "temperature": 0, "logprobs": 0}
    asked |= {"logit_bias": {"70": 12}, "extra_body": {"min_tokens": 12}}
    plain = client.completions.create(**asked).choices[0].logprobs.tokens
    punished = client.completions.create(**asked, presence_penalty=2, frequency_penalty=2).choices[0].logprobs.tokens
    most = max(plain, key=plain.count)
    assert punished.count(most) < plain.count(most)


def test_logprobs_include_the_token_and_the_likeliest_tokens(client: openai.OpenAI) -> None:
    answer = client.chat.completions.create(
        model="tiny", messages=HELLO, max_tokens=6, temperature=0, logprobs=True, top_logprobs=3
    )
    logprobs = answer.choices[0].logprobs.content
    assert len(logprobs) == 6
    for one in logprobs:
        assert len(one.top_logprobs) == 3
        assert one.logprob == one.top_logprobs[0].logprob == max(other.logprob for other in one.top_logprobs)
        assert sum(math.exp(other.logprob) for other in one.top_logprobs) <= 1
        if one.bytes is not None:
            assert bytes(one.bytes).decode() == one.token


def test_completions_take_text_tokens_and_several_prompts(client: openai.OpenAI) -> None:
    def texts(prompt: object) -> list[str]:
        answer = client.completions.create(model="tiny", prompt=prompt, max_tokens=8, temperature=0)
        assert [choice.index for choice in answer.choices] == list(range(len(answer.choices)))
        return [choice.text for choice in answer.choices]

    one, other = texts([5, 6, 7]), texts("Git says")
    assert texts([[5, 6, 7]]) == one
    assert texts(["Git says", "Git says"]) == other * 2


def test_completions_end_after_16_tokens_by_default(client: openai.OpenAI) -> None:
    answer = client.completions.create(model="tiny", prompt="Git", extra_body={"ignore_eos": True})
    assert answer.usage is not None
    assert answer.usage.completion_tokens == 16


def test_max_completion_tokens_is_the_newer_name(client: openai.OpenAI) -> None:
    answer = client.chat.completions.create(model="tiny", messages=HELLO, max_completion_tokens=3, temperature=0)
    assert answer.usage is not None
    assert answer.usage.completion_tokens == 3


def test_without_a_limit_a_chat_continues_to_the_end_of_the_context(client: openai.OpenAI) -> None:
    answer = client.chat.completions.create(
        model="tiny", messages=HELLO, temperature=0, extra_body={"ignore_eos": True}
    )
    assert answer.usage is not None
    assert answer.usage.total_tokens == 512
    assert answer.choices[0].finish_reason == "length"


def test_an_end_of_text_token_ends_the_answer(client: openai.OpenAI) -> None:
    # The tokenizer's second token is </s>.
    answer = client.completions.create(model="tiny", prompt="Git", max_tokens=5, temperature=0, logit_bias={"1": 100})
    assert answer.choices[0].finish_reason == "stop"
    assert answer.choices[0].text == ""
    assert answer.usage is not None
    assert answer.usage.completion_tokens == 1
    held = client.completions.create(
        model="tiny", prompt="Git", max_tokens=5, temperature=0, logit_bias={"1": 100}, extra_body={"min_tokens": 3}
    )
    assert held.usage is not None
    assert held.usage.completion_tokens == 4


def test_content_may_come_in_parts(client: openai.OpenAI) -> None:
    def ask(content: object) -> object:
        messages = [{"role": "user", "content": content}]
        answer = client.chat.completions.create(model="tiny", messages=messages, max_tokens=8, temperature=0)
        return answer.choices[0].message.content

    assert ask([{"type": "text", "text": "Hel"}, {"type": "text", "text": "lo"}]) == ask("Hello")


def test_the_model_is_listed(client: openai.OpenAI, server: Server) -> None:
    [card] = client.models.list().data
    assert card.id == "tiny"
    assert client.models.retrieve("tiny").id == "tiny"
    with pytest.raises(openai.NotFoundError):
        client.models.retrieve("other")


@pytest.mark.parametrize(
    ("more", "field"),
    [
        ({"temperature": 3}, "temperature"),
        ({"top_p": 0}, "top_p"),
        ({"n": 0}, "n"),
        ({"n": 17}, "n"),
        ({"stop": [""]}, "stop"),
        ({"max_tokens": 0}, "max_tokens"),
        ({"tools": [{"type": "function", "function": {"name": "f"}}]}, "tools"),
        ({"response_format": {"type": "json_object"}}, "response_format"),
        ({"logprobs": None, "top_logprobs": 3}, "top_logprobs"),
        ({"messages": []}, "messages"),
        ({"messages": [{"role": "user", "content": [{"type": "image_url"}]}]}, "messages.0.content"),
        ({"messages": [{"role": "developer", "content": "x"}]}, "messages"),
        ({"extra_body": {"temprature": 1}}, "temprature"),
        ({"messages": [{"role": "user", "content": "word " * 2000}]}, "messages"),
        ({"max_tokens": 510}, "messages"),
        ({"logit_bias": {"99999": 1}}, None),
    ],
)
def test_what_cannot_be_honoured_is_refused_by_its_name(
    client: openai.OpenAI, more: dict[str, object], field: str | None
) -> None:
    with pytest.raises(openai.BadRequestError) as caught:
        client.chat.completions.create(**{"model": "tiny", "messages": HELLO, **more})
    assert caught.value.status_code == 400
    assert caught.value.type == "invalid_request_error"
    assert caught.value.param == field


def test_a_prompt_that_is_too_long_is_reported_with_numbers(client: openai.OpenAI) -> None:
    with pytest.raises(openai.BadRequestError, match=r"context of this model is 512 tokens: the prompt alone has \d+"):
        client.completions.create(model="tiny", prompt="word " * 2000)


def test_a_text_far_beyond_the_context_is_refused_by_its_length(client: openai.OpenAI) -> None:
    """The tokens of 2 MiB would take seconds and a GiB."""
    text = "word " * 400_000
    message = r"context of this model is 512 tokens: a text of \d{7} characters has more"
    with pytest.raises(openai.BadRequestError, match=message):
        client.completions.create(model="tiny", prompt=text)
    with pytest.raises(openai.BadRequestError, match=message):
        client.chat.completions.create(model="tiny", messages=[{"role": "user", "content": text}])


def test_another_model_is_not_found(client: openai.OpenAI) -> None:
    with pytest.raises(openai.NotFoundError, match="no model 'gpt-9'") as caught:
        client.chat.completions.create(model="gpt-9", messages=HELLO)
    assert caught.value.code == "model_not_found"


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b'"x"', b'{"prompt": NaN}', b"[" * 100_000])
def test_a_body_that_is_no_json_object_is_refused(server: Server, body: bytes) -> None:
    for path in ("/v1/chat/completions", "/v1/completions", "/chat", "/generate"):
        status, answer, _ = server.request(path, body)
        assert status == 400, answer
        assert b'"invalid_request_error"' in answer


HALF = b"\\ud800"


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/v1/chat/completions", b'{"HALF": 1, "messages": [{"role": "user", "content": "x"}]}'),
        ("/v1/chat/completions", b'{"messages": [{"role": "user", "content": "HALF"}]}'),
        (
            "/v1/chat/completions",
            b'{"messages": [{"role": "user", "content": "x"}], "chat_template_kwargs": {"a": "HALF"}}',
        ),
        ("/v1/completions", b'{"prompt": "HALF"}'),
        ("/v1/completions", b'{"prompt": "x", "model": "HALF"}'),
        ("/v1/completions", b'{"prompt": "x", "logit_bias": {"HALF": 1}}'),
        ("/chat", b'{"prompt": "HALF"}'),
        ("/chat", b'{"prompt": "x", "HALF": 1}'),
        ("/generate", b'{"prompts": ["HALF"]}'),
        ("/generate", b'{"prompts": ["\xed\xa0\x80"]}'),
    ],
)
def test_half_a_surrogate_pair_is_refused(server: Server, path: str, body: bytes) -> None:
    status, answer, _ = server.request(path, body.replace(b"HALF", HALF))
    assert status == 400, answer


def test_a_surrogate_pair_is_a_character(server: Server) -> None:
    status, answer, _ = server.request("/v1/completions", b'{"prompt": "\\ud83d\\ude00", "max_tokens": 1}')
    assert status == 200, answer


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/v1/completions", b'{"prompt": [' + b'"x",' * 100 + b'"x"]}'),
        ("/v1/completions", b'{"n": 16, "prompt": ["x", "x", "x", "x", "x", "x"]}'),
        ("/generate", b'{"prompts": [' + b'"x",' * 1_000_000 + b'"x"]}'),
    ],
)
def test_a_request_for_more_answers_than_there_is_a_place_for_is_refused(
    server: Server, path: str, body: bytes
) -> None:
    status, answer, headers = server.request(path, body)
    assert (status, b"at most 80" in answer, "retry-after" in headers) == (400, True, False)
