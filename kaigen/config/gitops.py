"""The block `gitops` of kaigen.yaml, for both Argo CD and Flux."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal

from msgspec import convert
from msgspec.structs import replace
from pydantic import Field

from kaigen.config.gitops_settings import (
    ArgoCDSettings,
    ClusterSettings,
    FluxSettings,
    GitOpsSettings,
    TenancySettings,
)
from kaigen.kinds.base import RELATIVE_PATH, Block, Duration, LabelName, Labels, ObjectName, Quantity

Place = Annotated[str, Field(min_length=1, max_length=1024, pattern=r"^[^\s\x00-\x1f]+$")]
Template = Annotated[str, Field(min_length=1, max_length=250, pattern=r"^[^-\s\x00-\x1f][^\s\x00-\x1f]*$")]
Registry = Annotated[str, Field(pattern=r"^oci://[A-Za-z0-9.-]+(:[0-9]+)?(/[A-Za-z0-9._{}-]+)*$")]


class Cluster(Block):
    """A cluster, as registered in Argo CD."""

    server: Annotated[str, Field(pattern=r"^https://[^\s]+$")] | None = Field(
        None, description="URL of its API server.", examples=["https://kubernetes.default.svc"]
    )
    name: ObjectName | None = Field(
        None, description="Its name in Argo CD. Default, without `server`: its name in kaigen.yaml."
    )
    selector: Labels | None = Field(
        None,
        description="Selects all clusters in Argo CD with these labels, including new ones. Requires "
        "`applications: set`.",
    )


class ArgoCD(Block):
    """How Argo CD syncs."""

    namespace: LabelName = Field("argocd", description="Namespace of the Applications.")
    applications: Literal["each", "set"] = Field(
        "each",
        description="`each`: one Application per app, with its own options. `set`: one ApplicationSet that "
        "finds apps as folders in Git.",
    )
    auto_sync: bool = Field(True, description="Sync changes automatically, and correct drift.")


class Decryption(Block):
    """How Flux decrypts SOPS files."""

    secret: ObjectName | None = Field(
        None, description="Secret with the age or PGP key. Default: the cloud identity."
    )


class Flux(Block):
    """How Flux syncs."""

    namespace: LabelName = Field("flux-system", description="Namespace of the sources and Kustomizations.")
    interval: Duration = Field("10m", description="Interval at which the source is checked.")
    timeout: Duration | None = Field(
        None,
        description="Time for an app to become healthy, including downloads of models, if its spec sets no "
        "deadline. Default: the time that its pods may take to start, or `1h` where that is not known.",
    )
    oci: Registry | None = Field(
        None,
        description="Artifact of manifests to read instead of the Git repository; `{env}` is replaced by "
        "the environment.",
        examples=["oci://registry.example.com/ml/{env}"],
    )
    tag: Annotated[str, Field(pattern=r"^[A-Za-z0-9_][A-Za-z0-9._-]{0,127}$")] = Field(
        "latest", description="Tag of that artifact."
    )
    secret: ObjectName | None = Field(
        None,
        description="Secret with the credentials of the repository or registry. With `tenancy.serviceAccount`, "
        "each namespace needs it.",
    )
    charts_secret: ObjectName | None = Field(
        None, description="Secret with the credentials of the registry in `charts`. Default: `secret`."
    )
    service_account: ObjectName | None = Field(
        None,
        description="ServiceAccount in this namespace that syncs what no account of a tenant syncs. Required where "
        "Flux runs with `--default-service-account`.",
    )
    decryption: Decryption | None = Field(None, description="Decrypt files that are encrypted with SOPS.")


class Tenancy(Block):
    """Objects for each namespace in addition to the apps."""

    namespaces: bool = Field(
        False, description="Create the namespaces, with the Pod Security level of their apps."
    )
    quota: dict[str, Quantity] = Field(
        {},
        description="Hard limits of a ResourceQuota in each namespace.",
        examples=[{"requests.nvidia.com/gpu": 8}],
    )
    default_deny: list[Literal["Ingress", "Egress"]] = Field(
        [],
        description="Directions that a NetworkPolicy denies to all pods of the namespace. With `Egress`, name "
        "resolution stays allowed; everything else, including downloads of models, requires your own policy.",
    )
    service_account: LabelName | None = Field(
        None,
        description="ServiceAccount to create in each namespace, with a Role for the kinds of its apps. The apps "
        "are synced as this account.",
    )
    admin_service_account: Annotated[str, Field(pattern=r"^[a-z0-9-]+:[a-z0-9.-]+$")] | None = Field(
        None,
        description="Your ServiceAccount, as `NAMESPACE:NAME`, with which Argo CD creates namespaces and "
        "Applications. Required with `serviceAccount` and Argo CD.",
    )


class GitOps(Block):
    """The location of the rendered tree, and the tools that sync it."""

    repository: Place = Field(
        description="URL of the Git repository with the rendered tree.",
        examples=["https://git.example.com/ml/deploy.git"],
    )
    branch: Template = Field("main", description="Its branch; `{env}` is replaced by the environment.")
    path: Annotated[str, Field(pattern=RELATIVE_PATH)] | None = Field(
        None,
        description="Folder of the rendered tree in the repository; `{env}` is replaced by the environment. "
        "Default: the output folder in kaigen.yaml.",
    )
    project: LabelName = Field("kaigen", description="Argo CD project; the environment is appended.")
    charts: Registry | None = Field(
        None, description="Registry that charts are synced from if only charts are rendered."
    )
    labels: Labels = Field({}, description="Labels of all objects for Argo CD and Flux.")
    argocd: ArgoCD | None = Field(None, description="Write objects for Argo CD. `{}` selects the defaults.")
    flux: Flux | None = Field(None, description="Write objects for Flux. `{}` selects the defaults.")
    tenancy: Tenancy | None = Field(None, description="Objects for each namespace in addition to the apps.")


class GitOpsOverrides(Block):
    """Environment overrides of `gitops`."""

    repository: Place | None = Field(None, description="URL of the Git repository.")
    branch: Template | None = Field(None, description="Its branch.")
    path: Annotated[str, Field(pattern=RELATIVE_PATH)] | None = Field(
        None, description="Folder of the rendered tree in the repository."
    )
    auto_sync: bool | None = Field(None, description="Sync changes automatically with Argo CD.")
    tenancy: Tenancy | None = Field(None, description="Replaces `tenancy` for the environment.")


def gitops_settings(
    block: GitOps | None, output: str, clusters: Mapping[str, Cluster], own: GitOpsOverrides | None
) -> GitOpsSettings | None:
    """Return the settings of one environment; None without the block.

    Args:
        block: the block of kaigen.yaml.
        output: folder that the environment is rendered into.
        clusters: the environment's clusters by name; empty for the cluster that Argo CD runs in.
        own: what the environment overrides.
    """
    if block is None:
        return None
    flux = block.flux
    settings = GitOpsSettings(
        repository=block.repository,
        branch=block.branch,
        path=block.path or output,
        project=block.project,
        charts=block.charts,
        labels=block.labels,
        argocd=convert(block.argocd.model_dump(by_alias=False), ArgoCDSettings) if block.argocd else None,
        flux=FluxSettings(
            **flux.model_dump(by_alias=False, exclude={"decryption"}),
            decrypt=flux.decryption is not None,
            decryption_secret=flux.decryption.secret if flux.decryption else None,
        )
        if flux
        else None,
        tenancy=_tenancy(block.tenancy),
        clusters={
            name: convert(each.model_dump(by_alias=False), ClusterSettings) for name, each in clusters.items()
        },
    )
    return _overridden(settings, own) if own else settings


def _overridden(settings: GitOpsSettings, own: GitOpsOverrides) -> GitOpsSettings:
    argocd = settings.argocd
    if argocd is not None and own.auto_sync is not None:
        argocd = replace(argocd, auto_sync=own.auto_sync)
    return replace(
        settings,
        repository=own.repository or settings.repository,
        branch=own.branch or settings.branch,
        path=own.path or settings.path,
        argocd=argocd,
        tenancy=_tenancy(own.tenancy) or settings.tenancy,
    )


def _tenancy(block: Tenancy | None) -> TenancySettings | None:
    return convert(block.model_dump(by_alias=False), TenancySettings) if block else None
