"""Weights: a safetensors file, or one of torchvision's own, with torchvision's names of tensors."""

from __future__ import annotations

import hashlib
import io
import pickle
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load

from kaigen_classify.errors import BadWeights


def read_weights(path: Path, sha256: str | None) -> tuple[dict[str, Any], str]:
    """Return the tensors of a file by name, and its checksum.

    Args:
        path: the file.
        sha256: checksum that it must have; None for any.

    Raises:
        BadWeights: it is missing, has another checksum, or another format. A file of PyTorch needs the checksum: its
            format is Python's pickle, of which only tensors are read.
    """
    try:
        content = path.read_bytes()
    except OSError as error:
        raise BadWeights(f"the weights {path} cannot be read: {error.strerror or error}") from None
    found = hashlib.sha256(content).hexdigest()
    if sha256 is not None and found != sha256:
        raise BadWeights(f"the weights {path} have sha256 {found}, expected {sha256}")
    if path.suffix in (".pt", ".pth"):
        if sha256 is None:
            raise BadWeights(f"the weights {path} are a file of PyTorch, which needs a checksum")
        return _unpickled(path, content), found
    try:
        return load(content), found
    except (SafetensorError, ValueError, KeyError) as error:
        raise BadWeights(f"{path} is not a safetensors file: {error}") from None


def _unpickled(path: Path, content: bytes) -> dict[str, Any]:
    """Return the tensors of a file that `torch.save` wrote; nothing else of it is built."""
    try:
        tensors = torch.load(io.BytesIO(content), map_location="cpu", weights_only=True)
    except pickle.UnpicklingError:  # PyTorch's message says how to run what the file contains
        tensors = None
    except (RuntimeError, EOFError, ValueError, KeyError) as error:
        raise BadWeights(f"{path} is not a file of PyTorch: {error}") from None
    if not isinstance(tensors, dict) or not all(isinstance(tensor, torch.Tensor) for tensor in tensors.values()):
        raise BadWeights(f"{path} has something else than tensors by name")
    return dict(tensors)


@dataclass(slots=True)
class Tensors:
    """Tensors of a file, each of which is used exactly once.

    Attributes:
        tensors: those that are not used yet, by name.
        device: device of the network.
        dtype: number type of the convolutions.
    """

    tensors: dict[str, Any]
    device: str
    dtype: Any = torch.float32

    def take(self, name: str, *shape: int) -> Any:
        """Return a tensor in float32.

        Raises:
            BadWeights: it is missing or has another shape.
        """
        found = self.tensors.pop(name, None)
        if found is None:
            raise BadWeights(f"the weights have no tensor `{name}`; it needs torchvision's names")
        if tuple(found.shape) != shape:
            raise BadWeights(f"the tensor `{name}` has the shape {tuple(found.shape)}, expected {shape}")
        if not found.is_floating_point():
            raise BadWeights(f"the tensor `{name}` has numbers of type {found.dtype}")
        return found.to(torch.float32)

    def convolution(self, conv: str, norm: str, *shape: int, eps: float) -> tuple[Any, Any, tuple[Any, ...]]:
        """Return weight and bias of a convolution, and mean, variance, weight and bias of its batch normalization.

        With less than float32, the normalization becomes part of the convolution, which is faster. In float32 the
        result is that of torchvision; there the two steps round differently from one.

        Args:
            conv: name of the convolution.
            norm: name of the normalization.
            shape: shape of the convolution's weight.
            eps: what the normalization adds to the variance.
        """
        weight = self.take(f"{conv}.weight", *shape)
        scale, shift, mean, variance = (
            self.take(f"{norm}.{name}", shape[0]) for name in ("weight", "bias", "running_mean", "running_var")
        )
        self.tensors.pop(f"{norm}.num_batches_tracked", None)
        if self.dtype is torch.float32:
            return self.placed(weight), None, tuple(map(self.placed, (mean, variance, scale, shift)))
        factor = scale / torch.sqrt(variance + eps)
        return self.placed(weight * factor.reshape(-1, 1, 1, 1)), self.placed(shift - mean * factor), ()

    def placed(self, tensor: Any, *, exact: bool = False) -> Any:
        """Return a tensor on the device; in float32 if it must be exact."""
        on_gpu = self.device != "cpu"
        layout = torch.channels_last if on_gpu and tensor.dim() == 4 else torch.contiguous_format
        return tensor.to(device=self.device, dtype=torch.float32 if exact else self.dtype, memory_format=layout)

    def check_all_used(self) -> None:
        """Check that the file has no other tensors, as that of another network has.

        Raises:
            BadWeights: it has.
        """
        if self.tensors:
            raise BadWeights(f"the weights have tensors of another network, such as `{min(self.tensors)}`")
