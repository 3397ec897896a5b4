"""Bounds."""

from __future__ import annotations

from tests.unit.diff.diff_cases import obj
from tests.unit.diff.rule_cases.objects import Case, hpa, keda, pdb

CASES: list[Case] = [
    Case(
        "scaling-bounds",
        "other bounds of an HPA",
        hpa(None, 2),
        hpa(2, 4),
        [("notice", "scales between 2 and 4 instead of 1 and 2")],
    ),
    Case(
        "scaling-bounds",
        "scaling to zero",
        keda(minReplicaCount=1, maxReplicaCount=2),
        keda(),
        [
            ("notice", "scales between 0 and 100 instead of 1 and 2"),
            ("notice", "may scale to zero: the first request after an idle period waits for a pod to start"),
        ],
    ),
    Case(
        "scaling-bounds",
        "no longer scaling to zero",
        keda(maxReplicaCount=2),
        keda(minReplicaCount=1, maxReplicaCount=2),
        [
            ("notice", "scales between 1 and 2 instead of 0 and 2"),
            ("notice", "no longer scales to zero: at least 1 always run"),
        ],
    ),
    Case(
        "scaling-triggers",
        "another trigger",
        keda(triggers=[{"type": "cron"}]),
        keda(triggers=[{"type": "prometheus"}], cooldownPeriod=60),
        [("info", "triggers and cooldown changed, no restart")],
    ),
    *(
        Case(
            "scaling-triggers",
            f"{name} alone",
            keda(**{field: 1}),
            keda(**{field: 2}),
            [("info", f"{name} changed, no restart")],
        )
        for field, name in (
            ("metrics", "metrics"),
            ("triggers", "triggers"),
            ("behavior", "behavior"),
            ("cooldownPeriod", "cooldown"),
        )
    ),
    Case("scaler-added", "an HPA", None, hpa(1, 4), [("notice", "scales Deployment web between 1 and 4")]),
    Case(
        "scaler-added",
        "a ScaledJob",
        None,
        obj("ScaledJob", "j", "keda.sh/v1alpha1", spec={"maxReplicaCount": 3}),
        [("notice", "runs up to 3 jobs at once")],
    ),
    Case(
        "scaler-removed",
        "an HPA",
        hpa(1, 4),
        None,
        [("notice", "Deployment web is no longer scaled; it keeps its current replicas")],
    ),
    Case(
        "disruption",
        "fewer that must stay",
        pdb(minAvailable=2),
        pdb(minAvailable=1),
        [("notice", "during a node drain at least 1 pod must stay (before: at least 2 pods must stay)")],
    ),
    Case(
        "disruption",
        "none may go",
        pdb(),
        pdb(maxUnavailable=0),
        [
            ("notice", "during a node drain at most 0 pods may be missing (before: at most 1 pod may be missing)"),
            ("notice", "no pod may be evicted: draining a node waits forever"),
        ],
    ),
]
