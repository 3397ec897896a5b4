"""The model and its tokenizer, loaded from a local folder, behind the few calls that the server makes."""

from __future__ import annotations

import inspect
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path

import torch
from jinja2 import TemplateError
from pydantic import JsonValue
from transformers import AutoConfig, AutoModelForCausalLM, AutoTokenizer, GenerationConfig
from transformers.utils import logging

from kaigen_chat.cache import RowsCache
from kaigen_chat.errors import BadModel, BadSettings, bad_request
from kaigen_chat.machine import cpus
from kaigen_chat.sampling import Defaults
from kaigen_chat.settings import Settings, flag

# Kinds of layers whose state is keys and values alone, and so can be cut into rows.
_KINDS = {"full_attention", "sliding_attention"}
_SHORT = 64 << 10
"""Characters of a text whose tokens are always counted."""


@dataclass(frozen=True, slots=True)
class Facts:
    """Return the line about the model that is logged at startup.

    Attributes:
        parameters: how many numbers the weights are.
        weight_bytes: bytes they take in memory.
        cache_bytes: bytes that one token takes in the KV cache; None when the configuration does not contain it.
    """

    parameters: int
    weight_bytes: int
    cache_bytes: int | None


class LanguageModel:
    """A decoder and its tokenizer. `forward` is for one thread; the other methods may be called at the same time."""

    def __init__(self, settings: Settings) -> None:
        """Load the checked folder, and nothing outside it.

        Raises:
            BadModel: it is not one that can be served.
            BadSettings: a GPU is asked for and there is none, or the context is longer than the model's.
        """
        logging.set_verbosity_error()
        logging.disable_progress_bar()
        self.device = _device(settings.device)
        if self.device.type == "cpu":
            torch.set_num_threads(settings.threads or cpus())
        local = {"local_files_only": True, "trust_remote_code": settings.trust_remote_code}
        try:
            config = AutoConfig.from_pretrained(settings.model, **local)
            _check_kind(config)
            self._tokenizer = AutoTokenizer.from_pretrained(settings.model, **local)
            self._model = AutoModelForCausalLM.from_pretrained(
                settings.model, config=config, dtype=_dtype(settings.dtype, self.device), use_safetensors=True, **local
            )
        except (OSError, ValueError, KeyError, ImportError, AttributeError, RuntimeError) as error:
            raise BadModel(f"cannot load {settings.model}: {' '.join(str(error).split())}") from error
        if settings.merge_adapters:
            # peft takes a second to import.
            adapters = import_module("kaigen_chat.adapters")
            self._model = adapters.merge(self._model, settings.merge_adapters)
        self._model.eval().to(self.device)
        self._last_only = "logits_to_keep" in inspect.signature(self._model.forward).parameters
        # Names that are not variables but arguments; one of them is another template.
        self._reserved = frozenset(inspect.signature(self._tokenizer.apply_chat_template).parameters)
        if settings.chat_template is not None:
            self._tokenizer.chat_template = _read(settings.chat_template)
        self.vocabulary: int = self._model.config.get_text_config().vocab_size
        self.context = _context(self._model.config.get_text_config(), settings.max_model_len)
        self.eos, self.defaults = _generation(settings.model, self._model, self._tokenizer)
        longest = max(map(len, self._tokenizer.get_vocab()), default=1)
        self._most_characters = max(self.context * longest, _SHORT)

    @property
    def facts(self) -> Facts:
        """Sizes, for the log."""
        weights = list(self._model.parameters())
        return Facts(
            parameters=sum(weight.numel() for weight in weights),
            weight_bytes=sum(weight.numel() * weight.element_size() for weight in weights),
            cache_bytes=self._cache_bytes(),
        )

    def _cache_bytes(self) -> int | None:
        config = self._model.config.get_text_config()
        heads = getattr(config, "num_key_value_heads", None) or getattr(config, "num_attention_heads", None)
        size = getattr(config, "head_dim", None)
        if size is None and getattr(config, "hidden_size", None) and getattr(config, "num_attention_heads", None):
            size = config.hidden_size // config.num_attention_heads
        layers = getattr(config, "num_hidden_layers", None)
        if not (heads and size and layers):
            return None
        return int(2 * layers * heads * size * self._model.dtype.itemsize)

    @property
    def dtype(self) -> str:
        """The numbers it computes with."""
        return str(self._model.dtype).removeprefix("torch.")

    def forward(
        self, tokens: torch.Tensor, mask: torch.Tensor | None, positions: torch.Tensor, cache: RowsCache
    ) -> torch.Tensor:
        """Return the logits after some more tokens of each row, and store their keys and values.

        Args:
            tokens: rows × tokens.
            mask: rows × (columns in use + tokens), False where a row has padding; None when there is none.
            positions: rows × tokens, counted from the first token of each row.
            cache: what is known of the tokens before.

        Returns:
            Rows × vocabulary.
        """
        cache.reserve(tokens.shape[1])
        more = {"logits_to_keep": 1} if self._last_only else {}
        with torch.inference_mode():
            out = self._model(
                input_ids=tokens.to(self.device),
                attention_mask=None if mask is None else mask.to(self.device),
                position_ids=positions.to(self.device),
                past_key_values=cache,
                use_cache=True,
                **more,
            )
        cache.advance(tokens.shape[1])
        logits: torch.Tensor = out.logits[:, -1, :]
        return logits

    def encode(self, text: str, *, special: bool = True) -> list[int]:
        """Tokens of a text; with those that a text begins or ends with, unless `special` is false.

        Raises:
            Refused: the text is longer than the longest tokens that fit into the context. Its tokens would take
                seconds and a GiB.
        """
        if len(text) > self._most_characters:
            raise bad_request(
                f"The context of this model is {self.context} tokens: a text of {len(text)} characters has more",
                code="context_length_exceeded",
            )
        return list(self._tokenizer.encode(text, add_special_tokens=special))

    def decode(self, tokens: Sequence[int]) -> str:
        """Return the text of tokens, without special tokens."""
        text: str = self._tokenizer.decode(list(tokens), skip_special_tokens=True, clean_up_tokenization_spaces=False)
        return text

    def spell(self, token: int) -> str:
        """The text of one token, also of a special one."""
        text: str = self._tokenizer.decode([token], clean_up_tokenization_spaces=False)
        return text

    @property
    def chats(self) -> bool:
        """Whether there is a chat template."""
        return bool(self._tokenizer.chat_template)

    def chat(
        self, messages: Sequence[Mapping[str, str]], variables: Mapping[str, JsonValue] | None = None
    ) -> list[int]:
        """Return the tokens of a conversation, up to the start of the model's answer.

        Args:
            messages: `role` and `content` of each.
            variables: additional variables for the template.

        Raises:
            Refused: there is no template, or it does not accept the messages.
        """
        if not self.chats:
            raise bad_request(
                "This model has no chat template: use /v1/completions, or start the server with "
                f"{flag('chat_template')} FILE",
                "messages",
            )
        reserved = sorted(self._reserved & set(variables or ()))
        if reserved:
            raise bad_request(f"A template's variable cannot be called {reserved[0]}", "chat_template_kwargs")
        try:
            text: str = self._tokenizer.apply_chat_template(
                list(messages), tokenize=False, add_generation_prompt=True, **(variables or {})
            )
        except (TemplateError, TypeError, ValueError, KeyError) as error:
            raise bad_request(f"The model's chat template does not take this: {error}", "messages") from None
        return self.encode(text, special=False)


