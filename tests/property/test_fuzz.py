"""Any content of a spec file gives an exit code, never a traceback, and never writes a file."""

from __future__ import annotations

import contextlib
import io
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from kaigen.cli.main import run
from tests import plain_yaml
from tests.strategies import examples

ROOT = Path(__file__).parent.parent.parent
GOOD = [
    path.read_text(encoding="utf-8")
    for folder in ("examples", "tests/chart/specs")
    for path in sorted((ROOT / folder).rglob("*.yaml"))
    if not {"rendered", "kinds", "patches", "kaigen.yaml"} & set(path.parts)
]
TOKENS = [
    *("~", "null", "true", "yes", "0", "-1", "1.10", "1e400", ".nan", "2026-01-02", "''", '"', "'", "|", ">-"),
    *("[", "]", "{", "}", "{{ x }}", "- ", "? ", ": ", "#", "&a ", "*a", "!!binary x", "<<: *a", "---", "...", "\t"),
    *("%", "@", "`", "\0", "\x85", "\ufeff", "\u2028", "\ud7ff", "😀", "hf_" + "aB3" * 12, "AKIA" + "A7" * 8),
    *("name", "spec", "kind", "Secret", "List", "items", "apiVersion", "v1", "batch/v1", "kaigen.dev/v1alpha1"),
    *("999999999999999999999", "1Ei", "9" * 5000, "x" * 300, "..", "/", "a/b", "-", "_", "A", "\\", "$(HOME)"),
]


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Create a repository with a valid Model that other specs may use, and make it the working directory."""
    folder = tmp_path_factory.mktemp("repository")
    (folder / "specs").mkdir()
    good = "apiVersion: kaigen.dev/v1alpha1\nkind: Model\nmetadata: {name: qwen}\nspec:\n"
    source = f"  source: {{huggingFace: {{repo: a/b, revision: {'0' * 40}}}}}\n"
    (folder / "specs/qwen.yaml").write_text(f"{good}{source}  store: {{volume: {{size: 1Gi}}}}\n")
    with contextlib.chdir(folder), mock.patch.dict(os.environ, KAIGEN_CACHE_DIR=str(folder / "cache")):
        yield folder


def call(*arguments: str) -> tuple[int, str]:
    """Return the exit code and the output of a command."""
    streams = [io.TextIOWrapper(io.BytesIO(), "utf-8", write_through=True) for _ in range(2)]
    with mock.patch.multiple(sys, stdout=streams[0], stderr=streams[1]):
        code = run(arguments)
    return code, "".join(stream.buffer.getvalue().decode() for stream in streams)


def check(folder: Path, name: str, content: bytes) -> None:
    """Run commands on a file; none prints a traceback or writes a file."""
    (folder / "specs" / name).write_bytes(content)
    try:
        for arguments in (("validate",), ("render", "--check", "--format", "both")):
            code, text = call(*arguments)
            assert code in {0, 1, 2}, text
            assert "Traceback" not in text
        assert {path.name for path in folder.iterdir()} <= {"specs", "cache"}
        assert {path.name for path in (folder / "specs").iterdir()} == {"qwen.yaml", name}
    finally:
        (folder / "specs" / name).unlink()


@settings(max_examples=examples(120))
@given(content=st.binary(max_size=200), name=st.sampled_from(["a.yaml", "a.json"]))
def test_any_bytes_are_handled(repository: Path, content: bytes, name: str) -> None:
    check(repository, name, content)


@settings(max_examples=examples(80))
@given(parts=st.lists(st.sampled_from([*TOKENS, "\n", "\n", "\n  ", ": ", ": ", " "]), max_size=25))
def test_any_yaml_tokens_are_handled(repository: Path, parts: list[str]) -> None:
    check(repository, "a.yaml", "".join(parts).encode())


@st.composite
def edited_texts(draw: st.DrawFn) -> str:
    """Return a valid spec with a few lines and characters edited."""
    lines = draw(st.sampled_from(GOOD)).splitlines(keepends=True)
    for _ in range(draw(st.integers(1, 4))):
        here, there = (draw(st.integers(0, len(lines) - 1)) for _ in range(2))
        line, at = lines[here], draw(st.integers(0, len(lines[here])))
        word = draw(st.sampled_from(TOKENS))
        match draw(st.sampled_from(["delete", "duplicate", "swap", "insert", "replace", "indent", "value", "cut"])):
            case "delete" if len(lines) > 1:
                del lines[here]
            case "duplicate":
                lines.insert(there, line)
            case "swap":
                lines[here], lines[there] = lines[there], lines[here]
            case "insert":
                lines[here] = line[:at] + word + line[at:]
            case "replace":
                lines[here] = line[:at] + word + line[at + len(word) :]
            case "indent":
                lines[here] = draw(st.sampled_from(["  ", " ", "\t"])) + line
            case "value":
                lines[here] = f"{line.partition(':')[0]}: {word}\n"
            case "cut":
                lines[here] = line[:at]
    return "".join(lines)


@settings(max_examples=examples(250))
@given(text=edited_texts())
def test_edited_lines_of_valid_specs_are_handled(repository: Path, text: str) -> None:
    check(repository, "a.yaml", text.encode("utf-8", "surrogatepass"))


VALUES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**70), 2**70),
    st.floats(),
    st.text(max_size=20),
    st.sampled_from(TOKENS),
    st.just([]),
    st.just({}),
)


def places(node: Any) -> Iterator[tuple[Any, Any]]:
    """Return every entry of a document: its mapping or list, and its key."""
    for key in list(node) if isinstance(node, dict) else range(len(node)) if isinstance(node, list) else ():
        yield node, key
        yield from places(node[key])


@st.composite
def edited_data(draw: st.DrawFn) -> str:
    """Return a valid spec with values replaced, nested deeper or moved."""
    documents = [each for each in plain_yaml.load_all(draw(st.sampled_from(GOOD))) if isinstance(each, dict)]
    data = draw(st.sampled_from(documents))
    for _ in range(draw(st.integers(1, 3))):
        found = list(places(data))
        holder, key = draw(st.sampled_from(found))
        other, place = draw(st.sampled_from(found))
        match draw(st.sampled_from(["value", "value", "nest", "list", "take", "field", "delete"])):
            case "value":
                holder[key] = draw(VALUES)
            case "nest":
                holder[key] = {draw(st.sampled_from(TOKENS)): holder[key]}
            case "list":
                holder[key] = [holder[key], holder[key]]
            case "take":
                with contextlib.suppress(LookupError):
                    holder[key] = plain_yaml.load(yaml.safe_dump(other[place]))
            case "field" if isinstance(holder, dict):
                holder[draw(st.text(max_size=10))] = draw(VALUES)
            case "delete":
                del holder[key]
        if not data:
            break
    return yaml.safe_dump(data, allow_unicode=draw(st.booleans()))


@settings(max_examples=examples(250))
@given(text=edited_data())
def test_values_of_other_types_in_valid_specs_are_handled(repository: Path, text: str) -> None:
    check(repository, "a.yaml", text.encode("utf-8", "surrogatepass"))


@settings(max_examples=examples(80))
@given(
    text=st.one_of(
        st.text(max_size=60), st.lists(st.sampled_from([*"qwen.stoagesize=[]{},\\0 ", "qwen."])).map("".join)
    )
)
def test_any_value_of_set_is_handled(repository: Path, text: str) -> None:
    code, said = call("render", "--check", f"--set={text}")
    assert code in {1, 2}
    assert "Traceback" not in said


@settings(max_examples=examples(80))
@given(text=edited_texts(), content=st.binary(max_size=60), both=st.booleans())
def test_any_configuration_is_handled(repository: Path, text: str, content: bytes, both: bool) -> None:
    prefix = b"profile: eks\nvalues: {qwen: {retries: 1}}\n" if both else b""
    config = repository / "kaigen.yaml"
    for body in (prefix + content, text.encode("utf-8", "surrogatepass")):
        config.write_bytes(body)
        try:
            code, said = call("render", "--check", "--env", "prod")
        finally:
            config.unlink()
        assert code in {1, 2}, said
        assert "Traceback" not in said
