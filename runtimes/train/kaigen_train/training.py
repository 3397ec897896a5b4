"""A training run: from the input to the result, on from the last checkpoint if there is one."""

from __future__ import annotations

import json
import math
import os
import random
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from torch import distributed
from transformers import Trainer, TrainerCallback, TrainingArguments, set_seed
from transformers.trainer_callback import PrinterCallback
from transformers.utils import logging

from kaigen_train import files
from kaigen_train.checkpoints import Checkpoints, identity
from kaigen_train.dataset import Dataset
from kaigen_train.errors import BadInput, NoDevice, NotWritten, ProcessLost
from kaigen_train.evaluation import Batches, Samples, evaluate
from kaigen_train.machine import cpus
from kaigen_train.model import (
    ADAPTER,
    MODEL,
    Machine,
    load_model,
    load_tokenizer,
    machine,
    merged,
    write_adapter,
    write_model,
)
from kaigen_train.settings import Settings
from kaigen_train.tokens import Tokens, tokenize

REPORT = "report.json"
"""File of the output with the outcome, written last."""

_MOST_EVALUATED = 256
"""Samples of the training that are evaluated where there are no others."""


@dataclass(frozen=True, slots=True)
class Job:
    """What a run computes.

    Attributes:
        settings: the settings.
        model: folder of the model.
        output: folder for the result.
        flat: whether the files of the result are in the output itself.
        identity: what the run computes, as a checksum.
        train: samples to train on.
        evaluation: samples to evaluate.
        held_out: whether those are not trained on.
        skipped: number of samples without a token to train on.
    """

    settings: Settings
    model: Path
    output: Path
    flat: bool
    identity: str
    train: Sequence[Tokens]
    evaluation: Sequence[Tokens]
    held_out: bool
    skipped: int


