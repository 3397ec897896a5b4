"""Which document is which kind, without importing any of them before it is needed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any

from kaigen.kinds.base import API_VERSION

if TYPE_CHECKING:
    from kaigen.kinds.base import Block
    from kaigen.kinds.validate import Positioned
    from kaigen.load.diagnostics import Diagnostic


@dataclass(frozen=True, slots=True)
class KindEntry:
    """One kind.

    Attributes:
        api_version: as documents say it.
        kind: as documents say it.
        module: where its pydantic model is.
        name: of the model class.
        summary: what it is for, a few words.
        system: whose it is; `kaigen`, the name of a dialect, or the API group of a user's kind.
        lower: module whose `lower` turns it into kaigen's kinds; empty for what is compiled as it is.
        compile: `module:function` that makes the app of a valid document; see `compiler`.
    """

    api_version: str
    kind: str
    module: str
    name: str
    summary: str
    system: str = "kaigen"
    lower: str = ""
    compile: str = ""

    def model(self) -> type[Block]:
        """The pydantic model of a whole document."""
        found: type[Block] = getattr(import_module(self.module), self.name)
        return found

    def read(self, document: Positioned) -> tuple[Block | None, list[Diagnostic]]:
        """A document as the kind's model, or what is wrong with it."""
        from kaigen.kinds.validate import validate_document

        return validate_document(document, self)

    def compiler(self) -> Callable[..., Any]:
        """The function that makes an app: of the document's model, a Context, and Problems that it may tell.

        A fourth argument is the naming that a dialect asks to keep, and is given only when one does.
        """
        module, _, name = self.compile.partition(":")
        function: Callable[..., Any] = getattr(import_module(module), name)
        return function

    def spec_schema(self) -> Mapping[str, Any] | None:
        """JSON Schema of `spec` for a kind whose model leaves it open; None for all others."""
        return None

    @property
    def key(self) -> str:
        """Unique name for schemas and `explain`: `Model`, or `ai-operator.Job` for a dialect's."""
        return self.kind if self.system == "kaigen" else f"{self.system}.{self.kind}"

    @property
    def volatile(self) -> bool:
        """Whether what it makes of a document may change without a change to any file of the repository."""
        return False


KINDS: tuple[KindEntry, ...] = (
    KindEntry(
        API_VERSION,
        "Model",
        "kaigen.kinds.model",
        "Model",
        "weights from somewhere, at rest, proven complete",
        compile="kaigen.compile.model:compile_model",
    ),
    KindEntry(
        API_VERSION,
        "Job",
        "kaigen.kinds.job",
        "Job",
        "work that ends",
        compile="kaigen.compile.job:compile_job",
    ),
    KindEntry(
        API_VERSION,
        "Topology",
        "kaigen.kinds.topology",
        "Topology",
        "work that serves",
        compile="kaigen.compile.topology:compile_topology",
    ),
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


def find_kind(
    api_version: str | None, kind: str | None, entries: Iterable[KindEntry] = KINDS
) -> KindEntry | None:
    """The kind of a document; None when it is none of these."""
    return next((entry for entry in entries if entry.api_version == api_version and entry.kind == kind), None)


def names_of(entries: Iterable[KindEntry]) -> dict[str, KindEntry]:
    """Kinds by every name that tells one of them: its key, and the kind alone where no other is called so."""
    every = list(entries)
    named = {entry.key: entry for entry in every}
    for entry in every:
        if sum(other.kind == entry.kind for other in every) == 1:
            named.setdefault(entry.kind, entry)
    return named
