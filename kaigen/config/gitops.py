"""The block `gitops` of kaigen.yaml, for both Argo CD and Flux."""

import re
from typing import Annotated, Literal
from urllib.parse import urlsplit

from msgspec import Meta, field

from kaigen.config.network import Peer
from kaigen.kinds.base import RELATIVE_PATH, Duration, LabelName, Labels, ObjectName, Quantity, text
from kaigen.kinds.block import Block, derive_fields

Place = Annotated[str, text(r"^[^\s\x00-\x1f]+$", min_length=1, max_length=1024)]
Template = Annotated[str, text(r"^[^-\s\x00-\x1f][^\s\x00-\x1f]*$", min_length=1, max_length=250)]
Registry = Annotated[str, text(r"^oci://[A-Za-z0-9.-]+(:[0-9]+)?(/[A-Za-z0-9._{}-]+)*$")]


class Cluster(Block):
    """A cluster, as registered in Argo CD."""

    server: Annotated[
        Annotated[str, text(r"^https://[^\s]+$")] | None,
        Meta(description="URL of its API server.", examples=["https://kubernetes.default.svc"]),
    ] = None
    name: Annotated[
        ObjectName | None, Meta(description="Its name in Argo CD. Default, without `server`: its name in kaigen.yaml.")
    ] = None
    selector: Annotated[
        Labels | None,
        Meta(
            description="Selects all clusters in Argo CD with these labels, including new ones. Requires "
            "`applications: set`."
        ),
    ] = None


class ArgoCD(Block):
    """How Argo CD syncs."""

    namespace: Annotated[LabelName, Meta(description="Namespace of the Applications.")] = "argocd"
    applications: Annotated[
        Literal["each", "set"],
        Meta(
            description="`each`: one Application per app, with its own options. `set`: one ApplicationSet that "
            "finds apps as folders in Git."
        ),
    ] = "each"
    auto_sync: Annotated[bool, Meta(description="Sync changes automatically, and correct drift.")] = True
    signature_keys: Annotated[
        list[Annotated[str, text(r"^([0-9A-F]{16}|[0-9A-F]{40})$")]],
        Meta(
            description="GnuPG keys, by ID or fingerprint, of which one must have signed the commit that is synced. "
            "Import them into Argo CD.",
            examples=[["4AEE18F83AFDEB23"]],
        ),
    ] = field(default_factory=list)


class Decryption(Block):
    """How Flux decrypts SOPS files."""

    secret: Annotated[
        ObjectName | None, Meta(description="Secret with the age or PGP key. Default: the cloud identity.")
    ] = None


class Flux(Block):
    """How Flux syncs."""

    namespace: Annotated[LabelName, Meta(description="Namespace of the sources and Kustomizations.")] = "flux-system"
    interval: Annotated[Duration, Meta(description="Interval at which the source is checked.")] = "10m"
    timeout: Annotated[
        Duration | None,
        Meta(
            description="Time for an app to become healthy, including downloads of models, if its spec sets no "
            "deadline. Default: the time that its pods may take to start, or `1h` where that is not known."
        ),
    ] = None
    oci: Annotated[
        Registry | None,
        Meta(
            description="Artifact of manifests to read instead of the Git repository; `{env}` is replaced by the "
            "environment.",
            examples=["oci://registry.example.com/ml/{env}"],
        ),
    ] = None
    tag: Annotated[str, text(r"^[A-Za-z0-9_][A-Za-z0-9._-]{0,127}$", description="Tag of that artifact.")] = "latest"
    secret: Annotated[
        ObjectName | None,
        Meta(
            description="Secret with the credentials of the repository or registry. With "
            "`tenancy.serviceAccount`, each namespace needs it."
        ),
    ] = None
    charts_secret: Annotated[
        ObjectName | None,
        Meta(description="Secret with the credentials of the registry in `charts`. Default: `secret`."),
    ] = None
    verify_secret: Annotated[
        ObjectName | None,
        Meta(
            description="Secret with the public keys, as `NAME.pub`, of which one must have signed each artifact of a "
            "registry. With `tenancy.serviceAccount`, each namespace needs it."
        ),
    ] = None
    service_account: Annotated[
        ObjectName | None,
        Meta(
            description="ServiceAccount in this namespace that syncs what no account of a tenant syncs. Required "
            "where Flux runs with `--default-service-account`."
        ),
    ] = None
    decryption: Annotated[Decryption | None, Meta(description="Decrypt files that are encrypted with SOPS.")] = None


