"""Tensors in safetensors files: a few rows at a time, in float32."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
from safetensors import SafetensorError, safe_open

from kaigen_convert.documents import read_document
from kaigen_convert.errors import NotConvertible, NotFound, explain

Floats = npt.NDArray[np.float32]

WIDTHS = {"F32": 4, "F16": 2, "BF16": 2}
"""Bytes of a number by its type in safetensors."""

_INDEX = "model.safetensors.index.json"
_IGNORED = re.compile(r"consolidated.*|.*\.rotary_emb\.inv_freq")


@dataclass(frozen=True, slots=True)
class Tensor:
    """A tensor in a file.

    Attributes:
        name: its name.
        file: descriptor of the file.
        path: of the file.
        start: position of its first byte.
        dtype: as in safetensors.
        shape: its shape.
    """

    name: str
    file: int
    path: Path
    start: int
    dtype: str
    shape: tuple[int, ...]

    @property
    def row(self) -> int:
        """Numbers of a row."""
        return self.shape[1] if len(self.shape) == 2 else 1

    def rows(self, first: int, count: int) -> Floats:
        """Return some rows, or numbers of a vector, flat and in float32.

        Raises:
            NotConvertible: the file has become shorter.
            Failure: it cannot be read.
        """
        width = WIDTHS[self.dtype] * self.row
        try:
            data = _read(self.file, self.start + first * width, count * width)
        except OSError as error:
            raise explain(error, str(self.path)) from None
        if len(data) != count * width:
            raise NotConvertible(f"{self.path} ends inside of the tensor `{self.name}`")
        if self.dtype == "F32":
            return np.frombuffer(data, "<f4")
        if self.dtype == "F16":
            return np.frombuffer(data, "<f2").astype(np.float32)
        return (np.frombuffer(data, "<u2").astype("<u4") << np.uint32(16)).view("<f4")


def _read(file: int, start: int, length: int) -> bytearray:
    """Return bytes of a file: one read returns at most 2 GiB, or less where a signal arrives."""
    data = bytearray(length)
    view, done = memoryview(data), 0
    while done < length:
        count = os.preadv(file, [view[done:]], start + done)
        if not count:
            break
        done += count
    view.release()
    del data[done:]
    return data


class Tensors:
    """The tensors of a model by name. Close it with `close`."""

    def __init__(self, folder: Path) -> None:
        """Open the files of a folder and read their headers.

        Raises:
            NotFound: there are none.
            NotConvertible: a file is broken, or two have the same tensor.
        """
        self._opened = ExitStack()
        self._found: dict[str, Tensor] = {}
        self._used: set[str] = set()
        try:
            for path in _files(folder):
                for tensor in self._read_header(path):
                    if tensor.name in self._found:
                        where = f"{self._found[tensor.name].path.name} and {path.name}"
                        raise NotConvertible(f"the tensor `{tensor.name}` is in {where}")
                    self._found[tensor.name] = tensor
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Close the files."""
        self._opened.close()

    def _read_header(self, path: Path) -> Iterator[Tensor]:
        """Return the tensors of a file, whose header the library has checked: sizes, order, end of the file."""
        try:
            with safe_open(str(path), "np") as checked:
                shapes = {
                    name: (part.get_dtype(), tuple(part.get_shape()))
                    for name in checked.keys()  # noqa: SIM118 - it is not a mapping
                    for part in (checked.get_slice(name),)
                }
            file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
            self._opened.callback(os.close, file)
            length = int.from_bytes(os.pread(file, 8, 0), "little")
            header = json.loads(bytes(_read(file, 8, length)))
            for name, (dtype, shape) in shapes.items():
                start = 8 + length + int(header[name]["data_offsets"][0])
                yield Tensor(name, file, path, start, str(dtype), shape)
        except OSError as error:
            raise explain(error, str(path)) from None
        except (SafetensorError, ValueError, KeyError, TypeError, RecursionError) as error:
            raise NotConvertible(f"{path} is not a valid safetensors file: {error}") from None

    def take(self, names: tuple[str, ...], shape: tuple[int, ...]) -> Tensor:
        """Return the first tensor that exists.

        Args:
            names: names to try.
            shape: shape that it must have.

        Raises:
            NotConvertible: none exists, or it has another shape or numbers of another type.
        """
        found = next((self._found[name] for name in names if name in self._found), None)
        if found is None:
            raise NotConvertible(f"the files have no tensor `{names[0]}`")
        self._used.add(found.name)
        if found.shape != shape:
            raise NotConvertible(f"the tensor `{found.name}` has the shape {found.shape}, expected {shape}")
        if found.dtype not in WIDTHS:
            known = ", ".join(WIDTHS)
            raise NotConvertible(f"the tensor `{found.name}` has numbers of type {found.dtype}, not {known}")
        return found

    def check_all_used(self) -> None:
        """Check that the format has a place for every tensor.

        Raises:
            NotConvertible: a tensor would be lost, such as a bias.
        """
        unused = sorted(name for name in self._found.keys() - self._used if not _IGNORED.fullmatch(name))
        if unused:
            raise NotConvertible(f"distributed-llama has no place for the tensor `{unused[0]}`: {len(unused)} unused")


def _files(folder: Path) -> list[Path]:
    """Return the files with weights: those of the index, or all."""
    index = read_document(folder / _INDEX)
    if index is None:
        names = {path.name for path in folder.glob("*.safetensors") if not _IGNORED.fullmatch(path.name)}
        if not names:
            raise NotFound(f"{folder} has no *.safetensors; do not exclude them from the download")
    else:
        listed = index.get("weight_map")
        names = {str(name) for name in listed.values()} if isinstance(listed, dict) else set()
        strange = sorted(name for name in names if not re.fullmatch(r"[\w.-]+\.safetensors", name))
        if strange or not names:
            raise NotConvertible(f"{_INDEX} has no list of files, or a strange one: {strange[:1]}")
    for name in sorted(names):
        if not (folder / name).is_file():
            raise NotFound(f"{folder} has no {name}, which {_INDEX} lists")
    return [folder / name for name in sorted(names)]
