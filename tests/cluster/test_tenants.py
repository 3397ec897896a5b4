"""The admission policies of a tenant refuse what kaigen refuses of its specs, and nothing else."""

from __future__ import annotations

from pathlib import Path

import pytest

from kaigen.tenancy.policies import policies
from tests.cluster.plane import Plane
from tests.cluster.tenants import check_policies, tenants


@pytest.mark.ran("ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding", by="kube-apiserver")
def test_the_policies_refuse_what_kaigen_refuses(plane: Plane, tmp_path: Path) -> None:
    check_policies(plane, tmp_path, "kubernetes")


@pytest.mark.accepted("ValidatingPolicy")
def test_the_api_server_accepts_the_policies_for_kyverno(plane: Plane, tmp_path: Path) -> None:
    for body in policies(tenants(tmp_path), "kyverno"):
        plane.client.create(body)
        plane.client.delete("policies.kyverno.io/v1/ValidatingPolicy", body["metadata"]["name"])
