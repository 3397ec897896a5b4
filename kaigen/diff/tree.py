"""Classifies the files of a rendered tree: objects and charts, and the app of each."""

from __future__ import annotations

from typing import Literal, NamedTuple

_NOT_OBJECTS = frozenset({"kustomization.yaml", "kustomization.yml", "Kustomization", "index.yaml", "index.json"})
_OBJECT_SUFFIXES = (".yaml", ".yml", ".json")

Role = Literal["object", "chart", "other", "bookkeeping"]


class AppKey(NamedTuple):
    """The identity of an app: the folder above the namespace, the namespace, the name.

    A folder that is not an app has only a `root`.
    """

    root: str
    namespace: str
    name: str


class FileRole(NamedTuple):
    """The app and role of a file.

    Attributes:
        app: the app it belongs to.
        role: `bookkeeping` for a file that follows from other files, such as a `kustomization.yaml`.
        file: its path within the app's folder.
    """

    app: AppKey
    role: Role
    file: str


def locate(path: str) -> FileRole:
    """Return the app and role of a file of a rendered tree.

    Apps are in `<namespace>/<app>/manifests/<file>` and `<namespace>/<app>/chart/**`, below any
    folder, such as that of an environment. Any other file belongs to its own folder.
    """
    parts = path.split("/")
    file = parts[-1]
    if any(part.startswith(".") for part in parts):
        return FileRole(AppKey("/".join(parts[:-1]), "", ""), "bookkeeping", file)
    is_object = file.endswith(_OBJECT_SUFFIXES)
    if len(parts) >= 4 and parts[-2] == "manifests":
        app = AppKey("/".join(parts[:-4]), parts[-4], parts[-3])
        role: Role = "bookkeeping" if file in _NOT_OBJECTS else "object" if is_object else "other"
        return FileRole(app, role, f"manifests/{file}")
    for number in range(2, len(parts) - 1):
        if parts[number] == "chart":
            app = AppKey("/".join(parts[: number - 2]), parts[number - 2], parts[number - 1])
            return FileRole(app, "chart", "/".join(parts[number:]))
    app = AppKey("/".join(parts[:-1]), "", "")
    return FileRole(app, "bookkeeping" if file in _NOT_OBJECTS else "object" if is_object else "other", file)
