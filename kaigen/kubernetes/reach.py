"""The table of fields by which an object reaches outside its namespace.

The check of specs and the admission policies are both made from this table.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from enum import Enum, auto
from typing import NamedTuple

from kaigen.catalog import controllers
from kaigen.kubernetes.kind_table import KINDS
from kaigen.kubernetes.manifest import Object, Path, mapping, type_of
from kaigen.kubernetes.object_kind import ObjectKind
from kaigen.kubernetes.pod_security import Control
from kaigen.kubernetes.queues import PRIORITY_LABEL
from kaigen.kubernetes.schemas import is_cluster_type

ALL = "[]"
"""A step of a path: every item of a list."""

VALUES = "{}"
"""A step of a path: every value of a mapping."""

PODS = "pods"
"""In place of a type: the pods of every kind; paths start at their `spec`."""

TEMPLATES = "templates"
"""In place of a type: the metadata of objects that are made of an object, at `TEMPLATE_PATHS`."""

ROUTES = ("HTTPRoute.gateway.networking.k8s.io", "GRPCRoute.gateway.networking.k8s.io")
OPTION = r"(--[a-z0-9-]+=)?"
"""What may precede the URI of a bucket in an argument, as a pattern of RE2 and Python."""

URI = rf"{OPTION}(s3|gs)://"
"""The beginning of an argument with the URI of a bucket."""


_BUCKET_NAME = ("volumeAttributes", "bucketName")

EXCLUDES = ("NotIn", "DoesNotExist")
"""Operators by which a node affinity avoids nodes."""


BUILD_OPTION = r"--(output|import-cache|export-cache)="
"""The beginning of an argument by which BuildKit reads or writes images, as a pattern of RE2 and Python."""

BUILD_IMAGE = r'(--[a-z-]+=)?"? *(ref|name)='
"""What precedes the image in a field of such an argument, as a pattern of RE2 and Python."""

URL_SCHEME = r"[A-Za-z][A-Za-z0-9+.-]*://"
URL_REST = r"(:[0-9]+)?([/?][\s\S]*)?"
"""What precedes and follows the host of a URL, as patterns of RE2 and Python."""

WORKLOAD_IDENTITIES = ("none", "aws-eks")
"""Providers of KEDA's pod identities that are never the identity of KEDA itself (source: KEDA's documentation)."""

_STORAGE_ANNOTATION = ("metadata", "annotations", "volume.beta.kubernetes.io/storage-class")
"""The annotation that overrides the storage class of a claim (source: Kubernetes, well-known annotations)."""


class BucketDriver(NamedTuple):
    """Where a volume names the bucket that a CSI driver mounts.

    Attributes:
        driver: name of the CSI driver.
        scheme: of the URI of its buckets.
        path: steps from the `csi` of a PersistentVolume to the name of the bucket, which a colon ends; a folder may
            follow a slash.
        inline: the same steps from the `csi` of a pod's volume.
        option: beginning of the mount option with the folder; empty for none.
        word: a word in every spelling of that option.
    """

    driver: str
    scheme: str
    path: tuple[str, ...]
    inline: tuple[str, ...]
    option: str = ""
    word: str = ""


BUCKET_DRIVERS = (
    BucketDriver("ru.yandex.s3.csi", "s3", ("volumeHandle",), ("volumeHandle",)),
    BucketDriver("s3.csi.aws.com", "s3", _BUCKET_NAME, _BUCKET_NAME, "prefix ", "prefix"),
    BucketDriver(
        "gcsfuse.csi.storage.gke.io", "gs", ("volumeHandle",), _BUCKET_NAME, "only-dir=", "only-dir"
    ),
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
    MATCHES = auto()
    """A text that `pattern` matches."""
    BUILD = auto()
    """A text without an image that BuildKit reads or writes, or with one that the tenant is granted."""
    SERVER = auto()
    """A text that is no URL, or that of a server in one of the tenant's namespaces or that the tenant is granted."""
    VOLUME = auto()
    """A text that begins with one of the tenant's namespaces and a hyphen, or that the tenant is granted."""
    IDENTITY = auto()
    """A pod identity of KEDA that is not that of KEDA itself."""
    CONTROLLER_KEYS = auto()
    """Metadata whose labels and annotations are granted to the tenant where controllers obey them."""
    RAW_KEYS = auto()
    """Metadata without annotations that controllers insert into their configuration."""
    HOSTS = auto()
    """Metadata whose annotations name only hosts that the tenant is granted."""


METADATA_TESTS = (Test.CONTROLLER_KEYS, Test.RAW_KEYS, Test.HOSTS)
"""The tests of metadata."""


Step = tuple[str, ...]


