"""Which files of a rendered tree are objects, which are charts, and to which app they belong."""

from __future__ import annotations

from typing import Literal, NamedTuple

_NOT_OBJECTS = frozenset(
    {"kustomization.yaml", "kustomization.yml", "Kustomization", "index.yaml", "index.json"}
)
_OBJECT_SUFFIXES = (".yaml", ".yml", ".json")

Role = Literal["object", "chart", "other", "bookkeeping"]


class AppKey(NamedTuple):
    """What tells apps apart: the folder above the namespace, the namespace, the app.

    A folder that is no app has only a `root`.
    """

    root: str
    namespace: str
    name: str


class Place(NamedTuple):
    """Where a file stands.

    Attributes:
        app: the app it belongs to.
        role: `bookkeeping` for what follows from the rest, as a `kustomization.yaml` does.
        file: its path within the app's folder.
    """

    app: AppKey
    role: Role
    file: str


def locate(path: str) -> Place:
    """Where a file of a rendered tree stands.

    Apps lie in `<namespace>/<app>/manifests/<file>` and `<namespace>/<app>/chart/**`, themselves in any
    folder, as that of an environment. What lies elsewhere belongs to its own folder.
    """
    parts = path.split("/")
    file = parts[-1]
    if any(part.startswith(".") for part in parts):
        return Place(AppKey("/".join(parts[:-1]), "", ""), "bookkeeping", file)
    is_object = file.endswith(_OBJECT_SUFFIXES)
    if len(parts) >= 4 and parts[-2] == "manifests":
        app = AppKey("/".join(parts[:-4]), parts[-4], parts[-3])
        role: Role = "bookkeeping" if file in _NOT_OBJECTS else "object" if is_object else "other"
        return Place(app, role, f"manifests/{file}")
    for number in range(2, len(parts) - 1):
        if parts[number] == "chart":
            app = AppKey("/".join(parts[: number - 2]), parts[number - 2], parts[number - 1])
            return Place(app, "chart", "/".join(parts[number:]))
    app = AppKey("/".join(parts[:-1]), "", "")
    return Place(app, "bookkeeping" if file in _NOT_OBJECTS else "object" if is_object else "other", file)
