"""The commands in the pages of docs/operate, as the pages print them."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "docs" / "operate"
PROGRAMS = ("argocd", "flux", "git", "helm", "kaigen", "kubectl", "pip", "pipx", "sops", "uv")

_FENCE = re.compile(r"^```(\w*)\n(.*?)^```", re.MULTILINE | re.DOTALL)
_INLINE = re.compile(rf"`((?:{'|'.join(PROGRAMS)}) [^`\n]+)`")


def commands(page: str) -> list[str]:
    """Return the commands of a page in their order, each once, without comments.

    Blocks of a console are left out: `tests/unit/test_pages.py` runs them.
    """
    text = (FOLDER / page).read_text(encoding="utf-8")
    shells = [code for language, code in _FENCE.findall(text) if language == "sh"]
    lines = [line.partition("#")[0].strip() for code in shells for line in code.splitlines()]
    return list(dict.fromkeys([*filter(None, lines), *_INLINE.findall(_FENCE.sub("", text))]))
