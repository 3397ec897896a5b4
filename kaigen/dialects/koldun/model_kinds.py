"""Koldun's Model, as of commit edc6442, or of later ones where a description says so."""

from typing import Annotated, Literal

from msgspec import Meta, field

from kaigen.dialects.koldun.kinds import IGNORED_IMAGE, Foreign, Int32, SecretRef, Text
from kaigen.kinds.base import LabelName, ObjectName, Quantity
from kaigen.kinds.block import Block
from kaigen.kinds.promotable import NAME

WeightsType = Literal["q40", "q80", "f16", "f32", ""]
"""Types that the operator's converter writes, and the default; the runtime loads only q40 and f32."""


class ObjectStorage(Block):
    """The S3 server and its buckets."""

    endpoint: Annotated[
        Text, Meta(description="URL of the S3 server; empty for Amazon's.", examples=["http://minio:9000"])
    ]
    bucket_for_source: Annotated[Text, Meta(description="Bucket of the downloaded files.", examples=["models"])]
    bucket_for_convert: Annotated[
        Text, Meta(description="Bucket of the converted files.", examples=["models-converted"])
    ]
    secret_ref: Annotated[
        SecretRef | None,
        Meta(description="Secret with `AWS_ACCESS_KEY_ID` and `AWS_SECRET_ACCESS_KEY`, to write to the buckets."),
    ] = None


class Download(Block):
    """Settings of the download."""

    image: Annotated[Text | None, Meta(description=IGNORED_IMAGE)] = None
    command: Annotated[list[str], Meta(description="Command of the operator's container; refused.")] = field(
        default_factory=list
    )
    args: Annotated[list[str], Meta(description="Arguments of the operator's container; refused.")] = field(
        default_factory=list
    )
    hugging_face_token_secret_ref: Annotated[
        SecretRef | None, Meta(description="Secret with a Hub token under the key `token`.")
    ] = None
    memory: Annotated[Quantity | None, Meta(description="Memory of the downloader.", examples=["2Gi"])] = None
    chunk_max_mi_b: Annotated[
        Int32 | None, Meta(description="Greatest part of an upload, in MiB; 0 for the default.")
    ] = None
    concurrency: Annotated[Int32 | None, Meta(description="Number of connections; 0 for the default.")] = None


class Conversion(Block):
    """Conversion to the format of distributed-llama."""

    image: Annotated[Text | None, Meta(description=IGNORED_IMAGE)] = None
    command: Annotated[list[str], Meta(description="Command of the operator's container; refused.")] = field(
        default_factory=list
    )
    args: Annotated[list[str], Meta(description="Arguments of the operator's container; refused.")] = field(
        default_factory=list
    )
    weights_float_type: Annotated[
        WeightsType | None,
        Meta(description="Type of the weights: `q40` (default) or `f32`. The runtime cannot load the others."),
    ] = None
    convert_weights: Annotated[
        WeightsType | Literal["skip"] | None,
        Meta(description="A field of later versions with the meaning of `weightsFloatType`; `skip` is refused."),
    ] = None
    output_path: Annotated[
        Text | None,
        Meta(
            description="Bucket and prefix of the converted files, `s3://bucket/prefix`.",
            examples=["s3://models-converted/qwen3"],
        ),
    ] = None
    memory: Annotated[Quantity | None, Meta(description="Memory of the converter.", examples=["8Gi"])] = None
    rclone_image: Annotated[Text | None, Meta(description=IGNORED_IMAGE)] = None
    tools_image: Annotated[Text | None, Meta(description=IGNORED_IMAGE)] = None
    converter_version: Annotated[
        Text | None, Meta(description="Tag of the converter's scripts, which kaigen does not download; ignored.")
    ] = None
    dependencies: Annotated[
        dict[str, str], Meta(description="Python packages of the converter, a field of later versions; ignored.")
    ] = field(default_factory=dict)


