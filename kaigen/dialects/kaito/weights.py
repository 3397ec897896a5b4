"""The weights of a preset: a Model, an existing PersistentVolumeClaim, or the Hub with a token."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from msgspec import Struct

from kaigen.core.json_types import FieldPath
from kaigen.dialects.draft import Draft
from kaigen.dialects.kaito.blocks import PresetOptions, PresetV1Alpha1
from kaigen.dialects.kaito.presets import NamedModel
from kaigen.dialects.kaito.resource import MODEL, TOKEN, TOKEN_KEY, Options, ResourceLowering

if TYPE_CHECKING:
    from kaigen.catalog.presets import Preset
    from kaigen.yaml.document import Document

_CLAIM, _FOLDER = "modelWeightsPVC", "modelWeightsSubPath"
"""Fields of KAITO's pull request 1917 (api/v1beta1/workspace_types.go of commit 0228438b), which no release has."""
_SHARED = {"ReadWriteMany", "ReadOnlyMany"}


class Token(Struct, frozen=True):
    """The Secret with a Hub token.

    Attributes:
        secret: its name and key.
        at: path of the field or annotation that names it.
    """

    secret: dict[str, str]
    at: FieldPath


def find_token(
    preset: PresetV1Alpha1 | None, at: FieldPath, options: Options, lowering: ResourceLowering
) -> Token | None:
    """Return the token that a resource names: `modelAccessSecret`, or the annotation, which v1alpha1 needs.

    Args:
        preset: the block; None for none.
        at: its path.
        options: of the resource.
        lowering: collects problems.
    """
    own = preset.preset_options if preset is not None else None
    if isinstance(own, PresetOptions) and own.model_access_secret:
        if options.token_secret:
            lowering.unused(lowering.annotation_at(TOKEN), "`modelAccessSecret` names the Secret")
        return Token({"name": own.model_access_secret, "key": TOKEN_KEY}, (*at, "presetOptions", "modelAccessSecret"))
    if not options.token_secret:
        return None
    name, _, key = options.token_secret.partition("/")
    return Token({"name": name, "key": key or TOKEN_KEY}, lowering.annotation_at(TOKEN))


def warn_of_gate(preset: PresetV1Alpha1 | None, known: Preset, at: FieldPath, lowering: ResourceLowering) -> None:
    """Warn that a gated model has no token.

    Args:
        preset: the block, which has no field for the token in v1alpha1.
        known: the model.
        at: path of the name.
        lowering: collects problems.
    """
    has_field = preset is not None and isinstance(preset.preset_options, PresetOptions)
    lowering.warning(
        "KG0411",
        f"`{known.repo}` is gated: downloading it requires a Hub token",
        at,
        f"set `modelAccessSecret` to a Secret with the key `{TOKEN_KEY}`"
        if has_field
        else f"set the annotation `{TOKEN}` to a Secret with the key `{TOKEN_KEY}`, or to SECRET/KEY",
    )


def put_weights(
    draft: Draft,
    model: NamedModel,
    preset: PresetV1Alpha1,
    at: FieldPath,
    options: Options,
    pods: int,
    lowering: ResourceLowering,
) -> None:
    """Put the model and the source of its weights into a Topology.

    Args:
        draft: the Topology.
        model: the model.
        preset: the block.
        at: its path.
        options: of the resource.
        pods: number of pods that the resource requests.
        lowering: collects problems.
    """
    if options.model:
        draft.put(("spec", "model"), options.model, lowering.annotation_at(MODEL))
        report_unused(preset, at, options, f"`{MODEL}` names the weights", lowering)
    elif claim_of(preset):
        _put_claim(draft, preset, at, options, pods, lowering)
    else:
        _put_repository(draft, model, preset, at, options, lowering)


def claim_of(preset: PresetV1Alpha1 | None) -> str | None:
    """Return the name of the existing PersistentVolumeClaim with the weights; None for none."""
    options = preset.preset_options if preset is not None else None
    return options.model_weights_pvc if isinstance(options, PresetOptions) else None


