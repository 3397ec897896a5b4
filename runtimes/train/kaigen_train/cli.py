"""The command line: checks the input, starts the processes, and returns an exit code for every outcome."""

from __future__ import annotations

import argparse
import logging
import os
import signal
import sys
import traceback
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import NoReturn

from kaigen_train.dataset import Dataset, read_dataset
from kaigen_train.errors import BadInput, Failure, NoDevice, NotWritten, ProcessLost
from kaigen_train.settings import Settings, read

PARAMS = Path("/content/params.json")
"""Default file with the settings."""

_LONGEST_MESSAGE = 4096
"""Bytes that the kubelet reads of a termination message."""

_CODES = {failure.code for failure in (BadInput, NoDevice, NotWritten, ProcessLost)}


@dataclass(frozen=True, slots=True)
class Task:
    """What a process trains.

    Attributes:
        settings: the settings.
        model: folder of the model.
        dataset: the samples.
        output: folder for the result.
        flat: whether the files of the result are in that folder itself.
    """

    settings: Settings
    model: Path
    dataset: Dataset
    output: Path
    flat: bool


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise BadInput(f"{message} (see {self.prog} --help)")


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(prog="kaigen-train", description="Fine-tune a language model.", allow_abbrev=False)
    add = parser.add_argument
    add("--model", type=Path, default=Path("/model"), metavar="FOLDER", help="the model (%(default)s)")
    add(
        "--dataset",
        type=Path,
        default=Path("/inputs"),
        metavar="PATH",
        help="a folder of files with samples, or one file (%(default)s)",
    )
    add("--output", type=Path, default=Path("/output"), metavar="FOLDER", help="for the result (%(default)s)")
    add("--flat", action="store_true", help="write the files of the result into that folder itself")
    add("--params", type=Path, metavar="FILE", help=f"the settings ({PARAMS}, if it exists)")
    return parser


def say(message: str) -> None:
    """Print one line on standard error."""
    sys.stderr.write(" ".join(message.split()) + "\n")
    sys.stderr.flush()


def main(argv: Sequence[str], env: Mapping[str, str]) -> int:
    """Run the program.

    Args:
        argv: arguments without the name of the program.
        env: the environment.

    Returns:
        The exit code.
    """
    worker = "TORCHELASTIC_RUN_ID" in env
    try:
        task = _read(argv)
        if not worker:
            # Other processes start only with an input that can be used.
            from kaigen_train.launch import launch, processes

            if processes(env) > 1:
                return launch(argv, env, _CODES)
        from kaigen_train.training import train

        train(task.settings, task.model, task.dataset, task.output, flat=task.flat)
    except Failure as error:
        # Every process finds the same error in the input.
        if not isinstance(error, BadInput) or env.get("RANK", "0") == "0":
            say(f"error: {error}")
            _report(env, f"error: {error}")
        return error.code
    except Exception as error:
        traceback.print_exc()
        _report(env, f"error: this is a bug in kaigen-train: {type(error).__name__}: {error}")
        return 1
    return 0


def _read(argv: Sequence[str]) -> Task:
    given = _parser().parse_args(argv)
    settings = read(given.params, PARAMS)
    config = given.model / "config.json"
    if not config.is_file():
        raise BadInput(f"{config} does not exist: the folder has no model in the format of transformers")
    return Task(settings, given.model, read_dataset(given.dataset, settings.columns), given.output, given.flat)


def _report(env: Mapping[str, str], message: str) -> None:
    """Write the termination message, which `kubectl describe pod` shows."""
    path = Path(env.get("KAIGEN_TERMINATION_LOG", "/dev/termination-log"))
    try:
        if path.exists():  # The kubelet creates it; outside of a pod there is none.
            path.write_bytes(message.encode()[:_LONGEST_MESSAGE])
    except OSError as error:
        say(f"warning: {path} cannot be written: {error.strerror or error}")


def _end(number: int, _: FrameType | None) -> NoReturn:
    raise SystemExit(128 + number)


def run() -> NoReturn:
    """Entry point of the program."""
    os.umask(0o022)
    signal.signal(signal.SIGTERM, _end)
    warnings.simplefilter("ignore")  # Those of libraries are for their authors.
    for name in ("torch.distributed.elastic", "bitsandbytes"):
        logging.getLogger(name).setLevel(logging.CRITICAL)
    sys.exit(main(sys.argv[1:], os.environ))
