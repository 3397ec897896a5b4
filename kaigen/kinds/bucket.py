"""Object storage for weights: location, credentials of the downloader, and how pods mount it."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal
from urllib.parse import urlsplit

from pydantic import Field

from kaigen.kinds.base import ADDRESS, Annotations, Block, Choice, LabelName, ObjectName

Driver = Literal["mountpoint-s3", "csi-s3", "gcsfuse"]

_LOCATION = r"^(s3|gs)://[a-z0-9][a-z0-9._-]{1,61}[a-z0-9](/[A-Za-z0-9_][A-Za-z0-9_.=+-]*)*/?$"
"""Bucket and prefix. Source: Amazon S3's rules for bucket names; for keys, the safe characters that have no meaning
to a shell or a mount helper."""
_KEY = Annotated[str, Field(pattern=r"^[-._a-zA-Z0-9]+$", max_length=253)]


class BucketSecret(Block):
    """The Secret with access keys that may write to the bucket."""

    name: ObjectName = Field(description="Name of the Secret.", examples=["bucket-keys"])
    access_key: _KEY = Field("AWS_ACCESS_KEY_ID", description="Key of the access key ID.")
    secret_key: _KEY = Field("AWS_SECRET_ACCESS_KEY", description="Key of the secret access key.")


class BucketAccount(Block):
    """The cloud's identity for pods, set by annotations of the downloader's service account."""

    annotations: Annotations = Field(
        description="Annotations of the service account.",
        examples=[{"eks.amazonaws.com/role-arn": "arn:aws:iam::111122223333:role/models"}],
    )


class BucketCredentials(Choice):
    """Credentials with which the downloader writes to the bucket."""

    exactly_one: ClassVar[tuple[str, ...]] = ("secret", "serviceAccount")

    secret: BucketSecret | None = Field(None, description="Access keys in a Secret; HMAC keys for `gs://`.")
    service_account: BucketAccount | None = Field(
        None, description="The cloud's identity of the downloader's service account."
    )


class SecretPlace(Block):
    """A Secret of any namespace."""

    name: ObjectName = Field(description="Name of the Secret.")
    namespace: LabelName = Field(description="Namespace of the Secret.")


class BucketMount(Block):
    """How pods mount the bucket, with a CSI driver that the cluster has."""

    driver: Driver | None = Field(
        None,
        description="CSI driver: `mountpoint-s3` of Amazon, `csi-s3` with GeeseFS for any S3 server, or `gcsfuse` of "
        "Google. Default: `gcsfuse` for `gs://`, `csi-s3` with an `endpoint`, else `mountpoint-s3`.",
    )
    driver_name: ObjectName | None = Field(
        None, description="Name of the installed driver, if it differs from the usual name."
    )
    options: list[Annotated[str, Field(min_length=1, max_length=200, pattern=r"^\S(.*\S)?$")]] = Field(
        [],
        description="Mount options in addition to kaigen's, in the driver's syntax.",
        examples=[["max-threads 32"], ["--stat-cache-ttl=5s"]],
    )
    attributes: dict[_KEY, str] = Field(
        {},
        description="Volume attributes in addition to kaigen's.",
        examples=[{"authenticationSource": "pod"}],
    )
    secret: SecretPlace | None = Field(
        None,
        description="For `csi-s3`: the Secret that the driver mounts with, with `accessKeyID`, `secretAccessKey` and "
        "`endpoint`. Default: `csi-s3-secret` in `kube-system`.",
    )


class Bucket(Block):
    """A folder of an existing bucket. kaigen writes to it, and deletes only files that it wrote."""

    uri: Annotated[str, Field(pattern=_LOCATION, max_length=1024)] = Field(
        description="Bucket and prefix; each Model needs its own prefix.",
        examples=["s3://acme-models/qwen2.5-0.5b", "gs://acme-models/qwen2.5-0.5b"],
    )
    endpoint: Annotated[str, Field(pattern=ADDRESS)] | None = Field(
        None, description="URL of the S3 server. Default: Amazon's, or Google's for `gs://`."
    )
    region: Annotated[str, Field(pattern=r"^[a-z0-9-]+$", max_length=63)] | None = Field(
        None, description="Region of the bucket.", examples=["eu-central-1"]
    )
    credentials: BucketCredentials | None = Field(
        None,
        description="Credentials of the downloader. Default: those that the cloud gives its service account "
        "`NAME-download`, as EKS Pod Identity does.",
    )
    mount: BucketMount = Field(
        default_factory=dict, validate_default=True, description="How pods mount the bucket, read-only."
    )

    @property
    def scheme(self) -> str:
        """`s3` or `gs`."""
        return urlsplit(self.uri).scheme

    @property
    def name(self) -> str:
        """Name of the bucket."""
        return urlsplit(self.uri).netloc

    @property
    def prefix(self) -> str:
        """Folder in the bucket, without leading and trailing slashes; empty for the whole bucket."""
        return urlsplit(self.uri).path.strip("/")
