"""The kind `Queue`: quota of nodes and GPUs that Jobs, Topologies and Notebooks of several namespaces wait for."""

from typing import Annotated, ClassVar, Literal

from msgspec import Meta, field

from kaigen.kinds.base import LABEL_KEY, AppName, LabelName, Labels, Metadata, ObjectName, Quantity, text
from kaigen.kinds.block import Block, Choice
from kaigen.kinds.blocks import InstanceType
from kaigen.kinds.entry import API_VERSION

Amount = Annotated[int, Meta(ge=0, le=100000)]
ResourceName = Annotated[str, text(LABEL_KEY, max_length=317)]
Victims = Literal["Never", "LowerPriority"]
"""Which workloads are preempted."""


class Quota(Block):
    """The nodes of one instance type, the GPUs of one model, or CPUs and memory of other nodes.

    Their amounts are one ResourceFlavor in the ClusterQueue.
    """

    instance_type: Annotated[
        InstanceType | None,
        Meta(description="Instance type of the nodes, of the catalogue.", examples=["p5.48xlarge"]),
    ] = None
    count: Annotated[Amount | None, Meta(description="Number of nodes of the instance type.")] = None
    gpu_type: Annotated[str | None, Meta(description="GPU model by its catalogue name.", examples=["H100"])] = None
    gpus: Annotated[Amount | None, Meta(description="Number of GPUs of that model.")] = None
    cpu: Annotated[
        Quantity | None,
        Meta(
            description="CPU cores together. Default: those of the nodes; without a limit with `gpuType`.",
            examples=["64"],
        ),
    ] = None
    memory: Annotated[
        Quantity | None,
        Meta(
            description="Memory together. Default: that of the nodes; without a limit with `gpuType`.",
            examples=["256Gi"],
        ),
    ] = None
    resources: Annotated[
        dict[ResourceName, Quantity],
        Meta(
            description="Further resources together. Kueue admits no pod that requests a resource without a quota.",
            examples=[{"ephemeral-storage": "2Ti", "vpc.amazonaws.com/efa": "128"}],
        ),
    ] = field(default_factory=dict)
    node_labels: Annotated[
        Labels, Meta(description="Labels of the nodes, besides those that the profile has for them.")
    ] = field(default_factory=dict)
    spot: Annotated[
        bool, Meta(description="Spot nodes, with the labels and taints of the profile: for pods with `placement.spot`.")
    ] = False
    borrow: Annotated[
        Amount | None,
        Meta(
            description="Nodes or GPUs of other queues of the cohort that may be used as well. Default: all that are "
            "lent and unused."
        ),
    ] = None
    lend: Annotated[
        Amount | None,
        Meta(description="Nodes or GPUs that other queues of the cohort may use while they are unused. Default: all."),
    ] = None


class FairSharing(Block):
    """The share of the cohort."""

    weight: Annotated[
        Quantity,
        Meta(
            description="Weight among the queues of the cohort, where Kueue is configured for fair sharing. 0: only "
            "what no other one wants.",
            examples=["2"],
        ),
    ]


class BorrowWithinCohort(Block):
    """Preemption while the queue borrows."""

    policy: Annotated[Victims, Meta(description="Which workloads of the cohort are preempted.")] = "Never"
    max_priority_threshold: Annotated[
        Annotated[int, Meta(ge=-(2**31), lt=2**31)] | None,
        Meta(description="Only workloads with at most this priority are preempted."),
    ] = None


class Preemption(Block):
    """Which admitted workloads are stopped for one that waits. The names and values are those of Kueue."""

    within_cluster_queue: Annotated[
        Literal["Never", "LowerPriority", "LowerOrNewerEqualPriority"],
        Meta(description="Workloads of this queue that are preempted."),
    ] = "Never"
    reclaim_within_cohort: Annotated[
        Literal["Never", "LowerPriority", "Any"],
        Meta(description="Workloads of other queues that are preempted where they borrow from this one."),
    ] = "Never"
    borrow_within_cohort: Annotated[
        BorrowWithinCohort | None, Meta(description="Preemption while this queue borrows. Default: none.")
    ] = None


class QueueSpec(Choice):
    """A ClusterQueue with its ResourceFlavors, or a LocalQueue for a ClusterQueue that exists."""

    exactly_one: ClassVar[tuple[str, ...]] = ("quota", "clusterQueue")

    quota: Annotated[
        Annotated[list[Quota], Meta(min_length=1, max_length=64)] | None,
        Meta(
            description="What the queue has. Kueue tries the entries in their order.",
            examples=[[{"instanceType": "p5.48xlarge", "count": 4}]],
        ),
    ] = None
    cluster_queue: Annotated[
        ObjectName | None,
        Meta(description="ClusterQueue whose quota the namespace uses, in place of a quota of its own."),
    ] = None
    namespaces: Annotated[
        Annotated[list[LabelName], Meta(min_length=1, max_length=100)] | None,
        Meta(
            description="Namespaces whose pods may use the quota. Each gets a LocalQueue with the name of this spec. "
            "Default: the namespace of the spec.",
            examples=[["research", "vision"]],
        ),
    ] = None
    cohort: Annotated[
        ObjectName | None, Meta(description="Cohort: queues that lend each other what they do not use.")
    ] = None
    parent_cohort: Annotated[
        ObjectName | None,
        Meta(
            description="Cohort that `cohort` belongs to: its queues also borrow from the queues there. Set by the "
            "Queue with the name of the cohort. Default: none."
        ),
    ] = None
    flavors_of: Annotated[
        AppName | None,
        Meta(
            description="Queue whose ResourceFlavors this one uses. Queues lend each other only quota of the same "
            "flavor. Default: it has its own."
        ),
    ] = None
    fair_sharing: Annotated[FairSharing | None, Meta(description="The share of the cohort. Default: weight 1.")] = None
    preemption: Annotated[Preemption | None, Meta(description="Preemption. Default: none.")] = None
    strategy: Annotated[
        Literal["BestEffortFIFO", "StrictFIFO"],
        Meta(description="`StrictFIFO`: nothing passes a workload that waits, even where it fits."),
    ] = "BestEffortFIFO"
    topology: Annotated[
        Annotated[list[Annotated[str, text(LABEL_KEY, max_length=317)]], Meta(min_length=1, max_length=8)] | None,
        Meta(
            description="Levels of the network, the widest first: `block`, `rack`, `host`, which the profile has node "
            "labels for, or labels. Kueue then places the pods of a workload near each other.",
            examples=[["block", "rack", "host"], ["example.com/rack", "host"]],
        ),
    ] = None
    priorities: Annotated[
        dict[ObjectName, Annotated[int, Meta(ge=-(2**31), lt=2**31)]],
        Meta(
            description="WorkloadPriorityClasses that the spec makes, for `placement.priority`. Their names begin with "
            "that of the spec: `research-high`.",
            examples=[{"high": 1000, "low": 10}],
        ),
    ] = field(default_factory=dict)


class Queue(Block):
    """Quota of nodes and GPUs that the pods of several namespaces wait for, as objects of Kueue."""

    api_version: Annotated[Literal["kaigen.dev/v1alpha1"], Meta(description="Version of kaigen's kinds.")] = API_VERSION
    kind: Annotated[Literal["Queue"], Meta(description="Kind of the document.")] = "Queue"
    metadata: Annotated[Metadata, Meta(description="Name, namespace, labels and annotations of the app.")]
    spec: Annotated[QueueSpec, Meta(description="Desired state.")]
