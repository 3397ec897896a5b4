"""Every diagnostic code: what it stands for, and what to do about it. The table is `codes.yaml`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Code:
    """What a code stands for.

    Attributes:
        title: a few words, without a full stop.
        explanation: why it is a problem and how to mend it, in whole sentences.
    """

    title: str
    explanation: str


@cache
def codes() -> Mapping[str, Code]:
    """All codes, in order."""
    import yaml

    text = (Path(__file__).parent / "codes.yaml").read_text(encoding="utf-8")
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    return {code: Code(**entry) for code, entry in yaml.load(text, Loader=loader).items()}
