"""`MultiRoleInference`: prefill and decode of a model by pods of their own, as a Topology whose pods do both."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from kaigen.dialects.kaito.blocks import Foreign, Inference, LabelSelector, Text
from kaigen.dialects.kaito.nodes import Asked
from kaigen.dialects.kaito.reading import DIRECTIVES, Reading, Wishes
from kaigen.dialects.kaito.serving import Serving, put_inference
from kaigen.kinds.base import Block, ObjectName
from kaigen.kinds.lowering import Lowered, LoweringContext, LoweringResult
from kaigen.kinds.positioned import Positioned
from kaigen.kinds.promotable import NAME
from kaigen.kinds.spec import Path
from kaigen.kinds.topology import Topology

ROLES = "kaigen.dev/roles"


class RoleModel(Block):
    """The model that is served."""

    name: Annotated[str, Field(min_length=1, max_length=200), NAME] = Field(
        description="Name of a preset, or repository on the Hugging Face Hub.", examples=["phi-4"]
    )
    model_access_secret: ObjectName | None = Field(
        None, description="Secret with a Hub token under the key `HF_TOKEN`."
    )


class Role(Block):
    """Pods of one role."""

    type: Literal["prefill", "decode"] = Field(description="Which role.")
    replicas: Annotated[int, Field(ge=1, le=1000)] = Field(1, description="How many copies.")
    instance_type: Text | None = Field(None, description="Instance type of the nodes.")
    runtime_config: ObjectName | None = Field(
        None, description="ConfigMap with the engine's flags under the key `inference_config.yaml`."
    )


class MultiRoleSpec(Block):
    """A model that pods of two roles serve together."""

    label_selector: LabelSelector = Field(description="Labels of the nodes.")
    model: RoleModel = Field(description="The model that is served.")
    epp_plugins_config: ObjectName | None = Field(
        None, description="ConfigMap with the plugins of the endpoint picker."
    )
    roles: Annotated[list[Role], Field(min_length=2, max_length=2)] = Field(
        description="The two roles, `prefill` and `decode`."
    )


class MultiRoleInference(Foreign):
    """KAITO's `MultiRoleInference`."""

    api_version: Literal["kaito.sh/v1alpha1"] = Field(description="Version of KAITO's API.")
    kind: Literal["MultiRoleInference"] = Field(description="The kind.")
    spec: MultiRoleSpec = Field(description="What is wanted.")


def lower(resource: MultiRoleInference, document: Positioned, context: LoweringContext) -> LoweringResult:
    """A MultiRoleInference as one Topology whose pods do both, when it says that they may.

    Prefill and decode apart need what moves the cache between the two: an endpoint picker that chooses a pod of each
    role, a side-car that has the one fill the other's cache, and connections on any port between them. kaigen makes
    none of these, so it does not pretend to.

    Args:
        resource: the validated document.
        document: the document with positions.
        context: what else the lowering may read.
    """
    reading = Reading(resource.metadata, document, context, *DIRECTIVES, "roles")
    wishes = reading.wishes()
    spec, at = resource.spec, ("spec", "roles")
    if {role.type for role in spec.roles} != {"prefill", "decode"}:
        reading.error("KG0412", "there must be one role `prefill` and one `decode`", at, "name each once")
        return reading.result()
    if not spec.label_selector.match_labels and not spec.label_selector.match_expressions:
        reading.error("KG0412", "`labelSelector` must name a label", ("spec", "labelSelector"))
    merged = reading.annotations.get(ROLES)
    if merged not in {None, "merged"}:
        reading.error("KG0406", f'`{ROLES}` must be "merged"', reading.annotation_at(ROLES))
    elif merged is None:
        reading.error(
            "KG0413",
            "prefill and decode apart need an endpoint picker and a side-car that move the cache; kaigen makes neither",
            at,
            f'write `{ROLES}: "merged"` among the annotations to have pods that do both, behind the same routes',
        )
    first, second = spec.roles
    if first.instance_type != second.instance_type:
        reading.error(
            "KG0413",
            "pods that do both are of one sort, and the roles name two instance types",
            (*at, 1, "instanceType"),
            "name the same one in both",
        )
    place = next(index for index, role in enumerate(spec.roles) if role.type == "decode")
    decode, prefill = spec.roles[place], spec.roles[1 - place]
    if spec.epp_plugins_config is not None:
        reading.unused(("spec", "eppPluginsConfig"), "no endpoint picker is made")
    if prefill.runtime_config not in {None, decode.runtime_config}:
        reading.unused((*at, 1 - place, "runtimeConfig"), "pods that do both take the flags of `decode`")
    if reading.failed:
        return reading.result()
    return reading.result(*_merged(spec, place, wishes, reading))


def _merged(spec: MultiRoleSpec, place: int, wishes: Wishes, reading: Reading) -> list[Lowered]:
    """The Topology, with the flags of the role at a place of the list."""
    decode = spec.roles[place]
    here: Path = ("spec", "roles", place)
    draft = reading.draft("Topology")
    draft.origins["spec",] = ("spec",)
    options = {"modelAccessSecret": spec.model.model_access_secret} if spec.model.model_access_secret else {}
    inference = Inference.model_validate(
        {
            "preset": {"name": spec.model.name, "presetOptions": options},
            **({"config": decode.runtime_config} if decode.runtime_config else {}),
        }
    )
    asked = Asked(
        at=here,
        instance_type=decode.instance_type or "",
        selector=spec.label_selector,
        selector_at=("spec", "labelSelector"),
    )
    serving = Serving(
        inference,
        ("spec",),
        asked,
        copies=sum(role.replicas for role in spec.roles),
        copies_at=(*here, "replicas"),
        preset_at=("spec", "model"),
        config_at=(*here, "runtimeConfig"),
    )
    put_inference(draft, serving, wishes, reading)
    topology = draft.finish(Topology, reading) if not reading.failed else None
    return [] if topology is None else [Lowered(topology, draft.origins, hints=draft.hints)]
