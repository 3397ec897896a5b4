"""What labels and annotations reach."""

from __future__ import annotations

from kaigen.kubernetes.kind_table import KINDS
from kaigen.kubernetes.manifest import ALL, steps_of
from kaigen.kubernetes.queues import PRIORITY_LABEL
from kaigen.tenancy.conditions.metadata import AnnotatedHosts, GrantedKeys, NoRawKeys
from kaigen.tenancy.conditions.texts import Granted
from kaigen.tenancy.reach import PODS, TEMPLATES, Reach
from kaigen.tenancy.rows.pods import EPHEMERAL_CLAIM

_METADATA = (("metadata",),)
_NESTED = {
    row.type: tuple((*steps_of(path), ALL, "metadata") for path in row.claim_templates if "[]" in path)
    for row in KINDS.values()
}
"""Where kinds have the metadata of claims in lists of lists."""

METADATA_REACHES: tuple[Reach, ...] = (
    Reach(
        "queue-priority",
        "the priority class",
        (),
        (("metadata", "labels", PRIORITY_LABEL),),
        Granted("priorityClasses"),
    ),
    Reach(
        "template-queue-priority",
        "the priority class",
        (TEMPLATES,),
        (("labels", PRIORITY_LABEL),),
        Granted("priorityClasses"),
    ),
    Reach("annotated-host", "the host", (), _METADATA, AnnotatedHosts()),
    Reach("template-host", "the host", (TEMPLATES,), ((),), AnnotatedHosts()),
    Reach("snippet", "the annotation", (), _METADATA, NoRawKeys()),
    Reach("annotation", "the label or annotation", (), _METADATA, GrantedKeys(keeps=True)),
    Reach("template-annotation", "the label or annotation", (TEMPLATES,), ((),), GrantedKeys()),
    Reach("claim-annotation", "the label or annotation", (PODS,), ((*EPHEMERAL_CLAIM, "metadata"),), GrantedKeys()),
    *(
        Reach(
            f"{type_.partition('.')[0].lower()}-claim-annotation",
            "the label or annotation",
            (type_,),
            paths,
            GrantedKeys(),
        )
        for type_, paths in _NESTED.items()
        if paths
    ),
)
