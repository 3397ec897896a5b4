"""Which document is which kind, without importing any of them before it is needed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any

from kaigen.kinds.base import API_VERSION

if TYPE_CHECKING:
    from kaigen.diagnostics.diagnostic import Diagnostic
    from kaigen.kinds.base import Block
    from kaigen.kinds.validate import Positioned


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
        older: name of a version that the system still reads beside its newest; empty for that.
    """

    api_version: str
    kind: str
    module: str
    name: str
    summary: str
    system: str = "kaigen"
    lower: str = ""
    compile: str = ""
    older: str = ""

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
        """Unique name for schemas and `explain`: `Model`, or `ai-operator.Job` for a dialect's.

        A version that is not the system's newest stands behind: `kaito.Workspace.v1alpha1`.
        """
        name = self.kind if self.system == "kaigen" else f"{self.system}.{self.kind}"
        return f"{name}.{self.older}" if self.older else name

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
        compile="kaigen.compile.model.compile:compile_model",
    ),
    KindEntry(
        API_VERSION,
        "Job",
        "kaigen.kinds.job",
        "Job",
        "work that ends",
        compile="kaigen.compile.job.compile:compile_job",
    ),
    KindEntry(
        API_VERSION,
        "Topology",
        "kaigen.kinds.topology",
        "Topology",
        "work that serves",
        compile="kaigen.compile.topology.compile:compile_topology",
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
    KindEntry(
        "kaito.sh/v1beta1",
        "Workspace",
        "kaigen.dialects.kaito.workspace",
        "Workspace",
        "KAITO's model that is served, or fine-tuned",
        system="kaito",
        lower="kaigen.dialects.kaito.workspace",
    ),
    KindEntry(
        "kaito.sh/v1alpha1",
        "Workspace",
        "kaigen.dialects.kaito.workspace",
        "WorkspaceV1Alpha1",
        "KAITO's model that is served, or fine-tuned",
        system="kaito",
        lower="kaigen.dialects.kaito.workspace",
        older="v1alpha1",
    ),
    KindEntry(
        "kaito.sh/v1beta1",
        "InferenceSet",
        "kaigen.dialects.kaito.inferenceset",
        "InferenceSet",
        "KAITO's copies of a model that is served",
        system="kaito",
        lower="kaigen.dialects.kaito.inferenceset",
    ),
    KindEntry(
        "kaito.sh/v1alpha1",
        "InferenceSet",
        "kaigen.dialects.kaito.inferenceset",
        "InferenceSetV1Alpha1",
        "KAITO's copies of a model that is served",
        system="kaito",
        lower="kaigen.dialects.kaito.inferenceset",
        older="v1alpha1",
    ),
    KindEntry(
        "kaito.sh/v1beta1",
        "RAGEngine",
        "kaigen.dialects.kaito.ragengine",
        "RagEngine",
        "KAITO's server for retrieval",
        system="kaito",
        lower="kaigen.dialects.kaito.ragengine",
    ),
    KindEntry(
        "kaito.sh/v1alpha1",
        "RAGEngine",
        "kaigen.dialects.kaito.ragengine",
        "RagEngineV1Alpha1",
        "KAITO's server for retrieval",
        system="kaito",
        lower="kaigen.dialects.kaito.ragengine",
        older="v1alpha1",
    ),
    KindEntry(
        "kaito.sh/v1alpha1",
        "ModelMirror",
        "kaigen.dialects.kaito.mirror",
        "ModelMirror",
        "KAITO's weights in a volume that pods share",
        system="kaito",
        lower="kaigen.dialects.kaito.mirror",
    ),
    KindEntry(
        "kaito.sh/v1alpha1",
        "MultiRoleInference",
        "kaigen.dialects.kaito.multirole",
        "MultiRoleInference",
        "KAITO's model with prefill and decode apart",
        system="kaito",
        lower="kaigen.dialects.kaito.multirole",
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
        if not entry.older and sum(other.kind == entry.kind and not other.older for other in every) == 1:
            named.setdefault(entry.kind, entry)
    return named
