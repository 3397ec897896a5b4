"""Volumes and their data."""

from __future__ import annotations

from tests.unit.diff.diff_cases import KEEP, claim, stateful, with_
from tests.unit.diff.rule_cases.objects import Case, pv

LOST = "volume and its data are deleted, unless its storage class has reclaimPolicy Retain"
KEPT = "volume and its data are kept (no longer managed)"

CASES: list[Case] = [
    Case("claim-removed", "a claim", claim(), None, [("danger", LOST)]),
    Case("claim-removed", "a kept claim", claim(annotations=KEEP), None, [("notice", KEPT)]),
    Case(
        "claim-removed",
        "a claim that only Argo CD keeps",
        claim(annotations={"argocd.argoproj.io/sync-options": "ServerSideApply=true, Prune=false"}),
        None,
        [("notice", "volume and its data are kept by Argo CD (no longer managed); Flux and Helm would delete it")],
    ),
    Case(
        "claim-removed",
        "a claim that is kept only from the whole Application's end",
        claim(annotations={"argocd.argoproj.io/sync-options": "Delete=false"}),
        None,
        [
            (
                "danger",
                "volume and its data are deleted: Delete=false keeps them only when Argo CD deletes the whole "
                "Application; set Prune=false to keep them here",
            )
        ],
    ),
    Case(
        "claim-removed",
        "a claim on a volume that is named",
        claim(volumeName="team-data"),
        None,
        [("notice", "claim is deleted; data stays in volume team-data, unless its reclaimPolicy is Delete")],
    ),
    Case(
        "claim-replaced",
        "another volume that is named",
        claim("a", volumeName="team-a"),
        claim("b", volumeName="team-b"),
        [
            (
                "notice",
                "b is a claim for volume team-b; for a: claim is deleted; data stays in volume team-a, "
                "unless its reclaimPolicy is Delete",
            )
        ],
    ),
    Case(
        "claim-replaced",
        "another name",
        claim("a"),
        claim("b"),
        [("danger", f"a new, empty volume b is created; for a: {LOST}")],
    ),
    Case(
        "claim-replaced",
        "another namespace, kept",
        claim(annotations=KEEP),
        with_(claim(annotations=KEEP), "metadata/namespace", "team-b"),
        [("notice", f"a new, empty volume data is created; for data in team-a: {KEPT}")],
    ),
    Case(
        "claim-resized",
        "more room",
        claim(),
        claim(size="20Gi"),
        [("notice", "grows in place from 10Gi to 20Gi if its storage class allows expansion")],
    ),
    Case(
        "claim-resized",
        "less room",
        claim(),
        claim(size="5Gi"),
        [
            (
                "danger",
                "will be rejected: a volume cannot shrink (from 10Gi to 5Gi); delete "
                "PersistentVolumeClaim data "
                "first, which loses its data, or use another name",
            )
        ],
    ),
    Case("claim-resized", "the same room in other words", claim(size="1Gi"), claim(size="1024Mi"), []),
    Case(
        "claim-added",
        "a claim",
        None,
        claim(),
        [("info", "a new, empty volume of 10Gi from the cluster's default class")],
    ),
    Case(
        "claim-added",
        "a claim of a class",
        None,
        claim(storageClassName="fast"),
        [("info", "a new, empty volume of 10Gi from class fast")],
    ),
    Case(
        "claim-added",
        "a claim on a volume",
        None,
        claim(volumeName="pv"),
        [("info", "a claim on the existing volume pv")],
    ),
    Case(
        "claim-added",
        "a claim of no class",
        None,
        claim(storageClassName=""),
        [("info", "a new, empty volume of 10Gi from no class (it waits for a manually created volume)")],
    ),
    Case(
        "claim-keeping",
        "no longer kept",
        claim(annotations=KEEP),
        claim(),
        [
            (
                "danger",
                "no longer kept by Argo CD, Flux and Helm: removing it from Git will delete the volume and its data",
            )
        ],
    ),
    Case(
        "claim-keeping",
        "kept from now on",
        claim(),
        claim(annotations={"helm.sh/resource-policy": "keep"}),
        [("info", "from now on Helm will keep the volume when it is removed from Git")],
    ),
    Case(
        "volume-removed",
        "a volume that deletes",
        pv(persistentVolumeReclaimPolicy="Delete"),
        None,
        [("danger", "volume and its data are deleted (reclaimPolicy Delete) once no claim uses it")],
    ),
    Case(
        "volume-removed",
        "a volume that retains",
        pv(),
        None,
        [("notice", "the cluster forgets this volume; the data behind it stays where it is")],
    ),
    Case("volume-removed", "a kept volume", with_(pv(), "metadata/annotations", KEEP), None, [("notice", KEPT)]),
    Case(
        "volume-reclaim",
        "data that will go",
        pv(),
        pv(persistentVolumeReclaimPolicy="Delete"),
        [("danger", "reclaimPolicy goes from Retain to Delete: its data will be deleted with its claim")],
    ),
    Case(
        "volume-reclaim",
        "data that will stay",
        pv(persistentVolumeReclaimPolicy="Delete"),
        pv(persistentVolumeReclaimPolicy="Retain"),
        [("info", "reclaimPolicy goes from Delete to Retain")],
    ),
    Case(
        "set-claims",
        "a removed StatefulSet",
        stateful(volumeClaimTemplates=[claim()]),
        None,
        [("notice", "its volumes (data) and their data are kept (no longer managed)")],
    ),
    Case(
        "set-claims",
        "a removed StatefulSet that takes its volumes along",
        stateful(volumeClaimTemplates=[claim()], persistentVolumeClaimRetentionPolicy={"whenDeleted": "Delete"}),
        None,
        [("danger", "its volumes (data) are deleted with their data (whenDeleted: Delete)")],
    ),
    Case("set-claims", "a removed StatefulSet without volumes", stateful(), None, []),
    Case(
        "set-scaled-down",
        "fewer replicas whose volumes go",
        stateful(
            replicas=3, volumeClaimTemplates=[claim()], persistentVolumeClaimRetentionPolicy={"whenScaled": "Delete"}
        ),
        stateful(
            replicas=2, volumeClaimTemplates=[claim()], persistentVolumeClaimRetentionPolicy={"whenScaled": "Delete"}
        ),
        [("danger", "the volumes of the replicas that go (1) are deleted with their data (whenScaled: Delete)")],
    ),
    Case(
        "set-scaled-down",
        "fewer replicas whose volumes stay",
        stateful(replicas=3, volumeClaimTemplates=[claim()]),
        stateful(replicas=2, volumeClaimTemplates=[claim()]),
        [],
    ),
]
