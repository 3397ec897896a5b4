"""Small pieces of knowledge, each a rule, about what a change of an object does."""

from __future__ import annotations

from kaigen.diff.rules.case import Case, Rule
from kaigen.diff.rules.table import FALLBACKS, RULES, effects_of

__all__ = ["FALLBACKS", "RULES", "Case", "Rule", "effects_of"]
