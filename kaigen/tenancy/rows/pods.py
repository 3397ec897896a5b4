"""What pods of every kind reach."""

from __future__ import annotations

from kaigen.kubernetes.buckets import ATTRIBUTES, INLINE_OPTIONS, OPTIONS, S3_OPTIONS
from kaigen.kubernetes.manifest import ALL, Step
from kaigen.kubernetes.pod_security import Control
from kaigen.tenancy.conditions.references import OwnNamespace, Reference, VolumeName
from kaigen.tenancy.conditions.values import Granted, GrantedItems, Missing, NodeKey, NoKeys, NotTrue
from kaigen.tenancy.conditions.volumes import BucketText, BucketVolume, BuildArgument, NamedVolume
from kaigen.tenancy.reach import PODS, Reach

STORAGE_CLASS = ("spec", "storageClassName")
STORAGE_ANNOTATION = ("metadata", "annotations", "volume.beta.kubernetes.io/storage-class")
"""The annotation that overrides the storage class of a claim (source: Kubernetes, well-known annotations)."""

DATA_SOURCE = ("spec", "dataSourceRef")
VOLUME_NAME = ("spec", "volumeName")
SELECTOR = ("spec", "selector")


def _in_containers(*path: str) -> tuple[Step, ...]:
    return tuple((field, ALL, *path) for field in ("containers", "initContainers", "ephemeralContainers"))


EPHEMERAL_CLAIM = ("volumes", ALL, "ephemeral", "volumeClaimTemplate")
"""The template of a claim that lives as long as its pod."""

ANY_KEY = r"[\s\S]*"
IN_TREE = (
    "awsElasticBlockStore|azureDisk|azureFile|cephfs|cinder|fc|flexVolume|flocker|gcePersistentDisk|glusterfs|hostPath"
    "|gitRepo|iscsi|local|nfs|photonPersistentDisk|portworxVolume|quobyte|rbd|scaleIO|storageos|vsphereVolume"
)
"""Volumes of the node or of servers that the object names (source: the types of core/v1)."""

NODE_KEYS = (
    r"kubernetes\.io/hostname|metadata\.name|node-role\.kubernetes\.io/(control-?plane|etcd|master)"
    "|CriticalAddonsOnly"
)
"""Labels and fields with the name of a node, and labels and taints of nodes with the control plane (source: kubeadm,
RKE; CriticalAddonsOnly: AKS, K3s)."""


def in_node_selector(*path: str) -> tuple[Step, ...]:
    """Return the paths of the requirements of a node selector at a path."""
    return tuple((*path, field, ALL) for field in ("matchExpressions", "matchFields"))


_NODE_AFFINITY = ("affinity", "nodeAffinity")

COVERED_CONTROLS = frozenset([Control.HOST_NAMESPACES, Control.HOST_PATH, Control.PRIVILEGED, Control.VOLUME_TYPE])
"""The controls of the Pod Security Standards that rows of this table cover at every level."""

_POD_TERMS = tuple(
    ("affinity", kind, *path)
    for kind in ("podAffinity", "podAntiAffinity")
    for path in (
        ("requiredDuringSchedulingIgnoredDuringExecution", ALL),
        ("preferredDuringSchedulingIgnoredDuringExecution", ALL, "podAffinityTerm"),
    )
)
"""Terms that place a pod near others or keep others away from it."""

DEVICE_CLASS = r"deviceclass\.resource\.kubernetes\.io/[\s\S]*"
"""Resources for which the scheduler makes a claim of devices (source: Kubernetes, extended resources by DRA)."""

