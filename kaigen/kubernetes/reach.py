"""The table of fields by which an object reaches outside its namespace.

The check of specs and the admission policies are both made from this table.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from enum import Enum, auto
from typing import NamedTuple

from kaigen.kubernetes.kind_table import KINDS
from kaigen.kubernetes.manifest import Object, Path, mapping, type_of
from kaigen.kubernetes.pod_security import Control
from kaigen.kubernetes.schemas import is_cluster_type

ALL = "[]"
"""A step of a path: every item of a list."""

PODS = "pods"
"""In place of a type: the pods of every kind; paths start at their `spec`."""

ROUTES = ("HTTPRoute.gateway.networking.k8s.io", "GRPCRoute.gateway.networking.k8s.io")
OPTION = r"(--[a-z0-9-]+=)?"
"""What may precede the URI of a bucket in an argument, as a pattern of RE2 and Python."""

URI = rf"{OPTION}(s3|gs)://"
"""The beginning of an argument with the URI of a bucket."""


_BUCKET_NAME = ("volumeAttributes", "bucketName")

EXCLUDES = ("NotIn", "DoesNotExist")
"""Operators by which a node affinity avoids nodes."""


class BucketDriver(NamedTuple):
    """Where a volume names the bucket that a CSI driver mounts.

    Attributes:
        driver: name of the CSI driver.
        path: steps from the `csi` of a PersistentVolume to the name of the bucket, which a colon ends; a folder may
            follow a slash.
        inline: the same steps from the `csi` of a pod's volume.
        option: beginning of the mount option with the folder; empty for none.
        word: a word in every spelling of that option.
    """

    driver: str
    path: tuple[str, ...]
    inline: tuple[str, ...]
    option: str = ""
    word: str = ""


BUCKET_DRIVERS = (
    BucketDriver("ru.yandex.s3.csi", ("volumeHandle",), ("volumeHandle",)),
    BucketDriver("s3.csi.aws.com", _BUCKET_NAME, _BUCKET_NAME, "prefix ", "prefix"),
    BucketDriver("gcsfuse.csi.storage.gke.io", ("volumeHandle",), _BUCKET_NAME, "only-dir=", "only-dir"),
)
"""The drivers that mount buckets (sources: k8s-csi-s3, Mountpoint for S3, Cloud Storage FUSE)."""

INLINE_OPTIONS = ("csi", "volumeAttributes", "mountOptions")
"""The mount options of a pod's volume, with commas (source: Cloud Storage FUSE)."""

S3_OPTIONS = "--memory-limit=1000 --dir-mode=0555 --file-mode=0444"
"""What kaigen sets as the attribute `options` of ru.yandex.s3.csi."""

ATTRIBUTES = ("authenticationSource", "bucketName", "mountOptions", "mounter", "options")
"""Attributes that name the bucket and whose credentials the driver uses, and those with options."""

OPTIONS = (
    "allow-other",
    "force-path-style",
    "implicit-dirs",
    "only-dir=*",
    "prefix *",
    "read-only",
    "region *",
)
"""Globs of the mount options that kaigen sets itself, and that reach nothing but the bucket."""


class Test(Enum):
    """What the value at the end of a path must be."""

    __test__ = False

    GRANTED = auto()
    """A text that the tenant is granted."""
    MISSING = auto()
    """Not there."""
    NOT_TRUE = auto()
    """Not true."""
    NO_KEYS = auto()
    """A mapping without keys that match `pattern`, except those that the tenant is granted."""
    NAMESPACE = auto()
    """One of the tenant's namespaces."""
    REFERENCE = auto()
    """A mapping with `name` whose `namespace` is missing, one of the tenant's, or granted with the name."""
    KEY = auto()
    """A toleration, or a requirement of a node affinity, with another `key` than those that match `pattern`, or one
    that the tenant is granted; or a requirement that excludes nodes."""
    BUCKET = auto()
    """A text that is no URI of a bucket, or one that the tenant is granted."""
    LOCATION = auto()
    """A PersistentVolume's `spec` whose driver mounts a bucket that the tenant is granted, or no bucket."""
    INLINE_LOCATION = auto()
    """The same for a volume of a pod."""
    LIST = auto()
    """A text with commas between texts that the tenant is granted."""


Step = tuple[str, ...]


