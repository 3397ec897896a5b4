"""The shape of a rule: the fields by which an object reaches outside its namespace, and the condition of their values.

A condition is the check of a value, and the CEL expression that says the same.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple, Protocol

from kaigen.config.tenant_settings import Tenant
from kaigen.core.json_types import FieldPath
from kaigen.kubernetes.kind_table import KINDS
from kaigen.kubernetes.manifest import ALL, Step, steps_of


class Refusal(NamedTuple):
    """Something that a tenant is not granted.

    Attributes:
        shown: the value in messages, after what the row of the table says.
        path: its place below the checked value.
        what: in place of what the row says; empty for that.
        can_be_granted: by the field of the condition.
        hint: what to do, for what nobody can be granted; empty to add it to what the tenant is granted.
    """

    shown: str
    path: FieldPath = ()
    what: str = ""
    can_be_granted: bool = True
    hint: str = ""


class Condition(Protocol):
    """What the value at the end of a path must be.

    `refusals` and `passes` must agree: the real API server compares them in `tests/cluster/test_tenants.py`.
    """

    @property
    def grant(self) -> str:
        """The field of a tenant that lists what is granted; empty where nothing can be."""

    def refusals(self, value: object, tenant: Tenant) -> Iterable[Refusal]:
        """Return what a value reaches and the tenant is not granted; nothing for a value that it may have."""

    def passes(self, value: str, tenant: Tenant) -> str:
        """Return the expression that the tenant may have the value of an expression."""


def refuse_value(value: object) -> list[Refusal]:
    """Return the refusal of a whole value."""
    return [Refusal(f"`{value}`")]


PODS = "pods"
"""In place of a type: the pods of every kind; paths start at their `spec`."""

TEMPLATES = "templates"
"""In place of a type: the metadata of objects that are made of an object, at `TEMPLATE_PATHS`."""


class Reach(NamedTuple):
    """A way by which objects reach outside their namespace.

    Attributes:
        name: of the rule; unique.
        what: the value in messages, as in `the image`.
        types: kinds with their groups, `PODS` or `TEMPLATES`; empty for any.
        paths: steps from the root of the object, from the `spec` of a pod, or from the metadata of a template.
        condition: what the value must be.
        default: what a missing value means; None for nothing.
        created: of Pods only those that are created, because the scheduler sets the field later.
        kept: an update may keep the value at a path through no list, because a controller may have set it.
    """

    name: str
    what: str
    types: tuple[str, ...]
    paths: tuple[Step, ...]
    condition: Condition
    default: str | None = None
    created: bool = False
    kept: bool = False


_OF_JOB = ".spec.template"
_PATCH = ("spec", "runtimePatches", ALL, "trainingRuntimeSpec", "template")
_PATCHED_JOB = (*_PATCH, "spec", "replicatedJobs", ALL, "template")

RAY_HEADS: dict[str, Step] = {
    "RayCluster.ray.io": ("spec", "headGroupSpec"),
    "RayService.ray.io": ("spec", "rayClusterConfig", "headGroupSpec"),
    "RayJob.ray.io": ("spec", "rayClusterSpec", "headGroupSpec"),
}
"""Where a kind of Ray has the head of its cluster."""

RAY_SERVICES: dict[str, tuple[Step, ...]] = {
    type_: ((*head, "headService"), *((("spec", "serveService"),) if type_ == "RayService.ray.io" else ()))
    for type_, head in RAY_HEADS.items()
}
"""Where a kind of Ray has templates of Services."""


def _ray_paths(type_: str) -> Iterator[Step]:
    """Yield where a kind of Ray has labels of groups, and metadata of Services."""
    head = RAY_HEADS[type_]
    yield head
    yield (*head[:-1], "workerGroupSpecs", ALL)
    for place in RAY_SERVICES[type_]:
        yield (*place, "metadata")


def _template_paths() -> dict[str, tuple[Step, ...]]:
    """Return where the metadata of templates are, by type; that of an object itself is left out.

    A mapping with `labels` or `annotations` for other objects counts as metadata.
    """
    found: dict[str, list[Step]] = {
        "Certificate.cert-manager.io": [("spec", "secretTemplate")],
        "ExternalSecret.external-secrets.io": [("spec", "target", "template", "metadata")],
        "Gateway.gateway.networking.k8s.io": [("spec", "infrastructure")],
        "ResourceClaimTemplate.resource.k8s.io": [("spec", "metadata")],
        "SealedSecret.bitnami.com": [("spec", "template", "metadata")],
        "TrainJob.trainer.kubeflow.org": [
            (*_PATCH, "metadata"),
            (*_PATCHED_JOB, "metadata"),
            (*_PATCHED_JOB, "spec", "template", "metadata"),
        ],
        "TrainingRuntime.trainer.kubeflow.org": [("spec", "template", "metadata")],
        **{type_: [*_ray_paths(type_)] for type_ in RAY_HEADS},
    }
    for row in KINDS.values():
        pods = [place.path for place in row.pods if place.path and not place.single]
        # The template of a Job around the template of its pods.
        jobs = [path.removesuffix(_OF_JOB) for path in pods if path.endswith(_OF_JOB)]
        # Those in a list of lists have a row of their own, because CEL cannot join the lists.
        claims = [f"{path}[]" for path in row.claim_templates if "[]" not in path]
        paths = [(*steps_of(path), "metadata") for path in (*pods, *jobs, *claims)]
        if paths:
            found.setdefault(row.type, []).extend(paths)
    return {type_: tuple(paths) for type_, paths in found.items()}


TEMPLATE_PATHS = _template_paths()
"""Where an object has the metadata of objects that are made of it, by type."""
