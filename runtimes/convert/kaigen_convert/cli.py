"""The command line: converts, reports, and returns an exit code for every outcome."""

from __future__ import annotations

import argparse
import json
import os
import re
import signal
import sys
import traceback
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import FrameType
from typing import NoReturn

from kaigen_convert import VERSION, __version__
from kaigen_convert.errors import BadSettings, Failure
from kaigen_convert.shape import TYPES
from kaigen_convert.text import say

_LONGEST_MESSAGE = 4096
"""Bytes that the kubelet reads of a termination message."""

_REFUSED = {
    "q80": "the runtime computes q80 for what it sends between nodes, and cannot load weights in it",
    "f16": "the runtime cannot load weights in it",
}


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise BadSettings(f"{message} (see {self.prog} --help)")


def _identity(text: str) -> str:
    if not re.fullmatch(r"[\w.-]{1,128}", text):
        raise argparse.ArgumentTypeError(f"not an identity: {text!r}")
    return text


def _weights(text: str) -> str:
    if text in _REFUSED:
        raise argparse.ArgumentTypeError(f"{text}: {_REFUSED[text]}")
    if text not in TYPES:
        raise argparse.ArgumentTypeError(f"{text!r} is none of {', '.join(TYPES)}")
    return text


def _version(text: str) -> str:
    if text != VERSION:
        raise argparse.ArgumentTypeError(
            f"this image writes version {VERSION} of the output, not {text}; use the image of your version of kaigen"
        )
    return text


def parser() -> argparse.ArgumentParser:
    """Return the parser of the command line."""
    top = _Parser(prog="kaigen-convert", description="Converts downloaded weights.", allow_abbrev=False)
    top.add_argument("--version", action="version", version=__version__)
    formats = top.add_subparsers(dest="format", required=True)
    add = formats.add_parser("distributed-llama", help="to model.m and tokenizer.t", allow_abbrev=False).add_argument
    add("--source", required=True, type=Path, metavar="DIR", help="folder with the downloaded files")
    add(
        "--source-identity",
        type=_identity,
        metavar="HEX",
        help="identity in the marker of the source (a source without it is read without a marker)",
    )
    add("--dest", required=True, type=Path, metavar="DIR", help="folder for the result")
    add("--identity", required=True, type=_identity, metavar="HEX", help="identity for its marker")
    add("--weights", type=_weights, default="q40", metavar="TYPE", help="q40 or f32 (%(default)s)")
    add("--output-version", type=_version, default=VERSION, metavar="N", help="version that the result must have")
    return top


def main(argv: Sequence[str], env: Mapping[str, str]) -> int:
    """Run the program.

    Args:
        argv: arguments without the name of the program.
        env: the environment.

    Returns:
        The exit code.
    """
    try:
        given = parser().parse_args(argv)
        # NumPy takes a moment to import; a wrong argument is reported before.
        from kaigen_convert.convert import Order, convert

        facts = convert(Order(given.source, given.source_identity, given.dest, given.identity, given.weights))
    except Failure as error:
        say(f"error: {error}")
        _report(env, f"error: {error}")
        return error.code
    except Exception as error:
        sys.stderr.write(traceback.format_exc())
        _report(env, f"error: this is a bug in kaigen-convert: {type(error).__name__}: {error}")
        return 1
    text = json.dumps(facts, ensure_ascii=False)
    print(text)
    _report(env, text)
    return 0


def _report(env: Mapping[str, str], message: str) -> None:
    """Write the termination message, which `kubectl describe pod` shows."""
    path = Path(env.get("KAIGEN_TERMINATION_LOG", "/dev/termination-log"))
    try:
        if path.exists():  # The kubelet creates it; outside of a pod there is none.
            path.write_bytes(message.encode()[:_LONGEST_MESSAGE])
    except OSError as error:
        say(f"warning: {path} cannot be written: {error.strerror or error}")


def _end(number: int, _: FrameType | None) -> NoReturn:
    os.write(2, b"terminated; the next run starts again\n")
    os._exit(128 + number)


def run() -> NoReturn:
    """Entry point of the program."""
    os.umask(0o022)  # Pods of other users read the result.
    signal.signal(signal.SIGTERM, _end)
    signal.signal(signal.SIGINT, _end)
    sys.exit(main(sys.argv[1:], os.environ))