class Reach(NamedTuple):
    """A way by which objects reach outside their namespace.

    Attributes:
        name: of the rule; unique.
        what: the value in messages, as in `the image`.
        types: kinds with their groups, or `PODS`; empty for any.
        paths: steps from the root of the object, or from the `spec` of a pod.
        test: what the value must be.
        grant: field of a tenant that lists what is granted; empty where nothing can be.
        default: what a missing value means; None for nothing.
        always: values that need no grant.
        pattern: of keys, for `Test.NO_KEYS` and `Test.KEY`.
        created: of Pods only those that are created, because the scheduler sets the field later.
    """

    name: str
    what: str
    types: tuple[str, ...]
    paths: tuple[Step, ...]
    test: Test = Test.GRANTED
    grant: str = ""
    default: str | None = None
    always: tuple[str, ...] = ()
    pattern: str = ""
    created: bool = False


def _in_containers(*path: str) -> tuple[Step, ...]:
    return tuple((field, ALL, *path) for field in ("containers", "initContainers", "ephemeralContainers"))


_VOLUME = "PersistentVolume"
_INGRESS = ("Ingress.networking.k8s.io",)
_GATEWAY = ("Gateway.gateway.networking.k8s.io",)
_SCALERS = ("ScaledObject.keda.sh", "ScaledJob.keda.sh")
_MONITORS = ("PodMonitor.monitoring.coreos.com", "ServiceMonitor.monitoring.coreos.com")
_RULES = ("spec", "rules", ALL)
_CLAIM = ("spec", "storageClassName")
_ANY = r"[\s\S]*"
_IN_TREE = (
    "awsElasticBlockStore|azureDisk|azureFile|cephfs|cinder|fc|flexVolume|flocker|gcePersistentDisk|glusterfs|hostPath"
    "|gitRepo|iscsi|local|nfs|photonPersistentDisk|portworxVolume|quobyte|rbd|scaleIO|storageos|vsphereVolume"
)
"""Volumes of the node or of servers that the object names (source: the types of core/v1)."""
_CSI_SECRETS = (
    "controllerExpandSecretRef",
    "controllerPublishSecretRef",
    "nodeExpandSecretRef",
    "nodePublishSecretRef",
    "nodeStageSecretRef",
)

_NODE_KEYS = (
    r"kubernetes\.io/hostname|metadata\.name|node-role\.kubernetes\.io/(control-?plane|etcd|master)"
    "|CriticalAddonsOnly"
)
"""Labels and fields with the name of a node, and labels and taints of nodes with the control plane (source: kubeadm,
RKE; CriticalAddonsOnly: AKS, K3s)."""


def _in_node_selector(*path: str) -> tuple[Step, ...]:
    return tuple((*path, field, ALL) for field in ("matchExpressions", "matchFields"))


_NODE_AFFINITY = ("affinity", "nodeAffinity")

COVERED_CONTROLS = frozenset(
    [Control.HOST_NAMESPACES, Control.HOST_PATH, Control.PRIVILEGED, Control.VOLUME_TYPE]
)
"""The controls of the Pod Security Standards that rows of this table cover at every level."""

_POD_REACHES = (
    Reach(
        "image",
        "the image",
        (PODS,),
        (*_in_containers("image"), ("volumes", ALL, "image", "reference")),
        grant="images",
    ),
    Reach(
        "argument",
        "the bucket",
        (PODS,),
        (*_in_containers("command", ALL), *_in_containers("args", ALL), *_in_containers("env", ALL, "value")),
        Test.BUCKET,
        "buckets",
    ),
    Reach("priority", "the priority class", (PODS,), (("priorityClassName",),), grant="priorityClasses"),
    Reach(
        "node",
        "a node by the field",
        (PODS,),
        ((),),
        Test.NO_KEYS,
        "nodes",
        pattern="nodeName",
        created=True,
    ),
    Reach(
        "node-label",
        "nodes by the label",
        (PODS,),
        (("nodeSelector",),),
        Test.NO_KEYS,
        "nodes",
        pattern=_NODE_KEYS,
    ),
    Reach(
        "node-affinity",
        "nodes by the key",
        (PODS,),
        (
            *_in_node_selector(
                *_NODE_AFFINITY, "requiredDuringSchedulingIgnoredDuringExecution", "nodeSelectorTerms", ALL
            ),
            *_in_node_selector(
                *_NODE_AFFINITY, "preferredDuringSchedulingIgnoredDuringExecution", ALL, "preference"
            ),
        ),
        Test.KEY,
        "nodes",
        pattern=_NODE_KEYS,
    ),
    Reach(
        "toleration",
        "the toleration",
        (PODS,),
        (("tolerations", ALL),),
        Test.KEY,
        "nodes",
        pattern=f"|{_NODE_KEYS}",
    ),
    Reach(
        "host-namespace",
        "a namespace of the node",
        (PODS,),
        (("hostNetwork",), ("hostPID",), ("hostIPC",)),
        Test.NOT_TRUE,
    ),
    Reach(
        "privileged",
        "a privileged container",
        (PODS,),
        _in_containers("securityContext", "privileged"),
        Test.NOT_TRUE,
    ),
    Reach("pod-driver", "the driver", (PODS,), (("volumes", ALL, "csi", "driver"),), grant="drivers"),
    Reach("pod-bucket", "the bucket", (PODS,), (("volumes", ALL),), Test.INLINE_LOCATION, "buckets"),
    Reach(
        "pod-attribute",
        "the volume attribute",
        (PODS,),
        (("volumes", ALL, "csi", "volumeAttributes"),),
        Test.NO_KEYS,
        "attributes",
        always=ATTRIBUTES,
        pattern=_ANY,
    ),
    Reach(
        "pod-option",
        "the mount options",
        (PODS,),
        (("volumes", ALL, *INLINE_OPTIONS), ("volumes", ALL, "csi", "volumeAttributes", "options")),
        Test.LIST,
        "options",
        always=(*OPTIONS, S3_OPTIONS),
    ),
    Reach("pod-volume", "a volume of type", (PODS,), (("volumes", ALL),), Test.NO_KEYS, pattern=_IN_TREE),
    Reach(
        "pod-storage",
        "the storage class",
        (PODS,),
        (("volumes", ALL, "ephemeral", "volumeClaimTemplate", *_CLAIM),),
        grant="storageClasses",
        always=("",),
    ),
)

