"""The interface of kinds that become apps: validate a document, lower it to specs, compile a spec."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from kaigen.kinds.entry import Compiler, KindEntry, import_reference
from kaigen.kinds.lowering import ENVIRONMENTS, Lowered, Lowering, LoweringContext, LoweringResult
from kaigen.system.lazy_import import lazy_imports

if TYPE_CHECKING:
    from kaigen.diagnostics.diagnostic import Diagnostic
    from kaigen.kinds.block import Block
    from kaigen.kinds.positioned import Positioned

with lazy_imports():
    from kaigen.kinds import model_config
    from kaigen.kinds import validate as kinds_validate


DIRECTIVES = ("version", "expires-at")
"""Annotations, without `kaigen.dev/`, that direct kaigen in kinds that it compiles."""


class GitSource(Struct, frozen=True):
    """A commit of a Git repository with a Dockerfile.

    Attributes:
        url: of the repository.
        commit: 40 hex digits.
        branch: that has it; empty for none.
        path: of the folder with the Dockerfile; empty for that of the repository.
    """

    url: str
    commit: str
    branch: str
    path: str


class Trainer(Struct, frozen=True):
    """What runs in place of a notebook.

    Attributes:
        image: with the program; empty for that of the notebook, or for what `git` or `artifact` has.
        git: repository to build the image from; None for what the notebook has.
        command: of the image; its own when empty.
        artifact: pushed folder to build the image from; empty for what the notebook has.
    """

    image: str = ""
    git: GitSource | None = None
    command: Sequence[str] = ()
    artifact: str = ""


class Continued(Struct, frozen=True):
    """The document that runs what a notebook tried.

    Attributes:
        document: as plain data.
        comments: lines after it, for fields that a person fills in.
        blank: these fields.
        has_image: whether it has an image that can run.
    """

    document: Mapping[str, Any]
    comments: str
    blank: tuple[str, ...]
    has_image: bool


class Kind(KindEntry, frozen=True):
    """A kind of document that becomes apps, whether kaigen's own, a user's or a dialect's."""

    def validate(self, document: Positioned) -> tuple[Block | None, list[Diagnostic]]:
        """Return the document as the kind's model, or None and its errors."""
        return kinds_validate.validate_document(document, self)

    def lower(self, block: Any, document: Positioned, context: LoweringContext) -> LoweringResult:
        """Return the specs that a valid document is lowered to.

        Args:
            block: the document as the kind's model.
            document: the document with positions.
            context: what else the lowering may read.
        """
        raise NotImplementedError

    @property
    def volatile(self) -> bool:
        """Whether its output may change without a change to any file of the repository."""
        return False


class CompiledKind(Kind, frozen=True):
    """A kind that is compiled as it is.

    Attributes:
        compiler_reference: `module:function` of its compile function.
        facts: path of its block `facts`, whose `config.json` may be a file; empty for a kind without it.
        split_reference: `module:function` of a function that returns the specs of a document, which may be several;
            the arguments are the model of the document and the Lowering. Empty for one spec, the document itself.
    """

    compiler_reference: str = ""
    facts: tuple[str, ...] = ()
    split_reference: str = ""

    def compiler(self) -> Compiler:
        """Return the function that makes the app of a spec."""
        compiler: Compiler = import_reference(self.compiler_reference)
        return compiler

    def lower(self, block: Any, document: Positioned, context: LoweringContext) -> LoweringResult:
        """Return the document itself, with its annotations checked and the file that it names."""
        lowering = Lowering(document, context)
        lowering.directives(block.metadata.annotations, DIRECTIVES)
        if ENVIRONMENTS in block.metadata.annotations:
            at = ("metadata", "annotations", ENVIRONMENTS)
            lowering.error(
                "KG0406", f"unknown annotation `{ENVIRONMENTS}`", at, "set `metadata.environments`", key=True
            )
        if self.facts:
            block = model_config.with_config(block, self.facts, lowering)
        if block is None:
            return lowering.result()
        if self.split_reference:
            specs = import_reference(self.split_reference)(block, lowering)
            return lowering.result(*([] if lowering.failed else specs))
        return lowering.result(Lowered(block))


class ForeignKind(Kind, frozen=True):
    """A kind of a dialect, which is lowered to kaigen's kinds.

    Attributes:
        lower_reference: `module:function` that lowers a document; the arguments are those of `lower`.
        shares_names: whether documents of several kinds of its system usually have the same name.
        continued_reference: for a notebook, `module:function` that returns the document of its system that runs what
            was tried; the arguments are those of `continued`.
    """

    lower_reference: str = ""
    continued_reference: str = ""
    shares_names: bool = False

    def lower(self, block: Any, document: Positioned, context: LoweringContext) -> LoweringResult:
        """Return the specs of kaigen's kinds that the document is lowered to."""
        result: LoweringResult = import_reference(self.lower_reference)(block, document, context)
        return result

    def continued(self, document: Mapping[str, Any], name: str, trainer: Trainer) -> Continued:
        """Return the document that runs what a notebook tried.

        Args:
            document: the notebook as plain data.
            name: name of the new document.
            trainer: what it runs.
        """
        result: Continued = import_reference(self.continued_reference)(document, name, trainer)
        return result
