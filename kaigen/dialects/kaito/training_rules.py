"""What becomes of each setting of `training_config.yaml`: a field of `tune`, nothing, or an error.

Names and defaults are those of KAITO's training script (`cli.py`), and of the classes that it passes them to:
TrainingArguments of transformers, LoraConfig of PEFT, BitsAndBytesConfig.
"""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

NUMBER, WHOLE, FLAG = "a number", "a whole number", "true or false"


class Rule(Struct, frozen=True):
    """What becomes of a setting.

    Attributes:
        field: field of `tune`; empty for none.
        what: type of its value.
        accepted: values with which kaigen's program trains anyway, in lower case.
        reason: why another value has no effect, or cannot be used.
        refused: whether another value is an error, in place of a warning.
        by_hand: whether the module `training_settings` reads it.
    """

    field: str = ""
    what: str = NUMBER
    accepted: tuple[str, ...] = ()
    reason: str = ""
    refused: bool = False
    by_hand: bool = False


_NO, _YES, _NONE = ("false", "none"), ("true",), ("none", "{}", "[]", "")
_BY_HAND = Rule(by_hand=True)


def _takes(field: str, what: str = NUMBER) -> Rule:
    return Rule(field=field, what=what)


def _only(*accepted: str, reason: str) -> Rule:
    return Rule(accepted=accepted, reason=reason, refused=True)


def _unused(reason: str, *accepted: str) -> Rule:
    return Rule(accepted=accepted, reason=reason)


_LOCAL = _unused("the weights are downloaded before the training", *_NO, "main")
_NOT_SUPPORTED = "kaigen's program does not support it"
_ADAM = "kaigen's program uses AdamW with its defaults"

_MODEL: Mapping[str, Rule] = {
    "torch_dtype": _BY_HAND,
    "pretrained_model_name_or_path": _only(
        "/workspace/tfs/weights", reason="`preset.name` selects the model, also by its repository on the Hub"
    ),
    "local_files_only": _unused("the program never downloads files", *_NO, *_YES),
    "device_map": _unused("each process has one GPU", "auto"),
    "trust_remote_code": _only(*_NO, reason="kaigen's program runs no code of a model's repository"),
    "chat_template": _only("none", reason="conversations have the chat template of the model"),
    "load_in_4bit": _only(*_NO, reason="`QuantizationConfig` quantizes the model"),
    "load_in_8bit": _only(*_NO, reason="`QuantizationConfig` quantizes the model"),
    "state_dict": _only(*_NONE, reason=_NOT_SUPPORTED),
    "from_tf": _only(*_NO, reason="kaigen's program reads safetensors"),
    "cache_dir": _LOCAL,
    "force_download": _LOCAL,
    "resume_download": _LOCAL,
    "proxies": _LOCAL,
    "revision": _LOCAL,
    "output_loading_info": _unused("it is not printed", *_NO),
}

_INT8 = _unused("weights have 4 bits", *_NO, "6")
_QUANTIZATION: Mapping[str, Rule] = {
    "quant_method": _only("bitsandbytes", reason="kaigen's program quantizes with bitsandbytes"),
    "load_in_4bit": _BY_HAND,
    "load_in_8bit": _only(*_NO, reason="kaigen's program trains over weights of 4 bits; set `load_in_4bit`"),
    "bnb_4bit_compute_dtype": _BY_HAND,
    "bnb_4bit_quant_type": _only("nf4", reason="kaigen's program quantizes to NF4"),
    "bnb_4bit_use_double_quant": _unused("kaigen's program also quantizes the constants, which saves memory", *_YES),
    "bnb_4bit_quant_storage": _unused("it is only for sharded training", "none", "uint8"),
    "llm_int8_threshold": _INT8,
    "llm_int8_skip_modules": _only(*_NONE, reason=_NOT_SUPPORTED),
    "llm_int8_enable_fp32_cpu_offload": _INT8,
    "llm_int8_has_fp16_weight": _INT8,
}

