"""The command line: classifies, reports, and returns an exit code for every outcome."""

from __future__ import annotations

import json
import os
import signal
import sys
import traceback
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import FrameType
from typing import NoReturn

from kaigen_classify import results
from kaigen_classify.errors import Failure, NoneRead
from kaigen_classify.settings import Settings, read

_LONGEST_MESSAGE = 4096
"""Bytes that the kubelet reads of a termination message."""


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
    settings: Settings | None = None
    try:
        settings = read(argv, env, has_gpu=_has_gpu)
        # PyTorch takes seconds to import; a wrong argument is reported before.
        from kaigen_classify.classify import classify

        summary = classify(settings)
    except Failure as error:
        say(f"error: {error}")
        _report(env, f"error: {error}")
        if settings is not None and not isinstance(error, NoneRead):
            _write_error(settings, error)
        return error.code
    except Exception as error:
        traceback.print_exc()
        _report(env, f"error: this is a bug in kaigen-classify: {type(error).__name__}: {error}")
        return 1
    facts = {
        "classified": summary.classified,
        "failed": summary.failed,
        "elapsed_ms": round(summary.elapsed_ms, 2),
        "output": str(summary.result),
    }
    text = json.dumps(facts, ensure_ascii=False)
    print(text)
    _report(env, text)
    return 0


def _has_gpu() -> bool:
    import torch

    return bool(torch.cuda.is_available())


def _report(env: Mapping[str, str], message: str) -> None:
    """Write the termination message, which `kubectl describe pod` shows."""
    path = Path(env.get("KAIGEN_TERMINATION_LOG", "/dev/termination-log"))
    try:
        if path.exists():  # The kubelet creates it; outside of a pod there is none.
            path.write_bytes(message.encode()[:_LONGEST_MESSAGE])
    except OSError as error:
        say(f"warning: {path} cannot be written: {error.strerror or error}")


def _write_error(settings: Settings, error: Failure) -> None:
    """Write the error in place of the result."""
    content = {
        "model": settings.model,
        "error": {"code": error.code, "reason": error.reason, "message": str(error)},
        "device": settings.device,
        "timestamp": results.timestamp(),
    }
    try:
        results.write_object(settings.result, content)
    except Failure as failure:
        say(f"warning: {failure}")


def _end(number: int, _: FrameType | None) -> NoReturn:
    raise SystemExit(128 + number)  # The draft of the result is removed on the way out.


def run() -> NoReturn:
    """Entry point of the program."""
    os.umask(0o022)
    signal.signal(signal.SIGTERM, _end)
    sys.exit(main(sys.argv[1:], os.environ))
