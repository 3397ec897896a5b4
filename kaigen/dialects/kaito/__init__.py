"""KAITO, the Kubernetes AI Toolchain Operator (`kaito.sh`): a module for each kind, and what they share.

A field keeps the meaning it has in KAITO. A field that KAITO ignores is used, or reported with its line. Facts about
its API are of v0.12.0 (commit 056b8280) and of the commit before v0.1.0 (27fa335a), here called its first version.
"""

from __future__ import annotations

from kaigen.dialects.registry import Dialect
from kaigen.kinds.kind import ForeignKind


def _kind(
    version: str, kind: str, model: str, summary: str, *, older: str = "", patchable: tuple[str, ...] = ("spec",)
) -> ForeignKind:
    """Return a kind whose model and `lower` are in the module that `model` names."""
    module = f"kaigen.dialects.kaito.{model.partition(':')[0]}"
    return ForeignKind(
        f"kaito.sh/{version}",
        kind,
        f"kaigen.dialects.kaito.{model}",
        summary,
        system="kaito",
        older=older,
        patchable=patchable,
        lower_reference=f"{module}:lower",
    )


_WORKSPACE = "KAITO's model that is served or fine-tuned"
_WORKSPACE_FIELDS = ("resource", "inference", "tuning")
"""A Workspace has no `spec`."""

DIALECT = Dialect(
    name="kaito",
    title="KAITO",
    estimator="kaigen.dialects.kaito.estimate:estimates",
    kinds=(
        _kind("v1beta1", "Workspace", "workspace:Workspace", _WORKSPACE, patchable=_WORKSPACE_FIELDS),
        _kind(
            "v1alpha1",
            "Workspace",
            "workspace:WorkspaceV1Alpha1",
            _WORKSPACE,
            older="v1alpha1",
            patchable=_WORKSPACE_FIELDS,
        ),
        _kind("v1beta1", "InferenceSet", "inferenceset:InferenceSet", "KAITO's replicas of a served model"),
        _kind(
            "v1alpha1",
            "InferenceSet",
            "inferenceset:InferenceSetV1Alpha1",
            "KAITO's replicas of a served model",
            older="v1alpha1",
        ),
        _kind("v1beta1", "RAGEngine", "ragengine:RagEngine", "KAITO's server for retrieval"),
        _kind("v1alpha1", "RAGEngine", "ragengine:RagEngineV1Alpha1", "KAITO's server for retrieval", older="v1alpha1"),
        _kind("v1alpha1", "ModelMirror", "mirror:ModelMirror", "KAITO's model weights in a shared volume"),
        _kind(
            "v1alpha1",
            "MultiRoleInference",
            "multirole:MultiRoleInference",
            "KAITO's model with separate prefill and decode pods",
        ),
    ),
)
