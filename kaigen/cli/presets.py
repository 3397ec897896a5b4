"""`kaigen presets`: the models of the catalogue, and those that a repository adds."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

import click

from kaigen.catalog.presets import find_preset, presets
from kaigen.cli.console import Console, table
from kaigen.cli.options import read_config
from kaigen.cli.sizing import output_option, refusals
from kaigen.diagnostics.collector import Diagnostics
from kaigen.system.lazy_import import lazy_imports

if TYPE_CHECKING:
    from kaigen.catalog.catalog import Catalog
    from kaigen.catalog.presets import Preset
    from kaigen.core.json_types import Json

with lazy_imports():
    from kaigen.config import catalog, catalog_rows
    from kaigen.sizing import answer, preset_row
    from kaigen.yaml import dump


_GIB = 2**30
_SIZE = re.compile(r"([0-9]+(?:\.[0-9]+)?)\s*(|Gi|G|Mi|M)B?")
_UNITS = {"": _GIB, "Gi": _GIB, "G": 10**9, "Mi": 2**20, "M": 10**6}


class SizeParam(click.ParamType[float]):
    """A size in GiB, or with a unit; its value is in GiB."""

    name = "size"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Return the size in GiB."""
        found = _SIZE.fullmatch(str(value))
        size = float(found[1]) * _UNITS[found[2]] / _GIB if found else 0.0
        if not size:
            self.fail(f"{value} is not a size; write 14.2Gi, or 15.2G", param, ctx)
        return round(size, 2)


@click.command("presets")
@click.argument("words", nargs=-1, metavar="[list|show|add] [NAME]")
@click.option("--config", "config_file", metavar="FILE", help="The model's config.json, for add.")
@click.option("--weights", type=SizeParam(), metavar="SIZE", help="Size of the weights, such as 14.2Gi, for add.")
@click.option("--repo", default="", metavar="NAME", help="Hugging Face repository, for add. Default: as in FILE.")
@click.option("--revision", default="", metavar="COMMIT", help="Commit of the repository, for add.")
@click.option("--licence", default="unknown", metavar="NAME", help="License of the model, for add.")
@click.option("--force", is_flag=True, help="Replace the preset's file, for add.")
@output_option
@click.pass_obj
def command(
    console: Console,
    /,
    words: tuple[str, ...],
    output: str,
    config_file: str | None,
    weights: float | None,
    **options: Any,
) -> None:
    """List the models in the catalogue, show one, or add one.

    `list` takes a part of a name; `show` takes a name, a former name or a Hugging Face repository. With NAME alone,
    shows the model of that name, or lists those whose name contains it.

    `add` writes a preset of your own from its config.json to `catalog/NAME.yaml`, which specs then use by its name.
    """
    action, name = _action(words)
    if action == "add":
        if config_file is None or weights is None:
            raise click.UsageError("`add` requires --config and --weights")
        add_preset(console, name, config_file=config_file, weights=weights, **options)
        return
    if config_file is not None or weights is not None:
        raise click.UsageError("--config and --weights require `add`")
    catalog = read_config().catalog
    action = action or ("show" if find_preset(name, catalog) else "list")
    if action == "list":
        _list(console, name, catalog, output)
        return
    with refusals():
        preset = answer.preset_of(name, catalog)
    if output == "json":
        console.out(json.dumps(preset_data(preset), indent=2, ensure_ascii=False))
    else:
        _show(console, preset)


def _action(words: tuple[str, ...]) -> tuple[str, str]:
    """Return `list`, `show`, `add` or an empty text for one of the first two, and the name.

    Raises:
        UsageError: too many words, or no name to show.
    """
    first, *names = words or ("list",)
    if first not in ("list", "show", "add"):
        first, names = "", [first, *names]
    if len(names) > 1:
        raise click.UsageError(f"unexpected argument: {names[1]}; name one model")
    name = names[0] if names else ""
    if first in ("show", "add") and not name:
        raise click.UsageError(f"`{first}` requires the name of a preset")
    return first, name


def _list(console: Console, part: str, catalog: Catalog, output: str) -> None:
    wanted = part.lower()
    found = [
        preset
        for preset in presets(catalog)
        if any(wanted in name.lower() for name in (preset.name, preset.repo, *preset.aliases))
    ]
    if output == "json":
        console.out(json.dumps([preset_data(preset) for preset in found], indent=2, ensure_ascii=False))
        return
    if not found:
        console.say(f"no preset matches {part}")
        return
    rows = [
        (
            preset.name,
            f"{preset.parameters:.3g}" if preset.parameters else "–",
            f"{preset.weights_gib:.1f}",
            preset.quantization or preset.dtype,
            str(preset.max_context),
            preset.licence,
            "yes" if preset.gated else "",
        )
        for preset in found
    ]
    numbers = (1, 2, 4)
    head = ("NAME", "PARAMS 1e9", "GiB", "WEIGHTS", "CONTEXT", "LICENCE", "TOKEN")
    widths = {column: max(len(row[column]) for row in [head, *rows]) for column in numbers}
    aligned = [
        tuple(cell.rjust(widths[column]) if column in widths else cell for column, cell in enumerate(row))
        for row in [head, *rows]
    ]
    for line in table(aligned):
        console.out(line)


