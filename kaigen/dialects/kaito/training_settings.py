"""`training_config.yaml` as fields of `tune`: a setting becomes a field, a warning or an error."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from kaigen.core.json_types import FieldPath, Json
from kaigen.diagnostics.suggest import did_you_mean
from kaigen.dialects.draft import Draft
from kaigen.dialects.kaito.config_file import ConfigFile
from kaigen.dialects.kaito.training import DATA, Config
from kaigen.dialects.kaito.training_rules import FLAG, NUMBER, RULES, WHOLE, Rule, find_rule

_TUNE: FieldPath = ("spec", "tune")

_DEFAULTS: Mapping[str, Any] = {
    "rank": 8,
    "alpha": 8,
    "learningRate": 5e-5,
    "schedule": "linear",
    "warmup": 0.0,
    "epochs": 3,
    "batchSize": 8,
    "gradientAccumulation": 1,
    "evaluation": 0.2,
}
"""Defaults of KAITO's script that differ from those of `tune` (source: its `cli.py`; TrainingArguments; LoraConfig)."""

_WITHOUT_CONFIG: Mapping[str, Any] = {"batchSize": 1, "evaluation": 0}
"""Settings of KAITO's ConfigMaps `lora-params-template` and `qlora-params-template` that differ from those."""

_PHI_3 = ("down_proj", "gate_up_proj", "o_proj", "qkv_proj")
_QUERY_VALUE = ("q_proj", "v_proj")

DEFAULT_TARGETS: Mapping[str, tuple[str, ...]] = {
    "FalconForCausalLM": ("query_key_value",),
    "LlamaForCausalLM": _QUERY_VALUE,
    "MistralForCausalLM": _QUERY_VALUE,
    "Phi3ForCausalLM": _PHI_3,
    "PhiForCausalLM": (*_QUERY_VALUE, "fc1", "fc2"),
    "Qwen2ForCausalLM": _QUERY_VALUE,
    "Qwen3ForCausalLM": _QUERY_VALUE,
}
"""Layers that get an adapter in KAITO, by architecture: those of PEFT, and KAITO's own for Phi-3."""

_EXTENSIONS = ("arrow", "csv", "json", "parquet")
_PRECISIONS = ("bfloat16", "float16", "float32")
_SCHEDULES = ("linear", "cosine", "constant", "constant_with_warmup")


class _Place(Struct, frozen=True):
    """A setting.

    Attributes:
        section: its section.
        name: its name.
        value: its value.
        file: the file.
    """

    section: str
    name: str
    value: Json
    file: ConfigFile

    @property
    def path(self) -> FieldPath:
        """Its path in the file."""
        return ("training_config", self.section, self.name)

    def must_be(self, what: str) -> None:
        """Report a value of the wrong type."""
        self.file.error("KG0418", f"`{self.name}` must be {what}, not `{_word(self.value)}`", self.path)

    def refuse(self, reason: str, hint: str = "") -> None:
        """Report a value that kaigen's program cannot honour."""
        self.file.error(
            "KG0413",
            f"`{self.name}: {_word(self.value)}` has no counterpart: {reason}",
            self.path,
            hint or 'leave it out, or set the annotation `kaigen.dev/compat: "true"` for KAITO\'s own script',
        )

    def unused(self, reason: str) -> None:
        """Warn about a value without effect."""
        self.file.warning("KG0405", f"`{self.name}` has no effect: {reason}", self.path, "delete it")

    def put(self, draft: Draft, field: str, value: Any) -> None:
        """Make the value a field of `tune`."""
        draft.put((*_TUNE, field), value, source=self.file.source(self.path))


