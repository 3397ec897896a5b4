"""What Koldun's kinds share, as of commit edc6442, or of later ones where a description says so."""

from typing import Annotated, Literal

from msgspec import Meta

from kaigen.core.json_types import Json
from kaigen.dialects.metadata import ForeignMetadata
from kaigen.kinds.base import LabelName, ObjectName, text
from kaigen.kinds.block import Block
from kaigen.kinds.promotable import IMAGE

ApiVersion = Annotated[Literal["koldun.gorizond.io/v1"], Meta(description="Version of Koldun's API.")]
Text = Annotated[str, Meta(max_length=2048)]
ImageText = Annotated[str, IMAGE, text(r"^\S+$", min_length=1, max_length=512)]
Status = dict[str, Json]
Int32 = Annotated[int, Meta(ge=-(2**31), le=2**31 - 1)]
IGNORED_IMAGE = "Image of a container that kaigen does not start; ignored."


class KoldunMetadata(ForeignMetadata):
    """Metadata of a Koldun resource, whose name may contain dots."""

    name: Annotated[ObjectName, Meta(description="Name of the resource. A dot becomes a dash in the name of the app.")]


class Foreign(Block):
    """Fields of every Koldun resource."""

    metadata: Annotated[KoldunMetadata, Meta(description="Name, namespace, labels and annotations of the resource.")]
    status: Annotated[Status | None, Meta(description="Written by the operator; ignored.")] = None


class SecretRef(Block):
    """A Secret."""

    name: Annotated[ObjectName, Meta(description="Name of the Secret.", examples=["minio-creds"])]
    namespace: Annotated[
        LabelName | None, Meta(description="Namespace of the Secret. Pods read only those of their own.")
    ] = None


class CacheSpec(Block):
    """A bucket of weights, which the operator passes to pods as variables that no program reads."""

    endpoint: Annotated[Text, Meta(description="URL of the S3 server; ignored.")]
    bucket: Annotated[Text, Meta(description="Name of the bucket; ignored.")]
    secret_ref: Annotated[SecretRef | None, Meta(description="Secret of the bucket; ignored.")] = None


class RuntimeNats(Block):
    """The queue that the operator's pods of a ring connect to, a block of later versions."""

    url: Annotated[Text, Meta(description="URL of the server; ignored.")]
    credentials_secret: Annotated[SecretRef | None, Meta(description="Secret of the server; ignored.")] = None
