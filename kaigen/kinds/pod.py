"""Fields about pods that every kind has."""

from typing import Annotated, ClassVar, Literal

from msgspec import Meta, field

from kaigen.core.json_types import JsonObject
from kaigen.kinds.base import Annotations, LabelName, Labels, ObjectName
from kaigen.kinds.block import Block, Choice
from kaigen.kinds.containers import EnvFrom, InitContainer, Sidecar
from kaigen.kinds.pod_volumes import PodVolume


class CreatedAccount(Block):
    """A ServiceAccount that kaigen creates for the app."""

    annotations: Annotated[
        Annotations,
        Meta(
            description="Annotations of the ServiceAccount, by which a cloud gives its pods an identity.",
            examples=[{"eks.amazonaws.com/role-arn": "arn:aws:iam::111122223333:role/trainer"}],
        ),
    ] = field(default_factory=dict)


class ServiceAccount(Choice):
    """The ServiceAccount of the pods: an existing one, or one that kaigen creates."""

    exactly_one: ClassVar[tuple[str, ...]] = ("name", "create")

    name: Annotated[
        ObjectName | None, Meta(description="An existing ServiceAccount in the same namespace.", examples=["trainer"])
    ] = None
    create: Annotated[
        CreatedAccount | None,
        Meta(
            description="Create a ServiceAccount with the name of the app (`NAME-download` for a Model); `{}` for "
            "one without annotations."
        ),
    ] = None
    automount_token: Annotated[
        bool,
        Meta(
            description="Mount a token for the Kubernetes API. The identities of clouds do not need it: their tokens "
            "are volumes of their own, or come from a metadata server."
        ),
    ] = False


class PodFields(Block):
    """Fields about pods that every kind has; schemas list them after the kind's own."""

    shared: ClassVar[bool] = True

    service_account: Annotated[
        ObjectName | ServiceAccount | None,
        Meta(
            description="ServiceAccount of the pods: the name of an existing one, or a block. Default: the "
            "namespace's `default`, without a token."
        ),
    ] = None
    pod_labels: Annotated[Labels, Meta(description="Labels of the pods only, besides those of `metadata.labels`.")] = (
        field(default_factory=dict)
    )
    pod_annotations: Annotated[
        Annotations, Meta(description="Annotations of the pods only, besides those of `metadata.annotations`.")
    ] = field(default_factory=dict)
    volumes: Annotated[
        dict[LabelName, PodVolume],
        Meta(
            description="Further volumes of the pods, by name.",
            examples=[{"data": {"claimName": "datasets", "mountPath": "/data"}}],
        ),
    ] = field(default_factory=dict)
    env_from: Annotated[list[EnvFrom], Meta(description="ConfigMaps and Secrets whose keys become variables.")] = field(
        default_factory=list
    )
    sidecars: Annotated[
        dict[LabelName, Sidecar], Meta(description="Containers that run next to the main container, by name.")
    ] = field(default_factory=dict)
    init_containers: Annotated[
        dict[LabelName, InitContainer],
        Meta(description="Containers that run before the main container, by name, after kaigen's own."),
    ] = field(default_factory=dict)
    image_pull_secrets: Annotated[
        list[ObjectName], Meta(description="Names of Secrets of type dockerconfigjson, for all images.")
    ] = field(default_factory=list)
    hostname: Annotated[LabelName | None, Meta(description="Host name of the pod.")] = None
    dns_policy: Annotated[
        Literal["ClusterFirst", "Default", "None"] | None,
        Meta(description="How the pods look up names. Default: in the cluster first."),
    ] = None
    dns_config: Annotated[
        JsonObject | None, Meta(description="Name servers, search domains and options, as in a pod.")
    ] = None
    host_aliases: Annotated[list[JsonObject], Meta(description="Entries of `/etc/hosts`, as in a pod.")] = field(
        default_factory=list
    )
