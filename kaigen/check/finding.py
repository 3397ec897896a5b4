"""What a check says of one object."""

from __future__ import annotations

from dataclasses import dataclass

from kaigen.diagnostics.diagnostic import Severity

Path = tuple[str | int, ...]


@dataclass(frozen=True, slots=True)
class Finding:
    """One problem inside an object.

    Attributes:
        code: one of `kaigen.check.codes`.
        message: what is wrong, one sentence without a full stop; names no place, that is what `path` is for.
        path: keys and indices from the object's root; an unknown field's path ends in the field, a missing
            field's path is that of the mapping that lacks it.
        hint: how to mend it, one sentence without a full stop; may be empty.
        severity: error unless said otherwise.
    """

    code: str
    message: str
    path: Path
    hint: str = ""
    severity: Severity = Severity.ERROR

    @property
    def where(self) -> str:
        """The path as a person writes it: `spec.template.spec.containers[0].image`."""
        from kaigen.diagnostics.field_path import dotted

        return dotted(self.path)
