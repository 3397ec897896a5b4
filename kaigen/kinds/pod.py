"""Fields about pods that every kind has."""

from typing import Annotated, ClassVar

from msgspec import Meta, field

from kaigen.kinds.base import Annotations, Labels, ObjectName
from kaigen.kinds.block import Block, Choice


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
        ObjectName | None,
        Meta(description="An existing ServiceAccount in the same namespace.", examples=["trainer"]),
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
    pod_labels: Annotated[
        Labels, Meta(description="Labels of the pods only, besides those of `metadata.labels`.")
    ] = field(default_factory=dict)
    pod_annotations: Annotated[
        Annotations,
        Meta(description="Annotations of the pods only, besides those of `metadata.annotations`."),
    ] = field(default_factory=dict)
