"""What the rights of a tenant's accounts reach."""

from __future__ import annotations

from kaigen.kubernetes.manifest import ALL
from kaigen.tenancy.conditions.keys import NoKeys
from kaigen.tenancy.conditions.references import OwnName
from kaigen.tenancy.conditions.rights import OwnAccount, Rights
from kaigen.tenancy.conditions.texts import Granted, Missing
from kaigen.tenancy.reach import Reach

GROUP = "rbac.authorization.k8s.io"
CLUSTER_ROLE = f"ClusterRole.{GROUP}"
ROLES = (f"Role.{GROUP}", CLUSTER_ROLE)
ROLE_BINDING = f"RoleBinding.{GROUP}"

_AGGREGATED = r"[\s\S]*aggregate-to-[\s\S]*"
"""Labels by which ClusterRoles are added to others (source: Kubernetes, aggregated ClusterRoles)."""

RBAC_REACHES: tuple[Reach, ...] = (
    Reach("right", "the right", ROLES, (("rules", ALL),), Rights()),
    Reach("cluster-role", "the ClusterRole", (CLUSTER_ROLE,), (("metadata", "name"),), OwnName()),
    Reach("aggregation", "rules of other ClusterRoles", (CLUSTER_ROLE,), (("aggregationRule",),), Missing()),
    Reach("aggregated", "the label", (CLUSTER_ROLE,), (("metadata", "labels"),), NoKeys(_AGGREGATED)),
    Reach(
        "bound-kind", "a role of kind", (ROLE_BINDING,), (("roleRef", "kind"),), Granted(always=("Role",)), default=""
    ),
    Reach("subject", "the subject", (ROLE_BINDING,), (("subjects", ALL),), OwnAccount()),
    Reach("cluster-binding", "rights in every namespace", (f"ClusterRoleBinding.{GROUP}",), (("roleRef",),), Missing()),
)
