"""The servers that the pods of a Model or a Dataset connect to."""

from __future__ import annotations

from kaigen.compile.builders.egress import Server, bucket_server, source_servers
from kaigen.compile.model.conversion import AT
from kaigen.compile.model.mounted import mounted_bucket
from kaigen.compile.model.resolution import ModelResolution
from kaigen.compile.model.store import STORE


def download_servers(resolution: ModelResolution) -> list[Server]:
    """Return the servers of the source, of the bucket that stores its files, and of that of converted files."""
    spec = resolution.spec
    found = [*source_servers(spec.source, ("spec", "source"), resolution.context)]
    if resolution.output is not None and resolution.output.bucket is not None:
        found.append(bucket_server(resolution.output.bucket, ("spec", "source", "job")))
    bucket, served = spec.store.bucket, mounted_bucket(spec)
    if bucket is not None:
        found.append(bucket_server(bucket, (*STORE, "bucket")))
    if served is not None and served is not bucket:
        found.append(bucket_server(served, (*AT, "store", "bucket")))
    return found
