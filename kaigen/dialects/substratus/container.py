"""What the container of a resource gets: entry point, variables, parameters, resources."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from kaigen.core.json_types import FieldPath
from kaigen.dialects.draft import Draft
from kaigen.dialects.substratus.kinds import ContainerSpec, Resources, Run
from kaigen.dialects.substratus.resource import SPEC, SubstratusLowering
from kaigen.kinds.base import DNS_SUBDOMAIN, matches

PARAMS_FILE = "/content/params.json"

_REFERENCE = re.compile(r"\$\{\{\s*secrets\.(?P<name>[^\s{}]+)\.(?P<key>[^\s.{}]+)\s*\}\}")
_LIKE_REFERENCE = re.compile(r"\$\{\{")
_KEY = r"^[-._a-zA-Z0-9]+$"

_GPUS: Mapping[str, str] = {"nvidia-a100": "A100-40GB", "nvidia-tesla-a100": "A100-40GB"}
"""GPUs of the operator whose names differ from those of the catalogue (source: its table for GCP)."""

_SPOT = {"key": "cloud.google.com/gke-spot", "operator": "Equal", "value": "true", "effect": "NoSchedule"}
"""The toleration of the operator's pods with GPUs."""


class Folders(Struct, frozen=True):
    """Folders in the container of a resource.

    Attributes:
        model: of the Model that it reads.
        data: of the Dataset that it reads.
        output: of the files that it writes.
    """

    model: str
    data: str
    output: str


CONTENT = Folders("/content/model", "/content/data", "/content/artifacts")
"""Folders of the operator's releases."""


def put_container(
    draft: Draft, spec: ContainerSpec, lowering: SubstratusLowering, *, run: tuple[Run, FieldPath] | None, script: str
) -> None:
    """Put entry point, variables, parameters, resources, user and labels of the container.

    Args:
        draft: the spec that gets them.
        spec: the spec of the resource.
        lowering: collects problems.
        run: the block of the design with parameters and resources, and its field; None without.
        script: entry point of the contract, for a resource in the shape of the design; empty for the image's.
    """
    if spec.command is not None:
        draft.put(("spec", "command"), list(spec.command), (*SPEC, "command"))
    elif lowering.is_design and script:
        draft.put(("spec", "command"), [script], SPEC)
    put_env(draft, spec, lowering)
    _put_params(draft, spec, lowering, run)
    put_resources(draft, spec, lowering, run)
    lowering.put_security(draft)
    lowering.put_labels(draft)


def put_env(draft: Draft, spec: ContainerSpec, lowering: SubstratusLowering) -> None:
    """Put the variables; those that refer to a Secret become references."""
    for name, value in spec.env.items():
        at = (*SPEC, "env", name)
        draft.put(("spec", "env", name), _variable(value, at, lowering), at)


def _variable(value: str, at: FieldPath, lowering: SubstratusLowering) -> Any:
    """Return the value of a variable, or the key of a Secret that it names."""
    if not _LIKE_REFERENCE.search(value):
        return value
    example = "write `${{ secrets.NAME.KEY }}` alone, with the name of a Secret and its key"
    found = _REFERENCE.fullmatch(value.strip())
    if found is None:
        if _REFERENCE.search(value):
            message = f"`{value}` has text next to the reference, which the operator drops"
        else:
            message = f"`{value}` is not a reference to a key of a Secret"
        lowering.error("KG0412", message, at, example)
        return ""
    name, key = found["name"], found["key"]
    if not (matches(DNS_SUBDOMAIN, name) and matches(_KEY, key)):
        lowering.error("KG0412", f"`{name}` and `{key}` are not names of a Secret and its key", at, example)
        return ""
    return {"secret": {"name": name, "key": key}}


