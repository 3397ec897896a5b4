"""Write the flags of `vllm serve`, and what its parser says of command lines. Runs where vLLM is installed.

    python tools/vllm_parser.py FLAGS.json [LINES.json REFUSED.json]

`tools/facts` calls it. It imports nothing of kaigen.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import re
import sys
from importlib import import_module
from pathlib import Path
from typing import Any, get_args

WORDS = ("auto", "cpu", "none", "all")
"""Words that some flags accept besides a number."""


def serve_parser() -> Any:
    """Return the parser of `vllm serve`."""
    import torch

    # Older versions ask a function that newer versions of torch do not have.
    for name in ("_is_avx512_supported", "_is_avx2_supported", "_is_amx_tile_supported", "_is_vnni_supported"):
        if not hasattr(torch._C._cpu, name):
            setattr(torch._C._cpu, name, lambda: False)
    from vllm.entrypoints.cli.serve import ServeSubcommand

    try:
        from vllm.utils.argparse_utils import FlexibleArgumentParser
    except ImportError:
        from vllm.utils import FlexibleArgumentParser
    return ServeSubcommand().subparser_init(FlexibleArgumentParser().add_subparsers())


def accepts(action: Any, value: str) -> bool:
    """Return whether the type of a flag accepts a text."""
    if action.type is None:
        return True
    try:
        with contextlib.redirect_stderr(io.StringIO()):
            action.type(value)
    except Exception:
        return False
    return True


def type_of(action: Any) -> str:
    """Return the type of a flag's values: `text`, `int`, `float` or `json`."""
    if accepts(action, "some text"):
        return "text"
    if accepts(action, '{"a": 1}') or accepts(action, "{}") or accepts(action, "[]"):
        return "json"
    return "float" if accepts(action, "1.5") else "int"


def quantization_methods() -> list[str]:
    """Return the values of `--quantization`, which the parser does not check."""
    from vllm.model_executor.layers.quantization import QUANTIZATION_METHODS

    return [str(method) for method in QUANTIZATION_METHODS]


def parser_names(manager: Any, loaded: str) -> list[str]:
    """Return the names of the parsers of a manager, in older versions those that it has loaded."""
    list_registered = getattr(manager, "list_registered", None)
    return sorted(list_registered() if list_registered else getattr(manager, loaded))


def registered_names(dest: str) -> list[str]:
    """Return the names that vLLM registers for a flag whose parser accepts any text; empty for other flags."""
    if dest == "tool_call_parser":
        try:
            parsers = import_module("vllm.tool_parsers")
        except ImportError:
            parsers = import_module("vllm.entrypoints.openai.tool_parsers")
        return parser_names(parsers.ToolParserManager, "tool_parsers")
    if dest == "reasoning_parser":
        return parser_names(import_module("vllm.reasoning").ReasoningParserManager, "reasoning_parsers")
    if dest == "load_format":
        return sorted(import_module("vllm.model_executor.model_loader")._LOAD_FORMAT_TO_MODEL_LOADER)
    if dest == "config_format":
        formats = import_module("vllm.transformers_utils.config")
        return sorted({*get_args(formats.ConfigFormat), *formats._CONFIG_FORMAT_TO_CONFIG_PARSER})
    if dest == "tokenizer_mode":
        modes = get_args(import_module("vllm.config.model").TokenizerMode)
        registry = import_module("vllm.tokenizers.registry")
        known = getattr(registry, "_VLLM_TOKENIZERS", registry.TokenizerRegistry)
        return sorted({*modes, *getattr(known, "REGISTRY", known)})
    return []


def written_name(option: str) -> str:
    """Return a flag's name as kaigen writes it: without two dashes, and with dashes for underscores."""
    return option.removeprefix("--").replace("_", "-") if option.startswith("--") else option


def row(parser: Any, action: Any) -> dict[str, Any]:
    """Return a flag as plain data."""
    # The parser also accepts names that its help hides.
    every = [name for name, other in parser._option_string_actions.items() if other is action]
    every = [*action.option_strings, *(name for name in every if name not in action.option_strings)]
    found: dict[str, Any] = {"names": list(dict.fromkeys(map(written_name, every)))}
    if action.nargs == 0 and action.__class__.__name__ != "_HelpAction":
        values = {}
        for written in every:
            namespace = argparse.Namespace()
            with contextlib.redirect_stderr(io.StringIO()):
                action(parser, namespace, [], written)
            values[written_name(written)] = getattr(namespace, action.dest, None)
        found["off"] = [name for name, value in values.items() if value is False]
    else:
        found["type"] = type_of(action)
        words = [word for word in WORDS if found["type"] != "text" and accepts(action, word)]
        if words:
            found["words"] = words
        if action.nargs in ("+", "*"):
            found["many"] = "list"
        elif action.__class__.__name__ == "_AppendAction":
            found["many"] = "repeat"
        elif found["type"] == "json" and accepts(action, '["a"]') and accepts(action, "[1]"):
            found["many"] = "json"
        choices = quantization_methods() if action.dest == "quantization" else action.choices
        if choices:
            found["choices"] = sorted(map(str, choices), key=lambda name: (len(name) if name.isdigit() else 0, name))
        names = [] if action.choices else registered_names(action.dest)
        if names:
            found["registered"] = names
    if isinstance(action.default, str | int | float | bool) and action.default != argparse.SUPPRESS:
        found["default"] = action.default
    text = (action.help or "").strip()
    if getattr(action, "deprecated", False) or re.match(r"(\[?DEPRECATED|--[\w-]+ is deprecated)", text):
        found["deprecated"] = re.split(r"(?<=\.)\s", text.replace("\n", " "))[0]
    return found


def refusal(parser: Any, line: list[str]) -> str:
    """Return why the parser refuses a command line; empty when it accepts it."""
    errors = io.StringIO()
    try:
        with contextlib.redirect_stderr(errors), contextlib.redirect_stdout(io.StringIO()):
            parser.parse_args(line)
    except SystemExit:
        lines = [line.strip() for line in errors.getvalue().splitlines()]
        # Validation errors of pydantic end in an address.
        return "; ".join([line for line in lines if line and "errors.pydantic.dev" not in line][-3:])
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return ""


def main(flags: str, lines: str = "", refused: str = "") -> None:
    """Write the files."""
    parser = serve_parser()
    rows = [row(parser, action) for action in parser._actions if action.option_strings]
    Path(flags).write_text(json.dumps(rows))
    if lines:
        found = {line: refusal(parser, json.loads(line)) for line in json.loads(Path(lines).read_text())}
        Path(refused).write_text(json.dumps({line: why for line, why in found.items() if why}))


if __name__ == "__main__":
    main(*sys.argv[1:])