def _device(asked: str) -> torch.device:
    if asked == "cuda" and not torch.cuda.is_available():
        raise BadSettings(f"{flag('device')} cuda: there is no GPU that PyTorch can use")
    return torch.device("cuda" if asked != "cpu" and torch.cuda.is_available() else "cpu")


def _dtype(asked: str, device: torch.device) -> torch.dtype | str:
    if asked != "auto":
        found: torch.dtype = getattr(torch, asked)
        return found
    # Few CPUs compute 16 bit numbers faster than 32 bit ones, and many far slower.
    return torch.float32 if device.type == "cpu" else "auto"


def _check_kind(config: AutoConfig) -> None:
    name = getattr(config, "model_type", "?")
    if getattr(config, "is_encoder_decoder", False):
        raise BadModel(f"a model of type {name} is an encoder and a decoder: only decoders are served here")
    text = config.get_text_config()
    kinds = set(getattr(text, "layer_types", None) or ()) - _KINDS
    if kinds or getattr(text, "attention_chunk_size", None):
        what = ", ".join(sorted(kinds)) or "chunked attention"
        raise BadModel(f"a model of type {name} has layers that are not plain attention ({what}): serve it with vLLM")


def _context(config: AutoConfig, asked: int | None) -> int:
    own = getattr(config, "max_position_embeddings", None) or getattr(config, "n_positions", None)
    if own is None:
        if asked is None:
            raise BadSettings(f"the model does not say how long its context is: set {flag('max_model_len')}")
        return asked
    if asked is not None and asked > own:
        raise BadSettings(f"{flag('max_model_len')} {asked} is more than the {own} tokens the model is made for")
    return asked or int(own)


def _generation(path: Path, model: torch.nn.Module, tokenizer: AutoTokenizer) -> tuple[tuple[int, ...], Defaults]:
    """End-of-text tokens, and the default sampling parameters."""
    found: GenerationConfig = model.generation_config
    eos = found.eos_token_id
    ends = [] if eos is None else [eos] if isinstance(eos, int) else list(eos)
    if tokenizer.eos_token_id is not None and tokenizer.eos_token_id not in ends:
        ends.append(tokenizer.eos_token_id)
    if not os.path.exists(path / "generation_config.json"):
        return tuple(ends), Defaults()
    usual = Defaults()
    return tuple(ends), Defaults(
        temperature=_or(found.temperature, usual.temperature),
        top_p=_or(found.top_p, usual.top_p),
        top_k=int(_or(found.top_k, usual.top_k)),
        repetition_penalty=_or(found.repetition_penalty, usual.repetition_penalty),
    )


def _or(value: float | None, default: float) -> float:
    return default if value is None else value


def _read(path: Path) -> str:
    try:
        return path.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise BadSettings(f"{flag('chat_template')}: cannot read {path}: {error}") from None
