"""The pictures of the README and the pages: what kaigen prints for the demo repository, and what is drawn."""

from __future__ import annotations

import contextlib
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

from tools.lifetime_picture import lifetime_svg
from tools.stages import stages_svg
from tools.terminal import terminal_svg

ROOT = Path(__file__).parent.parent
DEMO = ROOT / "examples" / "demo"
_WIDTH = 96
"""Columns of the terminal."""


def picture_files() -> dict[str, str]:
    """Return the pictures by path in the repository."""
    return {
        "docs/pictures/architecture.svg": stages_svg(),
        "docs/pictures/diff.svg": _diff(),
        "docs/pictures/error.svg": _error(),
        "docs/pictures/graph.svg": _graph(),
        "docs/pictures/lifetimes.svg": lifetime_svg(),
    }


def _diff() -> str:
    """Return the effect of more memory for the training and a longer context for the chat."""
    from kaigen import compare, load_config, render, render_text

    changes = (
        ("specs/chat.yaml", "contextLength: 8192", "contextLength: 16384"),
        ("specs/finetune.yaml", "memory: 24Gi", "memory: 32Gi"),
    )
    with _copy(*changes) as folder:
        before = render((), load_config(DEMO, "dev"), form="manifests")
        after = render((), load_config(folder, "dev"), form="manifests")
    text = render_text(compare(before, after), color=True, width=_WIDTH)
    return terminal_svg("kaigen diff --base main", text)


def _error() -> str:
    """Return the report of specs with two mistakes."""
    from kaigen import load_config, render_report, validate

    changes = (
        ("specs/chat.yaml", "contextLength", "contextLenght"),
        ("specs/finetune.yaml", "name: qwen", "name: qwenn"),
    )
    with _copy(*changes) as folder, contextlib.chdir(folder):
        found, files = validate((), load_config(".", "dev"), use_cache=False)
    return terminal_svg("kaigen validate", render_report(found, "text", color=True, files=list(files)))


def _graph() -> str:
    """Return the graph of what the fine-tuning and the chat need."""
    from kaigen import build_graph, compile_specs, load_config, render_graph

    config = load_config(DEMO, "dev")
    graph = build_graph(compile_specs((), config), config.external)
    chosen = [app.id for app in graph.apps if app.name in ("chat", "finetune")]
    return render_graph(graph.around(chosen), "svg")


@contextlib.contextmanager
def _copy(*changes: tuple[str, str, str]) -> Iterator[Path]:
    """Copy the demo with some texts replaced."""
    with tempfile.TemporaryDirectory() as folder:
        shutil.copy(DEMO / "kaigen.yaml", folder)
        shutil.copytree(DEMO / "specs", Path(folder) / "specs")
        for path, old, new in changes:
            file = Path(folder) / path
            text = file.read_text(encoding="utf-8")
            if old not in text:
                raise ValueError(f"{path} does not contain {old!r}")
            file.write_text(text.replace(old, new), encoding="utf-8")
        yield Path(folder)