_STORAGE_REACHES = (
    Reach(
        "storage",
        "the storage class",
        ("PersistentVolumeClaim",),
        (_CLAIM,),
        grant="storageClasses",
        always=("",),
    ),
    *(
        Reach(
            f"{row.kind.lower()}-storage",
            "the storage class",
            (row.type,),
            tuple((*path.replace("[]", ".[]").split("."), ALL, *_CLAIM) for path in row.claim_templates),
            grant="storageClasses",
            always=("",),
        )
        for row in KINDS.values()
        if row.claim_templates
    ),
    Reach(
        "volume-claim",
        "a volume for a claim in namespace",
        (_VOLUME,),
        (("spec", "claimRef", "namespace"),),
        Test.NAMESPACE,
        default="",
    ),
    Reach(
        "volume-driver", "the driver", (_VOLUME,), (("spec", "csi", "driver"),), grant="drivers", default=""
    ),
    Reach("volume", "a volume of type", (_VOLUME,), (("spec",),), Test.NO_KEYS, pattern=_IN_TREE),
    Reach(
        "volume-node",
        "nodes by the key",
        (_VOLUME,),
        _in_node_selector("spec", "nodeAffinity", "required", "nodeSelectorTerms", ALL),
        Test.KEY,
        "nodes",
        pattern=_NODE_KEYS,
    ),
    Reach(
        "volume-secret",
        "the Secret",
        (_VOLUME,),
        tuple(("spec", "csi", field) for field in _CSI_SECRETS),
        Test.REFERENCE,
        "references",
    ),
    Reach("volume-bucket", "the bucket", (_VOLUME,), (("spec",),), Test.LOCATION, "buckets"),
    Reach(
        "volume-attribute",
        "the volume attribute",
        (_VOLUME,),
        (("spec", "csi", "volumeAttributes"),),
        Test.NO_KEYS,
        "attributes",
        always=ATTRIBUTES,
        pattern=_ANY,
    ),
    Reach(
        "volume-option",
        "the mount options",
        (_VOLUME,),
        (
            ("spec", "mountOptions", ALL),
            ("spec", *INLINE_OPTIONS),
            ("spec", "csi", "volumeAttributes", "options"),
        ),
        Test.LIST,
        "options",
        always=(*OPTIONS, S3_OPTIONS),
    ),
)

