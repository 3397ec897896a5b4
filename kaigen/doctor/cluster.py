"""Checks of a cluster: its API server, what runs pods, storage classes, and what the user may do in a namespace."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

from kaigen.catalog.catalog import BUILT_IN
from kaigen.catalog.gpus import is_gpu_resource
from kaigen.cluster.errors import Forbidden
from kaigen.diagnostics.errors import SystemFailure
from kaigen.doctor.model import Check
from kaigen.kubernetes.claims import STORAGE_CLASS, is_default
from kaigen.kubernetes.manifest import Object, identity_of, mapping, text
from kaigen.kubernetes.pods import containers, pod_templates
from kaigen.kubernetes.quantities import units

if TYPE_CHECKING:
    from kaigen.cluster.client import Cluster


_MODEL_LABELS = ("nvidia.com/gpu.product", "amd.com/gpu.product-name", "cloud.google.com/gke-accelerator")
_GPU_LABELS = (
    "nvidia.com/gpu.present",
    # PCI vendors NVIDIA and AMD, as display or 3D controllers: node feature discovery
    "feature.node.kubernetes.io/pci-10de.present",
    "feature.node.kubernetes.io/pci-0300_10de.present",
    "feature.node.kubernetes.io/pci-0302_10de.present",
    "feature.node.kubernetes.io/pci-0300_1002.present",
)
_PLUGINS = ("device-plugin", "deviceplugin", "gpu-plugin")


def gpus_of(node: Object) -> dict[str, int]:
    """Return how many GPUs a node offers, by resource; nothing for a node without GPUs."""
    offered = mapping(mapping(node.get("status")).get("allocatable"))
    amounts = {name: int(units(value) or 0) for name, value in offered.items() if is_gpu_resource(name, BUILT_IN)}
    return {name: amount for name, amount in amounts.items() if amount}


def gpu_model(node: Object) -> str:
    """Return the model of a node's GPUs; empty where no label has it."""
    labels = _labels(node)
    return next((text(labels[name]) for name in _MODEL_LABELS if name in labels), "")


def has_gpu_label(node: Object) -> bool:
    """Return whether labels say that a node has a GPU."""
    return any(_labels(node).get(name) == "true" for name in _GPU_LABELS)


def is_device_plugin(daemon_set: Object) -> bool:
    """Return whether a DaemonSet runs a device plugin for GPUs, by its images."""
    images = [
        text(container.body.get("image"))
        for template in pod_templates(daemon_set)
        for container in containers(template)
    ]
    return any(part in image for image in images for part in _PLUGINS)


def _labels(node: Object) -> Object:
    return mapping(mapping(node.get("metadata")).get("labels"))


_MOST_MODELS = 4
"""Most models of GPUs that are listed."""

_RUNTIME_FIX = (
    "install the NVIDIA Container Toolkit or the GPU Operator on GPU nodes, and create the RuntimeClass `nvidia`; "
    "not required where `nvidia` is the default runtime"
)
_PLUGIN_FIX = "install the NVIDIA device plugin or the GPU Operator"


def check_server(connect: Callable[[], Cluster]) -> tuple[Check, Cluster | None]:
    """Return whether the API server answers, and its version, and the cluster if it does.

    Args:
        connect: returns the cluster.
    """
    try:
        cluster = connect()
        answer = cluster.request("GET", "/version")
    except SystemFailure as error:
        return Check("cluster", "failed", str(error), error.hint), None
    return Check("cluster", "ok", f"Kubernetes {text(answer.get('gitVersion'))}"), cluster


def check_nodes(cluster: Cluster) -> Iterator[Check]:
    """Yield the checks of GPUs, of the device plugin and of the runtime class.

    Args:
        cluster: the cluster.
    """
    try:
        nodes = cluster.objects("v1/Node")
    except Forbidden:
        yield Check("GPU nodes", "warning", "not allowed to list nodes", "ask for `list` on nodes")
        return
    gpus: Counter[str] = Counter()
    with_gpus = []
    for node in nodes:
        amounts = gpus_of(node)
        gpus.update(amounts)
        if amounts:
            with_gpus.append(node)
    labelled = [node for node in nodes if has_gpu_label(node)]
    yield _gpus(nodes, with_gpus, gpus)
    yield _plugin(cluster, bool(with_gpus), labelled)
    yield _runtime_class(cluster, "nvidia.com/gpu" in gpus)


def _gpus(nodes: list[Object], with_gpus: list[Object], gpus: Counter[str]) -> Check:
    if not with_gpus:
        fix = f"add GPU nodes; if there are some, {_PLUGIN_FIX}"
        return Check("GPU nodes", "warning", f"none of {len(nodes)} nodes has GPUs", fix)
    amounts = ", ".join(f"{count} {name}" for name, count in sorted(gpus.items()))
    models = sorted({gpu_model(node) for node in with_gpus} - {""})
    more = f" and {len(models) - _MOST_MODELS} more" if len(models) > _MOST_MODELS else ""
    shown = f" ({', '.join(models[:_MOST_MODELS])}{more})" if models else ""
    return Check("GPU nodes", "ok", f"{amounts} on {len(with_gpus)} of {len(nodes)} nodes{shown}")


