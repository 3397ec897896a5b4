"""A signed model is accepted only if its files are exactly the signed ones that the source selects."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Mapping

from hypothesis import example, given, settings
from hypothesis import strategies as st
from kaigen_downloader.bucket_source import BucketFiles
from kaigen_downloader.errors import Refused
from kaigen_downloader.globs import chosen, duplicates
from kaigen_downloader.hub import Repository
from kaigen_downloader.marker import StoredFile
from kaigen_downloader.registry import Registry, parse
from kaigen_downloader.remote import Source
from kaigen_downloader.retry import Patience, Retry
from kaigen_downloader.s3 import Client, address
from kaigen_downloader.signature import Signed, signed
from kaigen_downloader.web import Web, WebFile
from runs import sha256
from signer import SIGNED_BY, signature

PATHS = st.sampled_from(
    [
        *("config.json", "model.safetensors", "pytorch_model.bin", "tf_model.h5", "consolidated.safetensors"),
        *("original/a.pth", "sub/model.safetensors", "sub/model.bin", "tokenizer.json", ".gitattributes", "README.md"),
    ]
)
FILES = st.dictionaries(PATHS, st.binary(max_size=2), max_size=8)
GLOBS = st.lists(
    st.sampled_from(["*", "*.json", "*.bin", "sub/", "original/", "*.sig", "model*", "config.json"]), max_size=2
)
BUCKET = Client(
    address("s3://models/a", "http://a.example", "us-east-1"),
    Retry(Patience(), threading.Event()),
    timeout=1,
    connections=1,
    keys=("key", "secret"),
)
"""A client that asks nothing."""
SIGNED: Signed = signed([SIGNED_BY.partition("=")[2]], "model.sig")


def is_accepted(source: Source, files: Mapping[str, bytes], content: bytes) -> bool:
    """Return whether files that are stored pass the check."""
    stored = [StoredFile(path, len(data), sha256(data)) for path, data in files.items()]
    with contextlib.suppress(Refused):
        SIGNED.check(
            [*stored, StoredFile("model.sig", len(content), sha256(content))], lambda path: content, source.selection
        )
        return True
    return False


def expected(listed: Mapping[str, bytes], include: list[str], exclude: list[str], *, all_formats: bool) -> set[str]:
    """Return the signed files that must be there."""
    selected = {path for path in listed if chosen(path, include, exclude)}
    return selected if include or all_formats else selected - duplicates(selected)


@settings(deadline=None)
@given(listed=FILES, have=FILES, include=GLOBS, exclude=GLOBS, all_formats=st.booleans())
@example(listed={"a": b""}, have={}, include=[], exclude=[], all_formats=False)
def test_of_the_hub(
    listed: dict[str, bytes], have: dict[str, bytes], include: list[str], exclude: list[str], all_formats: bool
) -> None:
    source = Repository("https://hub", "a/b", "main", tuple(include), tuple(exclude), all_formats)
    content = signature(listed.items())
    must = expected(listed, include, exclude, all_formats=all_formats)
    right = {path: listed[path] for path in must}
    assert is_accepted(source, right, content) == bool(must)
    wrong = {path: data for path, data in have.items() if path != ".gitattributes" or path in listed}
    is_right = bool(must) and must <= wrong.keys() and all(listed.get(path) == data for path, data in wrong.items())
    assert is_accepted(source, wrong, content) == is_right
    for path in must:
        assert not is_accepted(source, {each: data for each, data in right.items() if each != path}, content)
        assert not is_accepted(source, right | {path: right[path] + b"x"}, content)
    assert not is_accepted(source, right | {"evil.py": b""}, content)


@settings(deadline=None)
@given(listed=FILES, include=GLOBS, exclude=GLOBS)
def test_of_other_sources(listed: dict[str, bytes], include: list[str], exclude: list[str]) -> None:
    content = signature(listed.items())
    must = expected(listed, include, exclude, all_formats=True)
    globs = (tuple(include), tuple(exclude))
    for source, files in (
        (Registry(parse("a.example/b"), include=globs[0], exclude=globs[1]), must),
        (BucketFiles(BUCKET, *globs), must),
        (Web(tuple(WebFile(path, "http://a") for path in (*sorted(must), "x"))), must),
    ):
        right = {path: listed[path] for path in files}
        assert is_accepted(source, right, content) == bool(files)
        for path in files:
            assert not is_accepted(source, {each: right[each] for each in files - {path}}, content)
