"""The model that drafts tokens for the engine, which `engineArgs` name in the configuration of speculative decoding."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from msgspec.structs import replace

from kaigen.compile.context import Context
from kaigen.compile.engines.vllm_flags import flag_values, json_of
from kaigen.compile.known_model import KnownModel, model_of_facts, model_of_repository
from kaigen.core.json_types import Json
from kaigen.diagnostics.problem import ProblemError
from kaigen.kinds.blocks import Mounted
from kaigen.kinds.model import Model
from kaigen.kinds.topology import TopologySpec
from kaigen.sizing.facts import Draft, Request

_WITHOUT_WEIGHTS = re.compile(r"\[?ngram\]?|ngram_gpu|suffix|custom_class|extract_hidden_states|(.*_)?mtp")
"""Methods that load no other weights: those of `mtp` are in the repository of the served model.

Source: vllm/config/speculative.py, 0.33.0.
"""


def with_draft(request: Request, spec: TopologySpec, namespace: str, context: Context) -> Request:
    """Return what a spec asks of the planner, with the model and the tokens of speculative decoding.

    Args:
        request: what the spec asks without them.
        spec: the spec.
        namespace: namespace of the app.
        context: the specs of the run, and the catalogue.
    """
    config = _configuration(flag_values(spec))
    name = config.get("model")
    draft, unknown = None, ""
    if isinstance(name, str) and not _WITHOUT_WEIGHTS.fullmatch(str(config.get("method", name))):
        model = _model(name, spec, namespace, context)
        gpus = _whole(config.get("draft_tensor_parallel_size"))
        draft, unknown = (Draft(model.facts, gpus), "") if model is not None else (None, f"`{name}`")
    tokens = _whole(config.get("num_speculative_tokens")) or 0
    return replace(request, speculative_tokens=tokens, draft=draft, unknown_draft=unknown)


def _configuration(given: Mapping[str, Json]) -> dict[str, Any]:
    single = "speculative-config."
    keys = {name.removeprefix(single): value for name, value in given.items() if name.startswith(single)}
    return {**json_of(given.get("speculative-config")), **keys}


def _whole(value: object) -> int | None:
    try:
        number = int(value) if isinstance(value, int | float | str) else 0
    except ValueError:
        return None
    return number if number >= 1 else None


def _model(name: str, spec: TopologySpec, namespace: str, context: Context) -> KnownModel | None:
    """Return the model in a folder of `models`, or of a repository; None when its size is unknown."""
    for each in spec.models:
        use = Mounted(name=each) if isinstance(each, str) else each
        if name.rstrip("/") != (use.mount_path or f"/models/{use.name}"):
            continue
        model = context.specs.find(Model, use.namespace or namespace, use.name)
        return _known(model, context) if model is not None else None
    return model_of_repository(name, context.catalog)


def _known(model: Model, context: Context) -> KnownModel | None:
    hub = model.spec.source.hugging_face
    known = model_of_repository(hub.repo, context.catalog) if hub is not None else None
    if model.spec.facts is None:
        return known
    preset = known.preset if known is not None else None
    try:
        return model_of_facts(model.spec.facts, model.metadata.name, preset, ("spec", "models"))
    except ProblemError:
        # The Model reports it.
        return None
