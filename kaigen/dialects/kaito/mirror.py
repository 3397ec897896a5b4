"""`ModelMirror`: weights in a shared volume, as a Model."""

from typing import Annotated, Literal

from msgspec import Meta, field

from kaigen.catalog.presets import find_preset
from kaigen.dialects.kaito.blocks import Foreign, Text
from kaigen.dialects.kaito.resource import TOKEN_KEY, ResourceLowering
from kaigen.kinds.base import LabelName, ObjectName, Quantity
from kaigen.kinds.block import Block
from kaigen.kinds.lowering import LoweringContext, LoweringResult
from kaigen.kinds.model import Model
from kaigen.kinds.positioned import Positioned


class SecretReference(Block):
    """A Secret, as an object reference."""

    name: Annotated[ObjectName | None, Meta(description="Name of the Secret.")] = None
    namespace: Annotated[LabelName | None, Meta(description="Namespace of the Secret.")] = None
    api_version: Annotated[Text | None, Meta(description="Version of the object; ignored.")] = None
    kind: Annotated[Text | None, Meta(description="Kind of the object; ignored.")] = None
    field_path: Annotated[Text | None, Meta(description="Field of the object; ignored.")] = None
    resource_version: Annotated[Text | None, Meta(description="Revision of the object; ignored.")] = None
    uid: Annotated[Text | None, Meta(description="UID of the object; ignored.")] = None


_IGNORED = ("apiVersion", "kind", "fieldPath", "resourceVersion", "uid")
"""Fields of an object reference that a download does not read."""


class MirrorSource(Block):
    """Source of the weights."""

    registry: Annotated[Literal["huggingface"], Meta(description="The Hugging Face Hub.")]
    model_id: Annotated[Text, Meta(description="Repository, `owner/name`.", examples=["microsoft/phi-4"])] = field(
        name="modelID"
    )
    access_secret: Annotated[
        SecretReference | None, Meta(description=f"Secret with a Hub token under the key `{TOKEN_KEY}`.")
    ] = None


class MirrorStorage(Block):
    """The volume of the weights."""

    size: Annotated[Quantity, Meta(description="Size of the volume.", examples=["100Gi"])]
    storage_class_name: Annotated[Text | None, Meta(description="StorageClass of the volume.")] = None


class MirrorSpec(Block):
    """Weights in a volume."""

    mode: Annotated[
        Literal["Managed", "Static"], Meta(description="Whether the weights are downloaded or already in a volume.")
    ] = "Managed"
    source: Annotated[MirrorSource | None, Meta(description="Source of the weights.")] = None
    storage: Annotated[MirrorStorage | None, Meta(description="The volume of the weights.")] = None
    job_namespace: Annotated[LabelName | None, Meta(description="Namespace of the volume and of the download.")] = None
    service_account_name: Annotated[Text | None, Meta(description="ServiceAccount of the download.")] = None


class ModelMirror(Foreign):
    """KAITO's `ModelMirror`."""

    api_version: Annotated[Literal["kaito.sh/v1alpha1"], Meta(description="Version of KAITO's API.")]
    kind: Annotated[Literal["ModelMirror"], Meta(description="Kind of the document.")]
    spec: Annotated[MirrorSpec, Meta(description="Desired state.")] = field(default_factory=MirrorSpec)


def lower(mirror: ModelMirror, document: Positioned, context: LoweringContext) -> LoweringResult:
    """Return a ModelMirror as a Model of the same name.

    Args:
        mirror: the validated document.
        document: the document with positions.
        context: what else the lowering may read.
    """
    lowering = ResourceLowering(mirror.metadata, document, context, "version")
    lowering.directives(lowering.annotations, ("version",))
    spec = mirror.spec
    if spec.mode == "Static":
        lowering.error(
            "KG0413",
            "a Static mirror refers to an existing volume, so there is nothing to render",
            ("spec", "mode"),
            "delete the resource and mount the volume in a `template`, or set `mode: Managed`",
        )
        return lowering.result()
    if spec.source is None or spec.storage is None:
        missing = "source" if spec.source is None else "storage"
        lowering.error("KG0412", f"`mode: Managed` requires `{missing}`", ("spec",), f"add `{missing}`")
        return lowering.result()
    if spec.service_account_name is not None:
        lowering.unused(
            ("spec", "serviceAccountName"), "the downloader has its own service account with fewer permissions"
        )
    namespace = spec.job_namespace
    draft = lowering.draft("Model", namespace=namespace)
    draft.origins["spec",] = ("spec",)
    if namespace:
        draft.origins["metadata", "namespace"] = ("spec", "jobNamespace")
    hub = ("spec", "source", "huggingFace")
    at = ("spec", "source", "modelID")
    if not lowering.is_placeholder(spec.source.model_id, at, "a repository"):
        draft.put((*hub, "repo"), spec.source.model_id, at)
        preset = find_preset(spec.source.model_id, context.catalog)
        if preset is not None and preset.revision:
            draft.put((*hub, "revision"), preset.revision, at)
    # KAITO skips these too: weights in a format that engines do not read.
    draft.put((*hub, "exclude"), ["original/*"])
    secret = spec.source.access_secret
    if secret is not None:
        here = ("spec", "source", "accessSecret")
        lowering.ignored(_IGNORED, here, "the Secret is found by its name")
        if secret.name is None:
            lowering.error("KG0412", "`name` is missing", here, "add `name`")
        else:
            draft.put((*hub, "tokenSecret"), {"name": secret.name, "key": TOKEN_KEY}, (*here, "name"))
        if secret.namespace is not None and secret.namespace != (namespace or lowering.namespace):
            lowering.warning(
                "KG0414",
                f"the pod reads Secrets of its own namespace, not of `{secret.namespace}`",
                (*here, "namespace"),
                "create the Secret in the namespace `jobNamespace`",
            )
    storage = ("spec", "store", "volume")
    draft.put((*storage, "size"), spec.storage.size, ("spec", "storage", "size"))
    draft.put((*storage, "accessModes"), ["ReadWriteMany"], ("spec", "storage"))
    if spec.storage.storage_class_name is not None:
        draft.put(
            (*storage, "storageClassName"), spec.storage.storage_class_name, ("spec", "storage", "storageClassName")
        )
    model = draft.finish(Model, lowering) if not lowering.failed else None
    return lowering.result() if model is None else lowering.result(draft.lowered(model))
