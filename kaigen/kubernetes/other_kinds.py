"""Rows of the table of object kinds: storage, configuration, access, network and the cluster's own kinds."""

from __future__ import annotations

from msgspec.structs import replace

from kaigen.kubernetes.names import LABEL_NAME, LABEL_VALUE_NAME, PATH_SEGMENT_NAME, SUBDOMAIN_NAME, label_1035_name
from kaigen.kubernetes.object_kind import (
    SCALABLE,
    TRIGGER_AUTHENTICATION,
    HealthConditions,
    ImmutableField,
    ObjectKind,
    PodSelector,
    ReferenceField,
)
from kaigen.kubernetes.secrets import DOCKER_CONFIG, DOCKER_CONFIG_KEY, TLS, TLS_KEYS

_CLAIM = "PersistentVolumeClaim"
_VOLUME_DRIVERS = ("cephfs", "cinder", "flexVolume", "iscsi", "rbd", "scaleIO", "storageos")
_CSI_SECRETS = (
    "controllerExpandSecretRef",
    "controllerPublishSecretRef",
    "nodeExpandSecretRef",
    "nodePublishSecretRef",
    "nodeStageSecretRef",
)

_STORAGE_KINDS = (
    ObjectKind(
        _CLAIM,
        references=(ReferenceField("spec.volumeName", ("PersistentVolume",)),),
        immutable=(
            ImmutableField("spec.volumeMode", "Filesystem"),
            ImmutableField("spec.volumeName", once=True),
            ImmutableField("spec.storageClassName", once=True),
            ImmutableField("spec.accessModes"),
            ImmutableField("spec.selector"),
            ImmutableField("spec.dataSource"),
            ImmutableField("spec.dataSourceRef"),
        ),
        data="deleted",
        emitted=True,
        wave=2,
        family="storage",
    ),
    ObjectKind(
        "PersistentVolume",
        references=(
            *(ReferenceField(f"spec.csi.{field}.name", ("Secret",), "reads") for field in _CSI_SECRETS),
            *(ReferenceField(f"spec.{driver}.secretRef.name", ("Secret",), "reads") for driver in _VOLUME_DRIVERS),
            ReferenceField("spec.azureFile.secretName", ("Secret",), "reads"),
        ),
        immutable=(
            ImmutableField("spec.volumeMode", "Filesystem"),
            ImmutableField("spec.nodeAffinity", once=True),
            ImmutableField(
                "spec",
                mutable=(
                    "accessModes",
                    "capacity",
                    "claimRef",
                    "mountOptions",
                    "nodeAffinity",
                    "persistentVolumeReclaimPolicy",
                    "storageClassName",
                    "volumeAttributesClassName",
                    "volumeMode",
                ),
            ),
        ),
        data="deleted",
        outside_git=True,
        family="storage",
    ),
    ObjectKind(
        "StorageClass.storage.k8s.io",
        immutable=(
            ImmutableField("provisioner"),
            ImmutableField("parameters"),
            ImmutableField("reclaimPolicy", "Delete"),
            ImmutableField("volumeBindingMode", "Immediate"),
        ),
        family="storage",
    ),
)

_CONFIG_KINDS = (
    ObjectKind("ConfigMap", references=(), built_in=("kube-root-ca.crt",), emitted=True, family="config"),
    ObjectKind(
        "Secret", references=(), immutable=(ImmutableField("type", "Opaque"),), outside_git=True, family="config"
    ),
    ObjectKind("ExternalSecret.external-secrets.io", references=(), emitted=True, family="config"),
    ObjectKind("SealedSecret.bitnami.com", references=(), family="config"),
)

_ROLE = "Role.rbac.authorization.k8s.io"
_CLUSTER_ROLE = "ClusterRole.rbac.authorization.k8s.io"
_BINDING = (
    ReferenceField("roleRef.name", (_ROLE, _CLUSTER_ROLE)),
    ReferenceField("subjects[].name", ("ServiceAccount",)),
)

