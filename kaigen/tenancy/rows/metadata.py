"""What labels and annotations reach."""

from __future__ import annotations

from kaigen.kubernetes.queues import PRIORITY_LABEL
from kaigen.kubernetes.value_paths import ALL
from kaigen.tenancy.conditions.metadata import AnnotatedHosts, ControllerKeys, NoRawKeys
from kaigen.tenancy.conditions.texts import Granted
from kaigen.tenancy.reach import PODS, TEMPLATES, Reach

_METADATA = (("metadata",),)
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
    Reach("annotation", "the label or annotation", (), _METADATA, ControllerKeys(keeps=True)),
    Reach("template-annotation", "the label or annotation", (TEMPLATES,), ((),), ControllerKeys()),
    Reach(
        "claim-annotation",
        "the label or annotation",
        (PODS,),
        (("volumes", ALL, "ephemeral", "volumeClaimTemplate", "metadata"),),
        ControllerKeys(),
    ),
)
