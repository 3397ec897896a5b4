"""The command line: reads settings, serves, and returns an exit code for every outcome."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from typing import NoReturn

from kaigen_chat import folder
from kaigen_chat.errors import Failure
from kaigen_chat.settings import read, read_keys


def say(message: str) -> None:
    """Prints one line on standard error."""
    sys.stderr.write(" ".join(message.split()) + "\n")
    sys.stderr.flush()


def main(argv: Sequence[str], env: Mapping[str, str]) -> int:
    """Runs the server.

    Args:
        argv: the arguments without the program's name.
        env: the environment.

    Returns:
        The exit code: 0 after SIGTERM or SIGINT, 2 for settings, 3 for a model that cannot be served, 20 when the
        folder was not complete in time.
    """
    try:
        settings = read(argv, env)
        keys = read_keys(settings, env)
        if settings.await_marker is not None:
            folder.wait(settings.model, settings.await_marker, timeout=settings.await_timeout, say=say)
        folder.check(settings.model, trust_remote_code=settings.trust_remote_code)
        for adapter in settings.merge_adapters:
            folder.check_adapter(adapter.folder)
        # Before transformers is imported, which reads them then.
        os.environ["HF_HUB_OFFLINE"] = os.environ["TRANSFORMERS_OFFLINE"] = "1"
        os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
        from kaigen_chat.serve import serve

        serve(settings, keys, say)
    except Failure as error:
        say(f"error: {error}")
        return error.code
    except KeyboardInterrupt:
        return 130
    return 0


def run() -> NoReturn:
    """Entry point of the program."""
    sys.exit(main(sys.argv[1:], os.environ))
