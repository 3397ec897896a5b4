"""Checks of a resolved Model."""

from __future__ import annotations

from kaigen.compile.builders.buckets import check_bucket
from kaigen.compile.builders.storage import check_access_modes
from kaigen.compile.builders.weights import check_paths
from kaigen.compile.model.resolution import ModelResolution
from kaigen.compile.model.store import STORE
from kaigen.compile.problems import Problems


def check_model(resolution: ModelResolution, problems: Problems) -> None:
    """Report every problem of a Model that its resolution did not."""
    spec = resolution.spec
    if spec.store.bucket:
        check_bucket(spec.store.bucket, (*STORE, "bucket"), problems)
    if spec.store.volume:
        check_access_modes(spec.store.volume, resolution.context, (*STORE, "volume"), problems)
    if spec.source.http:
        check_paths(spec.source.http.files, ("spec", "source", "http", "files"), problems)
