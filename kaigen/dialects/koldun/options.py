"""Options of `dllama` in lists of a resource: `launchOptions` of a Model, `args` of a Root or Worker."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec import Struct

from kaigen.core.json_types import FieldPath
from kaigen.diagnostics.suggest import did_you_mean
from kaigen.dialects.draft import Draft
from kaigen.kinds.base import FILE_PATH, matches
from kaigen.kinds.lowering import Lowering
from kaigen.sizing.ring import BUFFER_TYPES, RING_FLAGS

_FILES: Mapping[str, str] = {"model": "model.m", "tokenizer": "tokenizer.t"}
"""kaigen's names of the converted files, by the options that name them."""
_MOUNT = "/model/"
"""Where later versions of the operator mount the volume."""

BUFFER = "buffer-float-type"
WEIGHTS: Mapping[str, str] = {buffer: weights for weights, buffer in BUFFER_TYPES.items()}
"""Type of the weights by that of the buffers: no other pair runs."""

SHARED = frozenset({"gpu-index", "gpu-segments", "net-turbo", "nthreads"})
"""Options that the root and the workers have both, and that are the same in all pods of a ring."""

NAMED_FILES: Mapping[str, str] = dict.fromkeys(_FILES, "kaigen knows the names of the files of the Model")
"""Why options that name files have no effect where the options of the volume do not belong to this list."""

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

_KNOWN = (*_FILES, *_MANAGED, *RING_FLAGS, *(BUFFER, "max-seq-len", "nthreads"))
ROOT_ONLY: Mapping[str, str] = {
    name: "only the root of a ring reads it" for name in _KNOWN if name not in SHARED and name not in _MANAGED
}
"""Why a Worker's options have no effect."""


class Option(Struct, frozen=True):
    """An option with a value.

    Attributes:
        value: the value.
        path: where it is written.
    """

    value: str
    path: FieldPath


def read_options(options: Sequence[str], at: FieldPath) -> dict[str, Option]:
    """Return options by name, without the dashes; a later one replaces an earlier one.

    Args:
        options: names and values in turn, as the runtime reads them.
        at: path of the list.
    """
    found: dict[str, Option] = {}
    for index in range(0, len(options) - 1, 2):
        found[options[index].removeprefix("--")] = Option(options[index + 1], (*at, index + 1))
    return found


def put_files(draft: Draft, volume: FieldPath, options: Mapping[str, Option], lowering: Lowering) -> None:
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


def check_options(
    options: Sequence[str],
    at: FieldPath,
    lowering: Lowering,
    *,
    weights: str = "",
    unused: Mapping[str, str] | None = None,
) -> None:
    """Report options that the runtime does not have, and those that kaigen decides.

    Args:
        options: names and values in turn.
        at: path of the list.
        lowering: collects the problems.
        weights: type of the weights, which decides that of the buffers; empty when the buffers decide it.
        unused: further options without effect, with the reason.
    """
    reasons = {**_MANAGED, **(unused or {})}
    last: dict[str, FieldPath] = {}
    for index, text in enumerate(options[::2]):
        here, (name, equals, value) = (*at, 2 * index), text.removeprefix("--").partition("=")
        if not text.startswith("--"):
            message = f"`{text}` is not an option: options and their values follow each other"
            lowering.error("KG0412", message, here, "write `--NAME` and its value as two entries")
            return
        if name not in _KNOWN:
            hint = did_you_mean(f"--{name}", [f"--{known}" for known in _KNOWN]) or "delete it and its value"
            lowering.error("KG0412", f"distributed-llama has no option `--{name}`", here, hint)
        elif equals:
            message = f"`{text}` is one entry, and the runtime reads the value from the next one"
            lowering.error("KG0412", message, here, f'write two entries: `"--{name}", "{value}"`')
            return
        elif 2 * index + 1 == len(options):
            message = f"`{text}` has no value, so the runtime ignores it"
            lowering.warning("KG0405", message, here, "add its value, or delete it")
        elif name in reasons:
            message = f"`{text}` has no effect: {reasons[name]}"
            lowering.warning("KG0405", message, here, "delete it and its value")
        else:
            if name in last:
                message = f"`{text}` has no effect: the option follows once more, and the last one counts"
                lowering.warning("KG0405", message, last[name], "delete it and its value")
            last[name] = here
    buffer = read_options(options, at).get(BUFFER)
    if buffer is not None and BUFFER in last:
        _check_buffer(buffer, weights, lowering)


def _check_buffer(buffer: Option, weights: str, lowering: Lowering) -> None:
    """Report a type of the buffers with which no weights run, or not these."""
    if weights and buffer.value != BUFFER_TYPES[weights]:
        lowering.warning(
            "KG0414",
            f"buffers of weights {weights} have the type {BUFFER_TYPES[weights]}, since no other runs",
            buffer.path,
            f"write `{BUFFER_TYPES[weights]}`, or delete the option",
        )
    elif buffer.value not in WEIGHTS:
        pairs = " or ".join(f"`{each}` for weights of type {WEIGHTS[each]}" for each in WEIGHTS)
        message = f"distributed-llama runs no weights with buffers of type `{buffer.value}`"
        lowering.error("KG0412", message, buffer.path, f"write {pairs}")