def _put_params(
    draft: Draft, spec: ContainerSpec, lowering: SubstratusLowering, run: tuple[Run, FieldPath] | None
) -> None:
    params: dict[str, Any] = dict(spec.params)
    origins: dict[str, FieldPath] = {name: (*SPEC, "params", name) for name in params}
    if run is not None:
        block, at = run
        for name, value in block.params.items():
            if name in params:
                message = f"`{name}` is also in `spec.params`"
                lowering.error("KG0412", message, (*at, "params", name), "keep one of the two", key=True)
            params[name] = value
            origins[name] = (*at, "params", name)
    for name, value in params.items():
        draft.put(("spec", "params", name), value, origins[name])
    draft.put(("spec", "paramsFile"), PARAMS_FILE, SPEC)


def put_resources(
    draft: Draft, spec: ContainerSpec, lowering: SubstratusLowering, run: tuple[Run, FieldPath] | None
) -> None:
    """Put the resources, with the operator's defaults."""
    resources, at = spec.resources, (*SPEC, "resources")
    if run is not None and run[0].resources is not None:
        if resources is not None:
            message = "`resources` is also in `spec.resources`"
            lowering.error("KG0412", message, (*run[1], "resources"), "keep one of the two", key=True)
        resources, at = run[0].resources, (*run[1], "resources")
    given = resources or Resources()
    origin = at if resources is not None else SPEC
    block: FieldPath = ("spec", "resources")
    for name, value, unit, field in (
        ("cpu", given.cpu, "", "cpu"),
        ("memory", given.memory, "Gi", "memory"),
        ("ephemeralStorage", given.disk, "Gi", "disk"),
    ):
        if value == 0:
            lowering.warning(
                "KG0414",
                f"`{field}: 0` requests nothing in the operator; kaigen uses its own default",
                (*at, field),
                "write what the container needs",
            )
            continue
        draft.put((*block, name), f"{value}{unit}", (*at, field) if field in lowering_keys(lowering, at) else origin)
    _put_gpus(draft, given, at, lowering)


def lowering_keys(lowering: SubstratusLowering, at: FieldPath) -> dict[str, Any]:
    """Return a mapping of the document as it is written."""
    return lowering.data(*(str(key) for key in at[1:]))


def _put_gpus(draft: Draft, resources: Resources, at: FieldPath, lowering: SubstratusLowering) -> None:
    gpu = resources.gpu
    count, kind = resources.gpu_count, resources.type
    count_at, type_at = (*at, "gpuCount"), (*at, "type")
    if gpu is not None:
        if count is not None or kind is not None:
            message = "`gpu` and the design's `gpuCount` and `type` exclude each other"
            lowering.error("KG0412", message, (*at, "gpu"), "keep `gpu`", key=True)
        count, kind = gpu.count, gpu.type
        count_at, type_at = (*at, "gpu", "count"), (*at, "gpu", "type")
    if gpu is None and count is None and kind is None:
        return
    if count is None:
        count, count_at = 1, type_at if kind is not None else (*at, "gpu")
        lowering.warning(
            "KG0414",
            "without a number of GPUs the operator requests none; kaigen requests one",
            count_at,
            "write the number",
        )
    if count == 0:
        if kind is not None:
            lowering.without_effect(type_at, "0 GPUs are requested")
        return
    draft.put(("spec", "resources", "gpus"), count, count_at)
    if kind is not None:
        draft.put(("spec", "resources", "gpuType"), _gpu_name(kind), type_at)
    elif lowering.context.profile == "gke":
        lowering.warning(
            "KG0414", "the operator refuses GPUs without a type on GCP; kaigen accepts any", count_at, "set the type"
        )
    if lowering.compat:
        draft.put(("spec", "placement", "tolerations"), [dict(_SPOT)], lowering.directive_at("compat"))


def _gpu_name(kind: str) -> str:
    """Return the catalogue's name of a GPU type of the operator; others as they are."""
    if kind in _GPUS:
        return _GPUS[kind]
    if kind.startswith("nvidia-"):
        return kind.removeprefix("nvidia-").removeprefix("tesla-").upper()
    return kind