def preset_data(preset: Preset) -> dict[str, Json]:
    """Return a preset as plain data, without the columns of foreign systems."""
    engine = preset.engine
    flags: dict[str, Json] = {
        "tool-call-parser": engine.tool_call_parser,
        "reasoning-parser": engine.reasoning_parser,
        "tokenizer-mode": engine.tokenizer_mode,
        "config-format": engine.config_format,
        "load-format": engine.load_format,
        "kv-cache-dtype": engine.kv_cache_dtype,
        "trust-remote-code": engine.trust_remote_code,
        **(engine.args or {}),
    }
    return {
        "name": preset.name,
        "aliases": list(preset.aliases),
        "repo": preset.repo,
        "revision": preset.revision or None,
        "licence": preset.licence,
        "gated": preset.gated,
        "architecture": preset.architecture,
        "modalities": list(preset.modalities),
        "parametersB": preset.parameters,
        "weightsGiB": dict(preset.weights),
        "quantization": preset.quantization,
        "dtype": preset.dtype,
        "maxContextLength": preset.max_context,
        "vocabularySize": preset.vocabulary,
        "layers": preset.layers,
        "kvLayers": preset.kv_layers or preset.layers,
        "hiddenSize": preset.hidden_size,
        "heads": preset.heads,
        "kvHeads": preset.kv_heads,
        "headDim": preset.head_dim,
        "attention": preset.attention,
        "flags": {name: value for name, value in flags.items() if value not in ("", False)},
        "chatTemplate": engine.tool_chat_template or None,
        "env": dict(engine.env or {}),
        "engines": list(preset.engines),
        "notes": [*([preset.kv_upper_bound] if preset.kv_upper_bound else []), *preset.notes],
        "corrections": [{"field": item.field, "was": item.was, "why": item.why} for item in preset.corrections],
    }


def _show(console: Console, preset: Preset) -> None:
    data = preset_data(preset)
    gated = {True: ", a token is needed", False: "", None: ", whether a token is needed is not known"}[preset.gated]
    sizes = ", ".join(f"{size:g} GiB {dtype}" for dtype, size in preset.weights.items())
    heads = f"{preset.heads} heads, {preset.kv_heads} for keys and values"
    shape = f"{preset.layers} layers of width {preset.hidden_size}, {heads}"
    if preset.mla:
        shape = f"{preset.layers} layers of width {preset.hidden_size}, {preset.heads} heads"
        shape += f", MLA {preset.mla.kv_lora_rank} + {preset.mla.rope_head_dim}"
    if preset.head_dim:
        shape += f" of {preset.head_dim}"
    if preset.kv_layers:
        shape += f"; {preset.kv_layers} layers keep keys and values"
    if preset.sliding_window:
        shape += f"; {preset.sliding_window.layers} layers look back {preset.sliding_window.tokens} tokens"
    flags = data["flags"]
    assert isinstance(flags, dict)
    flags_text = [f"--{name}" if value is True else f"--{name}={value}" for name, value in flags.items()]
    if preset.engine.tool_chat_template:
        flags_text.append(f"--chat-template=examples/{preset.engine.tool_chat_template}")
    flags_text += [f"{name}={value}" for name, value in (preset.engine.env or {}).items()]
    rows = [
        ("name", ", ".join([preset.name, *preset.aliases])),
        ("repository", preset.repo + (f" at {preset.revision[:12]}" if preset.revision else "")),
        ("licence", preset.licence + gated),
        ("architecture", f"{preset.architecture}, {preset.attention.upper()}, {', '.join(preset.modalities)}"),
        ("shape", shape),
        ("weights", sizes + (f", {preset.parameters:g} billion parameters" if preset.parameters else "")),
        ("context", f"{preset.max_context} tokens"),
        ("vocabulary", f"{preset.vocabulary} tokens" if preset.vocabulary else "not known"),
        ("vLLM flags", " ".join(flags_text) or "none"),
    ]
    if preset.engine.trust_remote_code_reason:
        rows.append(("remote code", preset.engine.trust_remote_code_reason))
    rows += [("note", note) for note in (preset.kv_upper_bound, *preset.notes) if note]
    rows += [("corrected", f"{item.field} was {item.was}: {item.why}") for item in preset.corrections]
    for line in table(rows):
        console.out(line)


def add_preset(
    console: Console,
    name: str,
    *,
    config_file: str,
    weights: float,
    repo: str,
    revision: str,
    licence: str,
    force: bool,
) -> None:
    """Write the file of a preset in the catalogue of the repository, and check it.

    Raises:
        InputError: the config or the preset is invalid.
        UsageError: the file exists.
    """
    if not re.fullmatch("[a-z0-9][a-z0-9.-]*", name):
        raise click.UsageError(f"{name}: a preset's name has lower-case letters, digits, dots and dashes")
    if revision and not re.fullmatch("[0-9a-f]{40}", revision):
        raise click.UsageError(f"--revision {revision}: a commit has 40 hexadecimal digits")
    settings = read_config()
    path = settings.root / settings.catalog_folder / f"{name}.yaml"
    if path.exists() and not force:
        raise click.UsageError(f"{path} exists; replace it with --force")
    if path.exists() and not path.is_file():
        raise click.UsageError(f"{path} is not a file")
    with refusals():
        row = preset_row.preset_row(config_file, weights, name=name, repo=repo, revision=revision, licence=licence)
    path.parent.mkdir(parents=True, exist_ok=True)
    before = path.read_bytes() if path.exists() else None
    entry = catalog.CATALOG_ENTRY
    text = dump.dump({"apiVersion": entry.api_version, "kind": entry.kind, "presets": [row]})
    path.write_text(text, encoding="utf-8", newline="\n")
    problems = Diagnostics()
    catalog_rows.read_catalog(settings.root, settings.catalog_folder, problems)
    if problems.has_errors:
        if before is None:
            path.unlink()
        else:
            path.write_bytes(before)
    problems.raise_errors()
    console.say(f"wrote {path}; `kaigen presets {name}` shows it")
    missing = [field for field in ("revision", "engine") if field not in row] + ["licence"] * (licence == "unknown")
    console.say(f"complete it by hand where you know more: {', '.join(missing)}")
