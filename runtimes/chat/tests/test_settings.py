"""Flags, environment and keys."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest
from kaigen_chat import __version__
from kaigen_chat.cli import main
from kaigen_chat.errors import BadSettings
from kaigen_chat.keys import Keys
from kaigen_chat.settings import Adapter, Settings, flag, options, parser, read, read_keys, variable

README = Path(__file__).parent.parent / "README.md"


def test_only_the_model_is_required() -> None:
    settings = read(["--model", "/models/tiny"], {})
    assert settings == Settings(model=Path("/models/tiny"))
    assert (settings.port, settings.max_num_seqs, settings.max_body) == (8000, 16, 4 << 20)


def test_every_field_is_a_flag_and_a_variable() -> None:
    texts = {
        "model": "/m",
        "host": "::1",
        "port": "9",
        "probe_port": "10",
        "served_model_name": "x",
        "max_model_len": "128",
        "max_num_seqs": "3",
        "max_cache_tokens": "999",
        "max_queue": "0",
        "max_body": "1Mi",
        "prefill_chunk": "64",
        "dtype": "bfloat16",
        "device": "cpu",
        "threads": "2",
        "chat_template": "/t",
        "api_key_file": "/k",
        "merge_adapters": "/a=0.5",
        "trust_remote_code": "true",
        "await_marker": "any",
        "await_timeout": "90s",
        "drain_timeout": "2m",
        "log_level": "debug",
    }
    assert set(texts) == {field.name for field in dataclasses.fields(Settings)}
    by_variable = read([], {variable(name): text for name, text in texts.items()})
    flags = [part for name, text in texts.items() for part in ([flag(name), text] if text != "true" else [flag(name)])]
    assert read(flags, {}) == by_variable
    same = [name for name in texts if getattr(by_variable, name) == getattr(Settings(model=Path("/x")), name)]
    assert same == []
    assert (by_variable.max_body, by_variable.await_timeout, by_variable.drain_timeout) == (1 << 20, 90, 120)


def test_a_flag_wins_over_the_environment_and_an_empty_variable_is_none() -> None:
    env = {"KAIGEN_CHAT_MODEL": "/from/env", "KAIGEN_CHAT_PORT": "1", "KAIGEN_CHAT_DTYPE": ""}
    settings = read(["--port", "2"], env)
    assert (settings.model, settings.port, settings.dtype) == (Path("/from/env"), 2, "auto")


@pytest.mark.parametrize(
    ("argv", "env", "message"),
    [
        ([], {}, "which model? --model DIR or KAIGEN_CHAT_MODEL=DIR is missing"),
        (["--model", "/m", "--port", "70000"], {}, "--port: not a number from 0 to 65535: '70000'"),
        (["--model", "/m"], {"KAIGEN_CHAT_MAX_BODY": "4 apples"}, "KAIGEN_CHAT_MAX_BODY: not a size in bytes"),
        (["--model", "/m", "--dtype", "int3"], {}, "--dtype: not one of auto, float32"),
        (["--model", "/m", "--drain-timeout", "soon"], {}, "--drain-timeout: not a time span: 'soon'"),
        (["--model", "/m"], {"KAIGEN_CHAT_TRUST_REMOTE_CODE": "maybe"}, "not true or false"),
        (["--model", " "], {}, "--model: must not be empty"),
        (["--model", "/m", "--merge-adapters", "/a=2"], {}, "not a strength from 0 to 1: '2'"),
        (["--model", "/m", "--merge-adapters", "/a,,"], {}, "--merge-adapters: must not be empty"),
        (["--modle", "/m"], {}, "unrecognized arguments: --modle /m"),
        (["--mod", "/m"], {}, "unrecognized arguments"),
        (["--api-key", "secret"], {}, "unrecognized arguments"),
    ],
)
def test_what_cannot_be_used_is_named(argv: list[str], env: dict[str, str], message: str) -> None:
    with pytest.raises(BadSettings) as caught:
        read(argv, env)
    assert message in str(caught.value)


def test_keys_come_from_a_file_and_from_the_environment(tmp_path: Path) -> None:
    file = tmp_path / "keys"
    file.write_text(" one \n\ntwo\n")
    settings = Settings(model=Path("/m"), api_key_file=file)
    assert read_keys(settings, {"KAIGEN_CHAT_API_KEY": "three\n"}).current() == (b"three", b"one", b"two")
    open_to_all = read_keys(Settings(model=Path("/m")), {})
    assert (open_to_all.current(), open_to_all.required) == ((), False)


def test_keys_of_a_file_that_is_replaced_are_valid_at_once(tmp_path: Path) -> None:
    file = tmp_path / "keys"
    keys = Keys((), file)
    for text, valid in (("old\n", {b"old"}), ("old\nnew\n", {b"old", b"new"}), ("new\n", {b"new"}), ("", set())):
        (tmp_path / "next").write_text(text)
        (tmp_path / "next").replace(file)
        assert {key for key in (b"old", b"new", b"") if keys.is_valid(key)} == valid
    file.unlink()
    assert not keys.is_valid(b"new")
    assert keys.required


def test_a_key_that_is_empty_is_no_open_door(tmp_path: Path) -> None:
    file = tmp_path / "keys"
    file.write_text("\n")
    with pytest.raises(BadSettings, match="contains no key"):
        read_keys(Settings(model=Path("/m"), api_key_file=file), {})
    with pytest.raises(BadSettings, match="is set and empty"):
        read_keys(Settings(model=Path("/m")), {"KAIGEN_CHAT_API_KEY": ""})
    with pytest.raises(BadSettings, match="No such file"):
        read_keys(Settings(model=Path("/m"), api_key_file=tmp_path / "none"), {})
    file.write_bytes(b"\xff")
    with pytest.raises(BadSettings, match="not UTF-8"):
        read_keys(Settings(model=Path("/m"), api_key_file=file), {})


def test_help_names_every_flag_with_its_default(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        parser().parse_args(["--help"])
    assert ended.value.code == 0
    text = " ".join(capsys.readouterr().out.split())
    for name, option in options().items():
        assert f"{flag(name)} {option.metavar}".strip() in text
        assert option.about in text
    assert "port to listen on; 0 takes a free one and says which (8000)" in text


def test_the_readme_names_every_flag() -> None:
    text = README.read_text()
    assert [name for name in options() if f"`{flag(name)}" not in text] == []


def test_the_version_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["--version"], {})
    assert capsys.readouterr().out == f"{__version__}\n"


def test_a_mistake_is_one_line_and_exit_code_2(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--port", "x", "--model", "/m"], {}) == 2
    assert capsys.readouterr().err == "error: --port: not a number from 0 to 65535: 'x'\n"


def test_adapters_have_a_strength() -> None:
    found = read(["--model", "/m", "--merge-adapters", "/a=0.25,/b,/c=0"], {}).merge_adapters
    assert found == (Adapter(Path("/a"), 0.25), Adapter(Path("/b"), 1), Adapter(Path("/c"), 0))
