"""Two tenants of one repository."""

from __future__ import annotations

from typing import Any

from kaigen.kubernetes.rights import USUAL_KINDS

Body = dict[str, Any]

TENANT: Body = {
    "folders": ["specs/a"],
    "namespaces": ["team-a"],
    "images": ["example.com/*"],
    "hosts": ["*.a.example.com"],
    "buckets": ["s3://shared/a", "https://ours.s3.amazonaws.com/a", "az://ours/shared/a"],
    "drivers": ["s3.csi.aws.com", "ru.yandex.s3.csi", "gcsfuse.csi.storage.gke.io", "blob.csi.azure.com"],
    "storageClasses": ["standard"],
    "priorityClasses": ["a-*"],
    "references": ["gateways/public"],
    "kinds": [
        *USUAL_KINDS,
        "LocalQueue.kueue.x-k8s.io",
        "RayCluster.ray.io",
        "RayJob.ray.io",
        "RayService.ray.io",
        "ResourceClaim.resource.k8s.io",
        "Runner.example.com",
        "SealedSecret.bitnami.com",
        "OCIRepository.source.toolkit.fluxcd.io",
        "ClusterRole.rbac.authorization.k8s.io",
        "ControllerRevision.apps",
        "ClusterRoleBinding.rbac.authorization.k8s.io",
        "EndpointSlice.discovery.k8s.io",
        "Endpoints",
        "ScaledJob.keda.sh",
        "ServiceMonitor.monitoring.coreos.com",
        "TriggerAuthentication.keda.sh",
    ],
    "triggers": ["aws-*", "postgresql"],
    "addresses": ["192.0.2.*"],
    "services": ["ExternalName", "LoadBalancer"],
    "servers": ["prometheus.monitoring", "*.metrics.example.com"],
    "volumes": ["shared-*"],
    "classes": [
        "ClusterGenerator/a-*",
        "ClusterQueue/a",
        "DeviceClass/gpu.example.com",
        "GatewayClass/x",
        "IngressClass/a*",
        "IngressClass/gce",
        "IngressClass/nginx",
        "LoadBalancerClass/example.com/a",
        "RuntimeClass/sandbox",
        "Scheduler/a-*",
        "ScrapeClass/a",
        "VolumeAttributesClass/a",
    ],
    "domains": ["example.com", "a-team.example.org"],
    "annotations": [
        "alb.ingress.kubernetes.io/scheme",
        "haproxy.org/*",
        "eks.amazonaws.com/role-arn=arn:aws:iam::111122223333:role/a-*",
    ],
}

OTHER: Body = {
    "folders": ["specs/b"],
    "namespaces": ["team-b", "team-a-dev"],
    "images": ["*"],
    "nodes": ["kubernetes.io/hostname", "node-role.kubernetes.io/*"],
    "podSecurity": "baseline",
}

GITOPS: Body = {
    "repository": "https://git.example.com/ml/deploy.git",
    "flux": {"secret": "git-password", "decryption": {"secret": "sops-age"}},
    "tenancy": {
        "namespaces": True,
        "serviceAccount": "deployer",
        "quota": {"requests.nvidia.com/gpu": 8},
        "defaultDeny": ["Ingress", "Egress"],
        "adminServiceAccount": "ops:admin",
    },
}
"""How the repository of the tenants is synced."""

GRANTS: Body = {
    "roles": ["jobs.batch=create", "secrets", "pytorchjobs.kubeflow.org", "*=delete"],
    "networks": ["monitoring", "10.20.0.0/16"],
}
"""What the tenant is granted of rights and connections."""
