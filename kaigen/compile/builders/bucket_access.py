"""How the downloader reaches a bucket: its server, its keys and its arguments, and what it cannot reach."""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import urlsplit

from kaigen.compile.builders import settings
from kaigen.compile.expressions import Tree
from kaigen.compile.problems import Problems, report_ignored_field
from kaigen.core.json_types import FieldPath
from kaigen.kinds.block import document_name, set_fields
from kaigen.kinds.bucket import Bucket, BucketPlace, BucketSecret, FilledBucket
from kaigen.kinds.sources import S3

GOOGLE = "https://storage.googleapis.com"
"""Google's endpoint for the S3 protocol (source: Cloud Storage, XML API interoperability)."""

AMAZON = "https://s3.amazonaws.com"
"""Amazon's endpoint, besides those of regions (source: Amazon S3 endpoints and quotas)."""

_AZURE_HOSTS = (
    ".blob.core.windows.net",
    ".blob.core.usgovcloudapi.net",
    ".blob.core.chinacloudapi.cn",
)
"""Ends of the hosts of storage accounts (source: Azure, endpoints of Blob Storage in its clouds)."""


def location(bucket: BucketPlace) -> str:
    """Return a bucket's folder as one string, the same however the spec writes it."""
    return " at ".join([f"{bucket.scheme}://{path_of(bucket)}", *own_server(bucket)])


def own_server(bucket: BucketPlace) -> list[str]:
    """Return the server of a bucket, besides that of its cloud."""
    return [bucket.endpoint.rstrip("/").partition("://")[2]] if bucket.endpoint else []


def uses_tokens(bucket: Bucket | FilledBucket | S3) -> bool:
    """Return whether the downloader sends tokens of Google, and not requests of the S3 protocol with access keys."""
    secret = bucket.credentials.secret if bucket.credentials else None
    return bucket.scheme == "gs" and (secret is None or secret.service_account_key is not None)


def check_access(bucket: Bucket | FilledBucket | S3, origin: FieldPath, problems: Problems) -> None:
    """Report a bucket that the downloader cannot read or write.

    Args:
        bucket: the spec's block.
        origin: the spec's field of the block.
        problems: collects the errors.
    """
    secret = bucket.credentials.secret if bucket.credentials else None
    if bucket.scheme == "az":
        _check_azure(bucket, origin, problems)
    elif uses_tokens(bucket) and bucket.endpoint:
        problems.error(
            "KG0317",
            f"the downloader sends tokens of Google to Google's server only, not to {bucket.endpoint}",
            (*origin, "endpoint"),
            "leave `endpoint` out, or set `credentials.secret` to a Secret with HMAC keys",
        )
    elif bucket.credentials is None and bucket.endpoint:
        problems.error(
            "KG0317",
            f"the downloader has no credentials for {bucket.endpoint}",
            origin,
            "set `credentials.secret` to the Secret with its access keys",
        )
    if secret is not None:
        _check_secret(secret, bucket.scheme, (*origin, "credentials", "secret"), problems)


def _check_azure(bucket: Bucket | FilledBucket | S3, origin: FieldPath, problems: Problems) -> None:
    """Report a server that would get a token of Azure, and is not one of the account."""
    secret = bucket.credentials.secret if bucket.credentials else None
    if not bucket.endpoint or secret is not None:
        return
    if is_azure_server(bucket):
        return
    account = bucket.name.partition("/")[0]
    problems.error(
        "KG0317",
        f"the downloader sends tokens of Azure to servers of the account `{account}` only, not to {bucket.endpoint}",
        (*origin, "endpoint"),
        "leave `endpoint` out, or set `credentials.secret` to a Secret with a key or a shared access signature",
    )


_SECRET_FIELDS = {
    "s3": ("access_key", "secret_key"),
    "gs": ("access_key", "secret_key", "service_account_key"),
    "az": ("account_key", "sas_token"),
}
"""Fields of a `BucketSecret` by the scheme of the bucket."""


def _check_secret(secret: BucketSecret, scheme: str, origin: FieldPath, problems: Problems) -> None:
    """Report keys that have no effect on a bucket of this scheme, or next to each other."""
    given = [name for name in set_fields(secret) if name not in ("name", *_SECRET_FIELDS[scheme])]
    for field_name in given:
        name = document_name(secret, field_name)
        fitting = " or ".join(f"`{document_name(secret, each)}`" for each in _SECRET_FIELDS[scheme])
        message = f"`{name}` has no effect on `{scheme}://`, which has {fitting}"
        problems.error("KG0340", message, (*origin, name), "leave it out, or correct the scheme of the bucket")
    first = "sas_token" if scheme == "az" else "service_account_key"
    others = ("account_key",) if scheme == "az" else ("access_key", "secret_key")
    for field_name in others if getattr(secret, first) is not None else ():
        if field_name in set_fields(secret) and field_name not in given:
            name = document_name(secret, field_name)
            where = f"next to `{document_name(secret, first)}`"
            report_ignored_field(problems, name, (*origin, name), where, "leave one of them out")