class PersistentVolumes(Block):
    """How pods mount the buckets."""

    storage_class_name: Annotated[Text | None, Meta(description="StorageClass of the PersistentVolumes; ignored.")] = (
        None
    )
    capacity: Annotated[Quantity | None, Meta(description="Size of the volumes, if `pvcCapacity` states none.")] = None
    access_modes: Annotated[
        list[Text], Meta(description="Access modes of the PersistentVolumes; pods mount buckets read-only.")
    ] = field(default_factory=list)
    reclaim_policy: Annotated[
        Text | None, Meta(description="`Retain`, `Delete` or `Recycle`. Files in buckets are always kept.")
    ] = None
    csi_driver: Annotated[
        ObjectName | None, Meta(description="Name of the CSI driver. Default: `ru.yandex.s3.csi`.")
    ] = None
    csi_mounter: Annotated[
        Text | None, Meta(description="Program with which the driver mounts.", examples=["geesefs"])
    ] = None
    csi_options: Annotated[
        Text | None, Meta(description="Mount options.", examples=["--memory-limit 1000 --dir-mode 0777"])
    ] = None
    volume_attributes: Annotated[dict[str, str], Meta(description="Further attributes of the PersistentVolumes.")] = (
        field(default_factory=dict)
    )
    csi_secret_name: Annotated[
        ObjectName | None, Meta(description="Secret that the driver mounts with. Default: `csi-s3-secret`.")
    ] = None
    csi_secret_namespace: Annotated[
        LabelName | None, Meta(description="Namespace of that Secret. Default: `kube-system`.")
    ] = None
    pvc_storage_class_name: Annotated[
        Text | None, Meta(description="StorageClass of the claim, without `objectStorage`.")
    ] = None
    pvc_capacity: Annotated[Quantity | None, Meta(description="Size of the volumes.")] = None
    pvc_access_modes: Annotated[list[Text], Meta(description="Access modes of the claim, without `objectStorage`.")] = (
        field(default_factory=list)
    )


class ModelSpec(Block):
    """Where weights come from, where they are stored, and their conversion."""

    source_url: Annotated[
        Text,
        NAME,
        Meta(
            description="Repository on the Hugging Face Hub: its URL, with or without `/tree/REVISION`, or "
            "`owner/name`. Another URL is that of a Hub mirror's repository or of a file.",
            examples=["https://huggingface.co/Qwen/Qwen3-1.7B"],
        ),
    ]
    local_path: Annotated[
        Text,
        Meta(
            description="Folder of the downloaded files: `s3://bucket/prefix`, or a prefix in `bucketForSource`.",
            examples=["s3://models/Qwen/Qwen3-1.7B"],
        ),
    ]
    object_storage: Annotated[ObjectStorage | None, Meta(description="The S3 server and its buckets.")] = None
    pip_proxy: Annotated[Text | None, Meta(description="Proxy of pip, which kaigen does not run; ignored.")] = None
    launch_options: Annotated[
        list[Text], Meta(description="Options of `dllama`, which later versions of the operator read.")
    ] = field(default_factory=list)
    download: Annotated[Download | None, Meta(description="Settings of the download.")] = None
    conversion: Annotated[Conversion | None, Meta(description="Conversion to the format of distributed-llama.")] = None
    pv: Annotated[PersistentVolumes | None, Meta(description="How pods mount the buckets.")] = None
    replica_power: Annotated[
        Int32 | None,
        Meta(
            description="Number of workers of a ring, 2^p - 1 for p, where an Ingress states none. A field of later "
            "versions.",
            examples=[2],
        ),
    ] = None
    pre_converted: Annotated[
        bool, Meta(description="Whether the files are converted already. A field of later versions.")
    ] = False
    pre_converted_pvc_name: Annotated[
        ObjectName | None,
        Meta(description="PersistentVolumeClaim with the converted files. A field of later versions."),
    ] = field(default=None, name="preConvertedPVCName")
    pre_converted_size_bytes: Annotated[
        int | None, Meta(description="Size of these files. A field of later versions; ignored.")
    ] = None
    pre_converted_size_human: Annotated[
        Text | None, Meta(description="Size of these files, for people. A field of later versions; ignored.")
    ] = None


class Model(Foreign):
    """Koldun's `Model`."""

    api_version: Annotated[Literal["koldun.gorizond.io/v1"], Meta(description="Version of Koldun's API.")]
    kind: Annotated[Literal["Model"], Meta(description="Kind of the document.")]
    spec: Annotated[ModelSpec, Meta(description="Desired state.")]
