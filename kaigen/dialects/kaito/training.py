"""`training_config.yaml`: the settings of a fine-tuning run, from the user's ConfigMap, or kaigen's defaults."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import yaml
from msgspec import Struct

from kaigen.core.json_types import FieldPath, Json
from kaigen.diagnostics.suggest import did_you_mean
from kaigen.dialects.kaito.blocks import TuningV1Alpha1
from kaigen.dialects.kaito.config_file import ConfigFile, read_config_file
from kaigen.dialects.kaito.resource import ResourceLowering

if TYPE_CHECKING:
    from kaigen.yaml.document import Document

CONFIG_FOLDER = "/mnt/config"
CONFIG_KEY = "training_config.yaml"
DATA = "/mnt/data"
RESULTS = "/mnt/results"
SECTIONS = ("DataCollator", "DatasetConfig", "LoraConfig", "ModelConfig", "QuantizationConfig", "TrainingArguments")

_QLORA: Mapping[str, Any] = {
    "QuantizationConfig": {
        "load_in_4bit": True,
        "bnb_4bit_quant_type": "nf4",
        "bnb_4bit_compute_dtype": "bfloat16",
        "bnb_4bit_use_double_quant": True,
    }
}
_LORA: Mapping[str, Any] = {
    "ModelConfig": {"torch_dtype": "bfloat16", "local_files_only": True, "device_map": "auto"},
    "LoraConfig": {"r": 8, "lora_alpha": 8, "lora_dropout": 0.0},
    "TrainingArguments": {
        "output_dir": RESULTS,
        "ddp_find_unused_parameters": False,
        "save_strategy": "epoch",
        "per_device_train_batch_size": 1,
    },
    "DataCollator": {"mlm": False},
    "DatasetConfig": {"shuffle_dataset": True, "train_test_split": 1},
}


class Training(Struct, frozen=True):
    """Settings of a run.

    Attributes:
        output: folder that the adapter is written to.
        text: the settings as YAML; empty when the pod reads a ConfigMap of the cluster.
        config_map: name of that ConfigMap; empty when `text` has the settings.
    """

    output: str
    text: str = ""
    config_map: str = ""


class Config(Struct, frozen=True):
    """Settings of a run, as written.

    Attributes:
        method: `lora` or `qlora`.
        output: folder that the adapter is written to.
        sections: settings by section and name.
        file: the file that has them; None for KAITO's defaults.
    """

    method: str
    output: str
    sections: Mapping[str, Mapping[str, Json]] = {}
    file: ConfigFile | None = None


def read_training(tuning: TuningV1Alpha1, at: FieldPath, lowering: ResourceLowering) -> Training | None:
    """Return the settings of a run of KAITO's script; None after an error.

    Args:
        tuning: the block.
        at: its path.
        lowering: collects problems.
    """
    method = _method(tuning, at, lowering)
    if not method:
        return None
    if tuning.config is None:
        return Training(RESULTS, _text({**_LORA, **(_QLORA if method == "qlora" else {})}))
    document = lowering.find_object("v1", "ConfigMap", tuning.config)
    if document is None:
        lowering.warning(
            "KG0418",
            f"ConfigMap `{tuning.config}` is not among the specs of namespace `{lowering.namespace}`, "
            "so kaigen does not check it; the pod reads it",
            (*at, "config"),
            "add the ConfigMap to a spec file, so that an edit of it starts a new run",
        )
        return Training(RESULTS, config_map=tuning.config)
    config = _read(document, tuning.config, method, (*at, "config"), lowering)
    if config is None:
        return None
    arguments = {**config.sections.get("TrainingArguments", {}), "output_dir": config.output}
    return Training(config.output.rstrip("/"), _text({**config.sections, "TrainingArguments": arguments}))


def read_config(tuning: TuningV1Alpha1, at: FieldPath, lowering: ResourceLowering) -> Config | None:
    """Return the settings of a run of kaigen's own program; None after an error.

    Args:
        tuning: the block.
        at: its path.
        lowering: collects problems.
    """
    method = _method(tuning, at, lowering)
    if not method or tuning.config is None:
        return Config(method, RESULTS) if method else None
    document = lowering.find_object("v1", "ConfigMap", tuning.config)
    if document is None:
        lowering.error(
            "KG0418",
            f"ConfigMap `{tuning.config}` is not among the specs of namespace `{lowering.namespace}`, "
            "so its settings cannot become fields of `tune`",
            (*at, "config"),
            'add the ConfigMap to a spec file, or set the annotation `kaigen.dev/compat: "true"`, with which KAITO\'s '
            "script reads it",
        )
        return None
    return _read(document, tuning.config, method, (*at, "config"), lowering)


def _method(tuning: TuningV1Alpha1, at: FieldPath, lowering: ResourceLowering) -> str:
    method = (tuning.method or "").lower()
    if method in {"lora", "qlora"}:
        return method
    message = f"unknown method `{tuning.method}`" if tuning.method else "`method` is missing"
    lowering.error("KG0412", message, (*at, "method") if tuning.method else at, "use `lora` or `qlora`")
    return ""


def _read(document: Document, name: str, method: str, at: FieldPath, lowering: ResourceLowering) -> Config | None:
    file = read_config_file(document, CONFIG_KEY, name, at, lowering)
    if file is None:
        return None
    if "training_config" not in file.mapping:
        file.error("KG0418", "`training_config` is missing")
        return None
    unknown = [key for key in file.mapping if key != "training_config"]
    for key in unknown:
        file.error("KG0418", f"unknown key `{key}`", (key,), "keep only `training_config`")
    config = file.mapping["training_config"]
    if not isinstance(config, dict):
        file.error("KG0418", "`training_config` must be a mapping", ("training_config",))
        return None
    return None if unknown else _config(config, method, file)


def _config(config: Mapping[str, Json], method: str, file: ConfigFile) -> Config | None:
    sections: dict[str, dict[str, Json]] = {}
    for name, content in config.items():
        here = ("training_config", name)
        if name not in SECTIONS:
            hint = did_you_mean(name, SECTIONS) or f"known: {', '.join(SECTIONS)}"
            file.error("KG0418", f"unknown section `{name}`", here, hint)
        elif not isinstance(content, dict):
            file.error("KG0418", f"`{name}` must be a mapping", here)
        else:
            sections[name] = content
    if sections.keys() != config.keys():
        return None
    quantization: FieldPath = ("training_config", "QuantizationConfig")
    bits = [key for key in ("load_in_4bit", "load_in_8bit") if sections.get("QuantizationConfig", {}).get(key) is True]
    if method == "qlora" and len(bits) != 1:
        message = "`qlora` requires one of `load_in_4bit` and `load_in_8bit` in `QuantizationConfig`"
        file.error("KG0412", message, quantization)
    elif method == "lora" and bits:
        hint = "set `method: qlora`, or delete it"
        file.error("KG0412", f"`lora` does not accept `{bits[0]}`", (*quantization, bits[0]), hint)
    arguments = sections.get("TrainingArguments", {})
    output = arguments.get("output_dir", RESULTS)
    if not isinstance(output, str) or not output.startswith("/mnt/") or ".." in output:
        path = ("training_config", "TrainingArguments", "output_dir")
        file.error("KG0412", f"`output_dir` must be a folder below /mnt, not `{output}`", path)
        output = RESULTS
    return Config(method, output, sections, file)


def _text(config: Mapping[str, Any]) -> str:
    return yaml.safe_dump({"training_config": dict(config)}, sort_keys=True)
