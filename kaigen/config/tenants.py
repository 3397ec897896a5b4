"""The block `tenants` of kaigen.yaml: which folders of specs own which namespaces, and what they reach outside."""

from ipaddress import ip_network
from typing import Annotated, Literal

from msgspec import Meta, field

from kaigen.kinds.base import RELATIVE_PATH, LabelName, Quantity, text
from kaigen.kinds.block import Block
from kaigen.kubernetes.buckets import SCHEMES

CLASS_KINDS = (
    "AppProject",
    "ClusterGenerator",
    "ClusterQueue",
    "DeviceClass",
    "GatewayClass",
    "IngressClass",
    "LoadBalancerClass",
    "RuntimeClass",
    "Scheduler",
    "ScrapeClass",
    "VolumeAttributesClass",
)
"""What precedes the name of a class in `classes`."""

_Glob = Annotated[str, text(r"^[^\s,\[\]]+$", max_length=512)]
_Folder = Annotated[str, text(RELATIVE_PATH, min_length=1)]
_Kind = Annotated[str, text(r"^[A-Z*][A-Za-z0-9*]*(\.[a-z0-9.*-]+)?$", max_length=253)]
_Bucket = Annotated[str, text(rf"^({'|'.join(SCHEMES)})://[^\s,\[\]]+$", max_length=1024)]
_Option = Annotated[str, text(r"^[^\t\n\r,\[\]]+$", max_length=512)]
_Host = Annotated[str, text(r"^[A-Za-z0-9*?._-]+$", max_length=253)]
_Class = Annotated[str, text(rf"^(\*|{'|'.join(CLASS_KINDS)})/[^\s,\[\]]+$", max_length=317)]
_Domain = Annotated[str, text(r"^[a-z0-9]([a-z0-9-]*[a-z0-9])?(\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)+$", max_length=253)]
_RIGHT = r"[a-z0-9*?-]+(/[a-z]+)?(\.[a-z0-9*?-]+)*(=[a-z*?]+)?"
_Right = Annotated[str, text(rf"^{_RIGHT}$", max_length=317)]
_Peer = Annotated[str, text(r"^([a-z0-9*?-]+|[0-9a-fA-F.:]+/[0-9]{1,3})$", max_length=63)]
_Reference = Annotated[str, text(r"^[a-z0-9*?.-]+/[a-z0-9*?.-]+$", max_length=317)]


class Budget(Block):
    """What the GPUs of a tenant's apps may cost."""

    per_hour: Annotated[
        float,
        Meta(
            ge=0,
            description="In an hour, in the currency of the catalog, USD by default: every autoscaler at its maximum, "
            "and every Job running.",
            examples=[40],
        ),
    ]


