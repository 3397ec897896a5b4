"""A rule for pods in kinds, or in fields of kinds, that kaigen does not know."""

from __future__ import annotations

from collections.abc import Iterator
from typing import cast

from kaigen.diagnostics.field_path import dotted_path
from kaigen.diff.formatting import listing
from kaigen.diff.objects import Obj
from kaigen.diff.rules.case import Case, Finding
from kaigen.kubernetes.manifest import Object
from kaigen.kubernetes.pods import pod_templates


def unknown_pods(case: Case) -> Iterator[Finding]:
    """Pods are where the table of object kinds has none, so what becomes of a change is not known."""
    before, after = _places(case.old), _places(case.new)
    if after and (before != after or case.status == "added"):
        yield "danger", f"runs pods that kaigen does not know the kind of, at {listing(list(after))}"


def _places(obj: Obj | None) -> dict[str, Object]:
    """Return the pods of an object that were found by their form, by their places."""
    if obj is None:
        return {}
    found = pod_templates(cast("Object", obj.data))
    return {dotted_path(template.spec_path): template.spec for template in found if template.by_form}
