"""Sources of files other than the Hub and web servers: buckets and OCI registries."""

from typing import Annotated
from urllib.parse import urlsplit

from msgspec import Meta, field

from kaigen.kinds.base import ADDRESS, NO_BLANKS, RELATIVE_PATH, ObjectRef, text
from kaigen.kinds.block import Block
from kaigen.kinds.bucket import LOCATION, BucketCredentials
from kaigen.kinds.promotable import IMAGE
from kaigen.kubernetes.buckets import split_location

Globs = list[Annotated[str, Meta(min_length=1)]]


class S3(Block):
    """Files below a prefix of a bucket of S3, Google or Azure."""

    uri: Annotated[
        str,
        text(
            LOCATION,
            max_length=1024,
            description="Bucket and prefix. Paths of files are relative to the prefix.",
            examples=["s3://acme-models/qwen2.5-0.5b", "az://acmemodels/models/qwen2.5-0.5b"],
        ),
    ]
    endpoint: Annotated[
        Annotated[str, text(ADDRESS)] | None,
        Meta(description="URL of the S3 server, or for `az://` of the account's Blob service. Default: the cloud's."),
    ] = None
    region: Annotated[
        Annotated[str, text(r"^[a-z0-9-]+$", max_length=63)] | None,
        Meta(description="Region of the bucket.", examples=["eu-central-1"]),
    ] = None
    revision: Annotated[
        Annotated[str, text(r"^[0-9]+:[0-9]+:[0-9a-f]{64}$")] | None,
        Meta(
            description="Number, bytes and SHA-256 digest of the files that `include` and `exclude` select (ETag, "
            "size and path of each). The "
            "downloader refuses other files, and prints those that it finds. Default: the files that are there."
        ),
    ] = None
    credentials: Annotated[
        BucketCredentials | None,
        Meta(
            description="Credentials that may read the bucket. Default: those that the cloud gives the service "
            "account of the downloader."
        ),
    ] = None
    include: Annotated[
        Globs, Meta(description="Globs of files to download. Default: all files.", examples=[["*.safetensors"]])
    ] = field(default_factory=list)
    exclude: Annotated[Globs, Meta(description="Globs of files to skip.")] = field(default_factory=list)

    @property
    def keeps_duplicates(self) -> bool:
        """Whether weights are downloaded that the bucket has as safetensors files already."""
        return True

    @property
    def scheme(self) -> str:
        """`s3`, `gs` or `az`."""
        return urlsplit(self.uri).scheme

    @property
    def name(self) -> str:
        """Name of the bucket; of Azure, of the account and the container with a slash between them."""
        return split_location(self.uri)[0]

    @property
    def place(self) -> str:
        """Bucket and prefix, without leading and trailing slashes."""
        return self.uri.partition("://")[2].strip("/")

    @property
    def location(self) -> str:
        """Server, bucket and prefix as one string, the same however the spec writes it."""
        server = self.endpoint.rstrip("/").partition("://")[2] if self.endpoint else ""
        return f"{self.scheme}://{self.place}" + (f" at {server}" if server else "")


class Oci(Block):
    """Files of an OCI artifact, or of the layers of an image."""

    ref: Annotated[
        str,
        IMAGE,
        text(
            NO_BLANKS,
            min_length=1,
            max_length=512,
            description="Reference of the artifact or image, preferably with a digest.",
            examples=["ghcr.io/org/qwen-weights@sha256:…"],
        ),
    ]
    path: Annotated[
        Annotated[str, text(RELATIVE_PATH, max_length=1024)] | None,
        Meta(
            description="Folder in the layers of an image; paths of files are relative to it. Default: `models`, where "
            "ModelCar images have the files. Artifacts have no folder.",
            examples=["models"],
        ),
    ] = None
    include: Annotated[
        Globs, Meta(description="Globs of files to download. Default: all files.", examples=[["*.safetensors"]])
    ] = field(default_factory=list)
    exclude: Annotated[Globs, Meta(description="Globs of files to skip.")] = field(default_factory=list)
    pull_secret: Annotated[
        ObjectRef | None, Meta(description="Secret of type dockerconfigjson. Only the downloader reads it.")
    ] = None
    plain_http: Annotated[bool, Meta(description="Use HTTP instead of HTTPS, for a registry inside the cluster.")] = (
        False
    )

    @property
    def keeps_duplicates(self) -> bool:
        """Whether weights are downloaded that the artifact has as safetensors files already."""
        return True


DUPLICATES = Meta(
    description="Also download weights that the source has as safetensors files already: `original/`, "
    "`consolidated*`, and `*model*.bin`, `.h5`, `.msgpack` and `.ot` next to them. Without effect with `include`."
)


class WeightsBucket(S3):
    """Model weights below a prefix of a bucket."""

    duplicates: Annotated[bool, DUPLICATES] = False

    @property
    def keeps_duplicates(self) -> bool:
        """As the spec says."""
        return self.duplicates


class WeightsArtifact(Oci):
    """Model weights in an OCI artifact, or in the layers of an image."""

    duplicates: Annotated[bool, DUPLICATES] = False

    @property
    def keeps_duplicates(self) -> bool:
        """As the spec says."""
        return self.duplicates