def _plugin(cluster: Cluster, has_gpus: bool, labelled: list[Object]) -> Check:
    try:
        found = [
            f"{identity.namespace}/{identity.name}"
            for item in cluster.objects("apps/v1/DaemonSet")
            if is_device_plugin(item)
            for identity in (identity_of(item),)
        ]
    except Forbidden:
        found = []
    if has_gpus:
        return Check("device plugin", "ok", ", ".join(found) or "nodes offer GPUs")
    if labelled:
        names = ", ".join(identity_of(node).name for node in labelled)
        return Check("device plugin", "failed", f"these nodes have GPUs, and offer none: {names}", _PLUGIN_FIX)
    if found:
        fix = "check its logs: no node offers a GPU"
        return Check("device plugin", "warning", f"{', '.join(found)}; no node offers a GPU", fix)
    return Check("device plugin", "warning", "none found", _PLUGIN_FIX)


def _runtime_class(cluster: Cluster, nvidia: bool) -> Check:
    try:
        names = sorted(identity_of(item).name for item in cluster.objects("node.k8s.io/v1/RuntimeClass"))
    except Forbidden:
        fix = "ask for `list` on runtimeclasses.node.k8s.io"
        return Check("runtime class", "warning", "not allowed to list them", fix)
    if nvidia and "nvidia" not in names:
        return Check("runtime class", "warning", "there is no RuntimeClass `nvidia`", _RUNTIME_FIX)
    return Check("runtime class", "ok", ", ".join(names) or "none, and no NVIDIA GPU needs one")


def check_storage(cluster: Cluster) -> Check:
    """Return which storage classes there are, and whether one is the default."""
    try:
        classes = cluster.objects(STORAGE_CLASS)
    except Forbidden:
        fix = "ask for `list` on storageclasses.storage.k8s.io"
        return Check("storage class", "warning", "not allowed to list them", fix)
    names = _marked(classes)
    if not names:
        fix = "install a storage driver, such as the local-path provisioner or Longhorn"
        return Check("storage class", "failed", "there is none", fix)
    if not any(map(is_default, classes)):
        fix = (
            "set `storageClassName` in specs, or annotate a class with "
            '`storageclass.kubernetes.io/is-default-class: "true"`'
        )
        return Check("storage class", "warning", f"{', '.join(names)}; none is the default", fix)
    return Check("storage class", "ok", ", ".join(names))


def _marked(classes: Iterable[Object]) -> list[str]:
    return sorted(
        f"{text(mapping(item.get('metadata')).get('name'))}{' (default)' if is_default(item) else ''}"
        for item in classes
    )


class Right(NamedTuple):
    """A request that a user may make.

    Attributes:
        verb: such as `create`.
        resource: plural name, and the subresource after a slash.
        group: API group; empty for the core group.
    """

    verb: str
    resource: str
    group: str = ""

    @property
    def title(self) -> str:
        """The right as `kubectl auth can-i` takes it."""
        name, _, subresource = self.resource.partition("/")
        full = f"{name}.{self.group}" if self.group else name
        return f"{self.verb} {full}{f' --subresource={subresource}' if subresource else ''}"


_READ = (
    *(Right("list", name) for name in ("pods", "persistentvolumeclaims", "events")),
    Right("get", "pods/log"),
    Right("list", "jobs", "batch"),
)
"""What `kaigen status`, and the commands that show runs, ask for."""

_WRITE = (
    *(Right(verb, "jobs", "batch") for verb in ("create", "delete")),
    *(Right(verb, "persistentvolumeclaims") for verb in ("create", "delete")),
    *(Right(verb, "pods") for verb in ("create", "delete")),
    Right("create", "pods/exec"),
    *(Right(verb, "networkpolicies", "networking.k8s.io") for verb in ("create", "patch", "delete")),
)
"""What commands ask for that start runs and copy files. A syncer deploys apps with rights of its own."""


def check_rights(cluster: Cluster, namespace: str) -> list[Check]:
    """Return whether the user may read runs and start runs in a namespace, by SelfSubjectAccessReviews.

    Args:
        cluster: the cluster.
        namespace: the namespace.

    Raises:
        SystemFailure: the cluster cannot be reached.
    """
    rights = (*_READ, *_WRITE)
    try:
        answers = [cluster.create(_review(right, namespace)) for right in rights]
    except SystemFailure as error:
        return [Check("rights", "warning", str(error), "allow `create` on selfsubjectaccessreviews")]
    allowed = {
        right
        for right, answer in zip(rights, answers, strict=True)
        if mapping(answer.get("status")).get("allowed") is True
    }
    return [
        _result("rights to read runs", _READ, allowed, namespace),
        _result("rights to start runs", _WRITE, allowed, namespace),
    ]


def _result(name: str, rights: tuple[Right, ...], allowed: set[Right], namespace: str) -> Check:
    missing = [right.title for right in rights if right not in allowed]
    if not missing:
        return Check(name, "ok", f"namespace {namespace}")
    fix = f"ask for a Role in namespace {namespace} with these rights; a syncer does not need them"
    return Check(name, "warning", f"namespace {namespace}: not allowed to {'; '.join(missing)}", fix)


def _review(right: Right, namespace: str) -> dict[str, Any]:
    name, _, subresource = right.resource.partition("/")
    attributes = {
        "namespace": namespace,
        "verb": right.verb,
        "group": right.group,
        "resource": name,
        **({"subresource": subresource} if subresource else {}),
    }
    return {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SelfSubjectAccessReview",
        "spec": {"resourceAttributes": attributes},
    }