_ACCESS_KINDS = (
    ObjectKind(
        "ServiceAccount",
        references=(
            ReferenceField(
                "imagePullSecrets[].name",
                ("Secret",),
                "pulls with",
                keys=(DOCKER_CONFIG_KEY,),
                secret_type=DOCKER_CONFIG,
                as_files=True,
            ),
            ReferenceField("secrets[].name", ("Secret",)),
        ),
        built_in=("default",),
        emitted=True,
        family="access",
    ),
    ObjectKind(_ROLE, references=(), name=PATH_SEGMENT_NAME, emitted=True, family="access"),
    ObjectKind(
        _CLUSTER_ROLE,
        references=(),
        name=PATH_SEGMENT_NAME,
        built_in=("admin", "cluster-admin", "edit", "view", "system:*"),
        family="access",
    ),
    ObjectKind(
        "RoleBinding.rbac.authorization.k8s.io",
        references=_BINDING,
        immutable=(ImmutableField("roleRef"),),
        name=PATH_SEGMENT_NAME,
        emitted=True,
        family="access",
    ),
    ObjectKind(
        "ClusterRoleBinding.rbac.authorization.k8s.io",
        references=(ReferenceField("roleRef.name", (_CLUSTER_ROLE, _ROLE)), _BINDING[1]),
        immutable=(ImmutableField("roleRef"),),
        name=PATH_SEGMENT_NAME,
        family="access",
    ),
)

_POOL = "InferencePool.inference.networking.k8s.io"
_SCALE_TARGET = ReferenceField("spec.scaleTargetRef.name", ("Deployment.apps", SCALABLE))
_ROUTE = (ReferenceField("spec.rules[].backendRefs[].name", ("Service", _POOL), port=("port",)),)
_INGRESS_PORT = ("port.name", "port.number")

_NETWORK_KINDS = (
    ObjectKind(
        "Service",
        selector=PodSelector("selector", plain=True),
        references=(),
        name=label_1035_name(63),
        emitted=True,
        family="network",
    ),
    ObjectKind(
        "Ingress.networking.k8s.io",
        references=(
            ReferenceField(
                "spec.tls[].secretName", ("Secret",), "reads", keys=TLS_KEYS, secret_type=TLS, as_files=True
            ),
            ReferenceField("spec.defaultBackend.service.name", ("Service",), port=_INGRESS_PORT),
            ReferenceField("spec.rules[].http.paths[].backend.service.name", ("Service",), port=_INGRESS_PORT),
        ),
        emitted=True,
        wave=4,
        family="network",
    ),
    ObjectKind(
        "Gateway.gateway.networking.k8s.io",
        references=(
            ReferenceField(
                "spec.listeners[].tls.certificateRefs[].name",
                ("Secret",),
                "reads",
                keys=TLS_KEYS,
                secret_type=TLS,
                as_files=True,
            ),
        ),
        emitted=True,
        wave=4,
        family="network",
    ),
    ObjectKind("HTTPRoute.gateway.networking.k8s.io", references=_ROUTE, emitted=True, wave=4, family="network"),
    ObjectKind("GRPCRoute.gateway.networking.k8s.io", references=_ROUTE, wave=4, family="network"),
    ObjectKind("TCPRoute.gateway.networking.k8s.io", references=_ROUTE, wave=4, family="network"),
    ObjectKind(
        _POOL,
        selector=PodSelector("selector"),
        references=(ReferenceField("spec.endpointPickerRef.name", ("Service",), port=("port.number",)),),
        emitted=True,
        wave=3,
        # https://gateway-api-inference-extension.sigs.k8s.io/reference/spec/, 2026-11-01
        health=HealthConditions(("Accepted",), broken=("Accepted", "ResolvedRefs"), at="parents"),
        family="network",
    ),
    ObjectKind(
        "HorizontalPodAutoscaler.autoscaling", references=(_SCALE_TARGET,), emitted=True, wave=3, family="network"
    ),
    ObjectKind(
        "ScaledObject.keda.sh",
        references=(_SCALE_TARGET, TRIGGER_AUTHENTICATION),
        name=replace(SUBDOMAIN_NAME, max_length=54, reason="its autoscaler adds keda-hpa- to it"),
        emitted=True,
        wave=3,
        family="network",
    ),
    ObjectKind(
        "NetworkPolicy.networking.k8s.io",
        selector=PodSelector("podSelector"),
        references=(),
        emitted=True,
        family="network",
    ),
    ObjectKind(
        "PodDisruptionBudget.policy",
        selector=PodSelector("selector"),
        references=(),
        emitted=True,
        wave=3,
        family="network",
    ),
)

