"""The fields of a Topology that several engines understand, by their names in documents.

The name of a block contains all of its fields, so blocks that concern engines are listed field by field: a new field of
theirs is reported on each engine until the engine lists it.
"""

from __future__ import annotations

from kaigen.kinds.block import document_names
from kaigen.kinds.pod import PodFields

AROUND_PODS = frozenset(
    (
        *("shape.replicas", "autoscale", "rollout", "disruption", "placement.queue", "security.podSecurity"),
        *("port", "service", "route", "inferencePool", "monitoring"),
    )
)
"""Fields about what is around the pods, whatever runs in them."""

PODS = AROUND_PODS | {
    *("engine", "image", "build", "env", "params", "paramsFile", "probes", "drain"),
    *("resources", "placement", "security", "provisioning", "shape.nodes"),
    *("model.name", "model.namespace", "model.image", "model.job", "model.folder", "model.mountPath"),
    *("model.volume.claimName", "model.volume.path"),
    *document_names(PodFields),
}
"""Fields of engines whose pods kaigen makes."""

SERVER = PODS | {*("engineArgs", "servedNames", "contextLength", "auth.secret", "auth.key"), "model.facts"}
"""Fields of model servers."""

HUB_SERVER = SERVER | {
    *("model.huggingFace", "preset", "tokenSecret", "trustRemoteCode", "concurrency", "storage", "transfer"),
    *(f"adapters.{name}" for name in ("name", "model", "job", "volume", "image", "huggingFace")),
}
"""Fields of model servers on Hugging Face's libraries."""
