"""Rules that explain the effects of a changed object."""

from __future__ import annotations

from kaigen.diff.rules.case import Case, Rule, Siblings
from kaigen.diff.rules.table import DOUBTS, FALLBACKS, RULES, effects_of

__all__ = ["DOUBTS", "FALLBACKS", "RULES", "Case", "Rule", "Siblings", "effects_of"]