def put_settings(draft: Draft, config: Config, architecture: str) -> None:
    """Put the settings of a run into a Job with `tune`.

    Args:
        draft: the Job.
        config: the settings.
        architecture: class of the model; empty for an unknown one.
    """
    draft.put((*_TUNE, "method"), config.method)
    for field, value in _DEFAULTS.items():
        draft.put((*_TUNE, field), value)
    if architecture in DEFAULT_TARGETS:
        draft.put((*_TUNE, "targetModules"), sorted(DEFAULT_TARGETS[architecture]))
    draft.put((*_TUNE, "dataset"), DATA)
    if config.file is None:
        for field, value in _WITHOUT_CONFIG.items():
            draft.put((*_TUNE, field), value)
        return
    places = {
        section: {name: _Place(section, name, value, config.file) for name, value in settings.items()}
        for section, settings in config.sections.items()
    }
    quantization = places.get("QuantizationConfig", {})
    if config.method == "lora":
        for place in places.pop("QuantizationConfig", {}).values():
            if not place.name.startswith("load_in_"):
                place.unused("`lora` does not quantize the model")
        quantization = {}
    for settings in places.values():
        for place in settings.values():
            _apply(place, find_rule(place.section, place.name), draft)
    _put_precision(draft, places.get("ModelConfig", {}), places.get("TrainingArguments", {}), quantization)
    _put_targets(draft, places.get("LoraConfig", {}))
    _put_steps(draft, places.get("TrainingArguments", {}))
    _put_dataset(draft, places.get("DatasetConfig", {}))


def _apply(place: _Place, rule: Rule | None, draft: Draft) -> None:
    """Make a setting a field, or report it, by its rule."""
    if rule is None:
        known = [name for name, rule in RULES[place.section].items() if rule.field or rule.by_hand]
        hint = did_you_mean(place.name, known) or f"known: {', '.join(known)}"
        place.file.error("KG0418", f"unknown setting `{place.name}` of `{place.section}`", place.path, hint)
    elif rule.field:
        value = _typed(place.value, rule.what)
        if value is None:
            place.must_be(rule.what)
        else:
            place.put(draft, rule.field, value)
    elif not rule.by_hand and _word(place.value) not in rule.accepted:
        if rule.refused:
            place.refuse(rule.reason)
        else:
            place.unused(rule.reason)


def _typed(value: Json, what: str) -> Any:
    """Return a value of a type; None for another one. KAITO's script reads all values from text."""
    if what == FLAG:
        return {"true": True, "false": False}.get(_word(value))
    try:
        number = float(str(value))
    except ValueError:
        return None
    if not math.isfinite(number) or (what == WHOLE and not number.is_integer()):
        return None
    return int(number) if number.is_integer() else number


def _word(value: Json) -> str:
    """Return a value as text that can be compared: numbers in one form, other values in lower case."""
    if value is None or isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, list | dict):
        return str(value)
    try:
        return f"{float(value):g}"
    except ValueError:
        return value.lower() if isinstance(value, str) else str(value)


def _put_precision(
    draft: Draft, model: Mapping[str, _Place], training: Mapping[str, _Place], quantization: Mapping[str, _Place]
) -> None:
    """Put the type of the computation: of mixed precision, of the 4-bit weights, or of the model."""
    given: dict[str, _Place] = {}
    for flag, name in (("bf16", "bfloat16"), ("fp16", "float16")):
        place = training.get(flag)
        if place is not None and _typed(place.value, FLAG) is None:
            place.must_be(FLAG)
        elif place is not None and _typed(place.value, FLAG):
            given[name] = place
    for place in (quantization.get("bnb_4bit_compute_dtype"), model.get("torch_dtype")):
        if place is None or _word(place.value) in {"auto", "none"}:
            continue
        name = _word(place.value).removeprefix("torch.")
        name = {"bf16": "bfloat16", "fp16": "float16", "half": "float16", "float": "float32"}.get(name, name)
        if name not in _PRECISIONS:
            place.must_be(" or ".join(_PRECISIONS))
        elif name != "float32" or not given:
            # Weights in float32 next to another type are converted to it.
            given.setdefault(name, place)
    halves = [name for name in given if name != "float32"]
    if len(halves) > 1:
        first, second = given[halves[0]], given[halves[1]]
        second.file.error(
            "KG0412",
            f"`{first.name}: {_word(first.value)}` and `{second.name}: {_word(second.value)}` contradict each other",
            second.path,
            "use one type",
        )
    elif given:
        name = halves[0] if halves else "float32"
        given[name].put(draft, "precision", name)


def _put_targets(draft: Draft, lora: Mapping[str, _Place]) -> None:
    place = lora.get("target_modules")
    if place is None or place.value is None:
        return
    names = [place.value] if isinstance(place.value, str) else place.value
    if names == ["all-linear"]:
        draft.get(_TUNE).pop("targetModules", None)
    elif not isinstance(names, list) or not names or not all(isinstance(name, str) and name for name in names):
        place.must_be("a list of names of layers")
    elif any(sign in str(name) for name in names for sign in "*()|[]\\"):
        place.refuse("`targetModules` has names of layers, and no patterns", "list the names of the layers")
    else:
        place.put(draft, "targetModules", names)


