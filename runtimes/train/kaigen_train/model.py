"""The model: loaded, given an adapter, and written as a result."""

from __future__ import annotations

import json
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from peft import LoraConfig, PeftModel, get_peft_model, prepare_model_for_kbit_training
from transformers import AutoConfig, AutoModelForCausalLM, AutoTokenizer, BitsAndBytesConfig

from kaigen_train.errors import BadInput, NoDevice
from kaigen_train.settings import Settings

ADAPTER, MODEL = "adapter", "model"
"""Folders of the output with the two kinds of results."""

_COPIED = (".json", ".jinja", ".model", ".txt")
"""Ends of the names of files that belong to a model next to its weights: those of the tokenizer."""


@dataclass(frozen=True, slots=True)
class Machine:
    """What a process computes with.

    Attributes:
        device: the GPU of this process, or the CPU.
        precision: type of the computation: `float32`, `bfloat16` or `float16`.
    """

    device: torch.device
    precision: str

    @property
    def dtype(self) -> torch.dtype:
        """The type of the computation."""
        return getattr(torch, self.precision)

    @property
    def mixed(self) -> bool:
        """Whether passes compute with fewer bits than float32."""
        return self.precision != "float32"


def machine(settings: Settings, local_rank: int) -> Machine:
    """Return what this process computes with.

    Raises:
        NoDevice: there is no GPU for the method.
        BadInput: the processor cannot compute with the precision.
    """
    has_gpu = torch.cuda.is_available()
    if settings.method == "qlora" and not has_gpu:
        raise NoDevice(
            "`method: qlora` needs a GPU with CUDA for its 4-bit weights, and this machine has none; use `method: lora`"
        )
    if not has_gpu:
        if settings.precision == "float16":
            raise BadInput("a CPU does not train with `precision: float16`; use float32 or bfloat16")
        return Machine(torch.device("cpu"), "float32" if settings.precision == "auto" else settings.precision)
    automatic = "bfloat16" if torch.cuda.is_bf16_supported(including_emulation=False) else "float16"
    precision = automatic if settings.precision == "auto" else settings.precision
    return Machine(torch.device("cuda", local_rank), precision)


def load_tokenizer(folder: Path) -> Any:
    """Return the tokenizer of a model.

    Raises:
        BadInput: there is none.
    """
    try:
        return AutoTokenizer.from_pretrained(folder, local_files_only=True)
    except Exception as error:  # Each type of tokenizer fails in its own way.
        raise BadInput(f"{folder} has no tokenizer that can be read: {_first_line(error)}") from None


def load_model(folder: Path, settings: Settings, machine: Machine) -> Any:
    """Return the model with what is trained: an adapter, or all weights.

    Raises:
        BadInput: it cannot be read, or has no layers with these names.
    """
    options: dict[str, Any] = {"dtype": torch.float32 if settings.method == "full" else machine.dtype}
    if settings.method == "qlora":
        options["device_map"] = {"": machine.device}
        options["quantization_config"] = BitsAndBytesConfig(
            load_in_4bit=True,
            bnb_4bit_quant_type="nf4",
            bnb_4bit_use_double_quant=True,
            bnb_4bit_compute_dtype=machine.dtype,
        )
    model = _read(folder, options)
    model.config.use_cache = False
    if settings.method == "full":
        return model
    if settings.method == "qlora":
        model = prepare_model_for_kbit_training(model, use_gradient_checkpointing=False)
    # Gradients of checkpointed layers need an input that has one.
    model.enable_input_require_grads()
    config = LoraConfig(
        task_type="CAUSAL_LM",
        r=settings.rank,
        lora_alpha=settings.alpha,
        lora_dropout=settings.dropout,
        target_modules=list(settings.target_modules) or "all-linear",
        base_model_name_or_path=str(folder),
    )
    names = _linear_layers(model)
    try:
        return get_peft_model(model, config)
    except ValueError as error:
        asked = ", ".join(settings.target_modules) or "linear"
        hint = f"layers: {', '.join(names)}" if names else _first_line(error)
        raise BadInput(f"an adapter cannot be added to the layers {asked}; {hint}") from None


def _linear_layers(model: Any) -> list[str]:
    layers = (name for name, module in model.named_modules() if isinstance(module, torch.nn.Linear))
    return sorted({name.rpartition(".")[2] for name in layers})


def _read(folder: Path, options: dict[str, Any]) -> Any:
    try:
        return AutoModelForCausalLM.from_pretrained(
            folder, local_files_only=True, use_safetensors=True, trust_remote_code=False, **options
        )
    except (torch.OutOfMemoryError, MemoryError):
        raise
    except Exception as error:  # Each type of model fails in its own way.
        raise BadInput(f"{folder} has no model that can be read: {_first_line(error)}") from None


def _first_line(error: Exception) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0]


def write_adapter(model: Any, folder: Path) -> None:
    """Write the adapter of a model, with the same bytes in each run."""
    model.save_pretrained(folder)
    (folder / "README.md").unlink(missing_ok=True)  # a form for the model's page at the Hub
    file = folder / "adapter_config.json"
    config = json.loads(file.read_text("utf-8"))
    for name, value in config.items():
        if isinstance(value, list):
            config[name] = sorted(value, key=str)  # sets, in an order that changes from process to process
    file.write_text(json.dumps(config, indent=2, sort_keys=True) + "\n", encoding="utf-8")


def write_model(model: Any, source: Path, folder: Path) -> None:
    """Write a whole model in the type of the weights that it was made from.

    Args:
        model: the model.
        source: folder of the weights that it was made from, whose tokenizer is copied.
        folder: where to write.
    """
    model.to(_type_of(source))
    model.config.use_cache = True
    model.save_pretrained(folder)
    for file in sorted(source.iterdir()):
        belongs = file.suffix in _COPIED and not file.name.endswith(".index.json")
        if belongs and not file.name.startswith(".") and file.is_file() and not (folder / file.name).exists():
            shutil.copyfile(file, folder / file.name)


def merged(source: Path, adapter: Path) -> Any:
    """Return the model with the weights of an adapter added to its own, in the memory of the CPU.

    The GPU still has the model that was trained.
    """
    model = _read(source, {"dtype": _type_of(source)})
    return PeftModel.from_pretrained(model, adapter).merge_and_unload()


def _type_of(folder: Path) -> torch.dtype:
    found = AutoConfig.from_pretrained(folder, local_files_only=True).dtype
    return found if isinstance(found, torch.dtype) else torch.float32