_LORA: Mapping[str, Rule] = {
    "r": _takes("rank", WHOLE),
    "lora_alpha": _takes("alpha"),
    "lora_dropout": _takes("dropout"),
    "target_modules": _BY_HAND,
    "bias": _only("none", reason="kaigen's program trains no biases"),
    "task_type": _only("causal_lm", "none", reason="kaigen's program trains causal language models"),
    "peft_type": _only("lora", "none", reason="kaigen's program trains LoRA"),
    "init_lora_weights": _only(*_YES, reason=_NOT_SUPPORTED),
    "inference_mode": _only(*_NO, reason="nothing would be trained"),
    **dict.fromkeys(("fan_in_fan_out", "use_rslora", "use_dora", "lora_bias"), _only(*_NO, reason=_NOT_SUPPORTED)),
    **dict.fromkeys(
        (
            "alpha_pattern",
            "exclude_modules",
            "layer_replication",
            "layers_pattern",
            "layers_to_transform",
            "loftq_config",
            "megatron_config",
            "modules_to_save",
            "rank_pattern",
            "target_parameters",
            "trainable_token_indices",
        ),
        _only(*_NONE, reason=_NOT_SUPPORTED),
    ),
    "base_model_name_or_path": _unused("the program writes it", "none"),
    "revision": _unused("the program writes it", "none"),
}

_LOGS = "the log has one line of JSON for each step"
_EVALUATES = "the loss is measured before and after the training"
_TRAINING: Mapping[str, Rule] = {
    "output_dir": _BY_HAND,
    "num_train_epochs": _takes("epochs"),
    "per_device_train_batch_size": _takes("batchSize", WHOLE),
    "gradient_accumulation_steps": _takes("gradientAccumulation", WHOLE),
    "learning_rate": _takes("learningRate"),
    "weight_decay": _takes("weightDecay"),
    "warmup_ratio": _takes("warmup"),
    "seed": _takes("seed", WHOLE),
    "gradient_checkpointing": _takes("gradientCheckpointing", FLAG),
    "lr_scheduler_type": _BY_HAND,
    "bf16": _BY_HAND,
    "fp16": _BY_HAND,
    "save_strategy": _BY_HAND,
    "save_steps": _BY_HAND,
    "data_seed": _BY_HAND,
    "warmup_steps": _only("0", reason="`tune` has the part of the steps; set `warmup_ratio`"),
    "max_steps": _only("-1", "0", reason="`tune` has passes over the samples; set `num_train_epochs`"),
    "optim": _only("adamw_torch", "adamw_torch_fused", "adamw_hf", reason="kaigen's program uses AdamW of PyTorch"),
    "adam_beta1": _only("0.9", reason=_ADAM),
    "adam_beta2": _only("0.999", reason=_ADAM),
    "adam_epsilon": _only("1e-08", reason=_ADAM),
    "max_grad_norm": _only("1", reason="kaigen's program limits the norm of gradients to 1"),
    "label_smoothing_factor": _only("0", reason=_NOT_SUPPORTED),
    "auto_find_batch_size": _only(*_NO, reason="the batch size is `per_device_train_batch_size`"),
    "load_best_model_at_end": _only(*_NO, reason="kaigen's program stores the last state"),
    "use_cpu": _only(*_NO, reason="kaigen's program trains on the GPUs of the pod"),
    "no_cuda": _only(*_NO, reason="kaigen's program trains on the GPUs of the pod"),
    **dict.fromkeys(
        ("group_by_length", "adafactor", "use_liger_kernel", "batch_eval_metrics"), _only(*_NO, reason=_NOT_SUPPORTED)
    ),
    **dict.fromkeys(
        (
            "accelerator_config",
            "deepspeed",
            "fsdp",
            "fsdp_config",
            "lr_scheduler_kwargs",
            "neftune_noise_alpha",
            "optim_args",
            "optim_target_modules",
            "parallelism_config",
        ),
        _only(*_NONE, reason=_NOT_SUPPORTED),
    ),
    "do_train": _unused("the program always trains", *_YES),
    "do_eval": _unused(_EVALUATES),
    "do_predict": _unused("the program does not predict", *_NO),
    "evaluation_strategy": _unused(_EVALUATES, "no"),
    "per_device_eval_batch_size": _unused("the evaluation has batches of the training"),
    "metric_for_best_model": _unused("the program stores the last state", "none"),
    "greater_is_better": _unused("the program stores the last state", "none"),
    "report_to": _unused(_LOGS, *_NONE),
    "run_name": _unused(_LOGS, "none"),
    "disable_tqdm": _unused(_LOGS, *_YES),
    "ddp_find_unused_parameters": _unused("the program sets it", *_NO),
    "remove_unused_columns": _unused("only the columns of the samples are read"),
    "overwrite_output_dir": _unused("a new run replaces the result"),
    "resume_from_checkpoint": _unused("a run that was interrupted goes on from its last checkpoint", "none"),
    "gradient_checkpointing_kwargs": _unused("the program sets it", *_NONE),
    "save_total_limit": _unused("checkpoints are removed when the run ends", "none"),
    "tf32": _unused("it is the default of PyTorch", "none"),
    "half_precision_backend": _unused("PyTorch has only one", "auto", "cpu_amp"),
    "fp16_opt_level": _unused("PyTorch has no levels", "o1"),
    "jit_mode_eval": _unused("it changes no result", *_NO),
    "past_index": _unused("it changes no result", "-1"),
    "local_rank": _unused("the program starts a process for each GPU", "-1"),
    "debug": _unused("it changes no result", *_NONE),
    "full_determinism": _unused("kernels of GPUs add numbers in an order that changes", *_NO),
    "label_names": _unused("the program makes the labels", *_NONE),
    "prediction_loss_only": _unused(_EVALUATES, *_NO),
    "skip_memory_metrics": _unused(_LOGS, *_YES),
    "mp_parameters": _unused("it is for SageMaker", *_NONE),
    "length_column_name": _unused("samples are not grouped by length", "length"),
    "use_mps_device": _unused("GPUs are of NVIDIA", *_NO),
    "use_ipex": _unused("GPUs are of NVIDIA", *_NO),
    "use_legacy_prediction_loop": _unused(_EVALUATES, *_NO),
    "average_tokens_across_devices": _unused("the program sets it", *_NO, *_YES),
}
_PREFIXES: Mapping[str, Rule] = {
    "logging_": _unused(_LOGS),
    "log_": _unused(_LOGS, "passive"),
    "eval_": _unused(_EVALUATES, "no", "none"),
    "save_": _unused("the result is an adapter in safetensors, and checkpoints are removed when the run ends"),
    "push_to_hub": _unused("nothing is pushed to the Hub", *_NO),
    "hub_": _unused("nothing is pushed to the Hub", *_NONE, *_NO),
    "dataloader_": _unused("samples are read into memory before the training"),
    "ddp_": _unused("the program sets it", "none"),
    "torch_compile": _unused("the program does not compile the model", *_NONE, *_NO),
    "tpu_": _unused("GPUs are of NVIDIA", *_NONE),
    "include_": _unused(_LOGS, *_NO),
    "torch_empty_cache_steps": _unused("it changes no result", "none"),
    "bf16_": _unused(_EVALUATES, *_NO),
    "fp16_": _unused(_EVALUATES, *_NO),
    "fsdp_": _only(*_NONE, "0", reason=_NOT_SUPPORTED),
    "sharded_": _only(*_NONE, reason=_NOT_SUPPORTED),
    "split_batches": _unused("the program sets it", "none", *_NO),
    "dispatch_batches": _unused("the program sets it", "none"),
    "ray_scope": _unused("it is for a search of hyperparameters", "last"),
}
"""Settings of TrainingArguments by the beginning of their names."""

