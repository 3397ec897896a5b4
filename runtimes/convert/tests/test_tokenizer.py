"""The bytes of `tokenizer.t`, read back by a small reader, and compared with the library `tokenizers`."""

from __future__ import annotations

import json
import struct
from pathlib import Path
from typing import Any

import pytest
from kaigen_convert.errors import NotConvertible
from kaigen_convert.tokenizer import TokenizerFile, read_tokenizer
from tiny_models import LLAMA, PIECES, SPECIAL, TEMPLATE, pieces_file, save_tokenizer, tokenizer_document
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

CONFIG = dict(LLAMA)


def parsed(content: bytes) -> dict[str, Any]:
    """Return the parts of a file, read as the runtime reads it."""
    magic, size = struct.unpack_from("<ii", content)
    assert magic == 0x567124
    pairs = struct.unpack_from(f"<{(size - 8) // 4}i", content, 8)
    header = dict(zip(pairs[::2], pairs[1::2], strict=True))
    place = size
    template = content[place : place + header.get(7, 0)].decode()
    place += header.get(7, 0)
    eos = list(struct.unpack_from(f"<{header[9]}i", content, place))
    place += 4 * header[9]
    tokens, scores = [], []
    for _ in range(header[1]):
        score, length = struct.unpack_from("<fI", content, place)
        place += 8
        tokens.append(content[place : place + length])
        scores.append(score)
        place += length
    assert place == len(content)
    return {"header": header, "template": template, "eos": eos, "tokens": tokens, "scores": scores}


def read(folder: Path, config: dict[str, Any] = CONFIG) -> TokenizerFile:
    return read_tokenizer(folder, json.loads(json.dumps(config)), 1000)


def test_file_has_every_token_as_bytes_and_the_template(tmp_path: Path) -> None:
    save_tokenizer(tmp_path)
    found = parsed(read(tmp_path).content())
    assert found["header"] == {3: 256, 0: 1, 1: 260, 2: 12, 7: len(TEMPLATE), 9: 1, 10: 0}
    assert set(found["tokens"][:256]) == {bytes([byte]) for byte in range(256)}
    assert found["tokens"][256:] == [text.encode() for text in SPECIAL]
    assert found["scores"] == [-float(number) for number in range(260)]
    assert (found["template"], found["eos"]) == (TEMPLATE, [257])


def test_tokens_are_the_texts_that_the_library_decodes(tmp_path: Path) -> None:
    library = Tokenizer(models.BPE())
    library.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    library.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(vocab_size=340, initial_alphabet=alphabet, special_tokens=["<|b|>", "<|é|>"])
    library.train_from_iterator(["the quick brown fox jumps over the lazy dög " * 20, "naïve 日本語 " * 9], trainer)
    save_tokenizer(tmp_path)
    library.save(str(tmp_path / "tokenizer.json"))
    tokens = parsed(read(tmp_path, CONFIG | {"bos_token_id": 0, "eos_token_id": [1, 0]}).content())["tokens"]
    assert len(tokens) == library.get_vocab_size()
    assert tokens[1] == "<|é|>".encode()
    for text in ("the quick fox", "naïve 日本語 dög", "\n\t☃"):
        assert b"".join(tokens[number] for number in library.encode(text).ids) == text.encode()


@pytest.mark.parametrize(
    ("settings", "files", "expected"),
    [
        ({"tokenizer_class": "TokenizersBackend", "chat_template": None}, {"chat_template.jinja": TEMPLATE}, TEMPLATE),
        ({"tokenizer_class": "Qwen2Tokenizer", "chat_template": [{"name": "default", "template": "x"}]}, {}, "x"),
        ({"chat_template": None}, {}, ""),
    ],
)
def test_template_of_every_layout(
    tmp_path: Path, settings: dict[str, Any], files: dict[str, str], expected: str
) -> None:
    save_tokenizer(tmp_path, **settings)
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    found = read(tmp_path)
    assert found.template == expected
    assert bool(found.warnings) == (expected != TEMPLATE)


