"""The signature that the files of a source must have."""

from __future__ import annotations

from typing import Any

import pytest

from kaigen.compile.builders.sources import identity, source_arguments
from kaigen.kinds.block import read_block
from kaigen.kinds.blocks import Source

PEM = "-----BEGIN PUBLIC KEY-----\nMFkw\nEwYH==\n-----END PUBLIC KEY-----\n"


def source(**fields: Any) -> Source:
    return read_block(Source, {"huggingFace": {"repo": "a/b", "revision": "c"}, **fields})


def test_each_key_is_one_argument_without_the_lines_of_pem() -> None:
    signed = source(signature={"publicKeys": [PEM, PEM.replace("MFkw", "AAAA")], "file": "s/model.sig"})
    found = source_arguments(signed)
    assert found[-3:] == ["--signed-by=MFkwEwYH==", "--signed-by=AAAAEwYH==", "--signature=s/model.sig"]
    assert found[:-3] == source_arguments(source())


def test_unverified_files_are_not_those_of_a_source_with_a_signature() -> None:
    one, other = (source(signature={"publicKeys": [PEM.replace("MFkw", text)]}) for text in ("MFkw", "AAAA"))
    assert len({identity(each) for each in (source(), one, other)}) == 3


@pytest.mark.parametrize("key", ["MFkw", "-----BEGIN PRIVATE KEY-----\nMFkw\n-----END PRIVATE KEY-----\n"])
def test_a_public_key_is_pem(key: str) -> None:
    with pytest.raises(ValueError, match="publicKeys"):
        source(signature={"publicKeys": [key]})
