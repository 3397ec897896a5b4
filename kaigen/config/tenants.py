"""The block `tenants` of kaigen.yaml: which folders of specs own which namespaces, and what they reach outside."""

import posixpath
from collections.abc import Mapping, Sequence
from ipaddress import ip_network
from typing import Annotated, Literal

from msgspec import Meta, field
from msgspec.structs import replace

from kaigen.catalog.profiles import get_profile
from kaigen.config.controller_keys import common_entries, controller_of
from kaigen.config.layers import Layers
from kaigen.config.reserved import reserved_names
from kaigen.config.settings import Config
from kaigen.config.tenant_settings import Tenant, contains
from kaigen.diagnostics.collector import Diagnostics
from kaigen.diagnostics.diagnostic import Diagnostic, Mark
from kaigen.diagnostics.suggest import did_you_mean
from kaigen.kinds.base import RELATIVE_PATH, LabelName, Quantity, text
from kaigen.kinds.block import Block
from kaigen.kubernetes.buckets import SCHEMES
from kaigen.kubernetes.names import is_system_namespace
from kaigen.kubernetes.rights import USUAL_KINDS

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


def tenant_settings(
    blocks: Mapping[str, TenantBlock],
    images: Mapping[str, str],
    profile: str,
    *common: Mapping[str, str],
    gpus: Sequence[str] = (),
) -> tuple[Tenant, ...]:
    """Return the tenants of kaigen.yaml.

    Args:
        blocks: by name.
        images: kaigen's own images by name.
        profile: name of the profile.
        common: the labels and the annotations that kaigen.yaml gives to every object.
        gpus: the resources of GPUs, which quotas limit.
    """
    own = common_entries(*common) if blocks else ()
    classes = profile_classes(profile) if blocks else ()
    return tuple(
        Tenant(
            name,
            tuple(posixpath.normpath(folder) for folder in block.folders),
            tuple(block.namespaces),
            {
                "kinds": tuple(USUAL_KINDS if block.kinds is None else block.kinds),
                "buckets": tuple(block.buckets),
                "drivers": tuple(block.drivers),
                "attributes": tuple(block.attributes),
                "options": tuple(block.options),
                "storageClasses": tuple(block.storage_classes) or default_classes(profile),
                "priorityClasses": tuple(block.priority_classes),
                "classes": (*block.classes, *classes),
                "hosts": tuple(block.hosts),
                "images": (*block.images, *sorted(images.values())),
                "references": tuple(block.references),
                "services": tuple(block.services),
                "addresses": tuple(block.addresses),
                "servers": tuple(block.servers),
                "triggers": tuple(block.triggers),
                "volumes": tuple(block.volumes),
                "domains": tuple(block.domains),
                "annotations": (*block.annotations, *own),
                "nodes": tuple(block.nodes),
                "roles": tuple(block.roles),
                "networks": tuple(block.networks),
            },
            block.gpus,
            block.pod_security,
            quotas={namespace: quota for namespace in block.namespaces if (quota := _quota(block, namespace, gpus))},
            per_hour=block.budget.per_hour if block.budget is not None else None,
        )
        for name, block in blocks.items()
    )


def _quota(block: TenantBlock, namespace: str, gpus: Sequence[str]) -> dict[str, str]:
    limits = {f"requests.{name}": str(block.gpus) for name in gpus if block.gpus is not None}
    return {**limits, **block.quota, **block.quotas.get(namespace, {})}


def default_classes(profile: str) -> tuple[str, ...]:
    """Return the storage class that a profile gives to volumes; none where it leaves that to the cluster."""
    name = get_profile(profile).storage_class
    return (name,) if name else ()


def profile_classes(profile: str) -> tuple[str, ...]:
    """Return the classes that a profile gives to pods, as `KIND/NAME`."""
    name = get_profile(profile).gpu_runtime_class
    return (f"RuntimeClass/{name}",) if name else ()


def delivered_tenants(config: Config) -> tuple[Tenant, ...]:
    """Return the tenants of settings, with what `gitops` and `network` say of names and connections."""
    tenancy = config.gitops.tenancy if config.gitops is not None else None
    return tuple(
        replace(
            tenant,
            others=tuple(
                place
                for other in config.tenants
                if other.name != tenant.name
                for place in other.namespaces
                if any(place.startswith(f"{own}-") for own in tenant.namespaces)
            ),
            reserved=reserved_names(config.gitops, config.environment, tenant.namespaces, config.syncer_secrets),
            denied=tuple(tenancy.default_deny) if tenancy is not None else (),
            network=config.network,
        )
        for tenant in config.tenants
    )


