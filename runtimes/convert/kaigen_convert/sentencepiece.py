"""The file `tokenizer.model` of sentencepiece: a message of protocol buffers with all tokens.

Source of the field numbers: `sentencepiece_model.proto`. A message is a list of fields: number and type in one varint,
then the value.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass

from kaigen_convert.errors import NotConvertible

_PIECES = 1
_TEXT, _SCORE, _TYPE = 1, 2, 3
_UNKNOWN, _CONTROL = 2, 3
_MOST = 1 << 21


@dataclass(frozen=True, slots=True)
class Piece:
    """A token.

    Attributes:
        text: as sentencepiece writes it.
        score: of a merge to it.
        is_control: whether it is not text, such as the begin of a sequence.
    """

    text: str
    score: float
    is_control: bool


def read_pieces(content: bytes) -> list[Piece]:
    """Return the tokens of a file in the order of their numbers.

    Raises:
        NotConvertible: it is not such a file.
    """
    try:
        found = [_piece(value) for number, value in _fields(content) if number == _PIECES and isinstance(value, bytes)]
    except (IndexError, ValueError, struct.error):
        raise NotConvertible("tokenizer.model is not a file of sentencepiece, or it is cut off") from None
    if not found or len(found) > _MOST:
        raise NotConvertible(f"tokenizer.model has {len(found)} tokens")
    return found


def _piece(message: bytes) -> Piece:
    text, score, kind = "", 0.0, 1
    for number, value in _fields(message):
        if number == _TEXT and isinstance(value, bytes):
            text = value.decode()
        elif number == _SCORE and isinstance(value, bytes):
            (score,) = struct.unpack("<f", value)
        elif number == _TYPE and isinstance(value, int):
            kind = value
    return Piece(text, score, kind in (_UNKNOWN, _CONTROL))


def _fields(message: bytes) -> Iterator[tuple[int, int | bytes]]:
    """Return number and value of each field.

    Raises:
        IndexError: the message is cut off.
        ValueError: a field has an unknown type.
    """
    place = 0
    while place < len(message):
        tag, place = _varint(message, place)
        number, kind = tag >> 3, tag & 7
        if kind == 0:
            value, place = _varint(message, place)
            yield number, value
            continue
        if kind == 2:
            length, place = _varint(message, place)
        elif kind in (1, 5):
            length = 8 if kind == 1 else 4
        else:
            raise ValueError("unknown type")
        if place + length > len(message):
            raise IndexError
        yield number, message[place : place + length]
        place += length


def _varint(message: bytes, place: int) -> tuple[int, int]:
    value = 0
    for shift in range(0, 70, 7):
        byte = message[place]
        value |= (byte & 0x7F) << shift
        place += 1
        if byte < 0x80:
            return value, place
    raise ValueError("too long")
