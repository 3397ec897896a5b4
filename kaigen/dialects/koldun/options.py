"""Options of `dllama` in lists of a resource: `launchOptions` of a Model, `args` of a Root or Worker."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec import Struct

from kaigen.diagnostics.suggest import did_you_mean
from kaigen.dialects.draft import Draft
from kaigen.kinds.base import FILE_PATH, matches
from kaigen.kinds.lowering import Lowering
from kaigen.kinds.spec import Path

_FILES: Mapping[str, str] = {"model": "model.m", "tokenizer": "tokenizer.t"}
"""kaigen's names of the converted files, by the options that name them."""
_MOUNT = "/model/"
"""Where later versions of the operator mount the volume."""

BUFFERS: Mapping[str, str] = {"q40": "q80", "f32": "f32"}
"""Type of the buffers by that of the weights; no other pair runs (source: distributed-llama 0.16.4)."""

_MANAGED: Mapping[str, str] = {
    "host": "the root and the workers listen on all addresses",
    "port": "the Service has the port of the API",
    "workers": "kaigen lists the workers of the ring",
    "prompt": "the server has no such option",
    "steps": "the server has no such option",
    "role": "the operator invented it, and the server has no such option",
    "slot": "the operator invented it, and the server has no such option",
    "root": "the operator invented it, and the server has no such option",
}
"""Options without effect, with the reason."""

_KNOWN = (
    *_FILES,
    *_MANAGED,
    *("buffer-float-type", "chat-template", "gpu-index", "gpu-segments", "max-seq-len"),
    *("net-turbo", "nthreads", "seed", "temperature", "topp"),
)


class Option(Struct, frozen=True):
    """An option with a value.

    Attributes:
        value: the value.
        path: where it is written.
    """

    value: str
    path: Path


def read_options(options: Sequence[str], at: Path) -> dict[str, Option]:
    """Return options by name, without the dashes; a later one replaces an earlier one.

    Args:
        options: names and values in turn, as the runtime reads them.
        at: path of the list.
    """
    found: dict[str, Option] = {}
    for index in range(0, len(options) - 1, 2):
        found[options[index].removeprefix("--")] = Option(options[index + 1], (*at, index + 1))
    return found


def put_files(draft: Draft, volume: Path, options: Mapping[str, Option], lowering: Lowering) -> None:
    """Put the names of the converted files in a volume, which the operator mounts at `/model`.

    Args:
        draft: the spec.
        volume: its field of the volume.
        options: the options that name the files.
        lowering: collects paths that are not in the volume.
    """
    for name, own in _FILES.items():
        option = options.get(name)
        if option is None:
            continue
        path = option.value.removeprefix("/").removeprefix("model/")
        if not matches(FILE_PATH, path) or not option.value.startswith((_MOUNT, _MOUNT[1:])):
            message = f"`{option.value}` is not in the volume, which is mounted at `{_MOUNT}`"
            lowering.error("KG0412", message, option.path, f"write `{_MOUNT}NAME`")
            return
        draft.put((*volume, "files", own), path, option.path)


def check_options(options: Sequence[str], at: Path, lowering: Lowering, *, weights: str = "") -> None:
    """Report options that the runtime does not have, and those that kaigen decides.

    Args:
        options: names and values in turn.
        at: path of the list.
        lowering: collects the problems.
        weights: type of the weights, which decides that of the buffers; empty when it is unknown.
    """
    for index, text in enumerate(options[::2]):
        here, name = (*at, 2 * index), text.removeprefix("--")
        if not text.startswith("--"):
            message = f"`{text}` is not an option: options and their values follow each other"
            lowering.error("KG0412", message, here, "write `--NAME` and its value as two entries")
        elif name not in _KNOWN:
            hint = did_you_mean(text, [f"--{known}" for known in _KNOWN]) or "delete it and its value"
            lowering.error("KG0412", f"distributed-llama has no option `{text}`", here, hint)
        elif 2 * index + 1 == len(options):
            message = f"`{text}` has no value, so the runtime ignores it"
            lowering.warning("KG0405", message, here, "add its value, or delete it")
        elif name in _MANAGED:
            message = f"`{text}` has no effect: {_MANAGED[name]}"
            lowering.warning("KG0405", message, here, "delete it and its value")
    buffer = read_options(options, at).get("buffer-float-type")
    if buffer is not None and weights and buffer.value != BUFFERS[weights]:
        lowering.warning(
            "KG0414",
            f"buffers of weights {weights} have the type {BUFFERS[weights]}, since no other runs",
            buffer.path,
            f"write `{BUFFERS[weights]}`, or delete the option",
        )
