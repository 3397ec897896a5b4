"""Text that comes token by token."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import given, settings
from hypothesis import strategies as st
from kaigen_chat.text import Detokenizer, StopTexts


def decode(tokens: Sequence[int]) -> str:
    """A tokenizer whose tokens are bytes."""
    return bytes(tokens).decode(errors="replace")


def parts(data: bytes) -> list[str]:
    text = Detokenizer(decode)
    return [*(text.add(byte) for byte in data), text.end()]


def test_a_character_comes_when_its_last_byte_does() -> None:
    assert parts("é🦊!".encode()) == ["", "é", "", "", "", "🦊", "!", ""]


def test_bytes_that_never_become_a_character_are_shown_as_broken() -> None:
    assert "".join(parts(b"a\xf0\x9f")) == "a\N{REPLACEMENT CHARACTER}"
    assert "".join(parts(b"\xff" * 9 + b"z")) == "\N{REPLACEMENT CHARACTER}" * 9 + "z"


@settings(deadline=None)
@given(st.text())
def test_the_parts_of_any_text_are_the_text(text: str) -> None:
    assert "".join(parts(text.encode(errors="replace"))) == text.encode(errors="replace").decode()


@settings(deadline=None)
@given(st.binary(max_size=30))
def test_the_parts_of_any_bytes_are_what_they_decode_to(data: bytes) -> None:
    assert "".join(parts(data)) == decode(data)


def feed(stops: Sequence[str], texts: Sequence[str]) -> tuple[list[str], bool]:
    found = StopTexts(stops)
    out = [found.add(text) for text in texts]
    return [*out, found.end()], found.hit


def test_text_that_may_begin_a_stop_text_is_held_back() -> None:
    assert feed(["END"], ["a", "E", "N", "x"]) == (["a", "", "", "ENx", ""], False)
    assert feed(["END"], ["a", "EN"]) == (["a", "", "EN"], False)
    assert feed(["END"], ["aE", "ND more", "and more"]) == (["a", "", "", ""], True)


def test_the_first_stop_text_in_the_answer_ends_it() -> None:
    assert feed(["two", "one"], ["zero one two"]) == (["zero ", ""], True)


@settings(deadline=None)
@given(st.text("ab", max_size=20), st.lists(st.text("ab", min_size=1, max_size=3), max_size=3), st.data())
def test_what_comes_out_ends_before_the_first_stop_text(text: str, stops: list[str], data: st.DataObject) -> None:
    cuts = sorted(data.draw(st.lists(st.integers(0, len(text)), max_size=5)))
    pieces = [text[begin:end] for begin, end in zip([0, *cuts], [*cuts, len(text)], strict=True)]
    out, hit = feed(stops, pieces)
    ends = [text.index(stop) for stop in stops if stop in text]
    assert hit == bool(ends)
    said = "".join(out)
    assert text.startswith(said)
    if hit:
        assert any(text[len(said) :].startswith(stop) for stop in stops)
    else:
        assert said == text
