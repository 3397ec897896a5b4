"""The settings: a JSON object in a file, with the names of the field `tune` of a Job."""

from __future__ import annotations

import difflib
import json
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

from kaigen_train.dataset import FIELDS
from kaigen_train.errors import BadInput

LEARNING_RATES = {"lora": 2e-4, "qlora": 2e-4, "full": 1e-5}
"""Default of `learningRate` for each method: new matrices take larger steps than trained weights."""


@dataclass(frozen=True, slots=True)
class Settings:
    """The settings of a run. Attributes have the names of the file in snake case.

    Attributes:
        method: `lora`, `qlora` or `full`.
        rank: rank of the matrices of LoRA.
        alpha: scale of LoRA, divided by the rank.
        dropout: part of the inputs of LoRA that a step ignores.
        columns: names of the columns of the samples, by what they have; empty for the names of a sample.
        target_modules: names of the layers that get an adapter; empty for all linear layers except the output.
        learning_rate: largest step; 0 for the default of the method.
        schedule: the course of the learning rate after the warm-up.
        warmup: part of the steps in which the learning rate grows.
        weight_decay: of AdamW.
        epochs: passes over the samples.
        batch_size: samples in one pass of a process.
        gradient_accumulation: passes in one step.
        max_length: tokens of a sample; further ones are cut off.
        seed: of the order of the samples, of new matrices and of dropout.
        merge: write a whole model in place of an adapter.
        evaluation: part of the samples that are not trained on, where the dataset has no files for it.
        checkpoint_steps: steps between checkpoints.
        precision: type of the computation.
        gradient_checkpointing: compute activations twice in place of storing them.
    """

    method: str = "lora"
    columns: Mapping[str, str] = field(default_factory=dict)
    rank: int = 16
    alpha: float = 32.0
    dropout: float = 0.0
    target_modules: tuple[str, ...] = ()
    learning_rate: float = 0.0
    schedule: str = "cosine"
    warmup: float = 0.03
    weight_decay: float = 0.0
    epochs: float = 1.0
    batch_size: int = 4
    gradient_accumulation: int = 4
    max_length: int = 1024
    seed: int = 42
    merge: bool = False
    evaluation: float = 0.05
    checkpoint_steps: int = 100
    precision: str = "auto"
    gradient_checkpointing: bool = True

    def document(self) -> dict[str, Any]:
        """Return the settings with the names of the file."""
        return {_camel(name): value for name, value in asdict(self).items()}


_CHOICES = {
    "method": ("lora", "qlora", "full"),
    "schedule": ("cosine", "linear", "constant"),
    "precision": ("auto", "float32", "bfloat16", "float16"),
}
_WHOLE = {
    "rank": (1, 1024),
    "batchSize": (1, 4096),
    "gradientAccumulation": (1, 4096),
    "maxLength": (8, 1 << 20),
    "seed": (0, (1 << 32) - 1),
    "checkpointSteps": (1, 1_000_000),
}
_NUMBERS = {
    "alpha": (1e-3, 4096.0),
    "dropout": (0.0, 0.9),
    "learningRate": (1e-9, 1.0),
    "warmup": (0.0, 0.5),
    "weightDecay": (0.0, 1.0),
    "epochs": (0.01, 1000.0),
    "evaluation": (0.0, 0.5),
}
_ONLY_ADAPTERS = ("rank", "alpha", "dropout", "targetModules", "merge")


def _camel(name: str) -> str:
    first, *others = name.split("_")
    return first + "".join(word.capitalize() for word in others)


_NAMES = {_camel(each.name): each.name for each in fields(Settings)}
_FORMS = ({"text"}, {"messages"}, {"prompt", "completion"})


def read(path: Path | None, default: Path) -> Settings:
    """Return the settings in a file.

    Args:
        path: the file; None for the default one, which may be missing.
        default: where the file is by default.

    Raises:
        BadInput: the file cannot be read, or a setting is invalid.
    """
    file = path or default
    try:
        text = file.read_text("utf-8")
    except FileNotFoundError:
        if path is None:
            return parse({})
        raise BadInput(f"{file} does not exist") from None
    except (OSError, UnicodeDecodeError) as error:
        raise BadInput(f"{file} cannot be read: {getattr(error, 'strerror', None) or error}") from None
    try:
        found = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise BadInput(f"{file} is not JSON: {error}") from None
    if not isinstance(found, dict):
        raise BadInput(f"{file} must contain one JSON object")
    try:
        return parse(found)
    except BadInput as error:
        raise BadInput(f"{file}: {error}") from None


def parse(found: Mapping[str, Any]) -> Settings:
    """Return the settings of a JSON object.

    Raises:
        BadInput: a name is unknown, or a value is invalid.
    """
    given: dict[str, Any] = {}
    for name, value in found.items():
        if name not in _NAMES:
            nearest = difflib.get_close_matches(name, _NAMES, 1)
            hint = f"did you mean `{nearest[0]}`?" if nearest else f"settings: {', '.join(_NAMES)}"
            raise BadInput(f"unknown setting `{name}`; {hint}")
        given[_NAMES[name]] = _value(name, value)
    method = given.setdefault("method", "lora")
    if method == "full":
        for name in _ONLY_ADAPTERS:
            if _NAMES[name] in given and given[_NAMES[name]] is not False:
                raise BadInput(f"`{name}` has no effect with `method: full`; leave it out")
    given.setdefault("learning_rate", LEARNING_RATES[method])
    return Settings(**given)


def _value(name: str, value: Any) -> Any:
    if name in _CHOICES:
        if value not in _CHOICES[name]:
            raise BadInput(f"`{name}` must be one of {', '.join(_CHOICES[name])}, and is {_shown(value)}")
        return value
    if name in ("merge", "gradientCheckpointing"):
        if not isinstance(value, bool):
            raise BadInput(f"`{name}` must be true or false, and is {_shown(value)}")
        return value
    if name == "columns":
        is_form = isinstance(value, dict) and set(value) in _FORMS
        if not is_form or not all(isinstance(each, str) and each for each in value.values()):
            raise BadInput(
                f"`{name}` must name the column of `text`, of `messages`, or those of `prompt` and `completion`, and "
                f"is {_shown(value)}"
            )
        return {each: value[each] for each in FIELDS if each in value}
    if name == "targetModules":
        if not isinstance(value, list) or not value or not all(isinstance(each, str) and each for each in value):
            raise BadInput(f"`{name}` must be a list of names of layers, and is {_shown(value)}")
        return tuple(dict.fromkeys(value))
    whole = name in _WHOLE
    least, most = _WHOLE[name] if whole else _NUMBERS[name]
    number = isinstance(value, int if whole else int | float) and not isinstance(value, bool)
    if not number or not math.isfinite(value) or not least <= value <= most:
        kind = "a whole number" if whole else "a number"
        raise BadInput(f"`{name}` must be {kind} from {least:g} to {most:g}, and is {_shown(value)}")
    return value if whole else float(value)


def _shown(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 60 else text[:57] + "..."
