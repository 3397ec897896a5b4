"""Training of a small model, with real checkpoints, processes and results."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from kaigen_train import training
from kaigen_train.errors import NoDevice
from peft import PeftModel
from safetensors.torch import load_file
from trained.program import Program, lines
from transformers import AutoModelForCausalLM, AutoTokenizer

pytestmark = pytest.mark.filterwarnings("ignore::FutureWarning")


@pytest.fixture(autouse=True, scope="module")
def one_cpu() -> Iterator[None]:
    """Run on one CPU: threads of several processes, on as many cores, wait for each other more than they compute."""
    allowed = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(allowed)})
    yield
    os.sched_setaffinity(0, allowed)


@pytest.fixture
def program(model: Path, data: Path, tmp_path: Path) -> Program:
    """The program with its input."""
    return Program(model, data, tmp_path)


def logits(folder: Path, adapter: Path | None = None) -> torch.Tensor:
    """Return what a model says about a text."""
    found = AutoModelForCausalLM.from_pretrained(folder).eval()
    found = PeftModel.from_pretrained(found, adapter).eval() if adapter else found
    ids = AutoTokenizer.from_pretrained(folder)("The quick brown fox 9", return_tensors="pt").input_ids
    with torch.no_grad():
        return found(input_ids=ids).logits


def test_adapter_learns_and_the_report_counts(
    program: Program, model: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert program.run(epochs=6, targetModules=["v_proj", "q_proj"], rank=4) == 0
    printed = lines(capsys.readouterr().out)
    report = program.report()
    start, steps, end = printed[0], printed[1:-2], printed[-1]
    assert (start["event"], printed[-2]["event"], end) == ("start", "checkpoint", {"event": "end", **report})
    assert [step["step"] for step in steps] == list(range(1, 37))
    assert all(step["loss"] > 0 and step["steps"] == 36 for step in steps)
    assert steps[-1]["loss"] < steps[0]["loss"]
    assert report["loss"]["after"] < 0.8 * report["loss"]["before"]
    assert report["loss"]["of"] == "samples that are not trained on"
    expected = {"samples": 12, "evaluationSamples": 1, "skipped": 0, "steps": 36, "processes": 1, "result": "adapter"}
    assert {name: report[name] for name in expected} == expected
    assert report["tokens"] == steps[-1]["tokens"] > 6 * 12
    config = json.loads((program.output / "adapter/adapter_config.json").read_text("utf-8"))
    assert (config["r"], config["target_modules"]) == (4, ["q_proj", "v_proj"])
    assert sorted(path.name for path in program.output.iterdir()) == ["adapter", "report.json"]
    assert {path.stat().st_mode & 0o777 for path in (program.output / "adapter").iterdir()} == {0o644}
    assert not torch.allclose(logits(model), logits(model, program.output / "adapter"), atol=1e-2)

    # The same run again has nothing to do; another one replaces the result.
    before = program.files("adapter")
    assert program.run(epochs=6, targetModules=["v_proj", "q_proj"], rank=4) == 0
    (again,) = lines(capsys.readouterr().out)
    assert again == end
    assert program.run(epochs=0.2, targetModules=["v_proj", "q_proj"], rank=4) == 0
    assert program.files("adapter") != before


def test_named_columns_are_trained_on_and_the_adapter_is_in_the_output_itself(
    program: Program, model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    output = tmp_path / "output"
    output.mkdir()
    rows = "".join(f"count {number},{number + 1}\n" for number in range(8))
    (output / "train.csv").write_text(f"question,answer\n{rows}", "utf-8")
    flat = Program(model, output / "train.csv", tmp_path, ("--flat",))
    settings = {"columns": {"prompt": "question", "completion": "answer"}, "epochs": 2, "evaluation": 0}
    for _ in range(2):
        assert flat.run(**settings) == 0
    assert len(lines(capsys.readouterr().out)) > 2
    assert (flat.report()["result"], flat.report()["samples"]) == (".", 8)
    names = {path.name for path in output.iterdir()}
    assert names == {"adapter_config.json", "adapter_model.safetensors", "report.json", "train.csv"}
    assert not torch.equal(logits(model), logits(model, output))
    # A folder of its own is another place.
    assert Program(model, output / "train.csv", tmp_path).run(**settings) == 0
    assert (output / "adapter/adapter_config.json").is_file()


def test_merged_model_is_the_model_with_its_adapter(program: Program, model: Path) -> None:
    apart = Program(program.model, program.data, program.folder / "apart")
    assert apart.run(epochs=1, seed=5) == 0
    assert program.run(epochs=1, seed=5, merge=True) == 0
    assert program.report()["result"] == "model"
    whole = program.output / "model"
    assert torch.allclose(logits(whole), logits(model, apart.output / "adapter"), atol=1e-4)
    for name in ("tokenizer.json", "chat_template.jinja", "generation_config.json"):
        assert (whole / name).read_bytes() == (model / name).read_bytes()


def test_full_training_changes_every_weight_and_keeps_their_type(program: Program, tmp_path: Path) -> None:
    small = tmp_path / "bfloat16"
    AutoModelForCausalLM.from_pretrained(program.model, dtype=torch.bfloat16).save_pretrained(small)
    for file in program.model.glob("*token*"):
        shutil.copy(file, small)
    shutil.copy(program.model / "chat_template.jinja", small)
    full = Program(small, program.data, tmp_path)
    assert full.run(method="full", epochs=2, learningRate=1e-2) == 0
    before, after = (load_file(folder / "model.safetensors") for folder in (small, full.output / "model"))
    assert before.keys() == after.keys()
    assert {tensor.dtype for tensor in after.values()} == {torch.bfloat16}
    assert not any(torch.equal(before[name], after[name]) for name in before)
    assert full.report()["trainedParameters"] == sum(tensor.numel() for tensor in after.values())


def test_killed_run_goes_on_from_its_checkpoint_and_ends_with_the_same_bytes(program: Program) -> None:
    settings: dict[str, Any] = {"epochs": 4, "dropout": 0.3, "checkpointSteps": 3, "seed": 11}
    whole = Program(program.model, program.data, program.folder / "whole")
    assert whole.run(**settings) == 0
    with program.start(**settings) as running:
        assert running.stdout is not None
        for line in running.stdout:
            if json.loads(line).get("step") == 8:
                break
        running.send_signal(signal.SIGKILL)
    assert not (program.output / "report.json").exists()
    # A checkpoint that was not complete when the pod was killed is not used.
    (half,) = (program.output / ".checkpoints").glob("*/checkpoint-6")
    later = half.with_name("checkpoint-9")
    if not later.exists():
        shutil.copytree(half, later)
        (later / "complete.json").unlink()
        (later / "adapter_model.safetensors").write_bytes(b"half")
    assert program.run(**settings) == 0
    assert program.report()["resumedFrom"] in (6, 9)
    assert program.files("adapter") == whole.files("adapter")
    assert program.report()["loss"] == whole.report()["loss"]
    assert program.report()["tokens"] == whole.report()["tokens"]


def free_port() -> str:
    """Return a port of loopback that nothing listens on."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return str(found.getsockname()[1])


