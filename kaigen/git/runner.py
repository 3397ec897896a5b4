"""Runs the `git` program. Every call of kaigen goes through `run_git`.

Calls use the user's own configuration, a fixed locale and no prompts. They run against the repository that is named:
the variables that Git sets for its hooks are not inherited. A local command has no time limit, since hooks and large
repositories may be slow; a remote has the limit of `kaigen.git.remote.STALL_LIMIT_S`.
"""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from msgspec import Struct

from kaigen.diagnostics.errors import InputError, SystemFailure

NOT_INHERITED = (
    "GIT_DIR",
    "GIT_WORK_TREE",
    "GIT_IMPLICIT_WORK_TREE",
    "GIT_INDEX_FILE",
    "GIT_OBJECT_DIRECTORY",
    "GIT_ALTERNATE_OBJECT_DIRECTORIES",
    "GIT_GRAFT_FILE",
    "GIT_SHALLOW_FILE",
    "GIT_REPLACE_REF_BASE",
    "GIT_PREFIX",
    "GIT_NAMESPACE",
    "GIT_COMMON_DIR",
    "GIT_QUARANTINE_PATH",
)
"""Variables that bind a call to one repository. `git rev-parse --local-env-vars` lists them; those that hold
configuration are inherited."""

_ENVIRONMENT = {
    "LC_ALL": "C",
    "GIT_TERMINAL_PROMPT": "0",
    "GCM_INTERACTIVE": "never",
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_NO_REPLACE_OBJECTS": "1",
    "GIT_LITERAL_PATHSPECS": "1",
}
_SETTINGS = tuple(
    option
    for setting in (
        "gc.auto=0",
        "maintenance.auto=false",
        "core.fsmonitor=false",
        "core.splitIndex=false",
        "core.untrackedCache=false",
        "core.quotePath=false",
        "index.sparse=false",
        "i18n.commitEncoding=UTF-8",
        "log.showSignature=false",
        # Fail instead of inventing a name from those of the user and the machine.
        "user.useConfigOnly=true",
        # Files of a checkout may look like a bare repository, whose configuration runs commands.
        "safe.bareRepository=explicit",
    )
    for option in ("-c", setting)
)
_FATAL = 128
"""Exit code of git when it gives up before it begins."""
_REFUSED_BARE = re.compile(r"fatal: cannot use bare repository '(.*)' \(safe\.bareRepository")


class Result(Struct, frozen=True):
    """What a call of git printed, and its exit code."""

    out: bytes
    err: str
    code: int

    @property
    def ok(self) -> bool:
        """Whether git succeeded."""
        return self.code == 0


def run_git(folder: Path, args: Sequence[str], *, stdin: bytes = b"", env: Mapping[str, str] | None = None) -> Result:
    """Run git in a folder.

    Args:
        folder: a repository, or any folder in its working tree.
        args: the command and its arguments.
        stdin: standard input.
        env: more environment variables.

    Raises:
        InputError: KG0802, the folder does not exist, is not a folder, or has the files of a bare repository.
        SystemFailure: git is not installed or cannot be started.
    """
    inherited = {name: value for name, value in os.environ.items() if name not in NOT_INHERITED}
    fixed = dict(_ENVIRONMENT)
    # A program that asks for a password in a window hangs a pipeline, as a prompt in a terminal does.
    if "GIT_SSH_COMMAND" not in inherited and "GIT_SSH" not in inherited:
        fixed["SSH_ASKPASS_REQUIRE"] = "never"
    try:
        process = subprocess.run(
            ["git", *_SETTINGS, *args],
            cwd=folder,
            env={**inherited, **fixed, **(env or {})},
            input=stdin,
            capture_output=True,
            check=False,
        )
    except FileNotFoundError as error:
        if error.filename == "git":
            raise SystemFailure("git is not installed or not on the PATH", hint="install git 2.31 or later") from None
        raise InputError.of("KG0802", f"folder '{folder}' does not exist") from None
    except NotADirectoryError:
        raise InputError.of("KG0802", f"'{folder}' is not a folder") from None
    except OSError as error:
        raise SystemFailure(f"cannot run git: {error.strerror or error}") from None
    result = Result(process.stdout, process.stderr.decode("utf-8", "replace"), process.returncode)
    refused = _REFUSED_BARE.match(result.err) if result.code == _FATAL else None
    if refused:
        message = f"'{refused[1]}' looks like a bare Git repository, whose configuration could run commands"
        hint = "remove its files HEAD, objects and refs, or run kaigen in a clone with a working tree"
        raise InputError.of("KG0802", message, hint=hint)
    return result