_NETWORK_REACHES = (
    Reach("ingress-host", "the host", _INGRESS, ((*_RULES, "host"),), grant="hosts", default="*"),
    Reach("ingress-tls", "the host", _INGRESS, (("spec", "tls", ALL, "hosts", ALL),), grant="hosts"),
    Reach(
        "ingress-backend",
        "all hosts by a default backend",
        _INGRESS,
        (("spec", "defaultBackend"),),
        Test.MISSING,
    ),
    Reach("route-host", "the host", ROUTES, (("spec", "hostnames", ALL),), grant="hosts", default="*"),
    Reach(
        "gateway-host",
        "the host",
        _GATEWAY,
        (("spec", "listeners", ALL, "hostname"),),
        grant="hosts",
        default="*",
    ),
    Reach(
        "gateway-secret",
        "the Secret",
        _GATEWAY,
        (("spec", "listeners", ALL, "tls", "certificateRefs", ALL),),
        Test.REFERENCE,
        "references",
    ),
    Reach(
        "route",
        "the reference",
        ROUTES,
        (
            ("spec", "parentRefs", ALL),
            (*_RULES, "backendRefs", ALL),
            (*_RULES, "filters", ALL, "requestMirror", "backendRef"),
        ),
        Test.REFERENCE,
        "references",
    ),
    Reach(
        "dns",
        "the host",
        (),
        (("metadata", "annotations", "external-dns.alpha.kubernetes.io/hostname"),),
        grant="hosts",
    ),
    Reach(
        "snippet",
        "the annotation",
        (),
        (("metadata", "annotations"),),
        Test.NO_KEYS,
        pattern=r"nginx\.(ingress\.kubernetes\.io|org)/.*-snippets?",
    ),
    Reach(
        "service",
        "a Service of type",
        ("Service",),
        (("spec", "type"),),
        grant="services",
        always=("ClusterIP",),
    ),
    Reach("address", "external addresses", ("Service",), (("spec", "externalIPs"),), Test.MISSING),
    Reach(
        "monitor",
        "Pods of every namespace",
        _MONITORS,
        (("spec", "namespaceSelector", "any"),),
        Test.NOT_TRUE,
    ),
    Reach(
        "monitored",
        "Pods of namespace",
        _MONITORS,
        (("spec", "namespaceSelector", "matchNames", ALL),),
        Test.NAMESPACE,
    ),
    Reach(
        "scaler",
        "authentication of kind",
        _SCALERS,
        (("spec", "triggers", ALL, "authenticationRef", "kind"),),
        always=("TriggerAuthentication",),
    ),
)


def values_at(
    node: object, steps: Sequence[str], default: str | None = None, at: Path = ()
) -> Iterator[tuple[Path, object]]:
    """Yield the values at the end of a path with their places, or the default where there is none.

    Args:
        node: the value that the path starts at.
        steps: the path.
        default: what a missing value means; None for nothing.
        at: the place of the value that the path starts at.
    """
    if not steps:
        yield at, node
        return
    step, rest = steps[0], steps[1:]
    if step == ALL:
        items = node if isinstance(node, list) else []
        if not items and not rest and default is not None:
            yield at, default
        for number, item in enumerate(items):
            yield from values_at(item, rest, default, (*at, number))
    elif isinstance(node, dict) and node.get(step) is not None:
        yield from values_at(node[step], rest, default, (*at, step))
    elif default is not None and ALL not in rest[:-1]:
        yield at, default


def hosts_of(obj: Object) -> Iterator[str]:
    """Yield the hosts of an Ingress or a route."""
    kind = type_of(obj)
    for reach in _HOSTS:
        if kind in reach.types:
            for steps in reach.paths:
                yield from (str(value) for _, value in values_at(obj, steps))


def location(spec: Object, *, inline: bool = False) -> str:
    """Return the bucket that a volume mounts, with a slash at its end; empty where the driver is not known.

    Args:
        spec: of a PersistentVolume, or the volume of a pod.
        inline: whether it is the volume of a pod.
    """
    csi = mapping(spec.get("csi"))
    row = next((row for row in BUCKET_DRIVERS if row.driver == csi.get("driver")), None)
    if row is None:
        return ""
    name = next(
        (str(value) for _, value in values_at(csi, row.inline if inline else row.path)), ""
    ).partition(":")[0]
    folders = [
        option.replace(row.option, "")
        for option in mount_options(spec, inline=inline)
        if row.word and isinstance(option, str) and row.word in option
    ]
    return f"s3://{name}/{' '.join(folders)}"


def mount_options(spec: Object, *, inline: bool) -> list[object]:
    """Return the mount options of a PersistentVolume's `spec`, or of the volume of a pod."""
    if inline:
        return [part for _, value in values_at(spec, INLINE_OPTIONS) for part in str(value).split(",")]
    options = spec.get("mountOptions")
    return list(options) if isinstance(options, list) else []


REACHES: tuple[Reach, ...] = (*_POD_REACHES, *_STORAGE_REACHES, *_NETWORK_REACHES)
"""Every rule."""

_HOSTS = tuple(reach for reach in REACHES if reach.name in ("ingress-host", "route-host"))

USUAL_KINDS: tuple[str, ...] = tuple(
    sorted(
        {
            *(row.type for row in KINDS.values() if row.emitted and not is_cluster_type(row.kind, row.group)),
            _VOLUME,
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
