"""Generate schemas/ from the kinds, docs/cli.md from --help, docs/diagnostics.md from the codes, a list in
docs/dialects/kaito.md, the measurements in docs/sizing.md, docs/promises.md from the markers of tests, the reasons in
docs/dialects.md, and the pictures of the README.

`make docs` runs this; a test compares the committed files with its output.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import click

from tools import api_differences, kaito_differences, measured, pictures, promises

ROOT = Path(__file__).parent.parent


def schema_files() -> dict[str, str]:
    """Return the files of `schemas/`: a JSON Schema for each kind, one for kaigen.yaml, and one for every document."""
    from kaigen.config.catalog import CATALOG_ENTRY
    from kaigen.config.file import CONFIG_ENTRY
    from kaigen.config.lock_file import LOCK_ENTRY
    from kaigen.config.overrides import OVERRIDES_ENTRY
    from kaigen.config.pins import PINS_ENTRY
    from kaigen.dialects.registry import own_kinds
    from kaigen.extend.definition import DEFINITION_ENTRY
    from kaigen.kinds.schema import combined_schema, json_schema, schema_file_name

    entries = (*own_kinds(), CONFIG_ENTRY, CATALOG_ENTRY, PINS_ENTRY, OVERRIDES_ENTRY, LOCK_ENTRY, DEFINITION_ENTRY)
    schemas = {schema_file_name(entry): json_schema(entry) for entry in entries}
    schemas["kaigen.json"] = combined_schema((*own_kinds(), OVERRIDES_ENTRY))
    return {
        f"schemas/{name}": json.dumps(schema, indent=2, ensure_ascii=False) + "\n" for name, schema in schemas.items()
    }


def cli_page() -> str:
    """Return `docs/cli.md`: the help of every command."""
    from kaigen.cli import egpu, kubectl_open
    from kaigen.cli.main import COMMANDS, cli

    parts = ["# Commands\n\nGenerated from `--help` by `make docs`.\n"]
    context = click.Context(cli, info_name="kaigen", terminal_width=100, **cli.context_settings)
    parts.append(f"## kaigen\n\n```text\n{cli.get_help(context)}\n```\n")
    for name in COMMANDS:
        command = cli.get_command(context, name)
        assert command is not None
        parts += _help(command, context, f"kaigen {name}", 2)
    parts += _help(egpu.command, None, "egpu", 2)
    parts += _help(kubectl_open.command, None, "kubectl-open", 2)
    return "\n".join(parts)


def _help(command: click.Command, parent: click.Context | None, title: str, level: int) -> list[str]:
    """Return the help of a command, and of the commands below it."""
    own = click.Context(
        command,
        info_name=title.rpartition(" ")[2],
        parent=parent,
        max_content_width=100,
        terminal_width=100,
        help_option_names=["-h", "--help"],
    )
    parts = [f"{'#' * level} {title}\n\n```text\n{command.get_help(own)}\n```\n"]
    if not isinstance(command, click.Group):
        return parts
    for inner in command.list_commands(own):
        found = command.get_command(own, inner)
        assert found is not None
        parts += _help(found, own, f"{title} {inner}", level + 1)
    return parts


_GROUPS = {
    "KG01": "Reading files",
    "KG02": "Fields of a spec",
    "KG03": "Names and references",
    "KG04": "Resources of other systems",
    "KG05": "Kubernetes objects",
    "KG06": "The output tree",
    "KG07": "kaigen.yaml, overrides and settings",
    "KG08": "Git and differences",
    "KG09": "Publishing",
    "KG10": "Kinds and patches of your own",
    "KG11": "Sizes of models",
}
"""Titles of the groups of codes, as the head of codes.yaml describes them."""


def diagnostics_page() -> str:
    """Return `docs/diagnostics.md`: every code, its meaning and its fix. Messages link to the heading of a code."""
    from kaigen.diagnostics.codes import codes

    parts = [
        "# Diagnostics\n\nGenerated from the registry of codes by `make docs`.\n",
        "`kaigen explain KG0302` prints the explanation of a code. Messages link to this page: as a hyperlink in a\n"
        "terminal, and in the reports for code hosts. To make them link to the site of your company,\n"
        "set `KAIGEN_DOCS_URL` to its address. What fails in a cluster has no code: see\n"
        "[When something fails](operate/troubleshoot.md).\n",
    ]
    group = ""
    for code, entry in sorted(codes().items()):
        if code[:4] != group:
            group = code[:4]
            parts.append(f"## {_GROUPS[group]}\n")
        parts.append(f"### {code}\n\n**{entry.title}**\n\n{entry.explanation}\n")
    return "\n".join(parts)


def generated_files() -> dict[str, str]:
    """Return the content of every generated file by its path in the repository."""
    return {
        **schema_files(),
        "docs/cli.md": cli_page(),
        "docs/diagnostics.md": diagnostics_page(),
        api_differences.PAGE: api_differences.page(),
        kaito_differences.PAGE: kaito_differences.page(),
        measured.PAGE: measured.page(),
        promises.DIALECTS_PAGE: promises.dialects_page(),
        promises.PAGE: promises.page(),
        **pictures.picture_files(),
    }


def main() -> int:
    """Write files that differ, remove schemas of deleted kinds, and print both."""
    files = generated_files()
    for stale in sorted(set((ROOT / "schemas").glob("*.json")) - {ROOT / path for path in files}):
        stale.unlink()
        print(f"removed {stale.relative_to(ROOT)}")
    for path, text in files.items():
        target = ROOT / path
        if not target.exists() or target.read_text(encoding="utf-8") != text:
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(text, encoding="utf-8", newline="\n")
            print(f"wrote {path}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