def test_two_nodes_train_as_one_with_a_batch_of_both(program: Program) -> None:
    settings: dict[str, Any] = {"epochs": 2, "evaluation": 0.25, "gradientCheckpointing": False}
    shared = {"PET_NNODES": "2", "PET_MASTER_ADDR": "127.0.0.1", "PET_MASTER_PORT": free_port()}
    each = [{**shared, "PET_NPROC_PER_NODE": "1", "PET_NODE_RANK": rank} for rank in "01"]
    running = [program.start(variables, batchSize=2, **settings) for variables in each]
    found = [process.communicate(timeout=300) for process in running]
    assert [process.returncode for process in running] == [0, 0], found
    printed = lines("".join(output for output, _ in found))
    assert [line["event"] for line in printed if line["event"] in ("start", "end")] == ["start", "end"]
    assert program.report()["processes"] == 2
    alone = Program(program.model, program.data, program.folder / "alone")
    assert alone.run(batchSize=4, **settings) == 0
    assert alone.report()["steps"] == program.report()["steps"] == 6
    one, two = (load_file(each.output / "adapter/adapter_model.safetensors") for each in (alone, program))
    assert all(torch.allclose(one[name], two[name], atol=1e-4) for name in one)
    assert program.report()["loss"]["after"] == pytest.approx(alone.report()["loss"]["after"], abs=1e-4)


