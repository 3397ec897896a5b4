"""Messages about texts of the wrong form say which rule is broken."""

from __future__ import annotations

import pytest

from kaigen.kinds import base
from kaigen.kinds.bucket import LOCATION
from kaigen.kinds.value_texts import form_problem


@pytest.mark.parametrize(
    ("uri", "reason"),
    [
        ("acme/models", "it must start with `s3://`, `gs://` or `az://`"),
        ("https://acme/models", "it must start with `s3://`, `gs://` or `az://`"),
        (
            "https://acme.blob.core.windows.net/models/a",
            "write a container of Azure as `az://ACCOUNT/CONTAINER/PREFIX`",
        ),
        ("abfss://models@acme.dfs.core.windows.net/a", "write a container of Azure as `az://ACCOUNT/CONTAINER/PREFIX`"),
        ("az://acme", "a container of Azure is `az://ACCOUNT/CONTAINER/PREFIX`"),
        ("az://Acme/models", "a container of Azure is `az://ACCOUNT/CONTAINER/PREFIX`"),
        ("az://acme/mo--dels", "the container `mo--dels` is not 3 to 63 lower-case letters, digits and single dashes"),
        ("s3://a", "the name of a bucket has 3 to 63 characters, not 1"),
        (f"s3://{'a' * 64}/x", "the name of a bucket has 3 to 63 characters, not 64"),
        ("s3://Acme", "the bucket `Acme` may contain only lower-case letters"),
        ("s3://-acme", "the bucket `-acme` must start and end with a letter or digit"),
        ("s3://acme//x", "it has an empty folder name, between two slashes"),
        ("s3://acme/../x", "`..` is not the name of a folder in a bucket"),
        ("s3://acme/a b", "`a b` may contain only letters, digits"),
        ("s3://acme/-a", "`-a` must start with a letter, a digit or `_`"),
    ],
)
def test_a_wrong_location_of_a_bucket_has_its_reason(uri: str, reason: str) -> None:
    assert not base.matches(LOCATION, uri)
    assert reason in form_problem("uri", uri, LOCATION)


@pytest.mark.parametrize(
    ("path", "reason"),
    [
        ("/srv", "it is absolute"),
        ("a/../../b", "`..` leads out of the folder"),
        ("a\x01", "it has a control character"),
    ],
)
def test_a_wrong_path_has_its_reason(path: str, reason: str) -> None:
    assert not base.matches(base.RELATIVE_PATH, path)
    assert form_problem("path", path, base.RELATIVE_PATH).endswith(f": {reason}")
