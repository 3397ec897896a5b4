"""`ModelMirror`: weights in a volume that pods share, as a Model."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from kaigen.dialects.kaito.blocks import Foreign, Text
from kaigen.dialects.kaito.presets import TOKEN_KEY
from kaigen.dialects.kaito.reading import Reading
from kaigen.kinds.base import Block, LabelName, ObjectName, Quantity
from kaigen.kinds.lowering import Lowered, LoweringContext, LoweringResult
from kaigen.kinds.model import Model
from kaigen.kinds.positioned import Positioned


class SecretReference(Block):
    """A Secret, as an object reference."""

    name: ObjectName | None = Field(None, description="Name of the Secret.")
    namespace: LabelName | None = Field(None, description="Its namespace.")
    api_version: Text | None = Field(None, description="Its version; left out.")
    kind: Text | None = Field(None, description="Its kind; left out.")
    field_path: Text | None = Field(None, description="A part of it; left out.")
    resource_version: Text | None = Field(None, description="Its revision; left out.")
    uid: Text | None = Field(None, description="Its identity; left out.")


class MirrorSource(Block):
    """Where the weights come from."""

    registry: Literal["huggingface"] = Field(description="The Hugging Face Hub.")
    model_id: Text = Field(
        alias="modelID", description="Repository, `owner/name`.", examples=["microsoft/phi-4"]
    )
    access_secret: SecretReference | None = Field(
        None, description=f"Secret with a Hub token under the key `{TOKEN_KEY}`."
    )


class MirrorStorage(Block):
    """The volume that they rest in."""

    size: Quantity = Field(description="Its size.", examples=["100Gi"])
    storage_class_name: Text | None = Field(None, description="StorageClass of the volume.")


class MirrorSpec(Block):
    """Weights in a volume."""

    mode: Literal["Managed", "Static"] = Field(
        "Managed", description="Whether they are fetched, or there already."
    )
    source: MirrorSource | None = Field(None, description="Where the weights come from.")
    storage: MirrorStorage | None = Field(None, description="The volume that they rest in.")
    job_namespace: LabelName | None = Field(None, description="Namespace of the volume and what fills it.")
    service_account_name: Text | None = Field(None, description="ServiceAccount of what fills it.")


class ModelMirror(Foreign):
    """KAITO's `ModelMirror`."""

    api_version: Literal["kaito.sh/v1alpha1"] = Field(description="Version of KAITO's API.")
    kind: Literal["ModelMirror"] = Field(description="The kind.")
    spec: MirrorSpec = Field(default_factory=dict, validate_default=True, description="What is wanted.")


def lower(mirror: ModelMirror, document: Positioned, context: LoweringContext) -> LoweringResult:
    """A ModelMirror as a Model, of the same name.

    Args:
        mirror: the validated document.
        document: the document with positions.
        context: what else the lowering may read.
    """
    from kaigen.catalog.presets import find_preset

    reading = Reading(mirror.metadata, document, context, "version")
    reading.directives(reading.annotations, ("version",))
    spec = mirror.spec
    if spec.mode == "Static":
        reading.error(
            "KG0413",
            "a Static mirror stands for weights that somebody else keeps, of which there is nothing to make",
            ("spec", "mode"),
            "delete the resource, and mount the volume in a `template`; or let a Managed one fetch them",
        )
        return reading.result()
    if spec.source is None or spec.storage is None:
        missing = "source" if spec.source is None else "storage"
        reading.error("KG0412", f"a Managed mirror needs `{missing}`", ("spec",), f"add `{missing}`")
        return reading.result()
    if spec.service_account_name is not None:
        reading.unused(("spec", "serviceAccountName"), "the downloader has one of its own, which may do less")
    namespace = spec.job_namespace
    draft = reading.draft("Model", namespace=namespace)
    draft.origins["spec",] = ("spec",)
    if namespace:
        draft.origins["metadata", "namespace"] = ("spec", "jobNamespace")
    hub = ("spec", "source", "huggingFace")
    at = ("spec", "source", "modelID")
    if not reading.is_placeholder(spec.source.model_id, at, "a repository"):
        draft.put((*hub, "repo"), spec.source.model_id, at)
        preset = find_preset(spec.source.model_id)
        if preset is not None and preset.revision:
            draft.put((*hub, "revision"), preset.revision, at)
    # KAITO leaves these out too: weights in another layout than the one that engines read.
    draft.put((*hub, "exclude"), ["original/*"])
    secret = spec.source.access_secret
    if secret is not None:
        here = ("spec", "source", "accessSecret")
        if secret.name is None:
            reading.error("KG0412", "the Secret has no `name`", here, "add `name`")
        else:
            draft.put((*hub, "tokenSecret"), {"name": secret.name, "key": TOKEN_KEY}, (*here, "name"))
        if secret.namespace is not None and secret.namespace != (namespace or mirror.metadata.namespace):
            reading.warning(
                "KG0414",
                f"a pod reads Secrets of its own namespace, which is not `{secret.namespace}`",
                (*here, "namespace"),
                "keep the Secret where `jobNamespace` is",
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
    model = draft.finish(Model, reading) if not reading.failed else None
    return reading.result() if model is None else reading.result(Lowered(model, draft.origins))
