"""Checks of `tuning` that are the same for KAITO's script and for kaigen's own program."""

from __future__ import annotations

from urllib.parse import urlsplit

from kaigen.core.json_types import FieldPath
from kaigen.dialects.kaito import presets
from kaigen.dialects.kaito.blocks import DataDestination, TuningV1Alpha1
from kaigen.dialects.kaito.nodes import NodeRequest
from kaigen.dialects.kaito.resource import MODEL, Options, ResourceLowering
from kaigen.dialects.kaito.weights import reject_claim

_ONLY_SERVING = {
    "kaito.sh/enablelb": "a run has no Service",
    "kaito.sh/runtime": "a run has no server",
    "kaito.sh/performance-mode": "a run has no server",
    "kaito.sh/bypass-resource-checks": "a model that does not fit on its GPU cannot be trained",
    "kaito.sh/node-class-name": "kaigen creates no nodes for a run",
    "kaigen.dev/api-key-secret": "a run has no server",
    "kaigen.dev/provisioning": "kaigen creates no nodes for a run",
}
"""Annotations that have no effect on a run, with the reason."""


def find_model(tuning: TuningV1Alpha1, at: FieldPath, lowering: ResourceLowering) -> presets.NamedModel | None:
    """Return the model that is trained; None after an error.

    Args:
        tuning: the block.
        at: its path.
        lowering: collects problems.
    """
    if tuning.preset is None:
        lowering.error("KG0412", "no model specified", at, "add `preset`")
        return None
    here = (*at, "preset")
    reject_claim(tuning.preset, here, lowering)
    model = presets.find_model(tuning.preset, here, lowering)
    if model is not None:
        presets.warn_of_removed(model, (*here, "name"), lowering)
    return model


def check_run(request: NodeRequest, options: Options, lowering: ResourceLowering) -> None:
    """Report several nodes, and annotations about serving.

    Args:
        request: the requested nodes.
        options: of the resource.
        lowering: collects problems.
    """
    if request.count not in {None, 1}:
        lowering.error(
            "KG0412",
            f"fine-tuning uses one node, and `count` is {request.count}",
            (*request.at, "count"),
            "delete it; fine-tuning uses all GPUs of the node",
        )
    for key, reason in _ONLY_SERVING.items():
        if key in lowering.annotations:
            lowering.unused(lowering.annotation_at(key), reason)
    if options.compat and options.model:
        at = lowering.annotation_at(MODEL)
        lowering.unused(at, "KAITO's script downloads the weights itself")


def check_url(url: str, at: FieldPath, lowering: ResourceLowering) -> bool:
    """Return whether a URL is that of a file on a public server; report it if not."""
    try:
        parts = urlsplit(url)
        host = parts.hostname or ""
    except ValueError:
        host, parts = "", None
    if parts is None or parts.scheme not in {"http", "https"} or not host:
        lowering.error("KG0412", f"`{url}` is not the URL of a file", at, "write https://host/path")
        return False
    if host == "localhost" or host.startswith(("127.", "169.254.", "10.", "192.168.")):
        lowering.error("KG0412", f"`{host}` is a private address, which KAITO rejects", at)
        return False
    return True


def check_image(target: DataDestination, at: FieldPath, lowering: ResourceLowering) -> bool:
    """Return whether a destination is an image that can be pushed; report it if not."""
    assert target.image is not None
    if lowering.is_placeholder(target.image, (*at, "image"), "an image"):
        return False
    if target.image_push_secret is None:
        lowering.error(
            "KG0412",
            "`imagePushSecret` is missing",
            at,
            "set `imagePushSecret` to a Secret of type kubernetes.io/dockerconfigjson",
        )
        return False
    return True
