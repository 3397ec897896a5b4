"""PyYAML's own parser, for machines without libyaml, made to read what libyaml reads.

The two differ in tabs between tokens (libyaml takes them, PyYAML does not) and in `:` and `?` inside flow
collections. kaigen must not accept a spec on one machine and refuse it on another.
"""

from __future__ import annotations

from yaml.composer import Composer
from yaml.error import Mark
from yaml.parser import Parser
from yaml.reader import Reader
from yaml.scanner import Scanner, ScannerError
from yaml.tokens import ScalarToken

from kaigen.yaml.compose import Hooks

_BREAKS = "\r\n\x85\u2028\u2029"
_BLANK_OR_END = "\0 \t" + _BREAKS
_FLOW = ",[]{}"


class PureParser(Hooks, Reader, Scanner, Parser, Composer):
    """A parser in Python alone, with libyaml's rules."""

    def __init__(self, text: str) -> None:
        Reader.__init__(self, text)
        Scanner.__init__(self)
        Parser.__init__(self)
        Composer.__init__(self)

    def scan_to_next_token(self) -> None:
        """Skip blanks, comments and line ends; a tab counts as a blank where no indentation is meant."""
        while True:
            while self.peek() == " " or (
                self.peek() == "\t" and (self.flow_level or not self.allow_simple_key)
            ):
                self.forward()
            if self.peek() == "#":
                while self.peek() not in "\0" + _BREAKS:
                    self.forward()
            if not self._line_break():
                return
            if not self.flow_level:
                self.allow_simple_key = True

    def scan_block_scalar_indicators(self, start_mark: Mark) -> tuple[bool | None, int | None]:
        """The `+`, `-` and digit after `|` or `>`."""
        chomping: bool | None = None
        increment: int | None = None
        while True:
            char = self.peek()
            if char in "+-" and chomping is None:
                chomping = char == "+"
            elif char in "0123456789" and increment is None:
                if char == "0":
                    raise ScannerError(
                        "while scanning a block scalar",
                        start_mark,
                        "found an indentation indicator equal to 0",
                        self.get_mark(),
                    )
                increment = int(char)
            else:
                return chomping, increment
            self.forward()

    def scan_block_scalar_ignored_line(self, start_mark: Mark) -> None:
        """The rest of the line of a `|` or `>`: blanks and a comment."""
        while self.peek() in " \t":
            self.forward()
        super().scan_block_scalar_ignored_line(start_mark)

    def scan_block_scalar_indentation(self) -> tuple[list[str], int, Mark]:
        """Empty lines before the first line of a block scalar, which sets its indentation."""
        start = self.get_mark()
        found: tuple[list[str], int, Mark] = super().scan_block_scalar_indentation()
        self._refuse_tab(start)
        return found

    def scan_block_scalar_breaks(self, indent: int) -> tuple[list[str], Mark]:
        """Empty lines inside a block scalar."""
        start = self.get_mark()
        found: tuple[list[str], Mark] = super().scan_block_scalar_breaks(indent)
        if self.column < indent:
            self._refuse_tab(start)
        return found

    def scan_flow_scalar_non_spaces(self, double: bool, start_mark: Mark) -> list[str]:
        """A run of characters in quotes; an escape must stand for a character that exists."""
        try:
            chunks: list[str] = super().scan_flow_scalar_non_spaces(double, start_mark)
        except (ValueError, OverflowError):
            chunks = ["\ud800"]
        if any("\ud800" <= char <= "\udfff" for chunk in chunks if len(chunk) == 1 for char in chunk):
            raise ScannerError(
                "while parsing a quoted scalar",
                start_mark,
                "found invalid Unicode character escape code",
                self.get_mark(),
            )
        return chunks

    def scan_directive_name(self, start_mark: Mark) -> str:
        """The word after `%` at the start of a line."""
        name: str = super().scan_directive_name(start_mark)  # type: ignore[no-untyped-call]
        if name not in ("YAML", "TAG"):
            raise ScannerError(
                "while scanning a directive", start_mark, "found unknown directive name", self.get_mark()
            )
        return name

    def scan_yaml_directive_number(self, start_mark: Mark) -> int:
        """A part of the version in `%YAML 1.2`."""
        if all(self.peek(place) in "0123456789" for place in range(10)):
            raise ScannerError(
                "while scanning a %YAML directive",
                start_mark,
                "found extremely long version number",
                self.get_mark(),
            )
        number: int = super().scan_yaml_directive_number(start_mark)
        return number

    def _refuse_tab(self, start: Mark) -> None:
        if self.peek() == "\t":
            raise ScannerError(
                "while scanning a block scalar",
                start,
                "found a tab character where an indentation space is expected",
                self.get_mark(),
            )

    def _line_break(self) -> str:
        found: str = self.scan_line_break()  # type: ignore[no-untyped-call]
        return found

    def _at_document_marker(self) -> bool:
        return self.column == 0 and self.prefix(3) in ("---", "...") and self.peek(3) in _BLANK_OR_END

    def scan_plain(self) -> ScalarToken:
        """A plain scalar, over several lines where it is so written."""
        chunks: list[str] = []
        start = end = self.get_mark()
        indent = self.indent + 1
        spaces = ""
        breaks: list[str] = []
        leading = False
        while not self._at_document_marker() and self.peek() != "#":
            length = self._plain_length(start)
            if length == 0 and self.peek() not in " \t" + _BREAKS:
                break
            if length:
                self.allow_simple_key = False
                if leading:
                    chunks.append(
                        " " if breaks == ["\n"] else "".join(breaks[1:] if breaks[0] == "\n" else breaks)
                    )
                else:
                    chunks.append(spaces)
                chunks.append(self.prefix(length))
                self.forward(length)
                end = self.get_mark()
                spaces, breaks, leading = "", [], False
            if self.peek() not in " \t" + _BREAKS:
                break
            while self.peek() in " \t" + _BREAKS:
                if self.peek() in " \t":
                    if leading and self.column < indent and self.peek() == "\t":
                        raise ScannerError(
                            "while scanning a plain scalar",
                            start,
                            "found a tab character that violates indentation",
                            self.get_mark(),
                        )
                    if not leading:
                        spaces += self.peek()
                    self.forward()
                else:
                    spaces = ""
                    breaks.append(self._line_break())
                    leading = True
            if not self.flow_level and self.column < indent:
                break
        if leading:
            self.allow_simple_key = True
        return ScalarToken("".join(chunks), True, start, end)

    def _plain_length(self, start: Mark) -> int:
        """How many characters of a plain scalar follow before a blank or an indicator."""
        length = 0
        while True:
            char = self.peek(length)
            if char in _BLANK_OR_END:
                return length
            after = self.peek(length + 1)
            if char == ":" and self.flow_level and after in ",?[]{}":
                self.forward(length)
                raise ScannerError(
                    "while scanning a plain scalar", start, "found unexpected ':'", self.get_mark()
                )
            if (char == ":" and after in _BLANK_OR_END) or (self.flow_level and char in _FLOW):
                return length
            length += 1
