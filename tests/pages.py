"""Pages of docs/ whose examples run: each is a scenario, with prose between.

A path in backquotes on a line of its own, followed by a block of code, is a file that the page writes. In a block
`console`, each line that starts with `$ ` is a command, and the lines below it are what it prints.
"""

from __future__ import annotations

import re
from pathlib import Path

from tests.scenarios import Player, Section, parse

_STEP = re.compile(
    r"^`(?P<path>[^`\n]+)`\n\n```\w+\n(?P<content>.*?)^```|^```console\n(?P<calls>.*?)^```", re.MULTILINE | re.DOTALL
)


def run_page(text: str, folder: Path, cache: Path) -> str:
    """Return a page with the output that its commands have now.

    Args:
        text: the Markdown of the page.
        folder: the empty folder that its files are written to.
        cache: kaigen's cache folder.
    """
    player = Player(folder, cache)
    parts, start = [], 0
    for step in _STEP.finditer(text):
        parts.append(text[start : step.start()])
        start = step.end()
        if step["path"]:
            target = folder / step["path"]
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(step["content"], encoding="utf-8")
            parts.append(step[0])
        else:
            calls = re.findall(r"^\$ (.*)$", step["calls"], re.MULTILINE)
            parts.append("```console\n" + "".join(_call(player, call) for call in calls) + "```")
    return "".join([*parts, text[start:]])


def _call(player: Player, call: str) -> str:
    """Return a command with its output. One that fails prints its exit code."""
    sections = parse(player.play(f"\n$ {call}\n"))
    printed = "".join(_printed(section) for section in sections if section.mark == "===")
    return f"$ {call}\n{printed}"


def _printed(section: Section) -> str:
    if section.name in ("stdout", "stderr"):
        return section.content().decode()
    return f"{section.name}\n" if section.name.startswith("exit ") else ""
