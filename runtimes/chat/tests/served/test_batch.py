"""Answers of a batch match transformers' own generate token by token, for any other rows in the batch."""

from __future__ import annotations

import random
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import openai
import pytest
import torch
from served import tiny
from served.server import Server
from transformers import (
    AutoModelForCausalLM,
    AutoTokenizer,
    FalconConfig,
    FalconForCausalLM,
    Gemma2Config,
    Gemma2ForCausalLM,
    GPT2Config,
    GPT2LMHeadModel,
    MistralConfig,
    MistralForCausalLM,
    Qwen2Config,
    Qwen2ForCausalLM,
)

TOKENS = 24


class Oracle:
    """transformers alone, one prompt after the other."""

    def __init__(self, folder: Path) -> None:
        self.words = AutoTokenizer.from_pretrained(folder)
        self._model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()

    def __call__(self, prompt: Sequence[int], tokens: int) -> list[int]:
        """The likeliest tokens after a prompt, whatever they are."""
        out = self._model.generate(
            torch.tensor([list(prompt)]),
            attention_mask=torch.ones((1, len(prompt)), dtype=torch.long),
            max_new_tokens=tokens,
            min_new_tokens=tokens,
            do_sample=False,
            pad_token_id=0,
        )
        return [int(token) for token in out[0, len(prompt) :]]

    def text(self, prompt: Sequence[int], tokens: int) -> str:
        """The same as text."""
        return str(
            self.words.decode(self(prompt, tokens), skip_special_tokens=True, clean_up_tokenization_spaces=False)
        )


def prompts(count: int, longest: int, seed: int = 0) -> list[list[int]]:
    """Prompts of all lengths."""
    chance = random.Random(seed)
    return [[chance.randrange(3, 300) for _ in range(chance.randint(1, longest))] for _ in range(count)]


def ask(client: openai.OpenAI, prompt: Sequence[int], tokens: int) -> str:
    answer = client.completions.create(
        model="tiny", prompt=list(prompt), max_tokens=tokens, temperature=0, extra_body={"min_tokens": tokens}
    )
    return str(answer.choices[0].text)


def ask_all(client: openai.OpenAI, asked: Sequence[tuple[Sequence[int], int]]) -> list[str]:
    """All at once, each from a thread of its own."""
    with ThreadPoolExecutor(len(asked)) as pool:
        return list(pool.map(lambda one: ask(client, *one), asked))


@pytest.fixture(scope="module")
def oracle(model: Path) -> Oracle:
    return Oracle(model)


def test_an_answer_alone_is_what_transformers_generates(client: openai.OpenAI, oracle: Oracle) -> None:
    for prompt in prompts(6, 100):
        assert ask(client, prompt, TOKENS) == oracle.text(prompt, TOKENS)


def test_each_token_is_what_transformers_generates(client: openai.OpenAI, oracle: Oracle) -> None:
    [prompt] = prompts(1, 50, seed=9)
    answer = client.completions.create(
        model="tiny", prompt=prompt, max_tokens=64, temperature=0, logprobs=0, extra_body={"ignore_eos": True}
    )
    expected = [oracle.words.decode([token], clean_up_tokenization_spaces=False) for token in oracle(prompt, 64)]
    assert answer.choices[0].logprobs.tokens == expected


def test_answers_in_a_batch_are_what_transformers_generates(
    client: openai.OpenAI, oracle: Oracle, server: Server
) -> None:
    chance = random.Random(3)
    asked = [(prompt, chance.randint(1, 60)) for prompt in prompts(48, 200, seed=3)]
    steps, rows = (server.metric(f"kaigen_chat_batch_rows_{what}") for what in ("count", "sum"))
    assert ask_all(client, asked) == [oracle.text(prompt, tokens) for prompt, tokens in asked]
    steps, rows = (
        server.metric(f"kaigen_chat_batch_rows_{what}") - before for what, before in (("count", steps), ("sum", rows))
    )
    assert rows / steps > 4  # they were in one batch indeed


def test_a_long_prompt_in_chunks_is_what_transformers_generates(model: Path, oracle: Oracle) -> None:
    asked = [(prompt, 20) for prompt in [*prompts(8, 20, seed=4), *([7, 8, 9] * 150, [9, 8] * 200)]]
    flags = ["--threads", "1", "--prefill-chunk", "16", "--max-num-seqs", "4"]
    with Server(model, *flags) as server, server.client() as client:
        assert ask_all(client, asked) == [oracle.text(prompt, tokens) for prompt, tokens in asked]


# Other attention, other positions: what is special about each is a window, a bias, a learnt position or one key head.
_SHAPE = {
    "vocab_size": 400,
    "hidden_size": 64,
    "intermediate_size": 96,
    "num_hidden_layers": 4,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 256,
    "initializer_range": 0.3,
}
_OTHERS = {
    "mistral with a window": lambda: MistralForCausalLM(MistralConfig(**_SHAPE, sliding_window=16)),
    "qwen2 with windows in some layers": lambda: Qwen2ForCausalLM(
        Qwen2Config(**_SHAPE, use_sliding_window=True, sliding_window=16, max_window_layers=2)
    ),
    "gemma2": lambda: Gemma2ForCausalLM(
        Gemma2Config(**_SHAPE, head_dim=16, sliding_window=16, query_pre_attn_scalar=16)
    ),
    "falcon with rotary positions": lambda: FalconForCausalLM(_falcon(alibi=False)),
    "falcon with alibi": lambda: FalconForCausalLM(_falcon(alibi=True)),
    "gpt2 with learnt positions": lambda: GPT2LMHeadModel(
        GPT2Config(vocab_size=400, n_embd=64, n_layer=2, n_head=4, n_positions=256, initializer_range=0.3)
    ),
}


def _falcon(alibi: bool) -> FalconConfig:
    return FalconConfig(
        vocab_size=400,
        hidden_size=64,
        num_hidden_layers=2,
        num_attention_heads=4,
        alibi=alibi,
        multi_query=True,
        new_decoder_architecture=False,
        max_position_embeddings=256,
        initializer_range=0.3,
    )


@pytest.fixture(params=list(_OTHERS))
def other(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    torch.manual_seed(1)
    made = _OTHERS[request.param]()
    made.generation_config.pad_token_id = made.config.pad_token_id = None
    made.generation_config.eos_token_id = made.config.eos_token_id = 1
    made.save_pretrained(tmp_path)
    tiny.tokenizer().save_pretrained(tmp_path)
    return tmp_path


def test_other_architectures_give_what_transformers_generates(other: Path) -> None:
    oracle = Oracle(other)
    asked = [(prompt, 30) for prompt in prompts(10, 60, seed=5)]
    flags = ["--threads", "1", "--max-num-seqs", "6", "--served-model-name", "tiny"]
    with Server(other, *flags) as server, server.client() as client:
        assert ask_all(client, asked) == [oracle.text(prompt, tokens) for prompt, tokens in asked]
