"""Every field of an object that names a Secret, those of the Secret that it makes included."""

from __future__ import annotations

from functools import cache

from kaigen.kubernetes.kind_table import KINDS
from kaigen.kubernetes.manifest import ALL, Step, group_of, join_type
from kaigen.kubernetes.references import POD_REFERENCES
from kaigen.kubernetes.schemas import index
from kaigen.kubernetes.secrets import EXTERNAL_SECRET, SEALED_SECRET, SECRET

_VOLUME_DRIVERS = {
    "secretRef": ("cephfs", "cinder", "flexVolume", "iscsi", "rbd", "scaleIO", "storageos"),
    "nodePublishSecretRef": ("csi",),
}
"""Volumes of pods with such a field (source: core/v1)."""

_TLS = ("tlsConfig.ca.secret", "tlsConfig.cert.secret", "tlsConfig.keySecret")
_ENDPOINT = (
    "bearerTokenSecret",
    "authorization.credentials",
    "basicAuth.username",
    "basicAuth.password",
    "oauth2.clientId.secret",
    "oauth2.clientSecret",
    *_TLS,
    *(f"oauth2.{field}" for field in _TLS),
)
_KEY = "valueFrom.secretKeyRef.name"
_RAY = (
    "authOptions.secretName",
    "autoscalerOptions.envFrom[].secretRef.name",
    f"autoscalerOptions.env[].{_KEY}",
    f"gcsFaultToleranceOptions.redisPassword.{_KEY}",
    f"gcsFaultToleranceOptions.redisUsername.{_KEY}",
    "headGroupSpec.ingressOptions.tls[].secretName",
    f"historyServerOptions.collectorOptions.env[].{_KEY}",
)
_KEDA = (
    *(f"awsSecretManager.credentials.{field}.{_KEY}" for field in ("accessKey", "accessSecretKey", "accessToken")),
    f"azureKeyVault.credentials.clientSecret.{_KEY}",
    *(
        f"azureServicePrincipal.{field}.{_KEY}"
        for field in ("clientCertificate", "clientCertificatePassword", "clientSecret")
    ),
    f"gcpSecretManager.credentials.clientSecret.{_KEY}",
    f"oauth2.clientSecret.{_KEY}",
)
_TRAIN_INPUTS = ("dataset", "model")
_TRAIN_PATCHES = "spec.runtimePatches[].trainingRuntimeSpec.template.spec.replicatedJobs[]"
_FURTHER: dict[str, tuple[str, ...]] = {
    SECRET: ("metadata.name",),
    SEALED_SECRET: ("metadata.name",),
    EXTERNAL_SECRET: ("spec.target.name", "spec.target.template.templateFrom[].secret.name"),
    # https://cert-manager.io/docs/reference/api-docs/ (1.19)
    "Certificate.cert-manager.io": (
        "spec.secretName",
        "spec.keystores.jks.passwordSecretRef.name",
        "spec.keystores.pkcs12.passwordSecretRef.name",
    ),
    "PodMonitor.monitoring.coreos.com": tuple(f"spec.podMetricsEndpoints[].{field}.name" for field in _ENDPOINT),
    "ServiceMonitor.monitoring.coreos.com": tuple(f"spec.endpoints[].{field}.name" for field in _ENDPOINT),
    "TriggerAuthentication.keda.sh": tuple(f"spec.{field}" for field in _KEDA),
    "ClusterTriggerAuthentication.keda.sh": ("spec.secretTargetRef[].name", *(f"spec.{field}" for field in _KEDA)),
    "TrainJob.trainer.kubeflow.org": (
        *(f"spec.initializer.{field}.secretRef.name" for field in _TRAIN_INPUTS),
        *(f"spec.initializer.{field}.env[].{_KEY}" for field in _TRAIN_INPUTS),
        f"spec.trainer.env[].{_KEY}",
    ),
    "RayCluster.ray.io": tuple(f"spec.{field}" for field in _RAY),
    "RayService.ray.io": tuple(f"spec.rayClusterConfig.{field}" for field in _RAY),
    "RayJob.ray.io": tuple(f"spec.rayClusterSpec.{field}" for field in _RAY),
    "GitRepository.source.toolkit.fluxcd.io": (
        "spec.secretRef.name",
        "spec.proxySecretRef.name",
        "spec.verify.secretRef.name",
    ),
    "OCIRepository.source.toolkit.fluxcd.io": (
        "spec.secretRef.name",
        "spec.certSecretRef.name",
        "spec.proxySecretRef.name",
        "spec.verify.secretRef.name",
        "spec.verify.trustedRootSecretRef.name",
    ),
    "HelmRepository.source.toolkit.fluxcd.io": ("spec.secretRef.name", "spec.certSecretRef.name"),
    "Bucket.source.toolkit.fluxcd.io": (
        "spec.secretRef.name",
        "spec.certSecretRef.name",
        "spec.proxySecretRef.name",
        "spec.sts.secretRef.name",
        "spec.sts.certSecretRef.name",
    ),
    "HelmChart.source.toolkit.fluxcd.io": ("spec.verify.secretRef.name",),
    "HelmRelease.helm.toolkit.fluxcd.io": (
        "spec.chart.spec.verify.secretRef.name",
        "spec.kubeConfig.secretRef.name",
        "spec.valuesFrom[].name",
    ),
    "Kustomization.kustomize.toolkit.fluxcd.io": (
        "spec.decryption.secretRef.name",
        "spec.kubeConfig.secretRef.name",
        "spec.postBuild.substituteFrom[].name",
    ),
}
"""Fields besides those of the table of object kinds: of kinds that it does not describe completely, and the names of
Secrets that objects make (source: the schemas in `data`, with which `tests/unit/kubernetes/test_secret_fields.py`
compares them)."""


@cache
def secret_paths() -> dict[str, tuple[Step, ...]]:
    """Return the paths of names of Secrets by type, from the root of the object; those of pods are left out."""
    found: dict[str, list[Step]] = {
        row.type: [_steps(field.path) for field in row.references or () if SECRET in field.targets]
        for row in KINDS.values()
    }
    for type_, paths in _FURTHER.items():
        found.setdefault(type_, []).extend(map(_steps, paths))
    patched = _steps(f"{_TRAIN_PATCHES}.template.spec.template.spec")
    found["TrainJob.trainer.kubeflow.org"] += [(*patched, *path) for path in pod_secret_paths()]
    return {type_: tuple(paths) for type_, paths in found.items() if paths}


@cache
def known_types() -> frozenset[str]:
    """Return the types of which `secret_paths` has every field: those in it, or in the table, that have a schema."""
    served = {
        join_type(group_of({"apiVersion": version}), kind)
        for kind, versions in index()["kinds"].items()
        for version, entry in versions.items()
        if "ref" in entry
    }
    return frozenset(served & {*secret_paths(), *(row.type for row in KINDS.values())})


@cache
def pod_secret_paths() -> tuple[Step, ...]:
    """Return the paths of names of Secrets in the `spec` of a pod."""
    return tuple(
        tuple(driver if step == "*" else step for step in steps)
        for field in POD_REFERENCES
        if SECRET in field.targets
        for steps in [_steps(field.path)]
        for driver in (_VOLUME_DRIVERS[steps[-2]] if "*" in steps else ("",))
    )


def _steps(path: str) -> Step:
    return tuple(path.replace("[]", f".{ALL}").split("."))
