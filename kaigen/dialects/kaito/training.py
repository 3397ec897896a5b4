"""`training_config.yaml`: the settings of a fine-tuning run, from the user's ConfigMap or kaigen's for the method."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from kaigen.dialects.kaito.blocks import TuningV1Alpha1
from kaigen.dialects.kaito.engine_config import read_map
from kaigen.dialects.kaito.reading import Reading
from kaigen.kinds.spec import Path

CONFIG_FOLDER = "/mnt/config"
CONFIG_KEY = "training_config.yaml"
RESULTS = "/mnt/results"
SECTIONS = (
    "DataCollator",
    "DatasetConfig",
    "LoraConfig",
    "ModelConfig",
    "QuantizationConfig",
    "TrainingArguments",
)

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


@dataclass(frozen=True, slots=True)
class Training:
    """Settings of a run.

    Attributes:
        output: folder that the adapter is written to.
        text: the settings as YAML; empty when a ConfigMap of the cluster holds them.
        config_map: name of that ConfigMap; empty when `text` holds them.
    """

    output: str
    text: str = ""
    config_map: str = ""


def read_training(tuning: TuningV1Alpha1, at: Path, reading: Reading) -> Training | None:
    """The settings of a run; None, and told, when they cannot be.

    Args:
        tuning: the block.
        at: where it stands.
        reading: takes what is wrong.
    """
    method = (tuning.method or "").lower()
    if method not in {"lora", "qlora"}:
        given = f"`{tuning.method}` is no method" if tuning.method else "no `method` is named"
        reading.error("KG0412", given, (*at, "method") if tuning.method else at, "`lora` or `qlora`")
        return None
    if tuning.config is None:
        return Training(RESULTS, _text({**_LORA, **(_QLORA if method == "qlora" else {})}))
    here = (*at, "config")
    document = reading.find_object("v1", "ConfigMap", tuning.config, reading.metadata.namespace)
    if document is None:
        reading.warning(
            "KG0418",
            f"ConfigMap `{tuning.config}` is not in this file, so nothing in it is checked; the pod reads it",
            here,
            "put it behind a line `---` of this file, and an edit of it makes a new run",
        )
        return Training(RESULTS, config_map=tuning.config)
    reading.consume(document)
    found = read_map(document, CONFIG_KEY, here, tuning.config, reading)
    if found is None:
        return None
    config = found.get("training_config")
    if not isinstance(config, dict) or set(found) != {"training_config"}:
        reading.error(
            "KG0418", f"ConfigMap `{tuning.config}` must have `training_config` in `{CONFIG_KEY}`", here
        )
        return None
    return _checked(config, method, tuning.config, here, reading)


def _checked(
    config: Mapping[str, Any], method: str, name: str, at: Path, reading: Reading
) -> Training | None:
    before = len(reading.diagnostics)
    for section, content in config.items():
        if section not in SECTIONS:
            from kaigen.diagnostics.suggest import did_you_mean

            hint = did_you_mean(str(section), SECTIONS) or f"known: {', '.join(SECTIONS)}"
            reading.error("KG0418", f"unknown section `{section}` in ConfigMap `{name}`", at, hint)
        elif not isinstance(content, dict):
            reading.error("KG0418", f"`{section}` of ConfigMap `{name}` is no mapping", at)
    if len(reading.diagnostics) > before:
        return None
    quantization = config.get("QuantizationConfig", {})
    bits = [key for key in ("load_in_4bit", "load_in_8bit") if quantization.get(key) is True]
    if method == "qlora" and len(bits) != 1:
        reading.error(
            "KG0412", "`qlora` needs one of `load_in_4bit` and `load_in_8bit` in `QuantizationConfig`", at
        )
    elif method == "lora" and bits:
        reading.error("KG0412", f"`lora` takes no `{bits[0]}`", at, "take `qlora`, or delete it")
    output = config.get("TrainingArguments", {}).get("output_dir", RESULTS)
    if not isinstance(output, str) or not output.startswith("/mnt/") or ".." in output:
        reading.error("KG0412", f"`output_dir` must be a folder below /mnt, not `{output}`", at)
        output = RESULTS
    arguments = {**config.get("TrainingArguments", {}), "output_dir": output}
    return Training(output.rstrip("/"), _text({**config, "TrainingArguments": arguments}))


def _text(config: Mapping[str, Any]) -> str:
    import yaml

    return yaml.safe_dump({"training_config": dict(config)}, sort_keys=True)