_DATASET: Mapping[str, Rule] = {
    "dataset_path": _BY_HAND,
    "dataset_extension": _BY_HAND,
    "context_column": _BY_HAND,
    "response_column": _BY_HAND,
    "messages_column": _BY_HAND,
    "train_test_split": _BY_HAND,
    "shuffle_dataset": _unused("samples are shuffled in each pass", *_YES),
    "shuffle_seed": _unused("`seed` of `TrainingArguments` also selects the samples for the evaluation", "42"),
}

_COLLATOR: Mapping[str, Rule] = {
    "mlm": _unused("causal language models are not trained on masks, and KAITO's script turns it off", *_NO),
    "mlm_probability": _unused("no tokens are masked", "0.15"),
    "pad_to_multiple_of": _unused("batches have the length of their longest sample", "none"),
    "tf_experimental_compile": _unused("it is for TensorFlow", *_NO),
    "return_tensors": _only("pt", reason="the program trains with PyTorch"),
}

RULES: Mapping[str, Mapping[str, Rule]] = {
    "DataCollator": _COLLATOR,
    "DatasetConfig": _DATASET,
    "LoraConfig": _LORA,
    "ModelConfig": _MODEL,
    "QuantizationConfig": _QUANTIZATION,
    "TrainingArguments": _TRAINING,
}
"""Rules of the settings, by section and name."""


def find_rule(section: str, name: str) -> Rule | None:
    """Return the rule of a setting; None for an unknown one."""
    found = RULES[section].get(name)
    if found is None and section == "TrainingArguments":
        found = next((rule for prefix, rule in _PREFIXES.items() if name.startswith(prefix)), None)
    return found
