"""AI Operator (`ai.re-cinq.com`): its `Job`, a fine-tuning run."""

from __future__ import annotations

from kaigen.dialects.registry import Dialect
from kaigen.kinds.kind import ForeignKind

DIALECT = Dialect(
    name="ai-operator",
    title="AI Operator",
    kinds=(
        ForeignKind(
            "ai.re-cinq.com/v1",
            "Job",
            "kaigen.dialects.ai_operator.job:AiOperatorJob",
            "AI Operator's fine-tuning job",
            system="ai-operator",
            lower_reference="kaigen.dialects.ai_operator.job:lower",
        ),
    ),
)
