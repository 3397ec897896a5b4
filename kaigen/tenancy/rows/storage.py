"""What claims and PersistentVolumes reach."""

from __future__ import annotations

from kaigen.kubernetes.bucket_drivers import ATTRIBUTES, INLINE_OPTIONS, OPTIONS, S3_OPTIONS
from kaigen.kubernetes.kind_table import KINDS
from kaigen.kubernetes.object_kind import ObjectKind
from kaigen.kubernetes.value_paths import ALL, Step, steps_of
from kaigen.tenancy.conditions.buckets import BucketVolume
from kaigen.tenancy.conditions.keys import NodeKey, NoKeys
from kaigen.tenancy.conditions.references import OwnNamespace, Reference, VolumeName
from kaigen.tenancy.conditions.texts import Granted, GrantedItems
from kaigen.tenancy.reach import Reach
from kaigen.tenancy.rows.pods import (
    ANY_KEY,
    DATA_SOURCE,
    IN_TREE,
    NODE_KEYS,
    STORAGE_ANNOTATION,
    STORAGE_CLASS,
    in_node_selector,
)

_VOLUME = "PersistentVolume"
_CSI_SECRETS = (
    "controllerExpandSecretRef",
    "controllerPublishSecretRef",
    "nodeExpandSecretRef",
    "nodePublishSecretRef",
    "nodeStageSecretRef",
)


def _in_claims(row: ObjectKind, *paths: Step) -> tuple[Step, ...]:
    """Return the paths in the claims that a kind makes."""
    places = map(steps_of, row.claim_templates)
    return tuple((*place, ALL, *path) for place in places for path in paths)


_VOLUME_NAME = ("spec", "volumeName")
_WITHSTORAGE_CLASSS = ("PersistentVolumeClaim", *(row.type for row in KINDS.values() if row.claim_templates))
STORAGE_REACHES: tuple[Reach, ...] = (
    Reach(
        "storage",
        "the storage class",
        ("PersistentVolumeClaim",),
        (STORAGE_CLASS, STORAGE_ANNOTATION),
        Granted("storageClasses", always=("",)),
    ),
    *(
        Reach(
            f"{row.kind.lower()}-storage",
            "the storage class",
            (row.type,),
            _in_claims(row, STORAGE_CLASS, STORAGE_ANNOTATION),
            Granted("storageClasses", always=("",)),
        )
        for row in KINDS.values()
        if row.claim_templates
    ),
    Reach(
        "claim-source",
        "the data of",
        _WITHSTORAGE_CLASSS,
        (DATA_SOURCE, *(path for row in KINDS.values() for path in _in_claims(row, DATA_SOURCE))),
        Reference("references"),
    ),
    Reach(
        "claim-volume",
        "the volume",
        _WITHSTORAGE_CLASSS,
        (_VOLUME_NAME, *(path for row in KINDS.values() for path in _in_claims(row, _VOLUME_NAME))),
        VolumeName(),
        kept=True,
    ),
    Reach(
        "volume-claim",
        "a volume for a claim in namespace",
        (_VOLUME,),
        (("spec", "claimRef", "namespace"),),
        OwnNamespace(),
        default="",
    ),
    Reach(
        "volume-driver",
        "the driver",
        (_VOLUME,),
        (("spec", "csi", "driver"),),
        Granted("drivers"),
        default="",
    ),
    Reach("volume", "a volume of type", (_VOLUME,), (("spec",),), NoKeys(IN_TREE)),
    Reach(
        "volume-node",
        "nodes by the key",
        (_VOLUME,),
        in_node_selector("spec", "nodeAffinity", "required", "nodeSelectorTerms", ALL),
        NodeKey(NODE_KEYS, "nodes"),
    ),
    Reach(
        "volume-secret",
        "the Secret",
        (_VOLUME,),
        tuple(("spec", "csi", field) for field in _CSI_SECRETS),
        Reference("references"),
    ),
    Reach("volume-bucket", "the bucket", (_VOLUME,), (("spec",),), BucketVolume()),
    Reach(
        "volume-attribute",
        "the volume attribute",
        (_VOLUME,),
        (("spec", "csi", "volumeAttributes"),),
        NoKeys(ANY_KEY, "attributes", always=ATTRIBUTES),
    ),
    Reach(
        "volume-option",
        "the mount options",
        (_VOLUME,),
        (
            ("spec", "mountOptions", ALL),
            ("spec", *INLINE_OPTIONS),
            ("spec", "csi", "volumeAttributes", "options"),
        ),
        GrantedItems("options", always=(*OPTIONS, S3_OPTIONS)),
    ),
)
