"""Checks of sources of files: credentials of buckets, references of artifacts."""

from __future__ import annotations

from kaigen.compile.expressions import SpecPath
from kaigen.compile.problems import Problems
from kaigen.kinds.sources import S3, Oci
from kaigen.kubernetes.image_names import is_image


def check_read_access(s3: S3, origin: SpecPath, problems: Problems) -> None:
    """Report a bucket that the downloader cannot read."""
    if s3.credentials is None and s3.scheme == "gs":
        problems.error(
            "KG0317",
            "the downloader requires HMAC keys to read Google's buckets",
            origin,
            "create HMAC keys for a service account, and set `credentials.secret` to their Secret",
        )
    elif s3.credentials is None and s3.endpoint:
        problems.error(
            "KG0317",
            f"the downloader has no credentials for {s3.endpoint}",
            origin,
            "set `credentials.secret` to the Secret with its access keys",
        )
    if s3.credentials and s3.credentials.service_account and s3.scheme == "gs":
        problems.error(
            "KG0317",
            "Google's S3 protocol supports HMAC keys only, not identities of service accounts",
            (*origin, "credentials", "serviceAccount"),
            "set `credentials.secret` to a Secret with HMAC keys",
        )


def check_reference(oci: Oci, origin: SpecPath, problems: Problems) -> None:
    """Report a reference that is not one of an artifact."""
    if not is_image(oci.ref):
        problems.error(
            "KG0395",
            f"`{oci.ref}` is not the reference of an artifact",
            (*origin, "ref"),
            "write REGISTRY/REPOSITORY:TAG, or REGISTRY/REPOSITORY@DIGEST",
        )