def train(settings: Settings, model: Path, dataset: Dataset, output: Path, *, flat: bool = False) -> Mapping[str, Any]:
    """Train, write the result, and return the report.

    Args:
        settings: the settings.
        model: folder of the model.
        dataset: the samples.
        output: folder for the result.
        flat: whether the files of the result are in the output itself, in place of a folder of it.

    Raises:
        BadInput: the model or the samples cannot be used.
        NoDevice: there is no GPU, or too small a one.
        NotWritten: the disk is full.
        ProcessLost: another process of the run ended.
    """
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    world, rank = int(os.environ.get("WORLD_SIZE", "1")), int(os.environ.get("RANK", "0"))
    run = identity(settings.document(), model, dataset.sha256, world)
    done = _earlier_report(output, run, flat=flat)
    if done is not None:
        _print({"event": "end", **done}, rank)
        return done
    _check_output(output)
    torch.set_num_threads(max(1, cpus() // int(os.environ.get("LOCAL_WORLD_SIZE", "1"))))
    device = machine(settings, int(os.environ.get("LOCAL_RANK", "0")))
    try:
        return _Run(_prepare(settings, model, dataset, output, run, flat=flat), device, rank, world).run()
    except torch.OutOfMemoryError:
        raise NoDevice(
            "the memory of the GPU is full; set a smaller `batchSize` or `maxLength`, or `method: qlora`"
        ) from None
    except RuntimeError as error:
        if world == 1 or not _is_of_connection(error):
            raise
        raise ProcessLost(
            "another process of the run has ended or cannot be reached; the next attempt goes on from the last "
            "checkpoint"
        ) from None
    except (OSError, SafetensorError) as error:
        raise NotWritten(f"{output} cannot be written: {getattr(error, 'strerror', None) or error}") from None


def _is_of_connection(error: RuntimeError) -> bool:
    """Return whether an error says that a process cannot reach another one; gloo has no class for it."""
    return isinstance(error, distributed.DistError) or "/gloo/transport/" in str(error)


def _earlier_report(output: Path, run: str, *, flat: bool) -> dict[str, Any] | None:
    try:
        found = json.loads((output / REPORT).read_text("utf-8"))
    except (OSError, ValueError):
        return None
    if not isinstance(found, dict) or found.get("identity") != run or (found.get("result") == ".") != flat:
        return None
    return found if (output / str(found.get("result"))).is_dir() else None


def _check_output(output: Path) -> None:
    with files.reported(output):
        output.mkdir(parents=True, exist_ok=True)
        probe = output / f".probe-{os.getpid()}"
        probe.write_bytes(b"")
        probe.unlink()


def _prepare(settings: Settings, model: Path, dataset: Dataset, output: Path, run: str, *, flat: bool) -> Job:
    tokenizer = load_tokenizer(model)
    samples = tokenize(dataset.train, tokenizer, settings.max_length)
    skipped = len(dataset.train) - len(samples)
    if not samples:
        raise BadInput(
            f"none of {len(dataset.train)} samples has a token to train on among its first {settings.max_length}; set "
            "a larger `maxLength`"
        )
    evaluation = tokenize(dataset.evaluation, tokenizer, settings.max_length)
    if not evaluation:
        number = int(len(samples) * settings.evaluation)
        held = set(random.Random(settings.seed).sample(range(len(samples)), number))
        evaluation = [samples[index] for index in sorted(held)]
        samples = [sample for index, sample in enumerate(samples) if index not in held]
    held_out = bool(evaluation)
    shown = evaluation or samples[:_MOST_EVALUATED]
    return Job(settings, model, output, flat, run, samples, shown, held_out, skipped)


class _Run:
    """One process of a run."""

    def __init__(self, job: Job, device: Machine, rank: int, world: int) -> None:
        self._job, self._machine, self._rank, self._world = job, device, rank, world
        self._checkpoints = Checkpoints(job.output, job.identity)

    def run(self) -> dict[str, Any]:
        """Train, write the result, and return the report."""
        job, settings = self._job, self._job.settings
        resumed = self._checkpoints.last()
        progress = _progress(resumed)
        begin = time.monotonic() - progress["seconds"]
        arguments = self._arguments()
        set_seed(settings.seed)
        model = load_model(job.model, settings, self._machine)
        _check_size(model, job)
        filler = model.config.eos_token_id
        batches = Batches(filler if isinstance(filler, int) else 0)
        steps = _Progress(self._checkpoints, begin, self._rank)
        trainer = Trainer(
            model=model, args=arguments, train_dataset=Samples(job.train), data_collator=batches, callbacks=[steps]
        )
        trainer.remove_callback(PrinterCallback)
        before = progress.get("before")
        if before is None:
            before = self._evaluate(trainer, batches)
        steps.before = before
        _print(
            {
                "event": "start",
                "method": settings.method,
                "samples": len(job.train),
                "skipped": job.skipped,
                "evaluationSamples": len(job.evaluation),
                "loss": before,
                "processes": self._world,
                "device": self._machine.device.type,
                "precision": self._machine.precision,
                "resumedFrom": progress["step"],
            },
            self._rank,
        )
        # The evaluation, which a run that goes on leaves out, takes no random numbers from the training.
        set_seed(settings.seed)
        trainer.train(resume_from_checkpoint=str(resumed) if resumed else None)
        after = self._evaluate(trainer, batches)
        if not math.isfinite(after):
            raise BadInput("the loss is not a number after the training; set a lower `learningRate`")
        report = self._report(trainer, {"before": before, "after": after}, progress["step"])
        if self._rank == 0:
            self._write(trainer.model)
            report["seconds"] = round(time.monotonic() - begin, 2)
            files.write_json(job.output / REPORT, report)
            self._checkpoints.remove()
        _print({"event": "end", **report}, self._rank)
        if distributed.is_initialized():
            distributed.barrier()
            distributed.destroy_process_group()
        return report

    def _arguments(self) -> TrainingArguments:
        settings, device = self._job.settings, self._machine
        return TrainingArguments(
            output_dir=str(self._checkpoints.folder),
            per_device_train_batch_size=settings.batch_size,
            gradient_accumulation_steps=settings.gradient_accumulation,
            num_train_epochs=settings.epochs,
            learning_rate=settings.learning_rate,
            lr_scheduler_type=settings.schedule if settings.schedule != "constant" else "constant_with_warmup",
            warmup_steps=settings.warmup,
            weight_decay=settings.weight_decay,
            seed=settings.seed,
            data_seed=settings.seed,
            use_cpu=device.device.type == "cpu",
            bf16=device.precision == "bfloat16",
            fp16=device.precision == "float16",
            activation_checkpointing=settings.gradient_checkpointing,
            activation_checkpointing_kwargs={"use_reentrant": False} if settings.gradient_checkpointing else None,
            full_determinism=device.device.type == "cpu",
            save_strategy="steps",
            save_steps=settings.checkpoint_steps,
            logging_steps=1,
            logging_nan_inf_filter=False,
            include_num_input_tokens_seen="non_padding",
            remove_unused_columns=False,
            ddp_find_unused_parameters=False if self._world > 1 else None,
            dataloader_pin_memory=device.device.type == "cuda",
            disable_tqdm=True,
            report_to=[],
        )

    def _evaluate(self, trainer: Trainer, batches: Batches) -> float:
        job = self._job
        return evaluate(trainer.model, job.evaluation, batches, job.settings.batch_size, self._machine)

    def _report(self, trainer: Trainer, loss: Mapping[str, float], resumed: int | None) -> dict[str, Any]:
        job, settings, state = self._job, self._job.settings, trainer.state
        whole = settings.merge or settings.method == "full"
        parameters = list(trainer.model.parameters())
        return {
            "identity": job.identity,
            "method": settings.method,
            "result": "." if job.flat else MODEL if whole else ADAPTER,
            "loss": {**loss, "of": "samples that are not trained on" if job.held_out else "trained samples"},
            "samples": len(job.train),
            "skipped": job.skipped,
            "evaluationSamples": len(job.evaluation),
            "tokens": int(state.num_input_tokens_seen),
            "steps": state.global_step,
            "epochs": settings.epochs,
            "trainedParameters": sum(each.numel() for each in parameters if each.requires_grad),
            "resumedFrom": resumed,
            "processes": self._world,
            "device": self._machine.device.type,
            "precision": self._machine.precision,
            "settings": settings.document(),
        }

    def _write(self, model: Any) -> None:
        job, settings = self._job, self._job.settings
        target = job.output, job.flat
        if settings.method == "full":
            files.write_result(*target, MODEL, lambda folder: write_model(model, job.model, folder))
        elif not settings.merge:
            files.write_result(*target, ADAPTER, lambda folder: write_adapter(model, folder))
        else:
            adapter = self._checkpoints.folder / "adapter"
            files.write_folder(adapter, lambda folder: write_adapter(model, folder))
            whole = merged(job.model, adapter)
            files.write_result(*target, MODEL, lambda folder: write_model(whole, job.model, folder))


def _check_size(model: Any, job: Job) -> None:
    """Check that the model knows every token and position.

    Raises:
        BadInput: it does not.
    """
    words = model.get_input_embeddings().weight.shape[0]
    samples = [*job.train, *job.evaluation]
    if max(max(sample.ids) for sample in samples) >= words:
        raise BadInput(f"{job.model}: the tokenizer has tokens that the model with its {words} does not know")
    longest, positions = (
        max(len(sample.ids) for sample in samples),
        getattr(model.config, "max_position_embeddings", None),
    )
    if isinstance(positions, int) and longest > positions:
        raise BadInput(
            f"a sample has {longest} tokens, and the model has {positions} positions; set `maxLength: {positions}`"
        )


def _progress(checkpoint: Path | None) -> dict[str, Any]:
    if checkpoint is None:
        return {"step": None, "seconds": 0.0}
    return dict(json.loads((checkpoint / Checkpoints.MARKER).read_text("utf-8")))


def _print(line: Mapping[str, Any], rank: int) -> None:
    """Print one line of JSON: of the first process only."""
    if rank == 0:
        sys.stdout.write(json.dumps(line) + "\n")
        sys.stdout.flush()


class _Progress(TrainerCallback):  # type: ignore[misc]
    """Prints each step, and completes checkpoints."""

    def __init__(self, checkpoints: Checkpoints, begin: float, rank: int) -> None:
        self._checkpoints, self._begin, self._rank = checkpoints, begin, rank
        self.before: float | None = None

    def on_train_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """Remove the checkpoints of other runs."""
        if self._rank == 0:
            self._checkpoints.remove_others()

    def on_log(self, args: Any, state: Any, control: Any, logs: Mapping[str, Any], **_: Any) -> None:
        """Print a step.

        Raises:
            BadInput: the loss is not a number.
        """
        if "loss" not in logs:
            return  # the summary at the end
        if not math.isfinite(logs["loss"]):
            raise BadInput(f"the loss is not a number after step {state.global_step}; set a lower `learningRate`")
        line = {
            "event": "step",
            "step": state.global_step,
            "steps": state.max_steps,
            "epoch": round(state.epoch, 4),
            "loss": logs["loss"],
            "gradientNorm": logs.get("grad_norm"),
            "learningRate": logs.get("learning_rate"),
            "tokens": int(state.num_input_tokens_seen),
            "seconds": round(time.monotonic() - self._begin, 2),
        }
        _print(line, self._rank)

    def on_save(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """Complete a checkpoint when all processes have written what they add to it."""
        if distributed.is_initialized():
            distributed.barrier()
        if self._rank == 0:
            facts = {"step": state.global_step, "seconds": time.monotonic() - self._begin, "before": self.before}
            self._checkpoints.complete(state.global_step, facts)
            _print({"event": "checkpoint", "step": state.global_step}, self._rank)
