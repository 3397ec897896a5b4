"""Explains what a change of the rendered tree does in the cluster, object by object, for a pull request.

`compare` returns the `Change` between two trees; `render_text`, `render_markdown` and `render_json` print it.
All are pure: `kaigen.git.repository` reads a tree from Git.
"""

from __future__ import annotations

from kaigen.core.json_types import Json
from kaigen.diff.compare import compare
from kaigen.diff.markdown import render_markdown
from kaigen.diff.model import (
    ABSENT,
    Absent,
    AppChange,
    AppStatus,
    Change,
    Effect,
    FieldChange,
    Level,
    ObjectChange,
    ObjectStatus,
)
from kaigen.diff.structured import render_json
from kaigen.diff.text import render_text

__all__ = [
    "ABSENT",
    "Absent",
    "AppChange",
    "AppStatus",
    "Change",
    "Effect",
    "FieldChange",
    "Json",
    "Level",
    "ObjectChange",
    "ObjectStatus",
    "compare",
    "render_json",
    "render_markdown",
    "render_text",
]
