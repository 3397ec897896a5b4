"""The shape of a row of the table of object kinds."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from kaigen.kubernetes.names import SUBDOMAIN_NAME, NameRule

Use = Literal["mounts", "reads", "pulls with", "runs as", "refers to"]
"""What an object does with another one that it names."""

Lifecycle = Literal["", "run", "rolling", "serving"]
"""How the pods of a kind behave: `run` ends, `rolling` serves and replaces its pods when their template changes,
`serving` serves and does not; empty for a kind without pods of its own."""

DataOnDelete = Literal["", "deleted", "claimed"]
"""Data that an object owns: deleted with it, or kept in the claims that it made; empty for an object without data."""

Family = Literal["workload", "storage", "config", "access", "network", "other"]
"""The group of kinds that share one style in the graph."""

SCALABLE = "scalable"
"""An entry of `ReferenceField.targets`: every kind whose `scalable` is set."""


class PodPath(Struct, frozen=True):
    """Where a kind has a pod, or the template of one.

    Attributes:
        path: dotted path of the mapping with the pod's `metadata` and `spec`, `[]` for every item of a list;
            empty when it is the object itself.
        role: distinguishes the templates of one object. An item of a list is distinguished by its own name.
        single: it is a single container, which a controller adds to a pod.
        joins: the path of the template of that pod; empty where it is a pod of its own.
    """

    path: str
    role: str = ""
    single: bool = False
    joins: str = ""


class PodSelector(Struct, frozen=True):
    """A field that selects pods by their labels.

    Attributes:
        field: name of the field of `spec`.
        plain: it is a mapping of labels, and not a label selector.
        own: it selects the pods that the object itself makes.
        unless: another field of `spec`; when that is set, pods outside of the namespace are selected.
    """

    field: str
    plain: bool = False
    own: bool = False
    unless: str = ""


class ReferenceField(Struct, frozen=True):
    """A field that contains the name of another object.

    Fields next to the name are read by convention: `kind`, `group`, `apiVersion`, `namespace`, `key`, `items`,
    `optional`.

    Attributes:
        path: dotted path of the name, `[]` for every item of a list and `*` for every key of a mapping.
        targets: types that may be named, as in `Role.rbac.authorization.k8s.io`. The first is the default where no
            `kind` is given; names of other kinds are ignored.
        use: what the object does with the target.
        keys: keys of a Secret that are read when the field does not list any.
        secret_type: type that a Secret must have.
        as_files: the values become files, and not environment variables.
        port: fields next to the name with the port of a Service that is called, by number or name.
    """

    path: str
    targets: tuple[str, ...]
    use: Use = "refers to"
    keys: tuple[str, ...] = ()
    secret_type: str = "Opaque"
    as_files: bool = False
    port: tuple[str, ...] = ()


TRIGGER_AUTHENTICATION = ReferenceField(
    "spec.triggers[].authenticationRef.name", ("TriggerAuthentication.keda.sh", "ClusterTriggerAuthentication.keda.sh")
)


class ImmutableField(Struct, frozen=True):
    """A field that cannot change once the object exists.

    Attributes:
        path: dotted path.
        default: what the API server fills in when the field is missing.
        mutable: when not empty, every key below the path is immutable except these.
        once: it may be set where it was not.
    """

    path: str
    default: str | int | None = None
    mutable: tuple[str, ...] = ()
    once: bool = False


class HealthConditions(Struct, frozen=True):
    """What the conditions in the status of a kind mean.

    Attributes:
        healthy: types of conditions that mean healthy when they are True.
        degraded: types that mean degraded when they are True.
        suspended: types that mean suspended when they are True.
        broken: types that mean degraded when they are False.
        at: list in the status whose entries hold the conditions; empty for the status itself.
    """

    healthy: tuple[str, ...]
    degraded: tuple[str, ...] = ()
    suspended: tuple[str, ...] = ()
    broken: tuple[str, ...] = ()
    at: str = ""


class ObjectKind(Struct, frozen=True):
    """Everything that kaigen knows of a kind of objects beyond its schema.

    Attributes:
        type: kind and group, as in `Service` and `Job.batch`.
        lifecycle: how its pods behave.
        pods: where its pods or their templates are.
        restart_policies: which restart policies its pods may have; empty for any.
        default_restart_policy: that of pods that set none.
        claim_templates: dotted paths of the lists of PersistentVolumeClaims that it makes for each pod.
        pod_labels: beginnings of labels that its controller adds to its pods.
        scalable: a HorizontalPodAutoscaler or ScaledObject may set its replicas.
        selector: the field that selects pods.
        references: fields that contain names of other objects, besides those of its pods. None for a kind of which
            kaigen does not know all: fields with the usual names of references are read too.
        immutable: fields that cannot change.
        data: what happens to its data when it is deleted.
        name: how its objects may be named.
        built_in: names of objects that every cluster or namespace has; `*` at the end for any ending.
        outside_git: its objects are usually made outside of Git, so a name that no file defines is not an error.
        emitted: kaigen's own kinds compile to it.
        wave: sync wave of an object that does not set one.
        health: what its conditions mean; None where Argo CD and Flux know the kind.
        family: its style in the graph.
    """

    type: str
    lifecycle: Lifecycle = ""
    pods: tuple[PodPath, ...] = ()
    restart_policies: tuple[str, ...] = ()
    default_restart_policy: str = "Always"
    claim_templates: tuple[str, ...] = ()
    pod_labels: tuple[str, ...] = ()
    scalable: bool = False
    selector: PodSelector | None = None
    references: tuple[ReferenceField, ...] | None = None
    immutable: tuple[ImmutableField, ...] = ()
    data: DataOnDelete = ""
    name: NameRule = SUBDOMAIN_NAME
    built_in: tuple[str, ...] = ()
    outside_git: bool = False
    emitted: bool = False
    wave: int = 0
    health: HealthConditions | None = None
    family: Family = "other"

    @property
    def kind(self) -> str:
        """The kind without its group."""
        return self.type.partition(".")[0]

    @property
    def group(self) -> str:
        """The API group; empty for the core group."""
        return self.type.partition(".")[2]

    def has_built_in(self, name: str) -> bool:
        """Whether every cluster or namespace has an object of this name."""
        return any(name.startswith(known[:-1]) if known.endswith("*") else name == known for known in self.built_in)
