"""pyarrow in the pod of the workload `generate`: vLLM's images have none, so a container copies it into the pod."""

from __future__ import annotations

from kaigen.compile.builders.pods import NO_NETWORK, SCRATCH, container_security, image_fields
from kaigen.compile.builders.weights import SMALL_RESOURCES
from kaigen.compile.context import Context
from kaigen.compile.expressions import Tree
from kaigen.kinds.generate import Generate

_SOURCE = "/opt/pyarrow"
"""Folder in the image, with a folder for each version of Python (source: runtimes/pyarrow/Dockerfile)."""

_LIMIT = "512Mi"
"""The files take 250 MiB, which count as memory of the container on nodes whose scratch folders are on a RAM disk."""


def reads_tables(settings: Generate) -> bool:
    """Return whether the pod gets pyarrow."""
    if settings.parquet is not None:
        return settings.parquet
    return settings.results == "parquet" or (settings.input or "").endswith(".parquet")


def tables_folder(scratch: str) -> str:
    """Return the folder of pyarrow in the pod, in its scratch folder."""
    return f"{scratch}/pyarrow"


def table_containers(settings: Generate, scratch: str, context: Context) -> list[Tree]:
    """Return the container that copies pyarrow into the scratch folder; none without Parquet.

    Args:
        settings: those of the workload.
        scratch: the scratch folder.
        context: has the image.
    """
    if not reads_tables(settings):
        return []
    return [
        {
            "name": "pyarrow",
            **NO_NETWORK,
            **image_fields(context.config.images["pyarrow"], "pyarrow.", ()),
            "command": ["cp", "-r", "-T", _SOURCE, tables_folder(scratch)],
            "resources": {"requests": SMALL_RESOURCES["requests"], "limits": {"memory": _LIMIT}},
            "securityContext": container_security(read_only=True),
            "terminationMessagePolicy": "FallbackToLogsOnError",
            "volumeMounts": [{"name": SCRATCH, "mountPath": scratch}],
        }
    ]
