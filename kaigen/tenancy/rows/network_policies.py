"""What NetworkPolicies open."""

from __future__ import annotations

from kaigen.tenancy.conditions.networks import OpenedNetwork
from kaigen.tenancy.reach import Reach

NETWORK_POLICY_REACHES: tuple[Reach, ...] = (
    Reach("network", "connections", ("NetworkPolicy.networking.k8s.io",), (("spec",),), OpenedNetwork()),
)
