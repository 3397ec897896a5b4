"""What a change of the rendered tree does, object by object and in plain words, for a pull request.

`compare` takes two trees and gives a `Change`; `render_text`, `render_markdown` and `render_json` print one.
All are pure: reading a tree from Git is the work of `kaigen.git.repository`.
"""

from __future__ import annotations

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
    Json,
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
