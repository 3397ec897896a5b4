"""LoRA adapters that become part of the model when it is loaded."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import TypeVar

import torch
from peft import LoraConfig, PeftModel, set_peft_model_state_dict
from peft.tuners.lora import LoraLayer
from safetensors.torch import load_file

from kaigen_chat.errors import BadModel
from kaigen_chat.folder import ADAPTER_WEIGHTS
from kaigen_chat.settings import Adapter

Model = TypeVar("Model", bound=torch.nn.Module)


def merge(model: Model, adapters: Sequence[Adapter]) -> Model:
    """Return the model with the checked adapters added to its weights, each times its strength.

    Args:
        model: changed in place.
        adapters: their folders and strengths.

    Raises:
        BadModel: an adapter is not for this model, or cannot be weighted.
    """
    for adapter in adapters:
        try:
            with warnings.catch_warnings():
                # PEFT asks transformers for a property by its old name.
                warnings.filterwarnings("ignore", category=FutureWarning)
                model = _merged(model, adapter)
        except (OSError, ValueError, KeyError, TypeError, RuntimeError) as error:
            raise BadModel(f"cannot load adapter {adapter.folder}: {' '.join(str(error).split())}") from error
    return model


def _merged(model: Model, adapter: Adapter) -> Model:
    config = LoraConfig.from_pretrained(str(adapter.folder))
    config.inference_mode = True
    if adapter.strength != 1 and (config.modules_to_save or config.use_dora):
        raise ValueError("it replaces weights of the model, so its strength must be 1")
    adapted = PeftModel(model, config)
    result = set_peft_model_state_dict(adapted, load_file(adapter.folder / ADAPTER_WEIGHTS))
    missing = [name for name in result.missing_keys if "lora_" in name]
    if missing or result.unexpected_keys:
        name = [*missing, *result.unexpected_keys][0]
        raise ValueError(f"it was made for another model: {name}")
    for module in adapted.modules():
        if isinstance(module, LoraLayer):
            module.scaling = {name: scale * adapter.strength for name, scale in module.scaling.items()}
    merged: Model = adapted.merge_and_unload()
    return merged