def test_node_whose_peer_is_lost_says_so_in_one_line(program: Program) -> None:
    settings: dict[str, Any] = {"epochs": 500, "batchSize": 2, "gradientAccumulation": 1}
    shared = {"PET_NNODES": "2", "PET_MASTER_ADDR": "127.0.0.1", "PET_MASTER_PORT": free_port()}
    each = [{**shared, "PET_NPROC_PER_NODE": "1", "PET_NODE_RANK": rank} for rank in "01"]
    first, second = (program.start(variables, **settings) for variables in each)
    assert first.stdout is not None
    for line in first.stdout:
        if json.loads(line)["event"] == "step":
            break
    for worker in Path(f"/proc/{second.pid}/task/{second.pid}/children").read_text().split():
        os.kill(int(worker), signal.SIGKILL)
    _, errors = first.communicate(timeout=120)
    second.communicate(timeout=120)
    assert first.returncode == 21, errors
    assert "error: another process of the run has ended" in errors
    assert "Traceback" not in errors


def test_processes_that_fail_have_the_exit_code_of_the_first(program: Program) -> None:
    with program.start({"PET_NPROC_PER_NODE": "2"}, targetModules=["c_attn"]) as running:
        _, errors = running.communicate(timeout=300)
    assert running.returncode == 2
    assert errors.startswith("error: an adapter cannot be added to the layers c_attn")
    assert len(errors.splitlines()) == 1


def test_result_that_could_not_be_written_is_written_by_the_next_attempt(
    program: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(training, "write_adapter", full)
        assert program.run(epochs=1) == 20
    assert not (program.output / "adapter").exists()
    assert program.run(epochs=1) == 0
    whole = Program(program.model, program.data, program.folder / "whole")
    assert whole.run(epochs=1) == 0
    assert program.report()["resumedFrom"] == whole.report()["steps"] == 6
    assert program.files("adapter") == whole.files("adapter")


@pytest.mark.parametrize(
    ("settings", "code", "message"),
    [
        ({"method": "qlora"}, 13, "`method: qlora` needs a GPU with CUDA"),
        ({"precision": "float16"}, 2, "a CPU does not train with `precision: float16`"),
        ({"targetModules": ["c_attn"]}, 2, "layers c_attn; layers: down_proj, gate_proj, k_proj"),
        ({"learningRate": 1.0, "epochs": 90, "weightDecay": 1.0}, 2, "the loss is not a number"),
    ],
)
def test_input_that_only_the_training_can_check_is_refused_in_one_line(
    program: Program,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    settings: dict[str, object],
    code: int,
    message: str,
) -> None:
    if "epochs" in settings:
        monkeypatch.setattr(training, "evaluate", lambda *_: float("nan"))
        settings["epochs"] = 0.1
    assert program.run(**settings) == code
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("error: ")
    assert message in line


def test_broken_models_are_refused_in_one_line(
    program: Program, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, content, message in (
        ("model.safetensors", b"half", "has no model that can be read"),
        ("config.json", b"{}", "has no "),
        ("tokenizer.json", b"{", "has no tokenizer that can be read"),
    ):
        broken = tmp_path / name
        shutil.copytree(program.model, broken)
        (broken / name).write_bytes(content)
        assert Program(broken, program.data, tmp_path / "result").run() == 2
        (line,) = capsys.readouterr().err.splitlines()
        assert message in line


def test_samples_that_do_not_fit_the_model_are_refused(
    program: Program, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data = tmp_path / "data"
    data.mkdir()
    (data / "train.jsonl").write_text(json.dumps({"text": "fox " * 600}) + "\n", "utf-8")
    long = Program(program.model, data, tmp_path)
    assert long.run() == 2
    assert "the model has 512 positions; set `maxLength: 512`" in capsys.readouterr().err
    assert long.run(maxLength=512, epochs=1) == 0
    assert long.report()["loss"]["of"] == "trained samples"
    (data / "train.jsonl").write_text(json.dumps({"prompt": "fox " * 600, "completion": "x"}) + "\n", "utf-8")
    assert long.run(maxLength=64) == 2
    assert "none of 1 samples has a token to train on among its first 64" in capsys.readouterr().err


def test_full_memory_and_output_that_cannot_be_written_have_their_own_exit_codes(
    program: Program, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    program.folder.mkdir(exist_ok=True)
    program.output.write_text("a file", "utf-8")
    assert program.run() == 20
    assert "output cannot be written" in capsys.readouterr().err
    program.output.unlink()

    def full(*_: object) -> None:
        raise torch.OutOfMemoryError

    monkeypatch.setattr(training, "load_model", full)
    assert program.run() == NoDevice.code
    assert "set a smaller `batchSize` or `maxLength`" in capsys.readouterr().err
