"""Every field of a kind that is named like a server is checked as one, or has a reason."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, get_args

import pytest
from msgspec import Struct
from msgspec.structs import fields

from kaigen.compile.url_checks import is_url_type
from kaigen.dialects.registry import own_kinds
from kaigen.kinds.block import Later

_NAME = re.compile(
    r"(?i).*(urls?|uris?|endpoints?|hosts?|hostnames?|servers?|address(es)?|prox(y|ies)|registry|mirrors?)"
)

NAMED_BY_LOWERING = "the lowering calls `names_server`"
IN_FIELDS = "the lowering writes it into a field of a spec whose type is a URL: a case in test_urls.py"
OWN_HOST = "a host of the app itself, for which tenants have `hosts`"
OWN_NAME = "the name of the pod itself"
BUCKET = "the URI of a bucket, for which tenants have `buckets`"
IGNORED = "ignored"
REASONS = {
    "kinds.Bucket.uri": BUCKET,
    "kinds.InputBucket.uri": BUCKET,
    "kinds.OutputBucket.uri": BUCKET,
    "kinds.S3.uri": BUCKET,
    "kinds.WeightsBucket.uri": BUCKET,
    "kinds.HostRoute.host": OWN_HOST,
    "kinds.ProtectedRoute.host": OWN_HOST,
    "kinds.Route.host": OWN_HOST,
    **{
        f"kinds.{model}.hostname": OWN_NAME
        for model in ("DatasetSpec", "EndpointSpec", "JobSpec", "Loader", "ModelSpec", "NotebookSpec", "TopologySpec")
    },
    "kaito.DataSource.urls": NAMED_BY_LOWERING,
    "kaito.InferenceService.url": NAMED_BY_LOWERING,
    "kaito.InferenceServiceV1Alpha1.url": NAMED_BY_LOWERING,
    "kaito.RemoteEmbedding.url": NAMED_BY_LOWERING,
    "kaito.VectorDb.url": NAMED_BY_LOWERING,
    "koldun.CacheSpec.endpoint": IGNORED,
    "koldun.IngressRoute.host": OWN_HOST,
    "koldun.IngressTls.hosts": OWN_HOST,
    "koldun.ModelSpec.pipProxy": IGNORED,
    "koldun.ModelSpec.sourceUrl": IN_FIELDS,
    "koldun.Nats.url": IGNORED,
    "koldun.ObjectStorage.endpoint": IN_FIELDS,
    "koldun.RuntimeNats.url": IGNORED,
}
"""Fields whose type is not a URL, by their package and model."""


def texts(annotation: Any) -> bool:
    """Return whether a type has texts."""
    return annotation is str or any(map(texts, get_args(annotation)))


def models(annotation: Any, seen: set[type]) -> Iterator[type[Struct]]:
    """Yield the models that a type has, each once."""
    if isinstance(annotation, Later):
        annotation = annotation.block()
    if isinstance(annotation, type) and issubclass(annotation, Struct) and annotation not in seen:
        seen.add(annotation)
        yield annotation
        for each in fields(annotation):
            yield from models(each.type, seen)
    for each in get_args(annotation):
        yield from models(each, seen)


def servers() -> Iterator[tuple[str, Any]]:
    """Yield the fields with texts that are named like a server, and their types."""
    seen: set[type] = set()
    for kind in own_kinds():
        for model in models(kind.model(), seen):
            for each in fields(model):
                if _NAME.fullmatch(each.encode_name) and texts(each.type):
                    package = model.__module__.split(".")[-2]
                    yield f"{package}.{model.__name__}.{each.encode_name}", each.type


FIELDS = dict(servers())


@pytest.mark.parametrize("field", FIELDS)
def test_a_field_that_is_named_like_a_server_is_checked(field: str) -> None:
    assert is_url_type(FIELDS[field]) or field in REASONS


def test_each_reason_is_of_a_field() -> None:
    assert {field for field in REASONS if field not in FIELDS or is_url_type(FIELDS[field])} == set()