class TenantBlock(Block):
    """A team. What is in no list is denied. Lists of grants may use the wildcards `*` (also over `/`) and `?`."""

    folders: Annotated[
        list[_Folder], Meta(min_length=1, description="Folders of its specs.", examples=[["specs/team-a"]])
    ]
    namespaces: Annotated[
        list[LabelName], Meta(min_length=1, description="Namespaces that only this tenant uses.", examples=[["team-a"]])
    ]
    kinds: Annotated[
        list[_Kind] | None,
        Meta(
            description="Kinds of the objects that it may have, with their groups. Default: the kinds that kaigen "
            "creates, and the usual workloads.",
            examples=[["ConfigMap", "Deployment.apps", "Service"]],
        ),
    ] = None
    buckets: Annotated[
        list[_Bucket], Meta(description="Buckets and prefixes.", examples=[["s3://acme-models/team-a"]])
    ] = field(default_factory=list)
    drivers: Annotated[list[_Glob], Meta(description="CSI drivers of volumes.", examples=[["s3.csi.aws.com"]])] = field(
        default_factory=list
    )
    attributes: Annotated[list[_Glob], Meta(description="Attributes of CSI volumes, by key.", examples=[["share"]])] = (
        field(default_factory=list)
    )
    options: Annotated[
        list[_Option],
        Meta(
            description="Mount options of CSI volumes besides those that kaigen sets.",
            examples=[["endpoint-url https://minio.example.com"]],
        ),
    ] = field(default_factory=list)
    storage_classes: Annotated[
        list[_Glob],
        Meta(
            description="Storage classes of claims. List the cluster's default class too: the API server fills it in.",
            examples=[["fast-ssd"]],
        ),
    ] = field(default_factory=list)
    priority_classes: Annotated[list[_Glob], Meta(description="Priority classes of pods.", examples=[["team-a-*"]])] = (
        field(default_factory=list)
    )
    classes: Annotated[
        list[_Class],
        Meta(
            description="Classes that its objects may name, `KIND/NAME`. KIND is "
            + ", ".join(f"`{kind}`" for kind in CLASS_KINDS[:-1])
            + f" or `{CLASS_KINDS[-1]}`. List the cluster's default IngressClass too: the API server fills it in. The "
            "runtime class of the profile needs no entry.",
            examples=[["IngressClass/nginx", "RuntimeClass/nvidia", "DeviceClass/gpu.nvidia.com"]],
        ),
    ] = field(default_factory=list)
    hosts: Annotated[
        list[_Glob], Meta(description="Hosts of routes, gateways and DNS records.", examples=[["*.team-a.example.com"]])
    ] = field(default_factory=list)
    images: Annotated[
        list[_Glob],
        Meta(
            description="Images, as objects name them, with their registries. kaigen's own images need no entry.",
            examples=[["registry.example.com/team-a/*", "docker.io/vllm/*"]],
        ),
    ] = field(default_factory=list)
    references: Annotated[
        list[_Reference],
        Meta(
            description="Objects of other namespaces that routes, gateways and volumes refer to, `NAMESPACE/NAME`.",
            examples=[["gateways/public", "kube-system/csi-s3-secret"]],
        ),
    ] = field(default_factory=list)
    services: Annotated[
        list[_Glob], Meta(description="Types of Services besides `ClusterIP`.", examples=[["LoadBalancer"]])
    ] = field(default_factory=list)
    addresses: Annotated[
        list[_Glob],
        Meta(
            description="Addresses that load balancers, Gateways and endpoints of Services may name.",
            examples=[["192.0.2.10"]],
        ),
    ] = field(default_factory=list)
    servers: Annotated[
        list[_Host],
        Meta(
            description="Hosts of servers outside its namespaces that KEDA and Prometheus connect to for it.",
            examples=[["prometheus.monitoring", "*.example.com"]],
        ),
    ] = field(default_factory=list)
    triggers: Annotated[
        list[_Glob],
        Meta(
            description="Types of KEDA's triggers besides those whose servers kaigen knows. Of their "
            "fields, only servers that kaigen knows, URLs and files are checked.",
            examples=[["aws-sqs-queue"]],
        ),
    ] = field(default_factory=list)
    volumes: Annotated[
        list[_Glob],
        Meta(
            description="PersistentVolumes that its claims may name, besides those whose names begin with one of its "
            "namespaces.",
            examples=[["team-a-*", "shared-models"]],
        ),
    ] = field(default_factory=list)
    domains: Annotated[
        list[_Domain],
        Meta(
            description="Domains of its own: labels and annotations with these or their subdomains before the slash "
            "need no entry in `annotations`.",
            examples=[["team-a.example.com"]],
        ),
    ] = field(default_factory=list)
    annotations: Annotated[
        list[_Glob],
        Meta(
            description="Labels and annotations, `KEY` or `KEY=VALUE`, besides keys without a domain, those of "
            "`app.kubernetes.io`, `kaigen.dev`, `prometheus.io` and its own domains, and those that reach nothing.",
            examples=[
                [
                    "nginx.ingress.kubernetes.io/limit-*",
                    "eks.amazonaws.com/role-arn=arn:aws:iam::111122223333:role/team-a-*",
                ]
            ],
        ),
    ] = field(default_factory=list)
    roles: Annotated[
        list[_Right],
        Meta(
            description="Rights that its Roles may give, `RESOURCE[.GROUP]` or `RESOURCE[.GROUP]=VERB`, besides reads "
            "of workloads. A group that is not one of Kubernetes needs its whole name. Roles, bindings, tokens, "
            "Namespaces, quotas and NetworkPolicies cannot be granted.",
            examples=[["pods=create", "jobs.batch", "pytorchjobs.kubeflow.org"]],
        ),
    ] = field(default_factory=list)
    networks: Annotated[
        list[_Peer],
        Meta(
            description="What its NetworkPolicies may open in the directions of `gitops.tenancy.defaultDeny`: "
            "namespaces, and ranges of addresses. `*` is everything.",
            examples=[["monitoring", "10.20.0.0/16"]],
        ),
    ] = field(default_factory=list)
    nodes: Annotated[
        list[_Glob],
        Meta(
            description="Keys by which pods and volumes may choose a node by its name, or nodes of the control plane: "
            "labels, taints, and the fields `nodeName` and `metadata.name`. `*` allows tolerations of all taints, too.",
            examples=[["kubernetes.io/hostname", "node-role.kubernetes.io/control-plane"]],
        ),
    ] = field(default_factory=list)
    pod_security: Annotated[
        Literal["restricted", "baseline", "privileged"],
        Meta(
            description="The loosest Pod Security level that its pods may need. Builds of images need `privileged`. "
            "Privileged containers, host paths and namespaces of the node are denied at every level."
        ),
    ] = "restricted"
    gpus: Annotated[
        Annotated[int, Meta(ge=0)] | None,
        Meta(
            description="GPUs that all its apps together may request, and the limit of each kind of GPU in the "
            "ResourceQuotas of its namespaces. Default: any number."
        ),
    ] = None
    budget: Annotated[
        Budget | None, Meta(description="What the GPUs of all its apps together may cost. Default: any amount.")
    ] = None
    quota: Annotated[
        dict[str, Quantity],
        Meta(
            description="Hard limits of the ResourceQuota in each of its namespaces, over `gitops.tenancy.quota`.",
            examples=[{"requests.memory": "512Gi"}],
        ),
    ] = field(default_factory=dict)
    quotas: Annotated[
        dict[LabelName, dict[str, Quantity]],
        Meta(description="Other hard limits by namespace, over `quota`.", examples=[{"team-a-dev": {"pods": 20}}]),
    ] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Check the ranges of addresses.

        Raises:
            ValueError: one of them is none.
        """
        for entry in self.networks:
            if "/" in entry:
                try:
                    ip_network(entry)
                except ValueError as error:
                    raise ValueError(f"`networks`: {error}") from None


class TenantChange(TenantBlock):
    """A tenant in an environment: fields that replace those of the file, or a whole tenant."""

    folders: Annotated[list[_Folder], Meta(description="Folders of its specs.")] = field(default_factory=list)
    namespaces: Annotated[list[LabelName], Meta(description="Namespaces that only this tenant uses.")] = field(
        default_factory=list
    )
