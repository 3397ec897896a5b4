"""Names that the new Topology of a rename answers to."""

from __future__ import annotations

from pathlib import Path

import pytest

from kaigen.compile.engines.base import Engine
from kaigen.compile.engines.registry import ENGINES
from kaigen.config.load import load_config
from kaigen.scaffold.rename import plan_rename

BOTH = "servedNames: [assistant, chat]"
NOTE = "clients that send `chat` as the model must send `assistant` after the second step"


def renamed(root: Path, spec: str) -> tuple[str, tuple[str, ...]]:
    """Return the new file of a Topology in the first step, and what is left to do."""
    (root / "kaigen.yaml").write_text("apiVersion: kaigen.dev/v1alpha1\nkind: Config\nnamespace: ml\n")
    (root / "specs").mkdir()
    head = "apiVersion: kaigen.dev/v1alpha1\nkind: Topology\nmetadata: {name: chat}\nspec:\n"
    (root / "specs/chat.yaml").write_text(f"{head}{spec}")
    plan = plan_rename([load_config(root)], "topology", "chat", "assistant")
    (change,) = plan.changes
    return change.new, plan.notes


@pytest.mark.parametrize("engine", ENGINES)
def test_only_engines_with_several_names_answer_to_both(tmp_path: Path, engine: type[Engine]) -> None:
    text, notes = renamed(tmp_path, f"  engine: {engine.name}\n  contextLength: 8192\n")
    assert (BOTH in text, notes) == ((True, ()) if engine.several_names else (False, (NOTE,)))


def test_the_default_engine_answers_to_both(tmp_path: Path) -> None:
    assert BOTH in renamed(tmp_path, "  contextLength: 8192\n")[0]


@pytest.mark.parametrize("spec", ["  template: {spec: {}}\n", "  engine: none\n", "  engine: [a]\n"])
def test_what_is_no_engine_gets_no_names(tmp_path: Path, spec: str) -> None:
    assert renamed(tmp_path, spec)[1] == (NOTE,)
