"""The file `tokenizer.t`: tokens with scores, special tokens and the chat template.

Source of the format: distributed-llama v0.16.4 (`src/tokenizer.hpp`, `src/tokenizer.cpp`).
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from kaigen_convert.documents import Document, Json, read_bytes, read_document
from kaigen_convert.errors import NotConvertible, NotFound
from kaigen_convert.sentencepiece import read_pieces

_MAGIC = 0x567124
_VERSION, _VOCABULARY, _LONGEST, _BOS, _TEMPLATE, _EOS_COUNT, _ADD_BOS = 0, 1, 2, 3, 7, 9, 10
_MOST_TOKENS = 1 << 21
_SPACE = "\N{LOWER ONE EIGHTH BLOCK}"
"""What sentencepiece writes for a blank."""
_BYTE = re.compile(r"<0x([0-9A-Fa-f]{2})>")
_KNOWN_TEMPLATES = ("[INST]", "<|start_header_id|>", "<\uff5cAssistant\uff5c>", "<|im_start|>")
"""Texts by which the runtime recognizes a chat template."""


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """Tokens by their numbers.

    Attributes:
        tokens: bytes of each token.
        scores: of each token; the runtime merges the pair with the highest.
        special: numbers of special tokens by their text.
        adds_bos: whether texts begin with the token for that; None where the files do not say.
        by_bytes: whether the tokens are those of sentencepiece, with single bytes first.
    """

    tokens: list[bytes]
    scores: list[float]
    special: dict[str, int]
    adds_bos: bool | None
    by_bytes: bool


@dataclass(slots=True)
class TokenizerFile:
    """A tokenizer as the runtime reads it.

    Attributes:
        vocabulary: its tokens.
        bos: number of the token that begins texts.
        eos: numbers of the tokens that end answers.
        adds_bos: whether texts begin with it.
        template: chat template; empty for a base model.
        warnings: what the runtime does with it that users may not expect.
    """

    vocabulary: Vocabulary
    bos: int
    eos: list[int]
    adds_bos: bool
    template: str
    warnings: list[str] = field(default_factory=list)

    def content(self) -> bytes:
        """Return the bytes of the file."""
        tokens, template = self.vocabulary.tokens, self.template.encode()
        values = [
            (_BOS, self.bos),
            (_VERSION, 1),
            (_VOCABULARY, len(tokens)),
            (_LONGEST, max(map(len, tokens))),
            *([(_TEMPLATE, len(template))] if template else []),
            (_EOS_COUNT, len(self.eos)),
            (_ADD_BOS, int(self.adds_bos)),
        ]
        header = b"".join(struct.pack("<ii", key, value) for key, value in values)
        entries = (
            struct.pack("<fI", score, len(token)) + token
            for token, score in zip(tokens, self.vocabulary.scores, strict=True)
        )
        return b"".join(
            (
                struct.pack("<ii", _MAGIC, 8 + len(header)),
                header,
                template,
                struct.pack(f"<{len(self.eos)}i", *self.eos),
                *entries,
            )
        )


def read_tokenizer(folder: Path, config: Document, vocabulary_size: int) -> TokenizerFile:
    """Return the tokenizer of a model.

    Args:
        folder: with `tokenizer.json` or `tokenizer.model`, and their settings.
        config: content of `config.json`.
        vocabulary_size: number of tokens of the model.

    Raises:
        NotFound: there is none.
        NotConvertible: it is broken, or of a type that the runtime does not have.
    """
    settings = read_document(folder / "tokenizer_config.json") or {}
    generation = read_document(folder / "generation_config.json") or {}
    vocabulary = _vocabulary(folder, settings)
    count = len(vocabulary.tokens)
    if count > vocabulary_size:
        raise NotConvertible(f"the tokenizer has {count} tokens, and the model {vocabulary_size}")
    warnings = []
    bos = next(iter(_numbers("bos_token", (config, generation), settings, vocabulary)), None)
    adds_bos = settings.get("add_bos_token")
    if bos is None:
        # The runtime takes it for the first special token, so it must not be left out.
        bos, adds_bos = min(vocabulary.special.values(), default=count - 1), False
    eos = _numbers("eos_token", (config, generation), settings, vocabulary)
    if not eos:
        raise NotConvertible("no file says which token ends an answer (`eos_token_id`)")
    for number in (bos, *eos):
        if not 0 <= number < count:
            raise NotConvertible(f"the special token {number} is none of the {count} tokens")
    template = _template(folder, settings)
    if not template:
        warnings.append("the model has no chat template, so dllama-api does not start; use one for chats")
    elif not any(text in template for text in _KNOWN_TEMPLATES):
        warnings.append("distributed-llama does not recognize the chat template; set `--chat-template`")
    if vocabulary.by_bytes:
        warnings.append("distributed-llama takes all tokens after the first for special ones in this vocabulary")
    adds = adds_bos if isinstance(adds_bos, bool) else vocabulary.adds_bos is not False
    return TokenizerFile(vocabulary, bos, eos, adds, template, warnings)


def _vocabulary(folder: Path, settings: Document) -> Vocabulary:
    """Return the tokens of a folder.

    The class of the tokenizer does not decide: transformers 5 writes `TokenizersBackend` for all of them.
    """
    model, fast = folder / "tokenizer.model", folder / "tokenizer.json"
    if settings.get("tokenizer_class") == "LlamaTokenizer" or not fast.exists():
        content = read_bytes(model)
        if content is not None:
            return _of_pieces(content)
    document = read_document(fast)
    if document is None:
        raise NotFound(f"{folder} has neither tokenizer.json nor tokenizer.model")
    return _of_json(document)


def _of_pieces(content: bytes) -> Vocabulary:
    pieces = read_pieces(content)
    tokens, special = [], {}
    for number, piece in enumerate(pieces):
        match = _BYTE.fullmatch(piece.text)
        tokens.append(bytes.fromhex(match[1]) if match else piece.text.replace(_SPACE, " ").encode())
        if piece.is_control:
            special[piece.text] = number
    return Vocabulary(_checked(tokens), [piece.score for piece in pieces], special, None, True)


def _of_json(document: Document) -> Vocabulary:
    """Return the tokens of a `tokenizer.json`.

    Raises:
        NotConvertible: it has no byte pair encoding, or gaps between its numbers.
    """
    model = document.get("model")
    listed = model.get("vocab") if isinstance(model, dict) else None
    if not isinstance(model, dict) or model.get("type", "BPE") != "BPE" or not isinstance(listed, dict):
        raise NotConvertible("tokenizer.json has no byte pair encoding (BPE), and the runtime has no other")
    added = _added(document)
    texts: dict[int, str] = {}
    for text, number in (*listed.items(), *((text, number) for number, (text, _) in added.items())):
        if isinstance(number, bool) or not isinstance(number, int) or not 0 <= number < _MOST_TOKENS:
            raise NotConvertible(f"tokenizer.json has the number {number!r} for a token")
        texts[number] = text
    if sorted(texts) != list(range(len(texts))):
        raise NotConvertible("tokenizer.json has gaps between the numbers of its tokens")
    by_bytes = bool(model.get("byte_fallback"))
    to_bytes = _spelled if by_bytes else _byte_level
    tokens = [texts[number].encode() if number in added else to_bytes(texts[number]) for number in range(len(texts))]
    special = {text: number for number, (text, is_special) in added.items() if is_special}
    # The runtime merges by score. In these vocabularies tokens are numbered in the order of the merges.
    first = next((n for n in range(len(texts)) if n not in added and not _BYTE.fullmatch(texts[n])), 0)
    scores = [-float(max(0, n - first)) if by_bytes else -float(n) for n in range(len(texts))]
    adds = _begins_texts(document, special)
    return Vocabulary(_checked(tokens), scores, special, adds, by_bytes)


def _added(document: Document) -> dict[int, tuple[str, bool]]:
    """Return the added tokens by number, and whether they are special."""
    listed = document.get("added_tokens")
    found: dict[int, tuple[str, bool]] = {}
    for entry in listed if isinstance(listed, list) else []:
        number, text = (entry.get("id"), entry.get("content")) if isinstance(entry, dict) else (None, None)
        if not isinstance(number, int) or not isinstance(text, str) or not isinstance(entry, dict):
            raise NotConvertible("tokenizer.json has an added token without number or text")
        found[number] = (text, entry.get("special") is True)
    return found


def _begins_texts(document: Document, special: Mapping[str, int]) -> bool:
    """Return whether the tokenizer begins texts with a special token."""
    for processor in _processors(document.get("post_processor")):
        single = processor.get("single") if processor.get("type") == "TemplateProcessing" else None
        first = single[0] if isinstance(single, list) and single else None
        token = first.get("SpecialToken") if isinstance(first, dict) else None
        if isinstance(token, dict) and token.get("id") in special:
            return True
    return False


def _processors(value: Json) -> Iterator[Document]:
    if isinstance(value, dict):
        yield value
        inner = value.get("processors")
        yield from (each for each in inner if isinstance(each, dict)) if isinstance(inner, list) else ()


def _checked(tokens: list[bytes]) -> list[bytes]:
    if not tokens:
        raise NotConvertible("the tokenizer has no tokens")
    if not all(tokens):
        raise NotConvertible(f"the token {tokens.index(b'')} is empty, and the runtime does not start with it")
    return tokens


def _spelled(text: str) -> bytes:
    match = _BYTE.fullmatch(text)
    return bytes.fromhex(match[1]) if match else text.replace(_SPACE, " ").encode()


def _byte_level(text: str) -> bytes:
    return b"".join(_BYTES.get(character) or character.encode() for character in text)


def _byte_characters() -> dict[str, bytes]:
    """Return the bytes by the characters with which GPT-2 writes them: itself if printable, else one above 255."""
    printable = {*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)}
    others = [byte for byte in range(256) if byte not in printable]
    found = {chr(byte): bytes([byte]) for byte in printable}
    return found | {chr(256 + place): bytes([byte]) for place, byte in enumerate(others)}


_BYTES = _byte_characters()


def _numbers(name: str, documents: tuple[Document, ...], settings: Document, vocabulary: Vocabulary) -> list[int]:
    """Return the numbers of a special token: of the first document that has some, else by its text."""
    for document in documents:
        value = document.get(f"{name}_id")
        values = value if isinstance(value, list) else [value]
        found = [each for each in values if isinstance(each, int) and not isinstance(each, bool)]
        if found:
            return found
    text = settings.get(name)
    text = text.get("content") if isinstance(text, dict) else text
    number = vocabulary.special.get(text) if isinstance(text, str) else None
    return [number] if number is not None else []


def _template(folder: Path, settings: Document) -> str:
    """Return the chat template: of tokenizer_config.json, or of the file that newer versions of transformers write.

    Raises:
        NotConvertible: it is not UTF-8.
    """
    found = settings.get("chat_template")
    if isinstance(found, list):
        named = {each.get("name"): each.get("template") for each in found if isinstance(each, dict)}
        found = named.get("default")
    if isinstance(found, str) and found:
        return found
    content = read_bytes(folder / "chat_template.jinja", limit=1 << 20)
    try:
        return (content or b"").decode()
    except UnicodeDecodeError:
        raise NotConvertible(f"{folder}/chat_template.jinja is not UTF-8") from None
