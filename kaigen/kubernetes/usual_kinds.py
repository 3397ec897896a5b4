"""The kinds that specs of AI work usually need."""

from __future__ import annotations

from kaigen.kubernetes.kind_table import KINDS
from kaigen.kubernetes.schemas import is_cluster_type

USUAL_KINDS: tuple[str, ...] = tuple(
    sorted(
        {
            *(row.type for row in KINDS.values() if row.emitted and not is_cluster_type(row.kind, row.group)),
            "PersistentVolume",
            "CronJob.batch",
            "DaemonSet.apps",
            "GRPCRoute.gateway.networking.k8s.io",
            "Pod",
            "Secret",
        }
    )
)
"""The kinds that a tenant may use unless kaigen.yaml lists others.

A PersistentVolume belongs to no namespace, but the rules limit what it reaches.
"""
