"""Specs that another spec names."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

from kaigen.compile.context import Context
from kaigen.core.json_types import FieldPath
from kaigen.diagnostics.problem import ProblemError

if TYPE_CHECKING:
    pass

_Spec = TypeVar("_Spec")


def find_spec(
    kind: type[_Spec],
    context: Context,
    namespace: str,
    name: str,
    origin: FieldPath,
    *,
    elsewhere: Callable[[str], str] = lambda _: "",
) -> _Spec:
    """Return the spec of a kind and a name.

    Args:
        kind: the kind.
        context: contains the specs of the run.
        namespace: namespace of the spec that refers to it.
        name: its name.
        origin: the spec's field that names it.
        elsewhere: returns what to do if a namespace has it; empty if nothing can be done.

    Raises:
        ProblemError: the namespace has no such spec.
    """
    specs, word = context.specs, kind.__name__
    found = specs.find(kind, namespace, name)
    if found is not None:
        return found
    others = [place for place in specs.namespaces(word, name) if place != namespace]
    if others:
        places = " and ".join(f"`{place}`" for place in others)
        hint = f"it is in namespace {places}, and a pod can mount volumes of its own namespace only"
        way = next((way for place in others if (way := elsewhere(place))), "")
        hint += f"; {way}" if way else ""
        message = f"no {word} `{name}` in namespace `{namespace}`"
        raise ProblemError("KG0301", message, origin, hint)
    where = f" in namespace `{namespace}`"
    raise ProblemError.unknown("KG0301", word, name, specs.names(word, namespace), origin, where=where)
