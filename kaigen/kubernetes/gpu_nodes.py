"""GPUs of nodes in a cluster: what device plugins offer, and what feature discovery found."""

from __future__ import annotations

from kaigen.catalog.catalog import BUILT_IN
from kaigen.catalog.gpus import is_gpu_resource
from kaigen.kubernetes.manifest import Object, mapping, text
from kaigen.kubernetes.pods import containers, pod_templates
from kaigen.kubernetes.quantities import units

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
