"""Settings, samples, tokens and checkpoints: what needs no PyTorch."""

from __future__ import annotations

import csv
import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from kaigen_train import cli, files
from kaigen_train.checkpoints import Checkpoints, identity
from kaigen_train.dataset import Sample, read_dataset
from kaigen_train.errors import BadInput, NotWritten
from kaigen_train.settings import LEARNING_RATES, Settings, parse, read
from kaigen_train.tokens import IGNORED, tokenize


def written(folder: Path, *lines: Any, name: str = "train.jsonl") -> Path:
    """Write samples and return their folder."""
    folder.mkdir(exist_ok=True)
    text = "".join((line if isinstance(line, str) else json.dumps(line)) + "\n" for line in lines)
    (folder / name).write_text(text, encoding="utf-8")
    return folder


def test_learning_rate_follows_the_method() -> None:
    assert {method: parse({"method": method}).learning_rate for method in LEARNING_RATES} == LEARNING_RATES
    assert parse({"method": "full", "learningRate": 3e-6}).learning_rate == 3e-6


def test_every_setting_is_read_by_its_name() -> None:
    given = {
        "method": "qlora",
        "columns": {"prompt": "question", "completion": "answer"},
        "rank": 8,
        "alpha": 8,
        "dropout": 0.1,
        "targetModules": ["q_proj", "v_proj", "q_proj"],
        "learningRate": 1e-3,
        "schedule": "linear",
        "warmup": 0.1,
        "weightDecay": 0.01,
        "epochs": 2,
        "batchSize": 1,
        "gradientAccumulation": 2,
        "maxLength": 64,
        "seed": 7,
        "merge": True,
        "evaluation": 0.5,
        "checkpointSteps": 3,
        "precision": "bfloat16",
        "gradientCheckpointing": False,
    }
    found = parse(given).document()
    assert found == {**given, "targetModules": ("q_proj", "v_proj")}
    assert parse({}).document().keys() == given.keys()


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"learning_rate": 1}, "unknown setting `learning_rate`; did you mean `learningRate`?"),
        ({"zzz": 1}, "unknown setting `zzz`; settings: method, columns,"),
        ({"method": "sft"}, '`method` must be one of lora, qlora, full, and is "sft"'),
        ({"method": ["lora"]}, "`method` must be one of"),
        ({"rank": 0}, "`rank` must be a whole number from 1 to 1024, and is 0"),
        ({"rank": 8.5}, "`rank` must be a whole number"),
        ({"rank": True}, "`rank` must be a whole number"),
        ({"epochs": "3"}, '`epochs` must be a number from 0.01 to 1000, and is "3"'),
        ({"learningRate": float("nan")}, "`learningRate` must be a number"),
        ({"learningRate": -1}, "`learningRate` must be a number"),
        ({"merge": 1}, "`merge` must be true or false, and is 1"),
        ({"targetModules": "q_proj"}, "`targetModules` must be a list of names"),
        ({"targetModules": []}, "`targetModules` must be a list of names"),
        ({"columns": {"prompt": "q"}}, "`columns` must name the column of `text`"),
        ({"columns": {"text": ""}}, "`columns` must name the column of `text`"),
        ({"columns": ["text"]}, "`columns` must name the column of `text`"),
        ({"method": "full", "rank": 8}, "`rank` has no effect with `method: full`"),
        ({"method": "full", "merge": True}, "`merge` has no effect with `method: full`"),
    ],
)
def test_bad_settings_are_refused(given: Mapping[str, Any], message: str) -> None:
    with pytest.raises(BadInput) as caught:
        parse(given)
    assert message in str(caught.value)


def test_settings_come_from_a_file(tmp_path: Path) -> None:
    file = tmp_path / "params.json"
    assert read(None, file) == parse({})
    with pytest.raises(BadInput, match=r"params\.json does not exist"):
        read(file, file)
    for text, message in (("{", "is not JSON"), ("[]", "one JSON object"), ('{"seed": -1}', "params.json: `seed`")):
        file.write_text(text, encoding="utf-8")
        with pytest.raises(BadInput, match=message):
            read(None, file)
    file.write_text('{"seed": 3}', encoding="utf-8")
    assert read(None, file).seed == 3


