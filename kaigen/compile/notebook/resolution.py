"""The resolution of a Notebook: every decision that its spec leaves open."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

from kaigen.compile.builders.frame import Frame
from kaigen.compile.builders.image_build import ImageBuild, image_build
from kaigen.compile.builders.mounts import Mounted, Readers, together
from kaigen.compile.builders.pods import BUILT, NO_RESOURCES, ResolvedResources, placement_fields, pod_security
from kaigen.compile.builders.resources import work_resources
from kaigen.compile.context import Context
from kaigen.compile.expressions import Tree
from kaigen.compile.finish import frame_of
from kaigen.compile.model.named import NamedSource, mount_named
from kaigen.compile.problems import Problems
from kaigen.core.json_types import FieldPath
from kaigen.kinds.base import Metadata, TokenSecret
from kaigen.kinds.blocks import Image
from kaigen.kinds.model import Dataset, Model
from kaigen.kinds.notebook import Notebook, NotebookSpec


class NotebookResolution(Struct, frozen=True):
    """A Notebook with every decision that its spec leaves open.

    Attributes:
        metadata: metadata of the spec.
        spec: the spec.
        context: what it is compiled for.
        frame: names and labels of its objects.
        image: image of the container, and the spec's field of it; no field for kaigen's own image.
        build: the image that the app builds; None for an existing one.
        token: Secret with the token.
        resources: resources of the container.
        sources: how each of its Models and Datasets reaches the container, by the spec's field.
        scheduling: fields of the pod that decide where it runs.
        security: security context of the pod.
    """

    metadata: Metadata
    spec: NotebookSpec
    context: Context
    frame: Frame
    image: tuple[Image, FieldPath]
    build: ImageBuild | None
    token: TokenSecret
    resources: ResolvedResources
    sources: Mapping[FieldPath, Mounted]
    scheduling: Mapping[str, Tree]
    security: Mapping[str, Tree]

    @property
    def mounted(self) -> Mounted:
        """How all Models and Datasets reach the container."""
        return together(self.sources.values())


def resolve_notebook(notebook: Notebook, context: Context, problems: Problems, naming: None) -> NotebookResolution:
    """Decide what a Notebook leaves open.

    Args:
        notebook: the spec.
        context: what it is compiled for, and every other spec of the run.
        problems: collects what cannot be decided.
        naming: there are no names of other systems.
    """
    spec, metadata = notebook.spec, notebook.metadata
    # The StatefulSet's Service is the one that clients use: a single pod needs no host name of its own.
    frame = frame_of(metadata, context, spec, headless_suffix="")
    resources = problems.attempt(lambda: work_resources(spec.resources, context), NO_RESOURCES)
    build = image_build(spec.build, frame, context)
    namespace = metadata.namespace or context.config.namespace
    readers = Readers(kind="Notebook", namespace=namespace, context=context, frame=frame, has_gpu=resources.has_gpu)
    nothing: dict[str, Tree] = {}
    return NotebookResolution(
        metadata=metadata,
        spec=spec,
        context=context,
        frame=frame,
        image=_image(spec, build, context),
        build=build,
        token=spec.token_secret or TokenSecret(name=f"{metadata.name}-token"),
        resources=resources,
        sources=notebook_mounts(spec, readers, problems),
        scheduling=problems.attempt(lambda: placement_fields(frame, spec.placement, context, resources), nothing),
        security=problems.attempt(lambda: pod_security(spec.security), nothing),
    )


def _image(spec: NotebookSpec, build: ImageBuild | None, context: Context) -> tuple[Image, FieldPath]:
    if build is not None:
        return build.reference, BUILT
    return (context.config.images["notebook"], ()) if spec.image is None else (spec.image, ("spec", "image"))


def notebook_mounts(spec: NotebookSpec, readers: Readers, problems: Problems) -> Mapping[FieldPath, Mounted]:
    """Return how the files of Models and Datasets reach the container, by the spec's field of each.

    Args:
        spec: the spec.
        readers: the pod.
        problems: collects what is wrong.
    """
    return {
        **mount_named(NamedSource("models", "model", Model), spec.models, readers, problems),
        **mount_named(NamedSource("datasets", "dataset", Dataset), spec.datasets, readers, problems),
    }
