"""Checks of what the user may do in a namespace."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from kaigen.diagnostics.errors import SystemFailure
from kaigen.doctor.model import Check
from kaigen.kubernetes.manifest import mapping

if TYPE_CHECKING:
    from kaigen.cluster.client import Cluster


class Right(NamedTuple):
    """A request that a user may make.

    Attributes:
        verb: such as `create`.
        resource: plural name, and the subresource after a slash.
        group: API group; empty for the core group.
    """

    verb: str
    resource: str
    group: str = ""

    @property
    def title(self) -> str:
        """The right as `kubectl auth can-i` takes it."""
        name, _, subresource = self.resource.partition("/")
        full = f"{name}.{self.group}" if self.group else name
        return f"{self.verb} {full}{f' --subresource={subresource}' if subresource else ''}"


READ = (
    *(Right("list", name) for name in ("pods", "persistentvolumeclaims", "events")),
    Right("get", "pods/log"),
    Right("list", "jobs", "batch"),
)
"""What `kaigen status`, and the commands that show runs, ask for."""

WRITE = (
    *(Right(verb, "jobs", "batch") for verb in ("create", "delete")),
    *(Right(verb, "persistentvolumeclaims") for verb in ("create", "delete")),
    *(Right(verb, "pods") for verb in ("create", "delete")),
    Right("create", "pods/exec"),
)
"""What commands ask for that start runs and copy files. A syncer deploys apps with rights of its own."""


def check_rights(cluster: Cluster, namespace: str) -> list[Check]:
    """Return whether the user may read runs and start runs in a namespace, by SelfSubjectAccessReviews.

    Args:
        cluster: the cluster.
        namespace: the namespace.

    Raises:
        SystemFailure: the cluster cannot be reached.
    """
    rights = (*READ, *WRITE)
    try:
        answers = [cluster.create(_review(right, namespace)) for right in rights]
    except SystemFailure as error:
        return [Check("rights", "warning", str(error), "allow `create` on selfsubjectaccessreviews")]
    allowed = {
        right
        for right, answer in zip(rights, answers, strict=True)
        if mapping(answer.get("status")).get("allowed") is True
    }
    return [
        _result("rights to read runs", READ, allowed, namespace),
        _result("rights to start runs", WRITE, allowed, namespace),
    ]


def _result(name: str, rights: tuple[Right, ...], allowed: set[Right], namespace: str) -> Check:
    missing = [right.title for right in rights if right not in allowed]
    if not missing:
        return Check(name, "ok", f"namespace {namespace}")
    fix = f"ask for a Role in namespace {namespace} with these rights; a syncer does not need them"
    return Check(name, "warning", f"namespace {namespace}: not allowed to {'; '.join(missing)}", fix)


def _review(right: Right, namespace: str) -> dict[str, Any]:
    name, _, subresource = right.resource.partition("/")
    attributes = {
        "namespace": namespace,
        "verb": right.verb,
        "group": right.group,
        "resource": name,
        **({"subresource": subresource} if subresource else {}),
    }
    return {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SelfSubjectAccessReview",
        "spec": {"resourceAttributes": attributes},
    }
