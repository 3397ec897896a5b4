"""The `gitops` block of kaigen.yaml: one description, from which both Argo CD's and Flux's objects come."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import Field

from kaigen.kinds.base import RELATIVE_PATH, Block, Duration, LabelName, Labels, ObjectName, Quantity

Place = Annotated[str, Field(min_length=1, max_length=1024, pattern=r"^[^\s\x00-\x1f]+$")]
Template = Annotated[str, Field(min_length=1, max_length=250, pattern=r"^[^-\s\x00-\x1f][^\s\x00-\x1f]*$")]
Registry = Annotated[str, Field(pattern=r"^oci://[A-Za-z0-9.-]+(:[0-9]+)?(/[A-Za-z0-9._{}-]+)*$")]


class Cluster(Block):
    """A cluster that environments go to, as Argo CD knows it."""

    server: Annotated[str, Field(pattern=r"^https://[^\s]+$")] | None = Field(
        None, description="URL of its API server.", examples=["https://kubernetes.default.svc"]
    )
    name: ObjectName | None = Field(
        None, description="Its name in Argo CD. Default, when there is no `server`: that in kaigen.yaml."
    )
    selector: Labels | None = Field(
        None,
        description="In place of one cluster: all that Argo CD knows by these labels, new ones too. For "
        "`applications: set` only.",
    )


class ArgoCD(Block):
    """How Argo CD syncs."""

    namespace: LabelName = Field("argocd", description="Namespace of its Applications.")
    applications: Literal["each", "set"] = Field(
        "each",
        description="`each`: an Application for every app, with its own options. `set`: one ApplicationSet "
        "that finds apps as folders in Git.",
    )
    auto_sync: bool = Field(True, description="Sync what is merged without being asked, and mend drift.")


class Decryption(Block):
    """Where Flux finds the key of files encrypted with SOPS."""

    secret: ObjectName | None = Field(
        None, description="Secret with the age or PGP key; the cloud's identity when not given."
    )


class Flux(Block):
    """How Flux syncs."""

    namespace: LabelName = Field("flux-system", description="Namespace of its sources and Kustomizations.")
    interval: Duration = Field("10m", description="How often the source is looked at.")
    timeout: Duration = Field(
        "1h",
        description="How long an app may take to become healthy, when its spec sets no deadline. Fetching a "
        "model counts.",
    )
    oci: Registry | None = Field(
        None,
        description="Artifact of manifests that is read in place of the Git repository; `{env}` "
        "stands for the environment.",
        examples=["oci://registry.example.com/ml/{env}"],
    )
    tag: Annotated[str, Field(pattern=r"^[A-Za-z0-9_][A-Za-z0-9._-]{0,127}$")] = Field(
        "latest", description="Tag of that artifact."
    )
    secret: ObjectName | None = Field(
        None, description="Secret with the credentials of the repository or registry."
    )
    decryption: Decryption | None = Field(None, description="Decrypt files that SOPS has encrypted.")


class Tenancy(Block):
    """What each namespace gets beside the apps."""

    namespaces: bool = Field(
        False, description="Make the namespaces, with the Pod Security level of their apps."
    )
    quota: dict[str, Quantity] = Field(
        {},
        description="Hard limits of a ResourceQuota in every namespace.",
        examples=[{"requests.nvidia.com/gpu": 8}],
    )
    default_deny: list[Literal["Ingress", "Egress"]] = Field(
        [],
        description="Directions that a NetworkPolicy denies to all pods of the namespace. With `Egress`, name "
        "resolution stays allowed and everything else needs a policy of yours, fetching models included.",
    )
    service_account: LabelName | None = Field(
        None,
        description="ServiceAccount that is made in every namespace, with a Role for the kinds its apps hold, "
        "and in whose name the apps are synced.",
    )
    admin_service_account: Annotated[str, Field(pattern=r"^[a-z0-9-]+:[a-z0-9.-]+$")] | None = Field(
        None,
        description="ServiceAccount of yours, as `NAMESPACE:NAME`, in whose name Argo CD makes namespaces and "
        "Applications once it syncs apps in the name of `serviceAccount`.",
    )


class GitOps(Block):
    """Where the rendered tree is found, and who syncs it."""

    repository: Place = Field(
        description="URL of the Git repository that holds the rendered tree.",
        examples=["https://git.example.com/ml/deploy.git"],
    )
    branch: Template = Field("main", description="Its branch; `{env}` stands for the environment.")
    path: Annotated[str, Field(pattern=RELATIVE_PATH)] | None = Field(
        None,
        description="Folder of the rendered tree in it; `{env}` stands for the environment. "
        "Default: the output folder of kaigen.yaml.",
    )
    project: LabelName = Field("kaigen", description="Argo CD project; its name ends in the environment's.")
    charts: Registry | None = Field(
        None, description="Registry that charts are synced from when only charts are rendered."
    )
    labels: Labels = Field({}, description="Labels of every object that is made for Argo CD and Flux.")
    argocd: ArgoCD | None = Field(None, description="Write objects for Argo CD. `{}` takes all defaults.")
    flux: Flux | None = Field(None, description="Write objects for Flux. `{}` takes all defaults.")
    tenancy: Tenancy | None = Field(None, description="What each namespace gets beside the apps.")


class GitOpsOverrides(Block):
    """What an environment may have otherwise."""

    repository: Place | None = Field(None, description="URL of the Git repository.")
    branch: Template | None = Field(None, description="Its branch.")
    path: Annotated[str, Field(pattern=RELATIVE_PATH)] | None = Field(
        None, description="Folder of the rendered tree in it."
    )
    auto_sync: bool | None = Field(None, description="Sync with Argo CD without being asked.")
    tenancy: Tenancy | None = Field(None, description="What each namespace gets, in place of what all have.")


def settled(
    whole: GitOps | None, output: str, clusters: Mapping[str, Cluster], own: GitOpsOverrides | None
) -> dict[str, Any] | None:
    """The description for one environment as plain data; None when there is none.

    Args:
        whole: the block of kaigen.yaml.
        output: folder that the environment is rendered into.
        clusters: the environment's clusters by name; empty for the one that Argo CD runs in.
        own: what the environment has otherwise.
    """
    if whole is None:
        return None
    data = whole.model_dump(by_alias=False)
    for name, value in (own.model_dump(by_alias=False, exclude_unset=True) if own else {}).items():
        if name == "auto_sync":
            data["argocd"] = {**data["argocd"], name: value} if data["argocd"] else None
        else:
            data[name] = value
    data["path"] = data["path"] or output
    data["clusters"] = {name: each.model_dump(exclude_none=True) for name, each in clusters.items()}
    return data
