"""The KV cache of a batch, with rows that join and leave between two steps.

Rows are aligned at their ends: the last token of every row is in the same column, and shorter rows have padding on
their left, which the attention mask hides. A step so adds one column for all. Leading columns that no row needs any
more are dropped by moving the first column, without a copy.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

import torch
from transformers.cache_utils import Cache, CacheLayerMixin

_STEP = 64  # columns that buffers grow by, at least


class _Span:
    """Which part of the buffers is in use: the first `rows` rows, columns `start` to `end`."""

    __slots__ = ("columns", "end", "most_columns", "rows", "rows_kept", "start")

    def __init__(self, rows: int, columns: int, most_columns: int) -> None:
        self.rows = rows
        self.start = 0
        self.end = 0
        self.rows_kept = rows
        self.columns = columns
        self.most_columns = most_columns


class _Layer(CacheLayerMixin):  # type: ignore[misc]  # transformers is not there when types are checked
    """Keys and values of one layer: buffers of rows × heads × columns × numbers."""

    is_sliding = False  # every column is kept; the mask hides those out of a layer's window

    def __init__(self, span: _Span) -> None:
        super().__init__()
        self.span = span

    def lazy_initialization(self, key_states: torch.Tensor, value_states: torch.Tensor) -> None:
        """Called with the first keys and values, which define heads, size, dtype and device."""
        self.keys, self.values = self._room(key_states), self._room(value_states)
        self.is_initialized = True

    def _room(self, like: torch.Tensor) -> torch.Tensor:
        return like.new_zeros((self.span.rows_kept, like.shape[1], self.span.columns, like.shape[3]))

    def update(
        self, key_states: torch.Tensor, value_states: torch.Tensor, *args: object, **kwargs: object
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Store the result of a forward pass, and return everything that rows may attend to."""
        if not self.is_initialized:
            self.lazy_initialization(key_states, value_states)
        span, end = self.span, self.span.end + key_states.shape[-2]
        self.keys[: span.rows, :, span.end : end] = key_states
        self.values[: span.rows, :, span.end : end] = value_states
        return self.keys[: span.rows, :, span.start : end], self.values[: span.rows, :, span.start : end]

    def get_mask_sizes(self, query_length: int) -> tuple[int, int]:
        """Columns that the mask must have, and the first one."""
        return self.get_seq_length() + query_length, 0

    def get_seq_length(self) -> int:
        """Columns in use."""
        return self.span.end - self.span.start

    def get_max_length(self) -> int:
        """-1, because buffers grow."""
        return -1

    def move(self, old: _Span, new: _Span, at: int) -> None:
        """Copies what is in use to buffers of another size, its first column to column `at`."""
        if not self.is_initialized:
            return
        width = old.end - old.start
        for name in ("keys", "values"):
            source = getattr(self, name)
            target = source.new_zeros((new.rows_kept, source.shape[1], new.columns, source.shape[3]))
            target[: old.rows, :, at : at + width] = source[: old.rows, :, old.start : old.end]
            setattr(self, name, target)


class RowsCache(Cache):  # type: ignore[misc]  # as above
    """A cache of some rows, to which rows of another can be appended.

    Args:
        rows: rows that the next forward pass has.
        columns: room to begin with.
        most_columns: columns that are never exceeded, which the caller sees to.
        most_tokens: the same for rows × columns; without it there is no such limit.
    """

    def __init__(self, rows: int, columns: int, most_columns: int, most_tokens: int | None = None) -> None:
        self._most_tokens = sys.maxsize if most_tokens is None else most_tokens
        self.span = _Span(rows, min(columns, most_columns), most_columns)
        super().__init__(layer_class_to_replicate=lambda: _Layer(self.span))

    @property
    def width(self) -> int:
        """Columns in use: the length of the longest row, or more where `trim` was not called."""
        return self.span.end - self.span.start

    @property
    def bytes(self) -> int:
        """Return the size of the buffers in bytes."""
        return sum(
            buffer.numel() * buffer.element_size()
            for layer in tuple(self.layers)
            if layer.is_initialized
            for buffer in (layer.keys, layer.values)
        )

    def reserve(self, tokens: int) -> None:
        """Make room for the columns of the next forward pass; call it before the pass."""
        if self.span.end + tokens > self.span.columns:
            self._resize(self.span.rows, self.width, self.width + tokens)

    def advance(self, tokens: int) -> None:
        """Count the columns of the finished forward pass."""
        self.span.end += tokens

    def trim(self, longest: int) -> None:
        """Drop leading columns that no row uses."""
        self.span.start = self.span.end - longest

    def append(self, other: RowsCache, picks: Sequence[int]) -> None:
        """Append rows of another cache.

        Args:
            other: the cache they are in.
            picks: their numbers there; a number that occurs twice is added twice.
        """
        span, width = self.span, other.width
        rows, first = span.rows + len(picks), span.rows
        if rows > span.rows_kept or span.end < width:
            wide = max(self.width, width)
            self._resize(rows, wide, wide + 1)
        start = min(span.start, span.end - width)
        index = torch.tensor(picks)
        while len(self.layers) < len(other.layers):
            self.layers.append(_Layer(span))
        for mine, theirs in zip(self.layers, other.layers, strict=True):
            if not theirs.is_initialized:
                continue
            if not mine.is_initialized:
                mine.lazy_initialization(theirs.keys, theirs.values)
            for target, source in ((mine.keys, theirs.keys), (mine.values, theirs.values)):
                # What a row left behind must not reach another one: the mask makes weights 0, but 0 × NaN is NaN.
                target[:first, :, start : span.start] = 0
                target[first:rows, :, start : span.end - width] = 0
                target[first:rows, :, span.end - width : span.end] = source[
                    index.to(source.device), :, other.span.start : other.span.end
                ]
        span.start, span.rows = start, rows

    def remove(self, row: int) -> None:
        """Remove a row; the last row gets its number."""
        span = self.span
        span.rows -= 1
        if row != span.rows:
            for layer in self.layers:
                if layer.is_initialized:
                    for buffer in (layer.keys, layer.values):
                        buffer[row, :, span.start : span.end] = buffer[span.rows, :, span.start : span.end]
        if span.rows == 0:  # gives the memory back
            self.layers.clear()
            span.start = span.end = span.columns = span.rows_kept = 0

    def _resize(self, rows: int, end: int, least: int) -> None:
        """Moves what is in use so that it ends at column `end`, in buffers for `rows` rows and `least` columns or more.

        Without growth when a quarter of the room would be free: then it is leading columns that are in the way.
        """
        old = self.span
        new = _Span(old.rows, old.columns, old.most_columns)
        new.rows_kept = old.rows_kept
        if rows > old.rows_kept or least * 5 // 4 > old.columns:
            roomy = min(max(least * 3 // 2, least + _STEP), old.most_columns, self._most_tokens // rows)
            new.columns = max(least, roomy)
            twice = 2 * rows if rows > old.rows_kept else rows
            new.rows_kept = max(rows, min(twice, self._most_tokens // new.columns))
        at = end - (old.end - old.start)
        for layer in self.layers:
            layer.move(old, new, at)
        old.start, old.end, old.rows_kept, old.columns = at, end, new.rows_kept, new.columns