def test_samples_of_a_folder_are_read_in_order_and_those_for_evaluation_are_separate(tmp_path: Path) -> None:
    written(tmp_path, {"text": "b"}, "", {"prompt": "p", "completion": "c"}, name="b.jsonl")
    written(tmp_path / "a", {"messages": [{"role": "assistant", "content": "x"}]}, name="z.ndjson")
    written(tmp_path, {"text": "v"}, name="validation.jsonl")
    written(tmp_path / ".kaigen", {"text": "hidden"})
    written(tmp_path, "no sample", name="README.md")
    found = read_dataset(tmp_path)
    assert [sample.where for sample in found.train] == ["a/z.ndjson:1", "b.jsonl:1", "b.jsonl:3"]
    assert found.train[2].pair == ("p", "c")
    assert [sample.text for sample in found.evaluation] == ["v"]
    before = found.sha256
    written(tmp_path, {"text": "w"}, name="validation.jsonl")
    assert read_dataset(tmp_path).sha256 != before
    assert len(read_dataset(tmp_path / "b.jsonl").train) == 2


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("{", "train.jsonl:2 is not JSON"),
        ("\udcff", "train.jsonl:2 is not JSON"),
        ([1], "train.jsonl:2 is not a JSON object"),
        ({"question": 1, "answer": 2}, "train.jsonl:2 has `question`, `answer`, and neither `text`"),
        ({"text": 1}, "train.jsonl:2: `text` must be text"),
        ({"prompt": "x"}, "train.jsonl:2: `completion` is missing"),
        ({"messages": []}, "at least one message"),
        ({"messages": [{"role": "user"}]}, "must have `role` and `content`"),
        ({"messages": [{"role": "bot", "content": ""}]}, "`role` must be one of"),
        ({"messages": [{"role": "user", "content": "x"}]}, "no message is from the assistant"),
        ("[" * 100_000, "train.jsonl:2 is not JSON"),
    ],
)
def test_bad_samples_are_refused_with_their_line(tmp_path: Path, line: Any, message: str) -> None:
    text = line if isinstance(line, str) else json.dumps(line)
    (tmp_path / "train.jsonl").write_bytes(f'{{"text": "x"}}\n{text}\n'.encode(errors="surrogateescape"))
    with pytest.raises(BadInput) as caught:
        read_dataset(tmp_path)
    assert message in str(caught.value)


def test_datasets_without_samples_are_refused(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="cannot be read: No such file"):
        read_dataset(tmp_path / "none")
    with pytest.raises(BadInput, match="no files of JSON lines"):
        read_dataset(tmp_path)
    written(tmp_path, "x", name="train.webdataset")
    with pytest.raises(BadInput, match=r"such as train\.webdataset, are not read"):
        read_dataset(tmp_path)
    written(tmp_path, {"text": "v"}, name="test.jsonl")
    with pytest.raises(BadInput, match="no samples to train on"):
        read_dataset(tmp_path)


PAIRS = [{"question": "a", "answer": "b", "more": "c"}, {"question": "d,\n", "answer": '"e"', "more": ""}]
COLUMNS = {"prompt": "question", "completion": "answer"}


def table(file: Path, rows: Sequence[Mapping[str, Any]]) -> Path:
    """Write rows in the format of a file's name."""
    if file.suffix == ".csv":
        with file.open("w", newline="", encoding="utf-8") as opened:
            writer = csv.DictWriter(opened, list(rows[0]))
            writer.writeheader()
            writer.writerows(rows)
        return file
    file.write_text(json.dumps(rows, indent=1), encoding="utf-8")
    return file


@pytest.mark.parametrize("suffix", [".csv", ".json"])
def test_columns_of_other_formats_are_named(tmp_path: Path, suffix: str) -> None:
    file = table(tmp_path / f"train{suffix}", PAIRS)
    for path in (tmp_path, file):
        found = read_dataset(path, COLUMNS)
        assert [sample.pair for sample in found.train] == [("a", "b"), ("d,\n", '"e"')]
    with pytest.raises(BadInput, match=r"train.*has `question`, `answer`, `more`, and neither .*set `columns`"):
        read_dataset(tmp_path)
    with pytest.raises(BadInput, match="has no column `reply`, but `question`, `answer`, `more`"):
        read_dataset(tmp_path, {"text": "reply"})
    before = found.sha256
    table(file, PAIRS[:1])
    assert read_dataset(tmp_path, COLUMNS).sha256 != before


@pytest.mark.parametrize("suffix", [".csv", ".json"])
def test_conversations_of_other_formats_are_read(tmp_path: Path, suffix: str) -> None:
    messages: Any = [{"role": "user", "content": "x"}, {"role": "assistant", "content": "y"}]
    cell = json.dumps(messages) if suffix == ".csv" else messages
    table(tmp_path / f"train{suffix}", [{"chat": cell}])
    (sample,) = read_dataset(tmp_path, {"messages": "chat"}).train
    assert sample.messages == messages


