"""`ModelMirror`: weights in a shared volume, as a Model."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from kaigen.catalog.presets import find_preset
from kaigen.dialects.kaito.blocks import Foreign, Text
from kaigen.dialects.kaito.presets import TOKEN_KEY
from kaigen.dialects.kaito.resource import ResourceLowering
from kaigen.kinds.base import Block, LabelName, ObjectName, Quantity
from kaigen.kinds.lowering import LoweringContext, LoweringResult
from kaigen.kinds.model import Model
from kaigen.kinds.positioned import Positioned


class SecretReference(Block):
    """A Secret, as an object reference."""

    name: ObjectName | None = Field(None, description="Name of the Secret.")
    namespace: LabelName | None = Field(None, description="Namespace of the Secret.")
    api_version: Text | None = Field(None, description="Version of the object; ignored.")
    kind: Text | None = Field(None, description="Kind of the object; ignored.")
    field_path: Text | None = Field(None, description="Field of the object; ignored.")
    resource_version: Text | None = Field(None, description="Revision of the object; ignored.")
    uid: Text | None = Field(None, description="UID of the object; ignored.")


class MirrorSource(Block):
    """Source of the weights."""

    registry: Literal["huggingface"] = Field(description="The Hugging Face Hub.")
    model_id: Text = Field(
        alias="modelID", description="Repository, `owner/name`.", examples=["microsoft/phi-4"]
    )
    access_secret: SecretReference | None = Field(
        None, description=f"Secret with a Hub token under the key `{TOKEN_KEY}`."
    )


class MirrorStorage(Block):
    """The volume of the weights."""

    size: Quantity = Field(description="Size of the volume.", examples=["100Gi"])
    storage_class_name: Text | None = Field(None, description="StorageClass of the volume.")


class MirrorSpec(Block):
    """Weights in a volume."""

    mode: Literal["Managed", "Static"] = Field(
        "Managed", description="Whether the weights are downloaded or already in a volume."
    )
    source: MirrorSource | None = Field(None, description="Source of the weights.")
    storage: MirrorStorage | None = Field(None, description="The volume of the weights.")
    job_namespace: LabelName | None = Field(None, description="Namespace of the volume and of the download.")
    service_account_name: Text | None = Field(None, description="ServiceAccount of the download.")


class ModelMirror(Foreign):
    """KAITO's `ModelMirror`."""

    api_version: Literal["kaito.sh/v1alpha1"] = Field(description="Version of KAITO's API.")
    kind: Literal["ModelMirror"] = Field(description="Kind of the document.")
    spec: MirrorSpec = Field(default_factory=dict, validate_default=True, description="Desired state.")


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
            ("spec", "serviceAccountName"),
            "the downloader has its own service account with fewer permissions",
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
        preset = find_preset(spec.source.model_id)
        if preset is not None and preset.revision:
            draft.put((*hub, "revision"), preset.revision, at)
    # KAITO skips these too: weights in a format that engines do not read.
    draft.put((*hub, "exclude"), ["original/*"])
    secret = spec.source.access_secret
    if secret is not None:
        here = ("spec", "source", "accessSecret")
        if secret.name is None:
            lowering.error("KG0412", "`name` is missing", here, "add `name`")
        else:
            draft.put((*hub, "tokenSecret"), {"name": secret.name, "key": TOKEN_KEY}, (*here, "name"))
        if secret.namespace is not None and secret.namespace != (namespace or mirror.metadata.namespace):
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
            (*storage, "storageClassName"),
            spec.storage.storage_class_name,
            ("spec", "storage", "storageClassName"),
        )
    model = draft.finish(Model, lowering) if not lowering.failed else None
    return lowering.result() if model is None else lowering.result(draft.lowered(model))