def path_of(bucket: BucketPlace) -> str:
    """Return the name of a bucket and the folder in it."""
    return "/".join(part for part in (bucket.name, bucket.prefix) if part)


def transfer_arguments(
    bucket: Bucket | FilledBucket, origin: FieldPath, prefix: str = "download"
) -> tuple[list[str], list[Tree]]:
    """Return the downloader's arguments about the bucket, and variables with its keys.

    Args:
        bucket: the spec's block.
        origin: the spec's field of the block.
        prefix: start of the paths of the settings.
    """
    endpoint, region = transfer_server(bucket)
    arguments = [*([f"--s3-endpoint={endpoint}"] if endpoint else []), *([f"--s3-region={region}"] if region else [])]
    secret = bucket.credentials.secret if bucket.credentials else None
    if secret is None:
        return arguments, []
    at: FieldPath = (*origin, "credentials", "secret")
    name = settings.text(
        f"{prefix}.credentials.name", secret.name, "Secret with the bucket's keys.", origin=(*at, "name")
    )
    return arguments, [
        {
            "name": variable,
            "valueFrom": {
                "secretKeyRef": {
                    "name": name,
                    "key": settings.text(
                        f"{prefix}.credentials.{part}", key, f"Key of the {what} in the Secret.", origin=(*at, part)
                    ),
                }
            },
        }
        for variable, (part, key, what) in key_variables(secret, bucket.scheme).items()
    ]


def transfer_server(bucket: Bucket | FilledBucket | S3) -> tuple[str | None, str | None]:
    """Return the endpoint and the region that the downloader gets; None for those of the cloud."""
    if bucket.scheme == "gs" and not uses_tokens(bucket):
        return bucket.endpoint or GOOGLE, bucket.region or "auto"
    return bucket.endpoint, bucket.region


def key_variables(secret: BucketSecret, scheme: str) -> Mapping[str, tuple[str, str, str]]:
    """Return the keys of a Secret: the field, the key, and what it contains, by the variable of the downloader.

    Args:
        secret: the spec's block.
        scheme: of the bucket.
    """
    if scheme == "az" and secret.sas_token is not None:
        return {"AZURE_STORAGE_SAS_TOKEN": ("sasToken", secret.sas_token, "shared access signature")}
    if scheme == "az":
        return {"AZURE_STORAGE_KEY": ("accountKey", secret.account_key or "AZURE_STORAGE_KEY", "account's key")}
    if secret.service_account_key is not None:
        return {
            "GOOGLE_SERVICE_ACCOUNT_KEY": (
                "serviceAccountKey",
                secret.service_account_key,
                "service account's key file",
            )
        }
    return {
        "AWS_ACCESS_KEY_ID": ("accessKey", secret.access_key, "access key ID"),
        "AWS_SECRET_ACCESS_KEY": ("secretKey", secret.secret_key, "secret access key"),
    }


def destination(bucket: Bucket | FilledBucket) -> str:
    """Return the downloader's `--dest`."""
    return f"{protocol_of(bucket)}://{path_of(bucket)}"


def protocol_of(bucket: Bucket | FilledBucket | S3) -> str:
    """Return the scheme with which the downloader gets a bucket: `s3` also for Google's with HMAC keys."""
    return bucket.scheme if bucket.scheme == "az" or uses_tokens(bucket) else "s3"


def cloud_server(bucket: BucketPlace | S3) -> str:
    """Return the URL of the server of a bucket."""
    if bucket.endpoint:
        return bucket.endpoint.rstrip("/")
    if bucket.scheme == "az":
        return f"https://{bucket.name.partition('/')[0]}{_AZURE_HOSTS[0]}"
    return GOOGLE if bucket.scheme == "gs" else AMAZON


def is_azure_server(bucket: BucketPlace | S3) -> bool:
    """Return whether the server of a container is Azure's own for its account, which may get tokens."""
    account = bucket.name.partition("/")[0]
    parts = urlsplit(cloud_server(bucket))
    return parts.scheme == "https" and (parts.hostname or "").lower() in {f"{account}{end}" for end in _AZURE_HOSTS}


def folder_of(place: str) -> str:
    """Return the bucket and the folder of a `location` or of a `destination`, whichever protocol it is used with."""
    return place.partition("://")[2].partition(" ")[0]
