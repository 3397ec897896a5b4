"""Clients that were written for KAITO's servers find what they know: here, and in front of vLLM's routes."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import openai
import pytest
from served.server import Server

GREEDY = {"do_sample": False, "max_new_tokens": 12}
IN_FRONT = (str(Path(__file__).parent / "in_front.py"),)


@pytest.fixture(scope="module", params=[("-m", "kaigen_chat"), IN_FRONT], ids=["own", "in-front-of-vllm"])
def server(model: Path, request: pytest.FixtureRequest) -> Iterator[Server]:
    """A server with its defaults."""
    with Server(model, "--threads", "1", program=request.param) as running:
        yield running


@pytest.fixture(scope="module")
def client(server: Server) -> Iterator[openai.OpenAI]:
    """OpenAI's client of it."""
    with server.client() as made:
        yield made


def post(server: Server, path: str, body: object) -> dict[str, object]:
    status, answer, _ = server.request(path, json.dumps(body).encode())
    assert status == 200, answer
    found: dict[str, object] = json.loads(answer)
    return found


def completion(client: openai.OpenAI, prompt: str, tokens: int) -> object:
    return client.completions.create(model="tiny", prompt=prompt, max_tokens=tokens, temperature=0).choices[0].text


@pytest.mark.promise("KAITO", "`curl -X POST http://CLUSTERIP/chat` is answered by falcon-7b")
def test_the_quick_start_of_falcon_is_answered(server: Server) -> None:
    answer = post(server, "/chat", {"prompt": "What is kubernetes?"})
    assert list(answer) == ["Result"]
    assert str(answer["Result"]).startswith("What is kubernetes?")
    assert len(str(answer["Result"])) > len("What is kubernetes?")


def test_max_length_counts_the_prompt(server: Server, client: openai.OpenAI) -> None:
    prompt = "What is kubernetes?"
    used = client.completions.create(model="tiny", prompt=prompt, max_tokens=1).usage.prompt_tokens
    answer = post(server, "/chat", {"prompt": prompt, "max_length": used + 9, "do_sample": False})
    assert answer["Result"] == prompt + str(completion(client, prompt, 9))


def test_all_parameters_of_falcon_with_their_defaults_are_taken(server: Server) -> None:
    post(
        server,
        "/chat",
        {
            "prompt": "Your prompt here",
            "max_length": 30,
            "min_length": 0,
            "do_sample": True,
            "early_stopping": False,
            "num_beams": 1,
            "num_beam_groups": 1,
            "diversity_penalty": 0.0,
            "temperature": 1.0,
            "top_k": 10,
            "top_p": 1,
            "typical_p": 1,
            "repetition_penalty": 1,
            "length_penalty": 1,
            "no_repeat_ngram_size": 0,
            "encoder_no_repeat_ngram_size": 0,
            "bad_words_ids": None,
            "num_return_sequences": 1,
            "output_scores": False,
            "return_dict_in_generate": False,
            "forced_bos_token_id": None,
            "forced_eos_token_id": None,
            "remove_invalid_values": None,
        },
    )


def test_generate_kwargs_may_be_nested_and_the_prompt_left_out(server: Server, client: openai.OpenAI) -> None:
    nested = {"prompt": "Git says", "return_full_text": False, "generate_kwargs": GREEDY}
    expected = completion(client, "Git says", 12)
    assert post(server, "/chat", nested)["Result"] == expected
    assert post(server, "/chat", nested | {"return_full_text": True})["Result"] == f"Git says{expected}"


def test_messages_are_answered_with_the_chat_template(server: Server, client: openai.OpenAI) -> None:
    messages = [{"role": "user", "content": "Hello"}]
    expected = client.chat.completions.create(model="tiny", messages=messages, max_tokens=12, temperature=0)
    answer = post(server, "/chat", {"messages": messages, "generate_kwargs": GREEDY})
    assert answer == {"Result": expected.choices[0].message.content}


def test_sequences_are_returned_in_order(server: Server) -> None:
    answer = post(server, "/chat", {"prompt": "Git", "num_return_sequences": 3, "max_length": 12})
    assert str(answer["Result"]).count("Git") >= 3


@pytest.mark.promise("KAITO", "`/chat` of the llama 2 models")
def test_llama_chats_are_answered_as_conversations(server: Server, client: openai.OpenAI) -> None:
    dialogs = [
        [{"role": "user", "content": "Hello"}],
        [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Who are you?"}],
    ]
    expected = [
        client.chat.completions.create(model="tiny", messages=dialog, max_tokens=9, temperature=0) for dialog in dialogs
    ]
    answer = post(
        server, "/chat", {"input_data": {"input_string": dialogs}, "parameters": {"max_gen_len": 9, "temperature": 0}}
    )
    assert answer == {
        "results": [
            [
                *({"role": message["role"].capitalize(), "content": message["content"]} for message in dialog),
                {"role": "Assistant", "content": one.choices[0].message.content},
            ]
            for dialog, one in zip(dialogs, expected, strict=True)
        ]
    }


def test_llama_texts_are_returned_with_their_prompts(server: Server, client: openai.OpenAI) -> None:
    prompts = ["The dog", "Git says"]
    answer = post(server, "/generate", {"prompts": prompts, "parameters": {"max_gen_len": 9, "temperature": 0}})
    assert answer == {"results": [{"prompt": prompt, "response": completion(client, prompt, 9)} for prompt in prompts]}


def test_llama_parameters_have_their_old_defaults(server: Server) -> None:
    answer = post(server, "/generate", {"prompts": ["A"], "parameters": {"max_gen_len": 5}})
    assert len(answer["results"]) == 1  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("path", "body", "param"),
    [
        ("/chat", {}, "prompt"),
        ("/chat", {"prompt": ""}, "prompt"),
        ("/chat", {"prompt": "A", "num_beams": 4}, "num_beams"),
        ("/chat", {"prompt": "A", "generate_kwargs": {"penalty_alpha": 0.6}}, "penalty_alpha"),
        ("/chat", {"prompt": "A", "generate_kwargs": []}, "generate_kwargs"),
        ("/chat", {"input_data": {}}, "input_data.input_string"),
        ("/chat", {"input_data": {"input_string": [[]]}}, "input_data.input_string.0"),
        ("/chat", {"prompt": "word " * 3000}, "prompt"),
        ("/generate", {"prompts": []}, "prompts"),
        ("/generate", {"prompts": ["A"], "parameters": {"top_p": 7}}, "parameters.top_p"),
    ],
)
def test_what_cannot_be_honoured_is_refused_by_its_name(server: Server, path: str, body: object, param: str) -> None:
    status, answer, _ = server.request(path, json.dumps(body).encode())
    assert status == 400, answer
    assert json.loads(answer)["error"]["param"] == param


@pytest.mark.promise("KAITO", "`/chat` of presets that need several GPUs")
def test_a_key_is_required_in_front_of_vllm_as_on_other_routes(model: Path) -> None:
    with Server(model, "--threads", "1", program=IN_FRONT, KAIGEN_CHAT_API_KEY="secret") as server:
        for path in ("/chat", "/generate", "/v1/completions"):
            assert server.request(path, b'{"prompt": "Git", "num_beams": 4}')[0] == 401
        status, answer, _ = server.request("/chat", b'{"prompt": "Git"}', Authorization="Bearer secret")
        assert (status, list(json.loads(answer))) == (200, ["Result"])


def test_no_client_can_shut_the_server_down(server: Server) -> None:
    assert server.request("/shutdown", b"{}")[0] == 404
