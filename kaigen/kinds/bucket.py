"""Object storage for weights: location, credentials of the downloader, and how pods mount it."""

from typing import Annotated, ClassVar, Literal
from urllib.parse import urlsplit

from msgspec import Meta, field

from kaigen.kinds.base import ADDRESS, Annotations, LabelName, ObjectName, Quantity, text
from kaigen.kinds.block import Block, Choice
from kaigen.kubernetes import buckets

LOCATION = f"^{buckets.LOCATION}$"
"""Bucket and prefix."""

Driver = Literal["mountpoint-s3", "csi-s3", "gcsfuse", "blobfuse"]

_KEY = Annotated[str, text(r"^[-._a-zA-Z0-9]+$", max_length=253)]


class BucketSecret(Block):
    """The Secret with access keys, with the key file of a Google service account, or with a key or SAS of Azure."""

    name: Annotated[ObjectName, Meta(description="Name of the Secret.", examples=["bucket-keys"])]
    access_key: Annotated[_KEY, Meta(description="Key of the access key ID.")] = "AWS_ACCESS_KEY_ID"
    secret_key: Annotated[_KEY, Meta(description="Key of the secret access key.")] = "AWS_SECRET_ACCESS_KEY"
    service_account_key: Annotated[
        _KEY | None,
        Meta(
            description="For `gs://`: key of the JSON key file of a service account, in place of HMAC keys.",
            examples=["key.json"],
        ),
    ] = None
    account_key: Annotated[
        _KEY | None,
        Meta(
            description="For `az://`: key of the key of the storage account. Default: `AZURE_STORAGE_KEY`, without "
            "`sasToken`.",
            examples=["azurestorageaccountkey"],
        ),
    ] = None
    sas_token: Annotated[
        _KEY | None,
        Meta(
            description="For `az://`: key of a shared access signature, in place of an account key.",
            examples=["AZURE_STORAGE_SAS_TOKEN"],
        ),
    ] = None


class BucketAccount(Block):
    """The cloud's identity for pods, set by annotations of the downloader's service account."""

    annotations: Annotated[
        Annotations,
        Meta(
            description="Annotations of the service account.",
            examples=[
                {"eks.amazonaws.com/role-arn": "arn:aws:iam::111122223333:role/models"},
                {"iam.gke.io/gcp-service-account": "models@acme.iam.gserviceaccount.com"},
                {"azure.workload.identity/client-id": "00000000-0000-0000-0000-000000000000"},
            ],
        ),
    ]


class BucketCredentials(Choice):
    """Credentials with which the downloader writes to the bucket."""

    exactly_one: ClassVar[tuple[str, ...]] = ("secret", "serviceAccount")

    secret: Annotated[
        BucketSecret | None,
        Meta(
            description="Keys in a Secret; for `gs://` HMAC keys, or the key file of a service account; for `az://` a "
            "key of the account, or a shared access signature."
        ),
    ] = None
    service_account: Annotated[
        BucketAccount | None, Meta(description="The cloud's identity of the downloader's service account.")
    ] = None


class SecretPlace(Block):
    """A Secret of any namespace."""

    name: Annotated[ObjectName, Meta(description="Name of the Secret.")]
    namespace: Annotated[LabelName, Meta(description="Namespace of the Secret.")]


class BucketMount(Block):
    """How pods mount the bucket, with a CSI driver that the cluster has."""

    driver: Annotated[
        Driver | None,
        Meta(
            description="CSI driver: `mountpoint-s3` of Amazon, `csi-s3` with GeeseFS for any S3 server, `gcsfuse` of "
            "Google, or `blobfuse` of Azure. Default: `gcsfuse` for `gs://`, `blobfuse` for `az://`, `csi-s3` with an "
            "`endpoint`, else `mountpoint-s3`."
        ),
    ] = None
    driver_name: Annotated[
        ObjectName | None, Meta(description="Name of the installed driver, if it differs from the usual name.")
    ] = None
    options: Annotated[
        list[Annotated[str, text(r"^\S(.*\S)?$", min_length=1, max_length=200)]],
        Meta(
            description="Mount options in addition to kaigen's, in the driver's syntax.",
            examples=[["max-threads 32"], ["--stat-cache-ttl=5s"]],
        ),
    ] = field(default_factory=list)
    attributes: Annotated[
        dict[_KEY, str],
        Meta(description="Volume attributes in addition to kaigen's.", examples=[{"authenticationSource": "pod"}]),
    ] = field(default_factory=dict)
    size: Annotated[
        Quantity | None,
        Meta(
            description="Size that the volume and its claim state for quotas; a bucket has none. Default: `1Ti`.",
            examples=["100Gi"],
        ),
    ] = None
    secret: Annotated[
        SecretPlace | None,
        Meta(
            description="For `csi-s3`: the Secret that the driver mounts with, with `accessKeyID`, "
            "`secretAccessKey` and `endpoint`. Default: `csi-s3-secret` in `kube-system`. For `blobfuse`: the Secret "
            "with `azurestorageaccountname` and `azurestorageaccountkey`. Default: the identity of the node."
        ),
    ] = None


class BucketPlace(Block):
    """A folder of an existing bucket."""

    uri: Annotated[
        str, text(LOCATION, max_length=1024, description="Bucket and prefix.", examples=["s3://acme-results/finetune"])
    ]
    endpoint: Annotated[
        Annotated[str, text(ADDRESS)] | None,
        Meta(description="URL of the S3 server, or for `az://` of the account's Blob service. Default: the cloud's."),
    ] = None
    region: Annotated[
        Annotated[str, text(r"^[a-z0-9-]+$", max_length=63)] | None,
        Meta(description="Region of the bucket.", examples=["eu-central-1"]),
    ] = None

    @property
    def scheme(self) -> str:
        """`s3`, `gs` or `az`."""
        return urlsplit(self.uri).scheme

    @property
    def name(self) -> str:
        """Name of the bucket; of Azure, of the account and the container with a slash between them."""
        return buckets.split_location(self.uri)[0]

    @property
    def prefix(self) -> str:
        """Folder in the bucket, without leading and trailing slashes; empty for the whole bucket."""
        return buckets.split_location(self.uri)[1]


class Bucket(BucketPlace):
    """A folder of an existing bucket. kaigen writes to it, and deletes only files that it wrote."""

    uri: Annotated[
        str,
        text(
            LOCATION,
            max_length=1024,
            description="Bucket and prefix; each Model needs its own prefix.",
            examples=[
                "s3://acme-models/qwen2.5-0.5b",
                "gs://acme-models/qwen2.5-0.5b",
                "az://acmemodels/models/qwen2.5-0.5b",
            ],
        ),
    ]
    credentials: Annotated[
        BucketCredentials | None,
        Meta(
            description="Credentials of the downloader. Default: those that the cloud gives its service account "
            "`NAME-download`, as EKS Pod Identity and the workload identities of GKE and AKS do."
        ),
    ] = None
    mount: Annotated[BucketMount, Meta(description="How pods mount the bucket, read-only.")] = field(
        default_factory=BucketMount
    )


class FilledBucket(BucketPlace):
    """A folder of an existing bucket that is filled and that no pod mounts."""

    credentials: Annotated[
        BucketCredentials | None,
        Meta(
            description="Credentials with which the files are uploaded, and with which Models and Datasets read them. "
            "Default: those that the cloud gives the service account `NAME-upload`, and `NAME-download` of a reader."
        ),
    ] = None
