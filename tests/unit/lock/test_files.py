"""Globs of specs, and files that a conversion needs, compared with the files in the lock."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping

import pytest

from runtimes.downloader.tests.hub import Hub
from runtimes.downloader.tests.s3 import S3
from tests.unit.lock.conftest import CONFIG, Repository, model, model_files
from tests.unit.lock.registry import Registry
from tests.unit.lock.test_sources import bucket, in_bucket, in_registry, registry, server

__all__ = ["bucket", "registry", "server"]

SHAPE = {**CONFIG, "model_type": "llama", "intermediate_size": 14336}
FILES = {**model_files(SHAPE), "tokenizer.json": b"{}"}
CONVERT = "  convert: {distributedLlama: {weights: q40}}\n"


def spec(found: Hub | S3 | Registry, more: str, size: str = "5Gi") -> str:
    """Return a Model of a source."""
    if isinstance(found, Hub):
        return model(found, more=more, size=size)
    if isinstance(found, S3):
        return in_bucket(found, more, size)
    return in_registry(found, more=more, size=size)


@pytest.mark.parametrize("size", ["5Gi", "auto"])
@pytest.mark.parametrize("source", ["hub", "bucket", "registry"])
def test_globs_that_select_no_locked_file_are_an_error(
    repository: Repository, request: pytest.FixtureRequest, source: str, size: str
) -> None:
    found = request.getfixturevalue(source)
    repository.write(spec(found, "", size))
    assert repository.run("lock")[0] == 0
    repository.write(spec(found, '      include: ["*.safetensor", "none/*"]\n', size))
    code, printed = repository.run("render")
    assert code == 2, printed
    assert set(re.findall(r"(?<=error\[)KG\d+", printed)) == {"KG0323"}
    assert "`include` selects none of the files in kaigen.lock (3)" in printed
    assert "the files are `model.safetensors`, `README.md`, `config.json`" in printed
    repository.write(spec(found, '      exclude: ["*"]\n', size))
    assert "`exclude` skips all files in kaigen.lock (3)" in repository.run("render")[1]
    repository.write(spec(found, '      include: ["*.md"]\n      exclude: ["README*"]\n', size))
    assert "`exclude` skips every file that `include` selects" in repository.run("render")[1]


@pytest.mark.parametrize(
    ("files", "globs", "message", "hint"),
    [
        (FILES, '      include: ["*.safetensors", "config.json"]\n', "tokenizer.model`, and `include` does not", "add"),
        (FILES, '      include: ["*.json"]\n', "`*.safetensors`, and `include` does not", "add `*.safetensors`"),
        (FILES, '      exclude: ["config*"]\n', "`config.json`, and `exclude` skips it", "change the glob"),
        (model_files(SHAPE), "", "`tokenizer.json` or `tokenizer.model`, and the source has no such", "use another"),
        (
            {**FILES, "model.safetensors": None, "consolidated.safetensors": FILES["model.safetensors"]},
            "",
            "`*.safetensors`, and the source has no such file",
            "use another",
        ),
    ],
)
def test_a_conversion_without_the_files_that_it_reads_is_an_error(
    repository: Repository, hub: Hub, files: Mapping[str, bytes | None], globs: str, message: str, hint: str
) -> None:
    hub.commit({path: data for path, data in files.items() if data is not None})
    repository.write(model(hub, more=globs))
    assert repository.run("lock")[0] == 0
    repository.write(model(hub, more=globs + CONVERT))
    code, printed = repository.run("validate")
    assert code == 2, printed
    assert printed.count("error[") == printed.count("error[KG0323]") == 1
    assert f"{message}" in printed
    assert f"hint: {hint}" in printed


def test_a_conversion_of_the_files_that_it_reads_has_no_problem(repository: Repository, hub: Hub) -> None:
    hub.commit({**FILES, "original/consolidated.00.pth": b"", "tokenizer.model": b"1"})
    globs = '      include: [config.json, "*.safetensors", tokenizer.model]\n'
    repository.write(model(hub, more=globs + CONVERT))
    assert repository.run("lock")[0] == 0
    code, printed = repository.run("validate")
    assert code == 0, printed


@pytest.mark.parametrize(("memory", "warned"), [("16Mi", True), ("191Mi", True), ("192Mi", False), ("1Gi", False)])
def test_less_memory_than_the_tokens_of_a_model_need_is_a_warning(
    repository: Repository, hub: Hub, memory: str, warned: bool
) -> None:
    hub.commit({**FILES, "config.json": json.dumps(SHAPE).encode()})
    convert = f"  convert: {{distributedLlama: {{converter: {{memory: {memory}}}}}}}\n"
    repository.write(model(hub, more=convert))
    assert repository.run("lock")[0] == 0
    code, printed = repository.run("validate")
    assert code == 0, printed
    assert ("32000 tokens needs 192Mi of memory to be converted, and the converter has" in printed) == warned
    assert ("KG0322" in printed) == warned
