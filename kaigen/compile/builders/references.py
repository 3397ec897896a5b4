"""Names of other apps' objects, which follow where charts are dependencies of one chart."""

from __future__ import annotations

from kaigen.compile.builders import settings
from kaigen.compile.expressions import NAME_MAX, Setting
from kaigen.compile.name_expressions import OtherApp
from kaigen.compile.setting_expressions import Fallback
from kaigen.core.json_types import FieldPath


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
