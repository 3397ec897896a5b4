"""kaigen-train on a GPU: every method and precision, the memory that it takes, and a run that is killed."""

from __future__ import annotations

import gc
import json
import signal
import time
from pathlib import Path

import pytest
import torch
from kaigen_train.errors import NoDevice
from peft import PeftModel
from trained.program import Program, lines
from transformers import AutoModelForCausalLM

from tests.gpu.conftest import Record, make_model

_SETTINGS = {"batchSize": 4, "gradientAccumulation": 2, "maxLength": 1024, "epochs": 2}


@pytest.mark.parametrize(
    ("method", "precision"),
    [
        ("lora", "bfloat16"),
        ("lora", "float16"),
        ("qlora", "bfloat16"),
        ("qlora", "float16"),
        ("full", "bfloat16"),
        ("full", "float16"),
    ],
)
def test_training_learns(
    model: Path,
    data: Path,
    tmp_path: Path,
    record: Record,
    capsys: pytest.CaptureFixture[str],
    method: str,
    precision: str,
) -> None:
    program = Program(model, data, tmp_path)
    torch.cuda.reset_peak_memory_stats()
    rate = 1e-5 if method == "full" else 2e-4
    assert program.run(method=method, precision=precision, learningRate=rate, **_SETTINGS) == 0
    peak = torch.cuda.max_memory_reserved()
    report = program.report()
    steps = [line for line in lines(capsys.readouterr().out) if line["event"] == "step"]
    # The first step has the time of kernels that are compiled.
    seconds = steps[-1]["seconds"] - steps[0]["seconds"]
    record(
        program="kaigen-train",
        method=method,
        precision=precision,
        batchSize=4,
        maxLength=1024,
        parameters=1_500_000_000,
        peakBytes=peak,
        tokensPerSecond=round((steps[-1]["tokens"] - steps[0]["tokens"]) / seconds),
        loss=report["loss"],
    )
    assert (report["device"], report["precision"]) == ("cuda", precision)
    assert report["loss"]["after"] < 0.9 * report["loss"]["before"]
    if method == "lora":
        _adapter_changes_the_model(model, program.output / "adapter")
    gc.collect()
    torch.cuda.empty_cache()


def _adapter_changes_the_model(model: Path, adapter: Path) -> None:
    base = AutoModelForCausalLM.from_pretrained(model, device_map="cuda").eval()
    ids = torch.arange(5, 60, device="cuda").unsqueeze(0)
    with torch.no_grad():
        before = base(input_ids=ids).logits.float()
        after = PeftModel.from_pretrained(base, adapter).eval()(input_ids=ids).logits.float()
    assert torch.isfinite(after).all()
    assert not torch.allclose(before, after, atol=1e-2)


@pytest.mark.parametrize(
    ("method", "checkpointing", "vocabulary"),
    [
        ("lora", True, 128256),
        ("full", True, 128256),
        ("qlora", True, 128256),
        ("lora", True, 32000),
        ("lora", False, 32000),
    ],
)
def test_memory_grows_with_the_tokens_of_a_pass(
    data: Path, tmp_path: Path, record: Record, method: str, vocabulary: int, *, checkpointing: bool
) -> None:
    model = make_model(tmp_path / "model", vocabulary)
    samples = tmp_path / "samples.jsonl"
    samples.write_text("\n".join((data / "train.jsonl").read_text("utf-8").splitlines()[:16]), "utf-8")
    peaks = []
    for batch in (2, 4, 8):
        program = Program(model, samples, tmp_path / str(batch))
        torch.cuda.reset_peak_memory_stats()
        settings = {"gradientCheckpointing": checkpointing, "evaluation": 0, "learningRate": 1e-5}
        assert program.run(method=method, batchSize=batch, maxLength=1024, **settings) == 0
        peaks.append(torch.cuda.max_memory_allocated())
        gc.collect()
        torch.cuda.empty_cache()
    record(
        program="kaigen-train",
        test="memory",
        method=method,
        gradientCheckpointing=checkpointing,
        vocabulary=vocabulary,
        maxLength=1024,
        batches=[2, 4, 8],
        peakBytes=peaks,
    )
    assert peaks[2] - peaks[1] == pytest.approx(2 * (peaks[1] - peaks[0]), rel=0.2)


def test_killed_run_goes_on_from_its_checkpoint(model: Path, data: Path, tmp_path: Path, record: Record) -> None:
    settings = {"method": "lora", "learningRate": 2e-4, "checkpointSteps": 5, **_SETTINGS}
    whole = Program(model, data, tmp_path / "whole")
    assert whole.run(**settings) == 0
    cut = Program(model, data, tmp_path / "cut")
    process = cut.start(**settings)
    assert process.stdout is not None
    for line in process.stdout:
        if json.loads(line)["event"] == "checkpoint":
            break
    process.send_signal(signal.SIGKILL)
    process.communicate()
    begin = time.monotonic()
    process = cut.start(**settings)
    out, err = process.communicate()
    assert process.returncode == 0, err
    start = lines(out)[0]
    assert start["resumedFrom"] >= 5
    expected, found = (each.report()["loss"]["after"] for each in (whole, cut))
    record(program="kaigen-train", test="resume", seconds=round(time.monotonic() - begin, 1), loss=[expected, found])
    assert found == pytest.approx(expected, rel=0.02)


def test_memory_that_is_full_has_one_line(model: Path, data: Path, tmp_path: Path) -> None:
    held = torch.empty(int(torch.cuda.mem_get_info()[0] * 0.97), dtype=torch.uint8, device="cuda")
    try:
        process = Program(model, data, tmp_path).start(method="full", **_SETTINGS)
        _, err = process.communicate()
    finally:
        del held
        torch.cuda.empty_cache()
    assert process.returncode == NoDevice.code, err
    assert err == (
        "error: the memory of the GPU is full; set a smaller `batchSize` or `maxLength`, or `method: qlora`\n"
    )


def test_the_program_starts_in_a_process_of_its_own(model: Path, data: Path, tmp_path: Path) -> None:
    process = Program(model, data, tmp_path).start(method="lora", epochs=1, batchSize=4)
    out, err = process.communicate()
    assert process.returncode == 0, (out[-500:], err)
    assert lines(out)[0]["device"] == "cuda"
