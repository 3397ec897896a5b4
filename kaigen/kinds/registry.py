"""Which document is which kind, without importing any of them before it is needed."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING

from kaigen.kinds.base import API_VERSION

if TYPE_CHECKING:
    from kaigen.kinds.base import Block


@dataclass(frozen=True, slots=True)
class KindEntry:
    """One kind.

    Attributes:
        api_version: as documents say it.
        kind: as documents say it.
        module: where its pydantic model is.
        name: of the model class.
        summary: what it is for, a few words.
        system: whose it is; `kaigen` or the name of a dialect.
        lower: module whose `lower` turns it into kaigen's kinds; empty for kaigen's own.
    """

    api_version: str
    kind: str
    module: str
    name: str
    summary: str
    system: str = "kaigen"
    lower: str = ""

    def model(self) -> type[Block]:
        """The pydantic model of a whole document."""
        found: type[Block] = getattr(import_module(self.module), self.name)
        return found

    @property
    def key(self) -> str:
        """Unique name for schemas and `explain`: `Model`, or `ai-operator.Job` for a dialect's."""
        return self.kind if self.system == "kaigen" else f"{self.system}.{self.kind}"


KINDS: tuple[KindEntry, ...] = (
    KindEntry(
        API_VERSION,
        "Model",
        "kaigen.kinds.model",
        "Model",
        "weights from somewhere, at rest, proven complete",
    ),
    KindEntry(API_VERSION, "Job", "kaigen.kinds.job", "Job", "work that ends"),
    KindEntry(
        "ai.re-cinq.com/v1",
        "Job",
        "kaigen.dialects.ai_operator",
        "AiOperatorJob",
        "AI Operator's fine-tuning job",
        system="ai-operator",
        lower="kaigen.dialects.ai_operator",
    ),
)


def find_kind(api_version: str | None, kind: str | None) -> KindEntry | None:
    """The kind of a document; None when kaigen does not know it."""
    return next((entry for entry in KINDS if entry.api_version == api_version and entry.kind == kind), None)