class Tenancy(Block):
    """Objects for each namespace in addition to the apps."""

    namespaces: Annotated[
        bool, Meta(description="Create the namespaces, with the Pod Security level of their apps.")
    ] = False
    quota: Annotated[
        dict[str, Quantity],
        Meta(
            description="Hard limits of a ResourceQuota in each namespace.", examples=[{"requests.nvidia.com/gpu": 8}]
        ),
    ] = field(default_factory=dict)
    default_deny: Annotated[
        list[Literal["Ingress", "Egress"]],
        Meta(
            description="Directions that a NetworkPolicy denies to all pods of the namespace. With `Egress`, "
            "name resolution stays allowed, and kaigen writes policies for what its own pods need; what is outside "
            "the cluster requires `network.downloadEgress` or your own policy."
        ),
    ] = field(default_factory=list)
    ingress_from: Annotated[
        list[Peer],
        Meta(
            description="Peers that may connect to Topologies without `service.allowFrom`, in addition to the pods of "
            "their namespace, where `defaultDeny` has `Ingress`: the ingress controller, the Gateways, Prometheus.",
            examples=[[{"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "ingress-nginx"}}}]],
        ),
    ] = field(default_factory=list)
    service_account: Annotated[
        LabelName | None,
        Meta(
            description="ServiceAccount to create in each namespace, with a Role for the kinds of its apps. The "
            "apps are synced as this account."
        ),
    ] = None
    admin_service_account: Annotated[
        Annotated[str, text(r"^[a-z0-9-]+:[a-z0-9.-]+$")] | None,
        Meta(
            description="Your ServiceAccount, as `NAMESPACE:NAME`, with which Argo CD creates namespaces and "
            "Applications. Required with `serviceAccount` and Argo CD."
        ),
    ] = None


class GitOps(Block):
    """The location of the rendered tree, and the tools that sync it.

    An environment has the same block. Its fields are merged over those of the file.
    """

    repository: Annotated[
        Place | None,
        Meta(
            description="URL of the Git repository with the rendered tree. Required, here or in the environment.",
            examples=["https://git.example.com/ml/deploy.git"],
        ),
    ] = None
    branch: Annotated[Template, Meta(description="Its branch; `{env}` is replaced by the environment.")] = "main"
    path: Annotated[
        Annotated[str, text(RELATIVE_PATH)] | None,
        Meta(
            description="Folder of the rendered tree in the repository; `{env}` is replaced by the environment. "
            "Default: the output folder in kaigen.yaml."
        ),
    ] = None
    project: Annotated[LabelName, Meta(description="Argo CD project; the environment is appended.")] = "kaigen"
    charts: Annotated[
        Registry | None, Meta(description="Registry that charts are synced from if only charts are rendered.")
    ] = None
    labels: Annotated[Labels, Meta(description="Labels of all objects for Argo CD and Flux.")] = field(
        default_factory=dict
    )
    argocd: Annotated[ArgoCD | None, Meta(description="Write objects for Argo CD. `{}` selects the defaults.")] = None
    flux: Annotated[Flux | None, Meta(description="Write objects for Flux. `{}` selects the defaults.")] = None
    tenancy: Annotated[Tenancy | None, Meta(description="Objects for each namespace in addition to the apps.")] = None


def resolve_gitops(block: GitOps | None, output: str) -> GitOps | None:
    """Return the block with the folder of the tree; None without the block, or without a repository.

    Args:
        block: the block of the environment.
        output: folder that the environment is rendered into.
    """
    if block is None or block.repository is None:
        return None
    return derive_fields(block, path=block.path or output)


_FLUX_URL = re.compile(r"(https?|ssh)://[^/?#]+(/.*)?")
"""URLs of a GitRepository (source: its CRD in source-controller 1.9, `^(http|https|ssh)://.*$`)."""

_SCP = re.compile(r"(?:ssh://)?(?:(?P<user>[^@/:\s]+)@)?(?P<host>[A-Za-z0-9.-]+):/?(?P<path>[^\s:]+)")
"""A repository in the short form of scp, also after `ssh://`, where the colon begins a port."""


def is_flux_url(url: str) -> bool:
    """Return whether Flux accepts the URL of a Git repository."""
    if not _FLUX_URL.fullmatch(url):
        return False
    try:
        return urlsplit(url).port != 0
    except ValueError:
        return False


def syncer_url(url: str) -> str:
    """Return the URL of a remote as Argo CD and Flux both read it; empty for one that a cluster cannot reach."""
    if is_flux_url(url):
        return url
    short = _SCP.fullmatch(url)
    if short is None or url.startswith(("http:", "https:", "git:", "file:", "oci:")):
        return ""
    return f"ssh://{short['user'] or 'git'}@{short['host']}/{short['path']}"


def flux_url_hint(url: str) -> str:
    """Return what to write in place of a URL that Flux does not accept."""
    example = "write its URL, such as `https://git.example.com/ml/deploy.git`"
    if found := syncer_url(url):
        return f"write `{found}`"
    scheme, separator, rest = url.partition("://")
    if not separator:
        return f"write `https://{url.lstrip('/')}`" if "." in url.partition("/")[0] else example
    if scheme == "file":
        return example
    if scheme == "oci":
        return "set `flux.oci` for an artifact, and `repository` to the URL of the Git repository"
    return f"write `https://{rest}` or `ssh://git@{rest}`"
