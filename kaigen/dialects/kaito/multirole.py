"""`MultiRoleInference`: separate prefill and decode pods, as a Topology whose pods do both."""

from typing import Annotated, Literal

from msgspec import Meta

from kaigen.core.json_types import FieldPath
from kaigen.dialects.kaito.blocks import Foreign, Inference, LabelSelector, ModelName, Text
from kaigen.dialects.kaito.nodes import NodeRequest
from kaigen.dialects.kaito.resource import DIRECTIVES, Options, ResourceLowering
from kaigen.dialects.kaito.serving import Serving, put_inference
from kaigen.kinds.base import ObjectName
from kaigen.kinds.block import Block, read_block
from kaigen.kinds.compat import ServingNaming
from kaigen.kinds.lowering import Lowered, LoweringContext, LoweringResult
from kaigen.kinds.positioned import Positioned
from kaigen.kinds.topology import Topology

ROLES = "kaigen.dev/roles"


class RoleModel(Block):
    """The served model."""

    name: ModelName
    model_access_secret: Annotated[
        ObjectName | None, Meta(description="Secret with a Hub token under the key `HF_TOKEN`.")
    ] = None


class Role(Block):
    """Pods of one role."""

    type: Annotated[Literal["prefill", "decode"], Meta(description="The role.")]
    replicas: Annotated[int, Meta(ge=1, le=1000, description="Number of replicas.")] = 1
    instance_type: Annotated[Text | None, Meta(description="Instance type of the nodes.")] = None
    runtime_config: Annotated[
        ObjectName | None, Meta(description="ConfigMap with the engine's flags under the key `inference_config.yaml`.")
    ] = None


class MultiRoleSpec(Block):
    """A model that is served by pods of two roles."""

    label_selector: Annotated[LabelSelector, Meta(description="Labels of the nodes.")]
    model: Annotated[RoleModel, Meta(description="The served model.")]
    epp_plugins_config: Annotated[
        ObjectName | None, Meta(description="ConfigMap with the plugins of the endpoint picker.")
    ] = None
    roles: Annotated[list[Role], Meta(min_length=2, max_length=2, description="The two roles, `prefill` and `decode`.")]


class MultiRoleInference(Foreign):
    """KAITO's `MultiRoleInference`."""

    api_version: Annotated[Literal["kaito.sh/v1alpha1"], Meta(description="Version of KAITO's API.")]
    kind: Annotated[Literal["MultiRoleInference"], Meta(description="Kind of the document.")]
    spec: Annotated[MultiRoleSpec, Meta(description="Desired state.")]


def lower(resource: MultiRoleInference, document: Positioned, context: LoweringContext) -> LoweringResult:
    """Return a MultiRoleInference as one Topology whose pods do both, if an annotation allows it.

    Separate prefill and decode pods need an endpoint picker that chooses a pod of each role, a sidecar that moves the
    cache between them, and connections between them on any port. kaigen creates none of these.

    Args:
        resource: the validated document.
        document: the document with positions.
        context: what else the lowering may read.
    """
    lowering = ResourceLowering(resource.metadata, document, context, *DIRECTIVES, "roles")
    options = lowering.options()
    spec, at = resource.spec, ("spec", "roles")
    if {role.type for role in spec.roles} != {"prefill", "decode"}:
        lowering.error("KG0412", "`roles` must have one `prefill` and one `decode`", at, "add each once")
        return lowering.result()
    if not spec.label_selector.match_labels and not spec.label_selector.match_expressions:
        lowering.error("KG0412", "`labelSelector` must have a label", ("spec", "labelSelector"))
    merged = lowering.annotations.get(ROLES)
    if merged not in {None, "merged"}:
        lowering.error("KG0406", f'`{ROLES}` must be "merged"', lowering.annotation_at(ROLES))
    elif merged is None:
        lowering.error(
            "KG0413",
            "separate prefill and decode pods need an endpoint picker and a sidecar, which kaigen does not create",
            at,
            f'write `{ROLES}: "merged"` in the annotations for pods that do both',
        )
    first, second = spec.roles
    if first.instance_type != second.instance_type:
        lowering.error(
            "KG0413",
            "pods that do both need one instance type, and the roles have two",
            (*at, 1, "instanceType"),
            "set the same `instanceType` in both",
        )
    place = next(index for index, role in enumerate(spec.roles) if role.type == "decode")
    decode, prefill = spec.roles[place], spec.roles[1 - place]
    if spec.epp_plugins_config is not None:
        lowering.unused(("spec", "eppPluginsConfig"), "kaigen creates no endpoint picker")
    if prefill.runtime_config not in {None, decode.runtime_config}:
        lowering.unused((*at, 1 - place, "runtimeConfig"), "pods that do both use the flags of `decode`")
    if lowering.failed:
        return lowering.result()
    return lowering.result(*_merged(spec, place, options, lowering))


def _merged(spec: MultiRoleSpec, place: int, options: Options, lowering: ResourceLowering) -> list[Lowered]:
    """Return the Topology with the flags of one role, given by its index."""
    decode = spec.roles[place]
    here: FieldPath = ("spec", "roles", place)
    draft = lowering.draft("Topology")
    draft.origins["spec",] = ("spec",)
    preset_options = {"modelAccessSecret": spec.model.model_access_secret} if spec.model.model_access_secret else {}
    inference = read_block(
        Inference,
        {
            "preset": {"name": spec.model.name, "presetOptions": preset_options},
            **({"config": decode.runtime_config} if decode.runtime_config else {}),
        },
    )
    request = NodeRequest(
        at=here,
        instance_type=decode.instance_type or "",
        selector=spec.label_selector,
        selector_at=("spec", "labelSelector"),
    )
    serving = Serving(
        inference,
        ("spec",),
        request,
        replicas=sum(role.replicas for role in spec.roles),
        replicas_at=(*here, "replicas"),
        preset_at=("spec", "model"),
        config_at=(*here, "runtimeConfig"),
    )
    middleware = put_inference(draft, serving, options, lowering)
    topology = draft.finish(Topology, lowering) if not lowering.failed else None
    naming = ServingNaming(middleware=middleware) if middleware else None
    return [] if topology is None else [draft.lowered(topology, naming)]
