"""The loss of a model on samples it is not trained on."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import distributed

from kaigen_train.model import Machine
from kaigen_train.tokens import IGNORED, Tokens


class Samples(torch.utils.data.Dataset):  # type: ignore[misc]
    """Samples as transformers' Trainer reads them."""

    def __init__(self, tokens: Sequence[Tokens]) -> None:
        """Take the samples."""
        self._tokens = tokens

    def __len__(self) -> int:
        """Return the number of samples."""
        return len(self._tokens)

    def __getitem__(self, index: int) -> Tokens:
        """Return a sample."""
        return self._tokens[index]


class Batches:
    """Makes tensors of samples: shorter ones are filled at their end."""

    def __init__(self, filler: int) -> None:
        """Take the token that fills."""
        self._filler = filler

    def __call__(self, samples: Sequence[Tokens]) -> dict[str, Any]:
        """Return a batch."""
        length = max(len(sample.ids) for sample in samples)
        shape = (len(samples), length)
        ids = torch.full(shape, self._filler)
        labels = torch.full(shape, IGNORED)
        mask = torch.zeros(shape, dtype=torch.long)
        for row, sample in enumerate(samples):
            end = len(sample.ids)
            ids[row, :end] = torch.tensor(sample.ids)
            labels[row, :end] = torch.tensor(sample.labels)
            mask[row, :end] = 1
        return {"input_ids": ids, "attention_mask": mask, "labels": labels}


def evaluate(model: Any, samples: Sequence[Tokens], batches: Batches, size: int, machine: Machine) -> float:
    """Return the mean loss of the tokens that are trained on; processes share the samples.

    Args:
        model: the model, the same in every process.
        samples: the samples, the same in every process.
        batches: makes tensors of samples.
        size: samples in one pass.
        machine: what this process computes with.
    """
    shared = distributed.is_available() and distributed.is_initialized()
    rank, world = (distributed.get_rank(), distributed.get_world_size()) if shared else (0, 1)
    own = samples[rank::world]
    total = torch.zeros(2, dtype=torch.float64, device=machine.device)
    training = model.training
    model.eval()
    with torch.no_grad(), torch.autocast(machine.device.type, machine.dtype, enabled=machine.mixed):
        for begin in range(0, len(own), size):
            batch = {key: value.to(machine.device) for key, value in batches(own[begin : begin + size]).items()}
            labels = batch.pop("labels")
            logits = model(**batch).logits[:, :-1].float()
            loss = torch.nn.functional.cross_entropy(
                logits.flatten(0, 1), labels[:, 1:].flatten(), ignore_index=IGNORED, reduction="sum"
            )
            total += torch.stack((loss.double(), (labels[:, 1:] != IGNORED).sum().double()))
    model.train(training)
    if shared:
        distributed.all_reduce(total)
    return float(total[0] / total[1])
