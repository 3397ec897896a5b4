"""What claims and PersistentVolumes reach."""

from __future__ import annotations

from kaigen.kubernetes.buckets import ATTRIBUTES, INLINE_OPTIONS, OPTIONS, S3_OPTIONS
from kaigen.kubernetes.kind_table import KINDS
from kaigen.kubernetes.manifest import ALL, Step, steps_of
from kaigen.kubernetes.object_kind import ObjectKind
from kaigen.tenancy.conditions.references import OwnNamespace, Reference, VolumeName
from kaigen.tenancy.conditions.values import Granted, GrantedItems, Missing, NodeKey, NoKeys
from kaigen.tenancy.conditions.volumes import BucketVolume, NamedVolume
from kaigen.tenancy.reach import Reach
from kaigen.tenancy.rows.pods import (
    ANY_KEY,
    DATA_SOURCE,
    IN_TREE,
    NODE_KEYS,
    SELECTOR,
    STORAGE_ANNOTATION,
    STORAGE_CLASS,
    VOLUME_NAME,
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


def in_all_claims(path: Step) -> tuple[Step, ...]:
    """Return the paths of a field of claims, in a claim itself and in the kinds that make some."""
    return (path, *(each for row in KINDS.values() for each in _in_claims(row, path)))


CLAIM_KINDS = ("PersistentVolumeClaim", *(row.type for row in KINDS.values() if row.claim_templates))
"""The kinds that are claims or make some."""

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
    Reach("claim-source", "the data of", CLAIM_KINDS, in_all_claims(DATA_SOURCE), Reference("references")),
    Reach("claim-volume", "the volume", CLAIM_KINDS, in_all_claims(VOLUME_NAME), VolumeName(), kept=True),
    Reach(
        "claim-any",
        "any volume that no claim has, by an empty storage class",
        ("PersistentVolumeClaim",),
        ((),),
        NamedVolume(),
    ),
    Reach(
        "claim-template-any",
        "any volume that no claim has, by an empty storage class",
        CLAIM_KINDS[1:],
        tuple((*steps_of(path), ALL) for row in KINDS.values() for path in row.claim_templates),
        NamedVolume(),
    ),
    Reach("claim-selector", "volumes by their labels", ("PersistentVolumeClaim",), (SELECTOR,), Missing()),
    # Of the kinds that make claims, `spec.selector` is another field.
    Reach(
        "claim-template-selector", "volumes by their labels", CLAIM_KINDS[1:], in_all_claims(SELECTOR)[1:], Missing()
    ),
    Reach("volume-name", "the name of a volume", (_VOLUME,), (("metadata", "name"),), VolumeName(), default=""),
    Reach(
        "volume-claim",
        "a volume for a claim in namespace",
        (_VOLUME,),
        (("spec", "claimRef", "namespace"),),
        OwnNamespace(),
        default="",
    ),
    Reach("volume-driver", "the driver", (_VOLUME,), (("spec", "csi", "driver"),), Granted("drivers"), default=""),
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
        (("spec", "mountOptions", ALL), ("spec", *INLINE_OPTIONS), ("spec", "csi", "volumeAttributes", "options")),
        GrantedItems("options", always=(*OPTIONS, S3_OPTIONS)),
    ),
)
