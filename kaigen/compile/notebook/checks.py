"""Checks of a resolved Notebook: decisions that contradict each other."""

from __future__ import annotations

from functools import partial

from kaigen.compile.builders.image_build import check_build
from kaigen.compile.builders.mounts import check_mounts
from kaigen.compile.builders.pod_option_checks import check_pod_options
from kaigen.compile.builders.pods import check_capabilities
from kaigen.compile.builders.storage import check_access_modes
from kaigen.compile.expressions import Tree
from kaigen.compile.notebook.pod import container_mounts, own_pod, params_of, required_environment
from kaigen.compile.notebook.resolution import NotebookResolution
from kaigen.compile.problems import Problems
from kaigen.core.json_types import FieldPath

_STORAGE: FieldPath = ("spec", "storage")


def check_notebook(resolution: NotebookResolution, problems: Problems) -> None:
    """Report every problem of a Notebook that its resolution did not."""
    spec = resolution.spec

    def origin(volumes: tuple[Tree, Tree]) -> FieldPath:
        """Return the field of the Model or Dataset that is mounted, or of the home folder."""
        named = [
            field
            for field, mounted in resolution.sources.items()
            for mount in mounted.mounts
            if mount["name"] in volumes
        ]
        return named[-1] if named else (*_STORAGE, "mountPath")

    check_mounts(container_mounts(resolution), origin, problems)
    check_build(spec.build, spec.image, problems)
    check_access_modes(spec.storage, resolution.context, _STORAGE, problems)
    check_pod_options(partial(own_pod, resolution), spec, resolution.metadata.name, resolution.context, problems)
    check_capabilities(spec.security, problems)
    for name in (str(entry["name"]) for entry in required_environment(resolution)):
        if name in spec.env:
            message = f"`{name}` is set by kaigen for a Notebook"
            problems.error("KG0313", message, ("spec", "env", name), "leave it out")
    params_of(resolution).check(spec.env, problems)