POD_REACHES: tuple[Reach, ...] = (
    Reach(
        "image",
        "the image",
        (PODS,),
        (*_in_containers("image"), ("volumes", ALL, "image", "reference")),
        Granted("images"),
    ),
    Reach(
        "argument",
        "the bucket",
        (PODS,),
        (*_in_containers("command", ALL), *_in_containers("args", ALL), *_in_containers("env", ALL, "value")),
        BucketText(),
    ),
    Reach(
        "build", "the image", (PODS,), (*_in_containers("command", ALL), *_in_containers("args", ALL)), BuildArgument()
    ),
    Reach(
        "pod-affinity",
        "pods of namespace",
        (PODS,),
        tuple((*term, "namespaces", ALL) for term in _POD_TERMS),
        OwnNamespace(),
    ),
    Reach(
        "pod-affinity-selector",
        "pods of other namespaces",
        (PODS,),
        tuple((*term, "namespaceSelector") for term in _POD_TERMS),
        Missing(),
    ),
    Reach(
        "pod-device",
        "devices by the resource",
        (PODS,),
        tuple(
            (*place, field)
            for place in (("resources",), *_in_containers("resources"))
            for field in ("limits", "requests")
        ),
        NoKeys(DEVICE_CLASS),
    ),
    Reach(
        "pod-certificate",
        "a certificate of the cluster by",
        (PODS,),
        (("volumes", ALL, "projected", "sources", ALL),),
        NoKeys("podCertificate"),
    ),
    # Controllers make pods of it, and no rule of pods reads it.
    Reach("revision", "pods of an earlier revision", ("ControllerRevision.apps",), (("data",),), Missing()),
    Reach(
        "pod-any", "any volume that no claim has, by an empty storage class", (PODS,), (EPHEMERAL_CLAIM,), NamedVolume()
    ),
    Reach("priority", "the priority class", (PODS,), (("priorityClassName",),), Granted("priorityClasses")),
    Reach("node", "a node by the field", (PODS,), ((),), NoKeys("nodeName", "nodes"), created=True),
    Reach("node-label", "nodes by the label", (PODS,), (("nodeSelector",),), NoKeys(NODE_KEYS, "nodes")),
    Reach(
        "node-affinity",
        "nodes by the key",
        (PODS,),
        (
            *in_node_selector(
                *_NODE_AFFINITY, "requiredDuringSchedulingIgnoredDuringExecution", "nodeSelectorTerms", ALL
            ),
            *in_node_selector(*_NODE_AFFINITY, "preferredDuringSchedulingIgnoredDuringExecution", ALL, "preference"),
        ),
        NodeKey(NODE_KEYS, "nodes"),
    ),
    Reach("toleration", "the toleration", (PODS,), (("tolerations", ALL),), NodeKey(f"|{NODE_KEYS}", "nodes")),
    Reach(
        "host-namespace", "a namespace of the node", (PODS,), (("hostNetwork",), ("hostPID",), ("hostIPC",)), NotTrue()
    ),
    Reach("privileged", "a privileged container", (PODS,), _in_containers("securityContext", "privileged"), NotTrue()),
    Reach("pod-driver", "the driver", (PODS,), (("volumes", ALL, "csi", "driver"),), Granted("drivers")),
    Reach("pod-bucket", "the bucket", (PODS,), (("volumes", ALL),), BucketVolume(inline=True)),
    Reach(
        "pod-attribute",
        "the volume attribute",
        (PODS,),
        (("volumes", ALL, "csi", "volumeAttributes"),),
        NoKeys(ANY_KEY, "attributes", always=ATTRIBUTES),
    ),
    Reach(
        "pod-option",
        "the mount options",
        (PODS,),
        (("volumes", ALL, *INLINE_OPTIONS), ("volumes", ALL, "csi", "volumeAttributes", "options")),
        GrantedItems("options", always=(*OPTIONS, S3_OPTIONS)),
    ),
    Reach("pod-volume", "a volume of type", (PODS,), (("volumes", ALL),), NoKeys(IN_TREE)),
    Reach(
        "pod-storage",
        "the storage class",
        (PODS,),
        ((*EPHEMERAL_CLAIM, *STORAGE_CLASS), (*EPHEMERAL_CLAIM, *STORAGE_ANNOTATION)),
        Granted("storageClasses", always=("",)),
    ),
    Reach("pod-source", "the data of", (PODS,), ((*EPHEMERAL_CLAIM, *DATA_SOURCE),), Reference("references")),
    Reach("pod-claim-volume", "the volume", (PODS,), ((*EPHEMERAL_CLAIM, *VOLUME_NAME),), VolumeName()),
    Reach("pod-claim-selector", "volumes by their labels", (PODS,), ((*EPHEMERAL_CLAIM, *SELECTOR),), Missing()),
)