class Reach(NamedTuple):
    """A way by which objects reach outside their namespace.

    Attributes:
        name: of the rule; unique.
        what: the value in messages, as in `the image`.
        types: kinds with their groups, `PODS` or `TEMPLATES`; empty for any.
        paths: steps from the root of the object, from the `spec` of a pod, or from the metadata of a template.
        test: what the value must be.
        grant: field of a tenant that lists what is granted; empty where nothing can be.
        default: what a missing value means; None for nothing.
        always: values that need no grant.
        pattern: of keys, for `Test.NO_KEYS` and `Test.KEY`, or of texts, for `Test.MATCHES`.
        created: of Pods only those that are created, because the scheduler sets the field later.
        kept: an update may keep the value at a path through no list, because a controller may have set it.
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
    kept: bool = False


def _in_containers(*path: str) -> tuple[Step, ...]:
    return tuple((field, ALL, *path) for field in ("containers", "initContainers", "ephemeralContainers"))


_VOLUME = "PersistentVolume"
_INGRESS = ("Ingress.networking.k8s.io",)
_GATEWAY = ("Gateway.gateway.networking.k8s.io",)
_SCALERS = ("ScaledObject.keda.sh", "ScaledJob.keda.sh")
_MONITORS = ("PodMonitor.monitoring.coreos.com", "ServiceMonitor.monitoring.coreos.com")
_RULES = ("spec", "rules", ALL)
_MIRROR = ("requestMirror", "backendRef")
_ENDPOINTS = (("spec", "podMetricsEndpoints", ALL), ("spec", "endpoints", ALL))
_TRIGGER = ("spec", "triggers", ALL, "metadata")
_AUTHENTICATION = ("TriggerAuthentication.keda.sh",)
_TARGET_LABEL = (
    "_?[A-Za-z][A-Za-z0-9_]*|__(metrics_path|scheme|scrape_(interval|timeout))__|__(param|tmp)_[A-Za-z0-9_]*"
)
"""Labels that relabelling may set. Others, such as `__address__`, decide which server Prometheus asks (source: the
documentation of Prometheus, relabel_config)."""
_RELABEL_ACTIONS = (
    "(?i:replace|keep|drop|hashmod|labeldrop|labelkeep|lowercase|uppercase|keepequal|dropequal)"
)
"""All but labelmap, which may set any label."""
_CLAIM = ("spec", "storageClassName")
_SOURCE = ("spec", "dataSourceRef")
_EPHEMERAL = ("volumes", ALL, "ephemeral", "volumeClaimTemplate")
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
    Reach(
        "build",
        "the image",
        (PODS,),
        (*_in_containers("command", ALL), *_in_containers("args", ALL)),
        Test.BUILD,
        "images",
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
        ((*_EPHEMERAL, *_CLAIM), (*_EPHEMERAL, *_STORAGE_ANNOTATION)),
        grant="storageClasses",
        always=("",),
    ),
    Reach("pod-source", "the data of", (PODS,), ((*_EPHEMERAL, *_SOURCE),), Test.REFERENCE, "references"),
)


def _in_claims(row: ObjectKind, *paths: Step) -> tuple[Step, ...]:
    """Return the paths in the claims that a kind makes."""
    places = (place.replace("[]", ".[]").split(".") for place in row.claim_templates)
    return tuple((*place, ALL, *path) for place in places for path in paths)


_VOLUME_NAME = ("spec", "volumeName")
_WITH_CLAIMS = ("PersistentVolumeClaim", *(row.type for row in KINDS.values() if row.claim_templates))
_STORAGE_REACHES = (
    Reach(
        "storage",
        "the storage class",
        ("PersistentVolumeClaim",),
        (_CLAIM, _STORAGE_ANNOTATION),
        grant="storageClasses",
        always=("",),
    ),
    *(
        Reach(
            f"{row.kind.lower()}-storage",
            "the storage class",
            (row.type,),
            _in_claims(row, _CLAIM, _STORAGE_ANNOTATION),
            grant="storageClasses",
            always=("",),
        )
        for row in KINDS.values()
        if row.claim_templates
    ),
    Reach(
        "claim-source",
        "the data of",
        _WITH_CLAIMS,
        (_SOURCE, *(path for row in KINDS.values() for path in _in_claims(row, _SOURCE))),
        Test.REFERENCE,
        "references",
    ),
    Reach(
        "claim-volume",
        "the volume",
        _WITH_CLAIMS,
        (_VOLUME_NAME, *(path for row in KINDS.values() for path in _in_claims(row, _VOLUME_NAME))),
        Test.VOLUME,
        "volumes",
        kept=True,
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
            (*_RULES, "filters", ALL, *_MIRROR),
            (*_RULES, "backendRefs", ALL, "filters", ALL, *_MIRROR),
        ),
        Test.REFERENCE,
        "references",
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
        "monitor-server",
        "the server",
        _MONITORS,
        tuple((*place, *path) for place in _ENDPOINTS for path in (("proxyUrl",), ("oauth2", "tokenUrl"))),
        Test.SERVER,
        "servers",
    ),
    Reach(
        "monitor-label",
        "relabelling to",
        _MONITORS,
        tuple((*place, "relabelings", ALL, "targetLabel") for place in _ENDPOINTS),
        Test.MATCHES,
        pattern=_TARGET_LABEL,
    ),
    Reach(
        "monitor-action",
        "relabelling by",
        _MONITORS,
        tuple((*place, "relabelings", ALL, "action") for place in _ENDPOINTS),
        Test.MATCHES,
        pattern=_RELABEL_ACTIONS,
    ),
    Reach("scaler-server", "the server", _SCALERS, ((*_TRIGGER, VALUES),), Test.SERVER, "servers"),
    Reach(
        "scaler-identity",
        "the identity of",
        _SCALERS,
        ((*_TRIGGER, "identityOwner"),),
        always=("pod",),
    ),
    Reach(
        "authentication-identity",
        "the identity of KEDA by the provider",
        _AUTHENTICATION,
        tuple(
            ("spec", *place, "podIdentity")
            for place in ((), ("awsSecretManager",), ("azureKeyVault",), ("gcpSecretManager",))
        ),
        Test.IDENTITY,
    ),
    Reach(
        "authentication-server",
        "the server",
        _AUTHENTICATION,
        (("spec", "hashiCorpVault", "address"), ("spec", "azureKeyVault", "vaultUri")),
        Test.SERVER,
        "servers",
    ),
    Reach(
        "scaler",
        "authentication of kind",
        _SCALERS,
        (("spec", "triggers", ALL, "authenticationRef", "kind"),),
        always=("TriggerAuthentication",),
    ),
)

_METADATA = (("metadata",),)
_METADATA_REACHES = (
    Reach(
        "queue-priority",
        "the priority class",
        (),
        (("metadata", "labels", PRIORITY_LABEL),),
        grant="priorityClasses",
    ),
    Reach(
        "template-queue-priority",
        "the priority class",
        (TEMPLATES,),
        (("labels", PRIORITY_LABEL),),
        grant="priorityClasses",
    ),
    Reach("annotated-host", "the host", (), _METADATA, Test.HOSTS, "hosts"),
    Reach("template-host", "the host", (TEMPLATES,), ((),), Test.HOSTS, "hosts"),
    Reach("snippet", "the annotation", (), _METADATA, Test.RAW_KEYS),
    Reach("annotation", "the label or annotation", (), _METADATA, Test.CONTROLLER_KEYS, "annotations"),
    Reach(
        "template-annotation",
        "the label or annotation",
        (TEMPLATES,),
        ((),),
        Test.CONTROLLER_KEYS,
        "annotations",
    ),
    Reach(
        "claim-annotation",
        "the label or annotation",
        (PODS,),
        (("volumes", ALL, "ephemeral", "volumeClaimTemplate", "metadata"),),
        Test.CONTROLLER_KEYS,
        "annotations",
    ),
)


_OF_JOB = ".spec.template"


def _template_paths() -> dict[str, tuple[Step, ...]]:
    """Return where the metadata of templates are, by type; that of an object itself is left out."""
    found: dict[str, list[Step]] = {
        "Certificate.cert-manager.io": [("spec", "secretTemplate")],
        "ExternalSecret.external-secrets.io": [("spec", "target", "template", "metadata")],
        _GATEWAY[0]: [("spec", "infrastructure")],
    }
    for row in KINDS.values():
        pods = [place.path for place in row.pods if place.path]
        # The template of a Job around the template of its pods.
        jobs = [path.removesuffix(_OF_JOB) for path in pods if path.endswith(_OF_JOB)]
        claims = [f"{path}[]" for path in row.claim_templates]
        paths = [(*path.replace("[]", ".[]").split("."), "metadata") for path in (*pods, *jobs, *claims)]
        if paths:
            found.setdefault(row.type, []).extend(paths)
    return {type_: tuple(paths) for type_, paths in found.items()}


TEMPLATE_PATHS = _template_paths()
"""Where an object has the metadata of objects that are made of it, by type."""


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
    elif step == VALUES:
        for key, item in mapping(node).items():
            yield from values_at(item, rest, default, (*at, str(key)))
    elif isinstance(node, dict) and node.get(step) is not None:
        yield from values_at(node[step], rest, default, (*at, step))
    elif default is not None and ALL not in rest[:-1]:
        yield at, default


def hosts_of(obj: Object) -> Iterator[str]:
    """Yield the hosts of an Ingress or a route, and those that annotations of any object name."""
    yield from annotated_hosts(mapping(mapping(obj.get("metadata")).get("annotations")))
    kind = type_of(obj)
    for reach in _HOSTS:
        if kind in reach.types:
            for steps in reach.paths:
                yield from (str(value) for _, value in values_at(obj, steps))


def annotated_hosts(annotations: Mapping[str, object]) -> Iterator[str]:
    """Yield the hosts of annotations by which controllers serve or register hosts."""
    for key in controllers.host_keys():
        value = annotations.get(key)
        if isinstance(value, str):
            yield from value.replace(",", " ").split()


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
    return f"{row.scheme}://{name}/{' '.join(folders)}"


def mount_options(spec: Object, *, inline: bool) -> list[object]:
    """Return the mount options of a PersistentVolume's `spec`, or of the volume of a pod."""
    if inline:
        return [part for _, value in values_at(spec, INLINE_OPTIONS) for part in str(value).split(",")]
    options = spec.get("mountOptions")
    return list(options) if isinstance(options, list) else []


REACHES: tuple[Reach, ...] = (
    *_POD_REACHES,
    *_STORAGE_REACHES,
    *_NETWORK_REACHES,
    *_METADATA_REACHES,
)
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
