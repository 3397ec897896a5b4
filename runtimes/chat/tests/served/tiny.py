"""Makes a small language model with random weights, and a tokenizer with a chat template, as files."""

from __future__ import annotations

from pathlib import Path

import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast
from transformers.utils import logging

logging.disable_progress_bar()

BEGIN, END, TURN = "<s>", "</s>", "<|turn|>"

TEMPLATE = (
    "{{ bos_token }}{% for message in messages %}"
    "{% if message.role not in ['system', 'user', 'assistant'] %}"
    "{{ raise_exception('unknown role ' + message.role) }}{% endif %}"
    "<|turn|>{{ message.role }}\n{{ message.content }}\n{% endfor %}"
    "{% if add_generation_prompt %}<|turn|>assistant\n{% endif %}"
)

_TEXT = [
    "The quick brown fox jumps over the lazy dog, and the dog does not mind at all.",
    "A model reads tokens and writes tokens, one after the other, until it has said enough.",
    "Kubernetes keeps what Git says; kaigen writes what Git should say.",
    "Zwölf Boxkämpfer jagen Viktor quer über den großen Sylter Deich. 日本語のテキスト 🦊",
]


def tokenizer(words: int = 400) -> PreTrainedTokenizerFast:
    """A byte-level tokenizer: any text can be written with it, and any token may end inside a character."""
    made = Tokenizer(models.BPE())
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=words,
        special_tokens=[BEGIN, END, TURN],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    made.train_from_iterator(_TEXT, trainer)
    found = PreTrainedTokenizerFast(tokenizer_object=made, bos_token=BEGIN, eos_token=END)
    found.chat_template = TEMPLATE
    return found


def make(folder: Path, *, hidden: int = 64, layers: int = 2, context: int = 512, seed: int = 1, **more: object) -> Path:
    """Writes a model of Llama's architecture.

    Args:
        folder: where to.
        hidden: width.
        layers: how many.
        context: most tokens.
        seed: of the weights.
        more: further fields of its configuration.
    """
    torch.manual_seed(seed)
    words = tokenizer()
    config = LlamaConfig(
        **{
            "vocab_size": len(words),
            "hidden_size": hidden,
            "intermediate_size": hidden * 3,
            "num_hidden_layers": layers,
            "num_attention_heads": 4,
            "num_key_value_heads": 2,
            "max_position_embeddings": context,
            "bos_token_id": words.bos_token_id,
            "eos_token_id": words.eos_token_id,
            "pad_token_id": None,
            # Far from equal: so the likeliest token depends on the ones before, and is not a near tie.
            "initializer_range": 0.3,
            **more,
        }
    )
    LlamaForCausalLM(config).save_pretrained(folder)
    words.save_pretrained(folder)
    return folder