_CLUSTER_KINDS = (
    ObjectKind("Namespace", references=(), name=LABEL_NAME),
    ObjectKind(
        "PodMonitor.monitoring.coreos.com", selector=PodSelector("selector", unless="namespaceSelector"), emitted=True
    ),
    ObjectKind("PrometheusRule.monitoring.coreos.com", references=(), emitted=True),
    ObjectKind("CustomResourceDefinition.apiextensions.k8s.io", references=()),
    ObjectKind(
        "TriggerAuthentication.keda.sh",
        references=(ReferenceField("spec.secretTargetRef[].name", ("Secret",), "reads"),),
    ),
    ObjectKind("ClusterTriggerAuthentication.keda.sh", references=()),
    ObjectKind(
        "PriorityClass.scheduling.k8s.io",
        immutable=(ImmutableField("value", 0), ImmutableField("preemptionPolicy", "PreemptLowerPriority")),
    ),
    ObjectKind("RuntimeClass.node.k8s.io", immutable=(ImmutableField("handler"),)),
    ObjectKind("IngressClass.networking.k8s.io", immutable=(ImmutableField("spec.controller"),)),
    ObjectKind("GatewayClass.gateway.networking.k8s.io", immutable=(ImmutableField("spec.controllerName"),)),
    ObjectKind("ResourceClaim.resource.k8s.io", immutable=(ImmutableField("spec"),)),
    ObjectKind("ResourceClaimTemplate.resource.k8s.io", immutable=(ImmutableField("spec"),), emitted=True),
    ObjectKind(
        "ClusterQueue.kueue.x-k8s.io",
        # https://kueue.sigs.k8s.io/docs/concepts/cluster_queue/, 2026-11-01
        health=HealthConditions(("Active",), broken=("Active",)),
    ),
    ObjectKind("Cohort.kueue.x-k8s.io", references=()),
    ObjectKind(
        "LocalQueue.kueue.x-k8s.io",
        references=(),
        immutable=(ImmutableField("spec.clusterQueue"),),
        name=LABEL_VALUE_NAME,
        # https://kueue.sigs.k8s.io/docs/concepts/local_queue/, 2026-11-01
        health=HealthConditions(("Active",), broken=("Active",)),
        emitted=True,
    ),
    ObjectKind("ResourceFlavor.kueue.x-k8s.io", immutable=(ImmutableField("spec.topologyName", once=True),)),
    ObjectKind("Topology.kueue.x-k8s.io", references=(), immutable=(ImmutableField("spec.levels"),)),
    ObjectKind("WorkloadPriorityClass.kueue.x-k8s.io", references=()),
    ObjectKind(
        "NodePool.karpenter.sh",
        immutable=(
            ImmutableField("spec.template.spec.nodeClassRef.group"),
            ImmutableField("spec.template.spec.nodeClassRef.kind"),
        ),
        name=LABEL_VALUE_NAME,
    ),
    ObjectKind("NodeClaim.karpenter.sh", immutable=(ImmutableField("spec"),)),
    ObjectKind(
        "AKSNodeClass.karpenter.azure.com",
        # https://karpenter.sh/docs/concepts/nodeclasses/, 2026-11-01
        health=HealthConditions(("Ready",), broken=("Ready",)),
    ),
    ObjectKind("HelmRelease.helm.toolkit.fluxcd.io", name=LABEL_VALUE_NAME),
    ObjectKind("Kustomization.kustomize.toolkit.fluxcd.io", name=LABEL_VALUE_NAME),
)

OTHER_KINDS: tuple[ObjectKind, ...] = (
    *_STORAGE_KINDS,
    *_CONFIG_KINDS,
    *_ACCESS_KINDS,
    *_NETWORK_KINDS,
    *_CLUSTER_KINDS,
)
