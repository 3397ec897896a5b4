"""Files that documents name: a model's `config.json`."""

from __future__ import annotations

import json
import os
from hashlib import sha256
from typing import TYPE_CHECKING, Any

from kaigen.diagnostics.diagnostic import Mark
from kaigen.diagnostics.errors import InputError
from kaigen.diagnostics.problem import ProblemError
from kaigen.files import read_regular
from kaigen.system.limits import FILE_BYTES

if TYPE_CHECKING:
    from kaigen.kinds.input_documents import ObjectName

MAX_BYTES = FILE_BYTES
"""Size of the largest file that is read."""

_CODE = "KG1103"


def file_key(path: str) -> ObjectName:
    """Return the name by which lookups record a file; names of objects have an apiVersion and a kind."""
    return ("", "", path)


def file_digest(path: str) -> str:
    """Return a digest of a file's content; empty when it cannot be read."""
    try:
        return sha256(read_file(path)).hexdigest()
    except ProblemError:
        return ""


def is_model_config(data: Any) -> bool:
    """Return whether a document is the `config.json` of a model, which lies next to the specs that name it."""
    return (
        isinstance(data, dict) and isinstance(data.get("model_type"), str) and not {"apiVersion", "kind"} & data.keys()
    )


def resolve_file(named: str, document: str, root: str) -> str:
    """Return the path of a file that a document names.

    Args:
        named: relative to the document.
        document: path of the document; empty or in angle brackets when it is not a file.
        root: the repository.

    Raises:
        ProblemError: the file is outside of the repository, or no JSON by its name.
    """
    if not named.endswith(".json"):
        # `kaigen diff` restores the JSON files of a commit only.
        raise ProblemError(_CODE, f"the name of `{named}` does not end in .json", hint="name the model's config.json")
    folder = root if not document or document.startswith("<") else os.path.dirname(document)
    path = os.path.normpath(os.path.join(folder, named))
    real = os.path.realpath(path)
    if not any(_is_below(real, os.path.realpath(allowed)) for allowed in (root, folder or ".")):
        hint = "copy the file into the repository"
        raise ProblemError(_CODE, f"`{named}` is outside of the repository", hint=hint)
    return path


def _is_below(path: str, folder: str) -> bool:
    return path.startswith(folder if folder.endswith(os.sep) else folder + os.sep)


def read_file(path: str) -> bytes:
    """Return the content of a file.

    Raises:
        ProblemError: it is missing, not a file, unreadable or too large.
    """
    hint = "name the model's config.json, relative to the spec"
    try:
        data = read_regular(path, MAX_BYTES)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise ProblemError(_CODE, f"cannot read `{path}`: {reason.lower()}", hint=hint) from None
    if len(data) > MAX_BYTES:
        raise ProblemError(_CODE, f"`{path}` is larger than 2 MiB", hint=hint)
    return data


def parse_config(data: bytes, path: str) -> dict[str, Any]:
    """Return the content of a `config.json`.

    Args:
        data: the file.
        path: of the file, for the message.

    Raises:
        InputError: it is not a mapping in JSON.
    """
    mark = Mark(path)
    try:
        config = json.loads(data)
    except json.JSONDecodeError as error:
        mark = Mark(path, error.lineno, error.colno)
        reason = f"{error.msg[:1].lower()}{error.msg[1:]}"
    except RecursionError:
        reason = "it is nested too deeply"
    except ValueError as error:
        reason = str(error)
    else:
        if isinstance(config, dict):
            return config
        reason = "it is not a mapping"
    hint = "copy config.json from the repository of the model"
    raise InputError.of(_CODE, f"not a config.json: {reason}", mark=mark, hint=hint)