def test_one_type_of_files_has_the_samples(tmp_path: Path) -> None:
    written(tmp_path, {"text": "object"}, name="b.json")
    assert [sample.text for sample in read_dataset(tmp_path).train] == ["object"]
    (tmp_path / "a.csv").write_text("text\ncell\n", encoding="utf-8")
    assert [sample.text for sample in read_dataset(tmp_path).train] == ["cell"]
    (tmp_path / "c.parquet").write_bytes(b"")
    with pytest.raises(BadInput, match=r"several types, such as a\.csv, c\.parquet; name one file"):
        read_dataset(tmp_path)
    written(tmp_path, {"text": "line"})
    assert [sample.text for sample in read_dataset(tmp_path).train] == ["line"]


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("x.json", "[1]", "x.json, object 1 is not a JSON object"),
        ("x.json", "[", "x.json is not JSON"),
        ("x.json", "1", "x.json:1 is not a JSON object"),
        ("x.csv", "text\na,b\n", "x.csv, row 1 has another number of columns"),
        ("x.csv", "a,text\na\n", "x.csv, row 1 has another number of columns"),
        ("x.csv", 'text\n"a', "x.csv is not CSV"),
        ("x.csv", "messages\n[\n", "x.csv, row 1: `messages` is not JSON"),
    ],
)
def test_broken_files_are_refused(tmp_path: Path, name: str, content: str, message: str) -> None:
    (tmp_path / name).write_text(content, encoding="utf-8")
    with pytest.raises(BadInput) as caught:
        read_dataset(tmp_path)
    assert message in str(caught.value)


class Letters:
    """A tokenizer with a token for each character, 1 at the beginning of texts and 2 at their end."""

    eos_token_id: int | None = 2
    chat_template: Any = "a template"

    def encode(self, text: str, *, add_special_tokens: bool) -> list[int]:
        """Return the tokens of a text."""
        return [*([1] if add_special_tokens else []), *map(ord, text)]

    def apply_chat_template(self, conversation: Any, **options: Any) -> Any:
        """Return the text of a conversation; only the last turn of the assistant has its thoughts."""
        text = ""
        for number, message in enumerate(conversation, 1):
            content = message["content"]
            if number < len(conversation):
                content = content.split("|")[-1]
            text += f"{message['role'][0]}:{content};"
        return text + ("a:" if options["add_generation_prompt"] else "")


def shown(sample: Sample, most: int = 1000) -> str:
    """Return the text of a sample with upper case for what is trained on, and digits for special tokens."""
    (tokens,) = tokenize([sample], Letters(), most)
    pairs = zip(tokens.ids, tokens.labels, strict=True)
    assert all(label in (IGNORED, token) for token, label in pairs)
    return "".join(
        str(token) if token < 3 else chr(token) if label == IGNORED else chr(token).upper()
        for token, label in zip(tokens.ids, tokens.labels, strict=True)
    )


def conversation(*contents: str) -> Sequence[Mapping[str, Any]]:
    """Return messages of the user and the assistant in turn."""
    return [
        {"role": "assistant" if number % 2 else "user", "content": content} for number, content in enumerate(contents)
    ]


def test_only_what_the_model_should_say_is_trained_on() -> None:
    assert shown(Sample("x", text="hello")) == "1HELLO2"
    assert shown(Sample("x", pair=("hello ", "you"))) == "1hello YOU2"
    assert shown(Sample("x", messages=conversation("hi", "ho", "na", "no"))) == "u:hi;a:HO;u:na;a:NO;"
    # A thought that the template drops from earlier turns leaves only the last turn.
    assert shown(Sample("x", messages=conversation("hi", "t|ho", "na", "t|no"))) == "u:hi;a:ho;u:na;a:T|NO;"


def test_long_samples_are_cut_and_those_without_a_trained_token_are_left_out() -> None:
    assert shown(Sample("x", pair=("hello ", "you")), 8) == "1hello Y"
    assert tokenize([Sample("x", pair=("hello ", "you"))], Letters(), 7) == []
    assert tokenize([Sample("x", text="")], Letters(), 7)[0].trained == 1  # the end