def check_claim(preset: PresetV1Alpha1, at: FieldPath, lowering: ResourceLowering) -> None:
    """Report a folder without a claim, which KAITO rejects."""
    options = preset.preset_options
    if isinstance(options, PresetOptions) and options.model_weights_sub_path and not options.model_weights_pvc:
        where = (*at, "presetOptions", _FOLDER)
        lowering.error("KG0412", f"`{_FOLDER}` requires `{_CLAIM}`", where, f"set `{_CLAIM}`, or delete it")


def reject_claim(preset: PresetV1Alpha1, at: FieldPath, lowering: ResourceLowering) -> None:
    """Report a claim with weights to fine-tune, which KAITO rejects."""
    options = preset.preset_options
    if not isinstance(options, PresetOptions):
        return
    for field, value in ((_CLAIM, options.model_weights_pvc), (_FOLDER, options.model_weights_sub_path)):
        if value:
            lowering.error(
                "KG0412",
                f"fine-tuning does not support `{field}`",
                (*at, "presetOptions", field),
                f"delete it, and set the annotation `{MODEL}` to the name of a Model with the weights",
            )


def report_unused(
    preset: PresetV1Alpha1, at: FieldPath, options: Options, reason: str, lowering: ResourceLowering
) -> None:
    """Report the fields and the annotation about weights and their download, which have no effect.

    Args:
        preset: the block.
        at: its path.
        options: of the resource.
        reason: why.
        lowering: collects problems.
    """
    token = find_token(preset, at, options, lowering)
    if token is not None:
        lowering.unused(token.at, reason)
    if claim_of(preset):
        lowering.unused((*at, "presetOptions", _CLAIM), reason)


def _put_claim(
    draft: Draft,
    preset: PresetV1Alpha1,
    at: FieldPath,
    options: Options,
    pods: int,
    lowering: ResourceLowering,
) -> None:
    """Put a claim that has the weights into a Topology.

    KAITO mounts it in place of its own volume, and downloads files that it lacks.
    """
    own = preset.preset_options
    assert isinstance(own, PresetOptions)
    assert own.model_weights_pvc is not None
    claim, here = own.model_weights_pvc, (*at, "presetOptions", _CLAIM)
    volume = ("spec", "model", "volume")
    draft.put((*volume, "claimName"), claim, here)
    if own.model_weights_sub_path:
        draft.put((*volume, "path"), own.model_weights_sub_path, (*at, "presetOptions", _FOLDER))
    draft.origins["spec", "model"] = here
    token = find_token(preset, at, options, lowering)
    if token is not None:
        lowering.unused(token.at, f"`{_CLAIM}` has the weights, so nothing is downloaded")
    lowering.warning(
        "KG0414",
        "kaigen downloads nothing into the volume, which must have the files of the repository in one folder; KAITO "
        "downloads files that are missing",
        here,
        f"set `{_FOLDER}` to the folder with `config.json`; a folder of the Hub's cache, with links, does not work",
    )
    document = lowering.find_claim(claim)
    modes = _access_modes(document) if document is not None else []
    if pods > 1 and modes and not _SHARED.intersection(modes):
        lowering.error(
            "KG0309",
            f"{pods} pods cannot share `{claim}`, whose access mode is {', '.join(modes)}",
            here,
            "use a claim with `accessModes: [ReadWriteMany]`",
        )


def _access_modes(claim: Document) -> list[str]:
    """Return the access modes of a PersistentVolumeClaim; the schema check reports values of other types."""
    data: Any = claim.data
    spec = data.get("spec")
    modes = spec.get("accessModes") if isinstance(spec, dict) else None
    return [mode for mode in modes if isinstance(mode, str)] if isinstance(modes, list) else []


def _put_repository(
    draft: Draft,
    model: NamedModel,
    preset: PresetV1Alpha1,
    at: FieldPath,
    options: Options,
    lowering: ResourceLowering,
) -> None:
    """Put a repository of the Hub into a Topology."""
    known, name_at = model.preset, (*at, "name")
    hub = ("spec", "model", "huggingFace")
    draft.put((*hub, "repo"), known.repo if known else model.name, name_at)
    draft.origins["spec", "model"] = name_at
    if known is not None and known.revision:
        draft.put((*hub, "revision"), known.revision, name_at)
    token = find_token(preset, at, options, lowering)
    if token is not None:
        draft.put((*hub, "tokenSecret"), token.secret, token.at)
    elif known is not None and known.gated:
        warn_of_gate(preset, known, name_at, lowering)
