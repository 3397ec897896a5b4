"""The whole objects for Argo CD, Flux and namespaces of three environments, as golden files."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import yaml

from tests.goldens import Goldens
from tests.unit.gitops.conftest import JOB, MODEL, Rendered

OTHER = MODEL.replace("{name: qwen}", "{name: other, namespace: lab}")
PLAIN = """\
apiVersion: batch/v1
kind: Job
metadata: {name: once, namespace: ml}
spec:
  template:
    spec:
      restartPolicy: Never
      containers: [{name: main, image: docker.io/acme/once:1}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: reader, namespace: ml}
rules: [{apiGroups: [""], resources: [pods], verbs: [get]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: reader, namespace: ml}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: reader}
subjects: [{kind: ServiceAccount, name: default, namespace: ml}]
"""
SCALED = """\
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: ml}
spec:
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: main, image: docker.io/acme/web:1}]}
---
apiVersion: keda.sh/v1alpha1
kind: ScaledObject
metadata: {name: web, namespace: ml}
spec:
  scaleTargetRef: {name: web}
  triggers: [{type: cron, metadata: {timezone: UTC, start: 0 8 * * *, end: 0 18 * * *, desiredReplicas: "2"}}]
"""
TENANCY = {
    "namespaces": True,
    "quota": {"requests.nvidia.com/gpu": 8},
    "serviceAccount": "deployer",
    "adminServiceAccount": "argocd:admin",
}
ENVIRONMENTS: dict[str, dict[str, Any]] = {
    "each": {
        "environment": "wide",
        "specs": (MODEL, JOB),
        "argocd": {},
        "flux": {},
        "tenancy": {"namespaces": True, "defaultDeny": ["Ingress", "Egress"]},
        "labels": {"team": "ml"},
    },
    "charts": {
        "specs": (MODEL, OTHER, PLAIN, SCALED),
        "form": "chart",
        "argocd": {},
        "flux": {},
        "tenancy": TENANCY,
        "charts": "oci://registry.example.com/charts",
    },
    "set": {"environment": "wide", "specs": (MODEL, SCALED), "form": "chart", "argocd": {"applications": "set"}},
}


@pytest.mark.parametrize("name", ENVIRONMENTS)
def test_the_objects_of_an_environment_are_those_of_its_golden_file(
    name: str, rendered: Callable[..., Rendered], golden: Goldens
) -> None:
    files = rendered(config={"passthrough": True}, **ENVIRONMENTS[name])
    found = {path: body for path, body in files.items() if path.startswith("_") or "/_tenant/" in path}
    golden.check(f"golden/{name}.yaml", yaml.safe_dump(found, width=120))