def check_environment(layers: Layers, problems: Diagnostics) -> None:
    """Report tenants of an environment that the file does not have, and which have no folders or namespaces."""
    known = layers.layers[0][1].get("tenants", {}) if layers.layers else {}
    for place, layer in layers.layers[1:]:
        for name, block in layer.get("tenants", {}).items():
            missing = [each for each in ("folders", "namespaces") if name not in known and each not in block]
            if missing:
                message = f"the file has no tenant `{name}`, and this one has no `{missing[0]}`"
                hint = did_you_mean(name, known) or f"set {' and '.join(f'`{each}`' for each in missing)}"
                mark = layers.mark_of((*place, "tenants", name), key=True)
                problems.add(Diagnostic("KG0746", message, mark, hint))


def check_tenants(
    blocks: Mapping[str, TenantBlock], layers: Layers, problems: Diagnostics, *, creates: bool = True
) -> None:
    """Report what two tenants have, folders with wildcards, namespaces and domains that are not of tenants, and quotas
    that apply to nothing.

    Args:
        blocks: the tenants by name.
        layers: where their fields are.
        problems: receives the errors.
        creates: whether `gitops.tenancy` creates objects in the namespaces.
    """
    _check_places(blocks, layers, problems)
    for name, block in blocks.items():
        known = _namespaces(name, block, layers)
        for namespace in block.quotas:
            if namespace not in known:
                message = f"`{namespace}` is no namespace of tenant `{name}`"
                hint = did_you_mean(namespace, known) or f"known: {', '.join(known)}"
                mark = layers.mark("tenants", name, "quotas", namespace, key=True)
                problems.add(Diagnostic("KG0746", message, mark, hint))
        if (block.quota or block.quotas) and not creates:
            field_name = "quota" if block.quota else "quotas"
            message = f"nothing creates the quotas of tenant `{name}`: kaigen.yaml has no `gitops.tenancy`"
            mark = layers.mark("tenants", name, field_name, key=True)
            problems.add(Diagnostic("KG0746", message, mark, "set `gitops.tenancy: {}`"))
    for name, block in blocks.items():
        for index, namespace in enumerate(block.namespaces):
            if is_system_namespace(namespace):
                message = f"`{namespace}` is a namespace of Kubernetes or of a cluster service, and not of a tenant"
                mark = _entry(layers, name, "namespaces", index)
                problems.add(Diagnostic("KG0745", message, mark, "choose another namespace"))
        for index, domain in enumerate(block.domains):
            if by := controller_of(domain):
                message = f"`{domain}` is not a domain of a tenant: keys of it, or of a part of it, are read by {by}"
                mark = _entry(layers, name, "domains", index)
                problems.add(Diagnostic("KG0744", message, mark, "list single keys in `annotations`"))


def _namespaces(name: str, block: TenantBlock, layers: Layers) -> list[str]:
    """Return the namespaces of a tenant in this and in all other environments."""
    file = layers.layers[0][1] if layers.layers else {}
    blocks = [each.get("tenants", {}).get(name, {}) for each in (file, *file.get("environments", {}).values())]
    return list(dict.fromkeys([*block.namespaces, *(place for each in blocks for place in each.get("namespaces", ()))]))


def _entry(layers: Layers, name: str, field_name: str, index: int) -> Mark:
    return layers.mark_of((*layers.path("tenants", name, field_name), index))


def _check_places(blocks: Mapping[str, TenantBlock], layers: Layers, problems: Diagnostics) -> None:
    seen: dict[tuple[str, str], str] = {}
    for name, block in blocks.items():
        for field_name, values in (("folders", block.folders), ("namespaces", block.namespaces)):
            for index, value in enumerate(values):
                if field_name == "folders":
                    value = posixpath.normpath(value)
                    if any(char in value for char in "*?["):
                        message = f"`{value}` has a wildcard, and `folders` are names"
                        mark = _entry(layers, name, field_name, index)
                        problems.add(Diagnostic("KG0743", message, mark, "list each folder"))
                other = seen.setdefault((field_name, value), name)
                for (kind, taken), owner in seen.items():
                    inside = contains(taken, value) or contains(value, taken)
                    if kind == field_name == "folders" and owner != name and inside:
                        other = owner
                if other != name:
                    message = f"tenant `{other}` has `{value}`, or a folder above or below it, too"
                    mark = _entry(layers, name, field_name, index)
                    problems.add(Diagnostic("KG0742", message, mark, "remove it from one of the two tenants"))