def _put_steps(draft: Draft, training: Mapping[str, _Place]) -> None:
    """Put the course of the learning rate, and the steps between checkpoints."""
    schedule = training.get("lr_scheduler_type")
    if schedule is not None and _word(schedule.value) not in _SCHEDULES:
        schedule.refuse(f"kaigen's program has {', '.join(_SCHEDULES)}")
    elif schedule is not None:
        schedule.put(draft, "schedule", _word(schedule.value).partition("_")[0])
        if _word(schedule.value) == "constant":
            draft.put((*_TUNE, "warmup"), 0.0)
            if "warmup_ratio" in training and _word(training["warmup_ratio"].value) != "0":
                training["warmup_ratio"].unused("the learning rate is constant")
    seed = training.get("data_seed")
    if seed is not None and _typed(seed.value, WHOLE) != (draft.get((*_TUNE, "seed")) or 42):
        seed.refuse("`seed` is also that of the order of the samples", "set `seed`")
    strategy, steps = training.get("save_strategy"), training.get("save_steps")
    is_steps = strategy is None or _word(strategy.value) == "steps"
    if strategy is not None and not is_steps:
        strategy.unused("checkpoints are stored every `save_steps` steps, and removed when the run ends")
    if steps is not None and not is_steps:
        steps.unused("`save_strategy` is not `steps`")
    elif steps is not None:
        number = _typed(steps.value, WHOLE)
        if number is None or number < 1:
            steps.must_be("a whole number of at least 1")
        else:
            steps.put(draft, "checkpointSteps", number)


def _put_dataset(draft: Draft, dataset: Mapping[str, _Place]) -> None:
    split = dataset.get("train_test_split")
    if split is not None:
        part = _typed(split.value, NUMBER)
        if part is None or not 0 < part <= 1:
            split.must_be("a number above 0, up to 1")
        else:
            split.put(draft, "evaluation", round(1 - part, 6))
    path = dataset.get("dataset_path")
    if path is not None and path.value is not None:
        folder = f"/mnt/{str(path.value).strip('/')}"
        if not f"{folder}/".startswith(f"{DATA}/") or ".." in folder:
            path.refuse(f"the data is in `{DATA}`, and the script looks in `{folder}`", "write `data/FILE`")
        else:
            path.put(draft, "dataset", folder)
    names = {
        name: place
        for name in ("messages_column", "context_column", "response_column")
        if (place := dataset.get(name)) is not None and place.value is not None
    }
    for place in names.values():
        if not isinstance(place.value, str) or not place.value:
            place.must_be("the name of a column")
            return
    messages, context, response = (names.get(f"{name}_column") for name in ("messages", "context", "response"))
    other = response or context
    if messages is not None and other is not None:
        other.file.error(
            "KG0412",
            f"`{other.name}` and `messages_column` are two forms of a sample",
            other.path,
            "keep `messages_column`, or `context_column` and `response_column`",
        )
    elif messages is not None:
        _put_columns(draft, messages=messages)
    elif context is not None and response is not None:
        _put_columns(draft, prompt=context, completion=response)
    elif other is not None:
        _put_columns(draft, text=other)


def data_extension(config: Config, *, named: bool) -> str:
    """Return the type of the files of data that the settings name, as the end of a name; empty for none.

    Args:
        config: the settings.
        named: whether kaigen names the files itself.
    """
    value = config.sections.get("DatasetConfig", {}).get("dataset_extension")
    if value is None or config.file is None:
        return ""
    place = _Place("DatasetConfig", "dataset_extension", value, config.file)
    if value not in _EXTENSIONS:
        place.refuse(f"kaigen's program reads {', '.join(_EXTENSIONS)}", "convert the data")
    elif not named:
        place.unused("the end of the name of a file is its type")
    return f".{value}"


def _put_columns(draft: Draft, **columns: _Place) -> None:
    for field, place in columns.items():
        draft.put((*_TUNE, "columns", field), place.value, source=place.file.source(place.path))