def test_special_tokens_are_found_where_transformers_5_writes_them(tmp_path: Path) -> None:
    save_tokenizer(tmp_path, bos_token=SPECIAL[0], eos_token={"content": SPECIAL[1]})
    config = {key: value for key, value in CONFIG.items() if not key.endswith("token_id")}
    assert (read(tmp_path, config).bos, read(tmp_path, config).eos) == (256, [257])
    (tmp_path / "generation_config.json").write_text('{"bos_token_id": 256, "eos_token_id": [258, 257]}')
    assert read(tmp_path, config).eos == [258, 257]


def test_without_a_first_token_the_special_ones_begin_at_the_first_and_texts_do_not(tmp_path: Path) -> None:
    save_tokenizer(tmp_path, add_bos_token=True, bos_token=None)
    found = read(tmp_path, CONFIG | {"bos_token_id": None})
    assert (found.bos, found.adds_bos) == (256, False)


@pytest.mark.parametrize(("begins", "expected"), [(True, True), (False, False)])
def test_post_processor_says_whether_texts_begin_with_a_token(tmp_path: Path, begins: bool, expected: bool) -> None:
    save_tokenizer(tmp_path, add_bos_token=None)
    document = tokenizer_document()
    if begins:
        template = {"type": "TemplateProcessing", "single": [{"SpecialToken": {"id": SPECIAL[0], "type_id": 0}}]}
        document["post_processor"] = {"type": "Sequence", "processors": [{"type": "ByteLevel"}, template]}
    (tmp_path / "tokenizer.json").write_text(json.dumps(document))
    assert read(tmp_path).adds_bos is expected


def test_sentencepiece_file_and_its_json_give_the_same_tokens(tmp_path: Path) -> None:
    config = CONFIG | {"bos_token_id": 1, "eos_token_id": 2}
    save_tokenizer(tmp_path, tokenizer_class="LlamaTokenizer")
    (tmp_path / "tokenizer.model").write_bytes(pieces_file(PIECES))
    of_model = read(tmp_path, config)
    (tmp_path / "tokenizer.model").unlink()
    document = {
        "added_tokens": [{"id": n, "content": PIECES[n][0], "special": True} for n in range(3)],
        "model": {
            "type": "BPE",
            "byte_fallback": True,
            "vocab": {text: number for number, (text, _, _) in enumerate(PIECES)},
            "merges": ["\u2581 t", "e r"],
        },
    }
    (tmp_path / "tokenizer.json").write_text(json.dumps(document))
    of_json = read(tmp_path, config)
    assert of_model.vocabulary.tokens[259:] == [b" t", b"er", b" "]
    assert of_model.vocabulary.tokens[3:259] == [bytes([byte]) for byte in range(256)]
    assert of_json.vocabulary.tokens == of_model.vocabulary.tokens
    assert of_json.vocabulary.scores == of_model.vocabulary.scores
    assert any("special" in text for text in of_model.warnings)


@pytest.mark.parametrize("size", [0, 1, 5, 40, 4000])
def test_cut_off_sentencepiece_file_is_refused(tmp_path: Path, size: int) -> None:
    (tmp_path / "tokenizer.model").write_bytes(pieces_file(PIECES)[:size])
    with pytest.raises(NotConvertible, match=r"tokenizer\.model"):
        read(tmp_path, CONFIG | {"bos_token_id": 1, "eos_token_id": 2})


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"model": {"type": "Unigram", "vocab": []}}, "no byte pair encoding"),
        ({"model": {"type": "BPE", "vocab": {"a": 0, "b": 2}}, "added_tokens": []}, "gaps"),
        ({"model": {"type": "BPE", "vocab": {"a": -1}}}, "the number -1"),
        ({"model": {"type": "BPE", "vocab": {"": 0}}, "added_tokens": []}, "empty"),
        ({"model": {"type": "BPE", "vocab": {}}, "added_tokens": []}, "no tokens"),
        ({"added_tokens": [{"id": "x"}]}, "without number or text"),
    ],
)
def test_tokenizers_that_the_runtime_does_not_have_are_refused(
    tmp_path: Path, change: dict[str, Any], reason: str
) -> None:
    save_tokenizer(tmp_path)
    (tmp_path / "tokenizer.json").write_text(json.dumps(tokenizer_document() | change))
    with pytest.raises(NotConvertible, match=reason):
        read(tmp_path)
