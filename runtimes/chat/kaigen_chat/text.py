"""Decodes tokens to text while they arrive: only complete characters, and nothing of a stop text."""

from __future__ import annotations

from collections.abc import Callable, Sequence

BROKEN = "\N{REPLACEMENT CHARACTER}"

# Bytes of an unfinished character, at most, each of which some tokenizers show as a broken one.
_UNFINISHED = 3
# The window of tokens that is decoded again with each new one, since a token's text depends on those before it: it
# starts again when it is long, with the last few tokens.
_LONG = 32
_CONTEXT = 6


class Detokenizer:
    """Decodes a growing list of tokens, each part of the text once."""

    def __init__(self, decode: Callable[[Sequence[int]], str]) -> None:
        self._decode = decode
        self._window: list[int] = []
        self._given = 0  # characters of the window's text that were given out

    def add(self, token: int) -> str:
        """Return the text that a new token completes; empty while a character is incomplete."""
        self._window.append(token)
        text = self._decode(self._window)
        unfinished = min(len(text) - len(text.rstrip(BROKEN)), _UNFINISHED)
        out = self._take(text[: len(text) - unfinished])
        if len(self._window) >= _LONG and not unfinished:
            self._window = self._window[-_CONTEXT:]
            self._given = len(self._decode(self._window))
        return out

    def end(self) -> str:
        """Return the remaining text when no token follows."""
        return self._take(self._decode(self._window))

    def _take(self, text: str) -> str:
        out = text[self._given :]
        self._given = max(self._given, len(text))
        return out


class StopTexts:
    """Passes text on, withholds a possible start of a stop text, and ends at the first complete stop text."""

    def __init__(self, stops: Sequence[str]) -> None:
        self._stops = tuple(stops)
        self._held = ""
        self.hit = False

    def add(self, text: str) -> str:
        """Return the text that is certainly part of the answer. Sets `hit` when a stop text is complete."""
        if self.hit:
            return ""
        if not self._stops:
            return text
        self._held += text
        found = [at for at in (self._held.find(stop) for stop in self._stops) if at >= 0]
        if found:
            self.hit = True
            out, self._held = self._held[: min(found)], ""
            return out
        keep = max(_overlap(self._held, stop) for stop in self._stops)
        cut = len(self._held) - keep
        out, self._held = self._held[:cut], self._held[cut:]
        return out

    def end(self) -> str:
        """Return the withheld text when no text follows; nothing after a stop text."""
        out, self._held = self._held, ""
        return out


def _overlap(text: str, stop: str) -> int:
    """The length of the longest end of the text with which the stop text begins."""
    for size in range(min(len(text), len(stop) - 1), 0, -1):
        if text.endswith(stop[:size]):
            return size
    return 0
