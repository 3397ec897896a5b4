"""Checks a model folder before anything is loaded. Reads only names and JSON."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path

from kaigen_chat.errors import BadModel, NotComplete

MARKER = Path(".kaigen") / "model.json"
ADAPTER_CONFIG = "adapter_config.json"
ADAPTER_WEIGHTS = "adapter_model.safetensors"
ANY = "any"

# File names with which weights are pickled: loading one runs whatever code it brings.
_PICKLED = (".bin", ".pt", ".pth", ".ckpt", ".pkl", ".pickle")


def check(folder: Path, *, trust_remote_code: bool) -> None:
    """Reject models that this server does not support.

    Args:
        folder: the model's folder.
        trust_remote_code: whether Python code in the folder may run.

    Raises:
        BadModel: with the one thing to do about it.
    """
    if not folder.exists():
        raise BadModel(f"{folder} does not exist. The model must be in a local folder: nothing is fetched from a Hub")
    if not folder.is_dir():
        raise BadModel(f"{folder} is not a folder")
    config = _json(folder / "config.json")
    names = sorted(path.name for path in folder.iterdir() if path.is_file())
    _check_weights(folder, names)
    if "auto_map" in config and not trust_remote_code:
        raise BadModel(
            f"{folder}/config.json asks to run Python code from the folder (auto_map). "
            "Read that code, then allow it with --trust-remote-code"
        )


def check_adapter(folder: Path) -> None:
    """Reject adapters that this server does not support.

    Args:
        folder: the adapter's folder.

    Raises:
        BadModel: with the one thing to do about it.
    """
    config = _json(folder / ADAPTER_CONFIG)
    kind = config.get("peft_type")
    if kind != "LORA":
        raise BadModel(f"{folder} is an adapter of type {kind}: only LoRA adapters are supported")
    if not (folder / ADAPTER_WEIGHTS).is_file():
        raise BadModel(f"{folder} has no {ADAPTER_WEIGHTS}. Convert its weights to safetensors")


def _check_weights(folder: Path, names: list[str]) -> None:
    if any(name.endswith(".safetensors") for name in names):
        index = folder / "model.safetensors.index.json"
        if index.exists():
            _check_shards(folder, index, frozenset(names))
        return
    pickled = [name for name in names if name.endswith(_PICKLED) and name != "training_args.bin"]
    if pickled:
        raise BadModel(
            f"{folder} has its weights as a pickle ({pickled[0]}), which can run any code when it is loaded. "
            "Convert them to safetensors"
        )
    raise BadModel(f"{folder} has no weights: no *.safetensors file in it")


def _check_shards(folder: Path, index: Path, names: frozenset[str]) -> None:
    shards = _json(index).get("weight_map")
    if not isinstance(shards, dict):
        raise BadModel(f"{index} has no weight_map")
    wanted = sorted({str(name) for name in shards.values()})
    for name in wanted:
        if "/" in name or not name.endswith(".safetensors"):
            raise BadModel(f"{index} names a file that is not a safetensors file in the same folder: {name}")
    missing = [name for name in wanted if name not in names]
    if missing:
        raise BadModel(f"{folder} is not complete: {len(missing)} of its files are missing, {missing[0]} first")


def _json(path: Path) -> dict[str, object]:
    try:
        found = json.loads(path.read_bytes())
    except FileNotFoundError:
        raise BadModel(f"{path} is missing: is {path.parent} the folder of a model?") from None
    except (OSError, ValueError) as error:
        raise BadModel(f"cannot read {path}: {error}") from None
    if not isinstance(found, dict):
        raise BadModel(f"{path} is not a JSON object")
    return found


def missing(folder: Path, identity: str) -> str | None:
    """Return what is missing for completeness; None when the folder is complete.

    The marker is kaigen-downloader's, and the last thing it writes.

    Args:
        folder: the model's folder.
        identity: what the marker must name, or `any`.
    """
    try:
        found = json.loads((folder / MARKER).read_bytes())
        files = [(str(file["path"]), int(file["size"])) for file in found["files"]]
        schema, marked = found["schema"], str(found["identity"])
    except FileNotFoundError:
        return "there is no marker yet"
    except (OSError, ValueError, KeyError, TypeError) as error:
        return f"the marker cannot be read ({type(error).__name__})"
    if schema != 1:
        return f"the marker is of schema {schema}, which is not known here"
    if identity not in (ANY, marked):
        return "the marker is of another model or revision"
    for name, size in files:
        try:
            there = (folder / name).stat().st_size
        except OSError:
            return f"{name} is missing"
        if there != size:
            return f"{name} has {there} bytes instead of {size}"
    return None


def wait(folder: Path, identity: str, *, timeout: float, say: Callable[[str], None], poll: float = 2.0) -> None:
    """Block until the folder has a completion marker.

    Args:
        folder: the model's folder.
        identity: what the marker must name, or `any`.
        timeout: seconds.
        say: called with the missing item whenever it changes.
        poll: seconds between two looks.

    Raises:
        NotComplete: the time is over.
    """
    end = time.monotonic() + timeout
    reported = None
    while (lack := missing(folder, identity)) is not None:
        if lack != reported:
            say(f"waiting for {folder}: {lack}")
            reported = lack
        if (left := end - time.monotonic()) <= 0:
            raise NotComplete(f"{folder} is not complete after {timeout:g} seconds: {lack}")
        time.sleep(min(poll, left))
