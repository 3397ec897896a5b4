"""The objects of the Notebook in a spec, as a live command applies them."""

from __future__ import annotations

from msgspec import Struct

from kaigen.config.settings import Config
from kaigen.diagnostics.errors import CheckFailed
from kaigen.kinds.notebook import Notebook
from kaigen.kubernetes.manifest import Manifest
from kaigen.pipeline.run import Run


class RenderedNotebook(Struct, frozen=True):
    """A Notebook and its objects.

    Attributes:
        name: its name.
        namespace: its namespace.
        objects: in the order in which they are applied.
    """

    name: str
    namespace: str
    objects: list[Manifest]


def render_notebook(path: str, config: Config) -> RenderedNotebook:
    """Return the Notebook of a file, compiled with the settings of the repository.

    Raises:
        InputError: a spec is invalid.
        CheckFailed: the file has no Notebook, or several.
    """
    compiled = Run.load([path], config).apps()
    apps = [item for item in compiled if item.spec is not None and isinstance(item.spec.block, Notebook)]
    if len(apps) != 1:
        raise CheckFailed(f"{path} has {len(apps)} Notebooks", hint="name a file with one Notebook")
    (found,) = apps
    objects: list[Manifest] = [dict(item.body) for item in found.objects if not item.object.test]
    return RenderedNotebook(found.app.name, found.app.namespace, objects)
