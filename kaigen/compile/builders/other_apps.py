"""Other apps that a spec names: their specs, and the names of their objects."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from kaigen.compile.builders import settings
from kaigen.compile.context import Context
from kaigen.compile.expressions import NAME_MAX, Setting
from kaigen.compile.name_expressions import OtherApp
from kaigen.compile.setting_expressions import Fallback
from kaigen.core.json_types import FieldPath
from kaigen.diagnostics.problem import ProblemError

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
    if (namespace, name) in specs.absent:
        environment = context.config.environment
        hint = (
            f"add `{environment}` to the environments of `{name}`, in its spec or in `apps` of kaigen.yaml; or take it "
            "from those of this spec"
        )
        if context.config.follows_commits:
            hint = f"promote it, too: `kaigen promote --to {environment} {name}`"
        raise ProblemError("KG0301", f"environment `{environment}` does not have the {word} `{name}`", origin, hint)
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


def other_name(
    path: str, what: str, app: str, name: str, *, origin: FieldPath, hashed: bool = False, most: int = NAME_MAX
) -> Setting | Fallback:
    """Return the name of an object of another app: a setting, with the name in that app as its default.

    Args:
        path: path of the setting.
        what: describes the object.
        app: name of the other app.
        name: name of the object.
        origin: the spec's field that names the app.
        hashed: whether the name ends in a hash of a run.
        most: most characters of the full name of that app.
    """
    default = _default(app, name, hashed=hashed, most=most)
    if default is None:
        return settings.text(path, name, f"{what}.", origin=origin)
    return Fallback(Setting(path, "", _doc(what, name), settings.STRING, origin=origin), default)


def _doc(what: str, name: str) -> str:
    return f"{what}; empty for `{name}`, or `RELEASE-{name}` as a dependency of another chart."


def _default(app: str, name: str, *, hashed: bool, most: int = NAME_MAX) -> OtherApp | None:
    """Return the name by the naming of the other app; None for a name that does not begin with the app's."""
    if not name.startswith(app):
        return None
    suffix = name.removeprefix(app)
    if not hashed:
        return OtherApp(app, suffix, most=most)
    begin, _, digest = suffix.rpartition("-")
    return OtherApp(app, begin, digest, most)
