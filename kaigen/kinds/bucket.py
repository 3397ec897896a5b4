"""Where weights rest in object storage, who may write there, and how pods mount it."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal
from urllib.parse import urlsplit

from pydantic import Field

from kaigen.kinds.base import ADDRESS, Annotations, Block, Choice, LabelName, ObjectName

Driver = Literal["mountpoint-s3", "csi-s3", "gcsfuse"]

_LOCATION = r"^(s3|gs)://[a-z0-9][a-z0-9._-]{1,61}[a-z0-9](/[A-Za-z0-9_][A-Za-z0-9_.=+-]*)*/?$"
"""Bucket and prefix. Source: Amazon S3's rules for bucket names; of the characters that are safe in keys, those that
no shell and no mount helper takes for its own."""
_KEY = Annotated[str, Field(pattern=r"^[-._a-zA-Z0-9]+$", max_length=253)]


class BucketSecret(Block):
    """The Secret with the keys of an account that may write into the bucket."""

    name: ObjectName = Field(description="Name of the Secret.", examples=["bucket-keys"])
    access_key: _KEY = Field("AWS_ACCESS_KEY_ID", description="Key that holds the access key's id.")
    secret_key: _KEY = Field("AWS_SECRET_ACCESS_KEY", description="Key that holds the secret access key.")


class BucketAccount(Block):
    """The cloud's own identity for pods, told by annotations of the downloader's service account."""

    annotations: Annotations = Field(
        description="Annotations of the service account.",
        examples=[{"eks.amazonaws.com/role-arn": "arn:aws:iam::111122223333:role/models"}],
    )


class BucketCredentials(Choice):
    """By what right the downloader writes into the bucket."""

    exactly_one: ClassVar[tuple[str, ...]] = ("secret", "serviceAccount")

    secret: BucketSecret | None = Field(
        None, description="Access keys in a Secret; for `gs://` they are HMAC keys."
    )
    service_account: BucketAccount | None = Field(
        None, description="The cloud's identity for the downloader's service account."
    )


class SecretPlace(Block):
    """A Secret, perhaps of another namespace."""

    name: ObjectName = Field(description="Name of the Secret.")
    namespace: LabelName = Field(description="Its namespace.")


class BucketMount(Block):
    """How pods mount the bucket, through a CSI driver that the cluster has."""

    driver: Driver | None = Field(
        None,
        description="`mountpoint-s3` is Amazon's, `csi-s3` the one with GeeseFS for any S3 server, `gcsfuse` "
        "Google's. Default: `gcsfuse` for `gs://`, `csi-s3` where there is an `endpoint`, else `mountpoint-s3`.",
    )
    driver_name: ObjectName | None = Field(
        None, description="Name that the driver is installed under, when it is another than its own."
    )
    options: list[Annotated[str, Field(min_length=1, max_length=200, pattern=r"^\S(.*\S)?$")]] = Field(
        [],
        description="Mount options beside kaigen's own, as the driver writes them.",
        examples=[["max-threads 32"], ["--stat-cache-ttl=5s"]],
    )
    attributes: dict[_KEY, str] = Field(
        {},
        description="Volume attributes beside kaigen's own.",
        examples=[{"authenticationSource": "pod"}],
    )
    secret: SecretPlace | None = Field(
        None,
        description="For `csi-s3`: the Secret by which it mounts, with `accessKeyID`, `secretAccessKey` and "
        "`endpoint`. Default: `csi-s3-secret` in `kube-system`.",
    )


class Bucket(Block):
    """A folder of a bucket that is there already. kaigen fills it, and deletes only files that it put there."""

    uri: Annotated[str, Field(pattern=_LOCATION, max_length=1024)] = Field(
        description="Bucket and prefix; each Model needs a prefix of its own.",
        examples=["s3://acme-models/qwen2.5-0.5b", "gs://acme-models/qwen2.5-0.5b"],
    )
    endpoint: Annotated[str, Field(pattern=ADDRESS)] | None = Field(
        None, description="Address of the S3 server. Default: Amazon's, or Google's for `gs://`."
    )
    region: Annotated[str, Field(pattern=r"^[a-z0-9-]+$", max_length=63)] | None = Field(
        None, description="Region of the bucket.", examples=["eu-central-1"]
    )
    credentials: BucketCredentials | None = Field(
        None,
        description="By what right the downloader writes. Default: what the cloud gives its service account "
        "`NAME-download`, as EKS Pod Identity does.",
    )
    mount: BucketMount = Field(
        default_factory=dict, validate_default=True, description="How pods mount it, read-only."
    )

    @property
    def scheme(self) -> str:
        """`s3` or `gs`."""
        return urlsplit(self.uri).scheme

    @property
    def name(self) -> str:
        """The bucket's name."""
        return urlsplit(self.uri).netloc

    @property
    def prefix(self) -> str:
        """The folder in the bucket, without slashes around it; empty for the bucket itself."""
        return urlsplit(self.uri).path.strip("/")
