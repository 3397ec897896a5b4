"""The block `licenses` of `kaigen.yaml`: the licences of models that may be used."""

import re
from collections.abc import Sequence
from fnmatch import fnmatchcase
from typing import Annotated, Literal, TypeAlias

from msgspec import Meta, field

from kaigen.config.globs import is_granted
from kaigen.kinds.base import NO_BLANKS, text
from kaigen.kinds.block import Block

LicenceName = Annotated[str, text(NO_BLANKS, min_length=1, max_length=100)]

SourceGlob = Annotated[str, Meta(min_length=1, max_length=4000)]

Verdict: TypeAlias = Literal["allow", "deny", "ask"]
STRICTNESS: Sequence[Verdict] = ("allow", "ask", "deny")
"""Verdicts about a licence, the mildest first."""
_SPDX_OPERATORS = re.compile(r"\b(?:AND|OR)\b|[()]")
"""What separates licences in an SPDX expression; `WITH` names an exception of one licence."""


class Licenses(Block):
    """Licences of models and datasets by name, or globs; `unknown` for files that name none."""

    allow: Annotated[
        list[LicenceName],
        Meta(
            description="Licences that may be used. With this list, all others are errors, except those in `ask`.",
            examples=[["apache-2.0", "mit"]],
        ),
    ] = field(default_factory=list)
    deny: Annotated[
        list[LicenceName],
        Meta(description="Licences that are errors, also if `allow` has them.", examples=[["*-nc-*"]]),
    ] = field(default_factory=list)
    ask: Annotated[
        list[LicenceName],
        Meta(description="Licences that are warnings, for a person to decide.", examples=[["llama3*"]]),
    ] = field(default_factory=list)
    known: Annotated[
        dict[SourceGlob, LicenceName],
        Meta(
            description="Licences of files that name none: by the repository on the Hub, the URI of the bucket, the "
            "URL of the file, or the repository in the registry, or globs of them.",
            examples=[{"s3://acme-models/*": "proprietary"}],
        ),
    ] = field(default_factory=dict)

    def verdict(self, licence: str) -> Verdict:
        """Return what the policy says about a licence; of several in an SPDX expression, the strictest."""
        names = [name.strip() for name in _SPDX_OPERATORS.split(licence)]
        return max((self._verdict(name) for name in names if name), key=STRICTNESS.index, default="deny")

    def _verdict(self, licence: str) -> Verdict:
        def is_in(globs: Sequence[str]) -> bool:
            return any(fnmatchcase(licence.lower(), glob.lower()) for glob in globs)

        if is_in(self.deny):
            return "deny"
        if is_in(self.ask):
            return "ask"
        return "allow" if not self.allow or is_in(self.allow) else "deny"

    def licence_of(self, source: str) -> str:
        """Return the licence of a source that names none; empty if it is not known."""
        return next((licence for glob, licence in sorted(self.known.items()) if is_granted(source, [glob])), "")
