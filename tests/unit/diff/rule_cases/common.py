"""What holds for every kind."""

from __future__ import annotations

from tests.unit.diff.diff_cases import KEEP, deployment, obj, with_
from tests.unit.diff.rule_cases.objects import Case, crd, namespace, service

WEB = deployment(replicas=2)

BUDGET = obj("PodDisruptionBudget", "q", "policy/v1")

CASES: list[Case] = [
    Case(
        "moved",
        "an object of another namespace",
        service(),
        with_(service(), "metadata/namespace", "team-b"),
        [("notice", "moved: deleted in team-a, created in team-b")],
    ),
    Case(
        "namespace-removed",
        "a namespace",
        namespace(None),
        None,
        [("danger", "the namespace is deleted with everything in it, including objects that are not in Git")],
    ),
    Case(
        "namespace-removed",
        "a kept namespace",
        with_(namespace(None), "metadata/annotations", KEEP),
        None,
        [("notice", "the namespace is kept (no longer managed)")],
    ),
    Case("definition-removed", "a CRD", crd(), None, [("danger", "every Widget in the cluster is deleted with it")]),
    Case(
        "api-version",
        "a newer version",
        obj("CronJob", "c", "batch/v1beta1"),
        obj("CronJob", "c", "batch/v1"),
        [("info", "API version batch/v1 instead of batch/v1beta1: the same object if the cluster serves both")],
    ),
    Case(
        "renamed",
        "a Service",
        with_(service(), "metadata/name", "a"),
        with_(service(), "metadata/name", "b"),
        [("notice", "Service a is deleted, Service b is created")],
    ),
    Case(
        "metadata-only",
        "a label of a Deployment",
        WEB,
        with_(WEB, "metadata/labels", {"a": "b"}),
        [("info", "metadata only, nothing restarts")],
    ),
    Case(
        "updated",
        "a custom resource",
        obj("ScaledObject", "w", "keda.sh/v1alpha1", spec={"pollingInterval": 1}),
        obj("ScaledObject", "w", "keda.sh/v1alpha1", spec={"pollingInterval": 2}),
        [("info", "updated in place; its controller decides what happens next")],
    ),
    Case(
        "updated",
        "a disruption budget",
        obj("PodDisruptionBudget", "q", "policy/v1", spec={"unhealthyPodEvictionPolicy": "AlwaysAllow"}),
        obj("PodDisruptionBudget", "q", "policy/v1", spec={}),
        [("info", "updated in place")],
    ),
    Case("created", "a disruption budget", None, BUDGET, [("info", "is created")]),
    Case("deleted", "a disruption budget", BUDGET, None, [("info", "is deleted")]),
]