def test_conversations_need_a_chat_template() -> None:
    bare = Letters()
    bare.chat_template = None
    with pytest.raises(BadInput, match="x has `messages`, and the model has no chat template"):
        tokenize([Sample("x", messages=conversation("hi", "ho"))], bare, 9)

    class Strict(Letters):
        def apply_chat_template(self, conversation: Any, **options: Any) -> Any:
            raise ValueError("roles must alternate")

    with pytest.raises(BadInput, match="refuses the messages: roles must alternate"):
        tokenize([Sample("x", messages=conversation("hi", "ho"))], Strict(), 9)


def test_identity_changes_with_everything_that_changes_the_result(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text("{}", encoding="utf-8")
    settings = Settings().document()
    found = {identity(settings, tmp_path, "data", 1), identity(settings, tmp_path, "data", 1)}
    assert len(found) == 1
    found.add(identity({**settings, "seed": 1}, tmp_path, "data", 1))
    found.add(identity(settings, tmp_path, "other", 1))
    found.add(identity(settings, tmp_path, "data", 2))
    (tmp_path / "config.json").write_text("[]", encoding="utf-8")
    found.add(identity(settings, tmp_path, "data", 1))
    (tmp_path / "model.safetensors").write_text("", encoding="utf-8")
    found.add(identity(settings, tmp_path, "data", 1))
    assert len(found) == 6


def test_only_complete_checkpoints_of_the_same_run_count(tmp_path: Path) -> None:
    mine, other = Checkpoints(tmp_path, "mine"), Checkpoints(tmp_path, "other")
    for each, step in ((mine, 9), (mine, 10), (mine, 20), (other, 50)):
        (each.folder / f"checkpoint-{step}").mkdir(parents=True)
    assert mine.last() is None
    mine.complete(9, {"step": 9})
    assert mine.last() == mine.folder / "checkpoint-9"
    mine.complete(10, {"step": 10})
    assert mine.last() == mine.folder / "checkpoint-10"
    assert sorted(path.name for path in mine.folder.iterdir()) == ["checkpoint-10", "checkpoint-20"]
    mine.remove_others()
    assert not other.folder.exists()
    mine.remove()
    assert list(tmp_path.iterdir()) == []


def put(name: str, folder: Path) -> None:
    """Write a file."""
    (folder / name).write_text("", encoding="utf-8")


def test_folders_are_replaced_whole(tmp_path: Path) -> None:
    target = tmp_path / "adapter"
    files.write_folder(target, partial(put, "a"))
    files.write_folder(target, partial(put, "b"))
    assert [path.name for path in target.iterdir()] == ["b"]

    def fail(folder: Path) -> None:
        put("c", folder)
        raise OSError(28, "No space left on device")

    with pytest.raises(NotWritten, match="adapter cannot be written: No space left on device"):
        files.write_folder(target, fail)
    assert [path.name for path in target.iterdir()] == ["b"]
    files.write_folder(target, lambda folder: None)
    assert [path.name for path in tmp_path.iterdir()] == ["adapter"]


def test_results_in_a_folder_with_other_files_leave_those(tmp_path: Path) -> None:
    (tmp_path / "data.csv").write_text("text", encoding="utf-8")
    files.write_files(tmp_path, partial(put, "adapter_model.safetensors"))
    files.write_files(tmp_path, partial(put, "adapter_config.json"))
    found = sorted(path.name for path in tmp_path.iterdir())
    assert found == ["adapter_config.json", "adapter_model.safetensors", "data.csv"]


def test_bad_input_is_one_line_and_exit_code_2(tmp_path: Path) -> None:
    model = tmp_path / "model"
    model.mkdir()
    data = written(tmp_path / "data", {"text": "x"})
    log = tmp_path / "log"
    for arguments, message in (
        (["--sample"], "error: unrecognized arguments: --sample (see kaigen-train --help)"),
        ([f"--params={tmp_path}/p"], f"error: {tmp_path}/p does not exist"),
        ([f"--model={model}"], f"error: {model}/config.json does not exist"),
    ):
        log.write_bytes(b"")
        done = subprocess.run(
            [sys.executable, "-m", "kaigen_train", f"--dataset={data}", *arguments],
            cwd=Path(cli.__file__).parent.parent,
            env={"KAIGEN_TERMINATION_LOG": str(log)},
            capture_output=True,
            text=True,
            check=False,
        )
        assert (done.returncode, done.stdout) == (2, "")
        assert len(done.stderr.splitlines()) == 1
        assert done.stderr.startswith(message)
        assert log.read_text() == done.stderr.strip()
