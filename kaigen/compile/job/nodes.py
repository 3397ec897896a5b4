"""How the pods of a Job on several nodes find each other."""

from __future__ import annotations

from collections.abc import Mapping

from kaigen.compile.builders.pods import gpu_count
from kaigen.compile.expressions import Expr, Joined, Tree
from kaigen.compile.job.resolution import JobResolution, Workload

MASTER_PORT = 29500
"""Default port of torchrun's rendezvous (source: torch.distributed's documentation)."""

_TORCHRUN = "PET_"
"""Beginning of the variables that torchrun reads in place of options (source: torch/distributed/argparse_util.py)."""


def subdomain(resolution: JobResolution) -> dict[str, Tree]:
    """Return the pod's field `subdomain`; nothing where pods need none, or where JobSet sets it."""
    if resolution.workload is not Workload.INDEXED_JOB:
        return {}
    return {"subdomain": resolution.frame.headless_service}


def node_variables(resolution: JobResolution) -> list[dict[str, Tree]]:
    """Return the variables by which the pods of several nodes find each other; nothing on one node."""
    if resolution.workload is Workload.JOB:
        return []
    domain: str | Expr = resolution.frame.headless_service
    own: list[dict[str, Tree]] = []
    if resolution.workload is Workload.JOB_SET:
        # The Service of a JobSet has its name, and the name ends in a hash, so the pods read it from a label.
        domain = "$(JOBSET_NAME)"
        own.append({"name": "JOBSET_NAME", "valueFrom": _label("jobset.sigs.k8s.io/jobset-name")})
    index: dict[str, Tree] = {"valueFrom": _label("batch.kubernetes.io/job-completion-index")}
    shared: dict[str, dict[str, Tree]] = {
        "NNODES": {"value": str(resolution.spec.nodes)},
        "NODE_RANK": index,
        "MASTER_ADDR": {"value": Joined(("$(JOB_NAME)-0.", domain))},
        "MASTER_PORT": {"value": str(MASTER_PORT)},
    }
    return [
        *own,
        {"name": "JOB_NAME", "valueFrom": _label("batch.kubernetes.io/job-name")},
        *({"name": name, **value} for name, value in shared.items()),
        *({"name": f"{_TORCHRUN}{name}", **value} for name, value in shared.items()),
    ]


def node_defaults(resolution: JobResolution) -> Mapping[str, str]:
    """Return variables of several nodes that the spec may set itself: one process for each GPU, at least one."""
    if resolution.workload is Workload.JOB:
        return {}
    return {f"{_TORCHRUN}NPROC_PER_NODE": str(max(1, gpu_count(resolution.spec.resources)))}


def _label(name: str) -> dict[str, Tree]:
    return {"fieldRef": {"fieldPath": f"metadata.labels['{name}']"}}
