"""What kinds of objects a tenant may have, in which namespaces, and pods in kinds that kaigen does not know."""

from __future__ import annotations

from tests.tenancy.objects import object_of, pod, with_metadata
from tests.tenancy.tenants import Body

RUNNER: Body = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "runners.example.com"},
    "spec": {
        "group": "example.com",
        "scope": "Namespaced",
        "names": {"kind": "Runner", "plural": "runners", "singular": "runner", "listKind": "RunnerList"},
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "schema": {
                    "openAPIV3Schema": {
                        "type": "object",
                        "properties": {"spec": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}},
                    }
                },
            }
        ],
    },
}
"""A kind with any fields, of which kaigen has no schema."""


def runner(**spec: object) -> Body:
    """Return an object of this kind."""
    return object_of("example.com/v1", "Runner", spec=spec)


def _role(kind: str) -> Body:
    return object_of("rbac.authorization.k8s.io/v1", kind, rules=[])


_UNKNOWN = "pods in a kind, or in a field of it, that kaigen does not know: Runner.example.com"

_POD_SPEC = pod()["spec"]

DENIED: dict[str, tuple[Body, str]] = {
    "pods of a kind that is not known": (runner(template={"spec": _POD_SPEC}), _UNKNOWN),
    "inlined pods": (runner(predictor=_POD_SPEC), _UNKNOWN),
    "pods with a name only": (runner(containers=[{"name": "main"}]), _UNKNOWN),
    "init containers only": (runner(a={"b": [{"initContainers": [{"image": "example.com/x"}]}]}), _UNKNOWN),
    "pods in lists of lists": (runner(a=[[{"spec": _POD_SPEC}]]), _UNKNOWN),
    "pods far below": (runner(a={"b": {"c": {"d": {"e": {"f": [{"g": {"spec": _POD_SPEC}}]}}}}}), _UNKNOWN),
    "an odd item before the container": (runner(containers=[1, {}, {"image": "example.com/x"}]), _UNKNOWN),
    "a single container": (runner(model={"image": "example.com/x", "env": []}), _UNKNOWN),
    "a single container with rights": (runner(x={"image": "x:1", "securityContext": {}}), _UNKNOWN),
    "steps": (runner(steps=[{"name": "a", "image": "example.com/x", "command": ["a"]}]), _UNKNOWN),
    "earlier revision": (
        object_of("apps/v1", "ControllerRevision", revision=1, data={"spec": {}}),
        "pods of an earlier revision",
    ),
    "kind: a quota": (object_of("v1", "ResourceQuota", spec={}), "the kind ResourceQuota"),
    "kind: a webhook": (
        object_of("admissionregistration.k8s.io/v1", "ValidatingWebhookConfiguration"),
        "the kind ValidatingWebhookConfiguration",
    ),
    "kind: a namespace": (with_metadata(object_of("v1", "Namespace"), name="team-c"), "the kind Namespace"),
    "namespace": (with_metadata(pod(), namespace="team-b"), "the namespace team-b"),
}
"""Objects with what the finding names, by what is wrong with them."""

ALLOWED: dict[str, Body] = {
    "a kind that is not known": runner(
        containers=3, initContainers=[], image="example.com/x", a={"image": "x", "env": "prod", "args": {}}
    ),
    "a list of names": runner(containers=["a", "b"], ephemeralContainers=[{"id": "x"}]),
    "labels like fields of containers": with_metadata(
        runner(), labels={"image": "x", "env": "prod"}, annotations={"containers": "x"}
    ),
    "Role": _role("Role"),
    "ConfigMap": object_of("v1", "ConfigMap", data={"a": "b"}),
}
"""Objects that the tenant may have."""
