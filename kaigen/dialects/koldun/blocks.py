"""Blocks that Koldun's kinds share: metadata, references to Secrets, status."""

from typing import Annotated, Any

from msgspec import Meta

from kaigen.core.json_types import Json
from kaigen.dialects.metadata import ForeignMetadata
from kaigen.kinds.base import LabelName, ObjectName, text
from kaigen.kinds.block import Block
from kaigen.kinds.promotable import IMAGE

Text = Annotated[str, Meta(max_length=2048)]
ImageText = Annotated[str, IMAGE, text(r"^\S+$", min_length=1, max_length=512)]
Status = dict[str, Json]
Int32 = Annotated[int, Meta(ge=-(2**31), le=2**31 - 1)]


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


def set_names(block: Block, document: Any) -> list[str]:
    """Return the fields that a mapping of a document sets, in its order.

    Args:
        block: the mapping as a block, which has checked the names.
        document: the mapping as plain data.
    """
    return [name for name in document if name in block.__struct_encode_fields__]
