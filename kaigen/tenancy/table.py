"""The table of fields by which an object reaches outside its namespace.

The check of specs and the admission policies are both made from this table.
"""

from __future__ import annotations

from kaigen.tenancy.reach import Reach
from kaigen.tenancy.rows.classes import CLASS_REACHES
from kaigen.tenancy.rows.controllers import SECRET_REACHES, SYNCER_REACHES
from kaigen.tenancy.rows.metadata import METADATA_REACHES
from kaigen.tenancy.rows.network import NETWORK_REACHES, RAY_REACHES
from kaigen.tenancy.rows.network_policies import NETWORK_POLICY_REACHES
from kaigen.tenancy.rows.pods import POD_REACHES
from kaigen.tenancy.rows.rbac import RBAC_REACHES
from kaigen.tenancy.rows.reserved import RESERVED_REACHES
from kaigen.tenancy.rows.scaling import SCALING_REACHES
from kaigen.tenancy.rows.storage import STORAGE_REACHES
from kaigen.tenancy.rows.training import TRAINING_REACHES

REACHES: tuple[Reach, ...] = (
    *POD_REACHES,
    *STORAGE_REACHES,
    *NETWORK_REACHES,
    *RAY_REACHES,
    *CLASS_REACHES,
    *SECRET_REACHES,
    *SCALING_REACHES,
    *METADATA_REACHES,
    *RBAC_REACHES,
    *RESERVED_REACHES,
    *NETWORK_POLICY_REACHES,
    *SYNCER_REACHES,
    *TRAINING_REACHES,
)
"""Every rule."""
