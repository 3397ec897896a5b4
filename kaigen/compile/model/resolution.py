"""The resolution of a Model: every decision that its spec leaves open."""

from __future__ import annotations

import re
from collections.abc import Mapping

from msgspec import Struct

from kaigen.compile.builders.frame import Frame
from kaigen.compile.builders.pods import placement_fields, pod_security
from kaigen.compile.context import Context
from kaigen.compile.expressions import Tree
from kaigen.compile.finish import frame_of
from kaigen.compile.model.store import Store, resolve_store
from kaigen.compile.problems import Problems
from kaigen.kinds.base import Metadata
from kaigen.kinds.block import set_fields
from kaigen.kinds.blocks import HuggingFace
from kaigen.kinds.model import Model, ModelSpec


class ModelResolution(Struct, frozen=True):
    """A Model with every decision that its spec leaves open.

    Attributes:
        metadata: metadata of the spec.
        spec: the spec.
        model: metadata and spec together, as other specs refer to them.
        context: what it is compiled for.
        frame: names and labels of its objects.
        store: where the weights are stored.
        commit: commit that is fetched; empty when unknown.
        scheduling: fields of the pods that decide where they run.
        security: security context of the pods.
    """

    metadata: Metadata
    spec: ModelSpec
    model: Model
    context: Context
    frame: Frame
    store: Store
    commit: str
    scheduling: Mapping[str, Tree]
    security: Mapping[str, Tree]


def resolve_model(model: Model, context: Context, problems: Problems, naming: None) -> ModelResolution:
    """Decide what a Model leaves open.

    Args:
        model: the spec.
        context: what it is compiled for.
        problems: collects what cannot be decided.
        naming: None; no dialect has names for a Model.
    """
    spec, frame = model.spec, frame_of(model.metadata, context, model.spec)
    hub = spec.source.hugging_face
    nothing: dict[str, Tree] = {}
    return ModelResolution(
        metadata=model.metadata,
        spec=spec,
        model=model,
        context=context,
        frame=frame,
        store=resolve_store(spec.store, frame, context),
        commit=_commit(hub, problems) if hub else "",
        scheduling=problems.attempt(lambda: placement_fields(frame, spec.placement, context, None), nothing),
        security=problems.attempt(lambda: pod_security(spec.security), nothing),
    )


def _commit(hub: HuggingFace, problems: Problems) -> str:
    """Return the commit that is fetched; empty, with a warning, when the revision is not a commit."""
    if re.fullmatch("[0-9a-f]{40}", hub.revision):
        return hub.revision
    problems.warning(
        "KG0310",
        f"`{hub.revision}` is not a commit, so its content may change without review",
        ("spec", "source", "huggingFace", "revision" if "revision" in set_fields(hub) else "repo"),
        "set `revision` to a commit, 40 hex digits",
    )
    return ""
