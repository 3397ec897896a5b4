"""Make tests/unit/catalog/configs.json: what models' own config.json say, which the presets are compared with.

The package of NVIDIA's AIConfigurator has copies of those of the models that it plans.
"""

from __future__ import annotations

import json
import zipfile
from collections.abc import Mapping
from pathlib import Path, PurePosixPath
from typing import Any

PACKAGE = "aiconfigurator-core"
TABLE = Path(__file__).parent.parent.parent / "tests" / "unit" / "catalog" / "configs.json"
_FOLDER, _END = "model_configs", "_config.json"
_PARTS = ".cyclonedx.json"
"""End of the list of its parts, which says when the package was built: the times of the wheel's files do not."""
_NUMBERS = (
    *("num_hidden_layers", "hidden_size", "num_attention_heads", "num_key_value_heads", "head_dim"),
    *("max_position_embeddings", "vocab_size", "kv_lora_rank", "qk_rope_head_dim", "index_head_dim"),
    *("sliding_window", "use_sliding_window", "sliding_window_pattern", "full_attention_interval"),
    "linear_attn_config",
    *("linear_num_value_heads", "linear_num_key_heads", "linear_value_head_dim", "linear_key_head_dim"),
    *("mamba_num_heads", "mamba_head_dim", "ssm_state_size", "n_groups"),
    *("hybrid_override_pattern", "layers_block_type", "layer_types", "dtype", "torch_dtype"),
)
"""Keys of the decoder that the plan reads."""


def shortened(config: Mapping[str, Any]) -> dict[str, Any]:
    """Return the keys of a config.json that the plan reads."""
    inner = config.get("text_config")
    text = inner if isinstance(inner, dict) else config
    short = {key: text[key] for key in _NUMBERS if text.get(key) is not None}
    quantization = config.get("quantization_config") or text.get("quantization_config")
    method = quantization.get("quant_method") if isinstance(quantization, dict) else None
    outer = {"quantization_config": {"quant_method": method}} if isinstance(method, str) else {}
    if text is config:
        return short | outer
    sees: dict[str, Any] = {"vision_config": {}} if "vision_config" in config else {}
    return {"text_config": short} | sees | outer


def table(path: Path, version: str) -> str:
    """Return the content of the table.

    Args:
        path: of the package's wheel.
        version: of it.
    """
    rows: dict[str, dict[str, Any]] = {}
    with zipfile.ZipFile(path) as archive:
        for member in map(PurePosixPath, archive.namelist()):
            if member.match(f"{_FOLDER}/*{_END}") and not member.match(f"*_hf_quant{_END}"):
                repository = member.name.removesuffix(_END).replace("--", "/", 1)
                rows[repository] = shortened(json.loads(archive.read(str(member))))
        (parts,) = (name for name in archive.namelist() if name.endswith(_PARTS))
        built = json.loads(archive.read(parts))["metadata"]["timestamp"][:10]
    head = {"source": f"{_FOLDER} in {PACKAGE} {version}", "date": built}
    lines = [f"  {json.dumps(repo)}: {json.dumps(row)}" for repo, row in sorted(rows.items())]
    return json.dumps(head)[:-1] + ',\n "models": {\n' + ",\n".join(lines) + "\n }\n}\n"
