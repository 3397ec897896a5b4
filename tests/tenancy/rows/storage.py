"""Claims, PersistentVolumes, and volumes of pods that are no buckets."""

from __future__ import annotations

from tests.tenancy.objects import (
    claim_of,
    job_set,
    leader_worker_set,
    persistent_volume,
    pod_with_claim,
    pod_with_volume,
    restored_from,
    stateful_set,
    with_annotation,
)
from tests.tenancy.tenants import Body


def restored_claim(namespace: str) -> Body:
    """Return a claim with the data of a claim in a namespace."""
    return claim_of("standard", **restored_from(namespace))


DENIED: dict[str, tuple[Body, str]] = {
    "any volume": (claim_of(""), "any volume that no claim has, by an empty storage class"),
    "any volume by an annotation": (
        with_annotation(claim_of(None), "volume.beta.kubernetes.io/storage-class", ""),
        "any volume that no claim has",
    ),
    "any volume of a StatefulSet": (stateful_set(""), "any volume that no claim has"),
    "any volume of a pod": (pod_with_claim(""), "any volume that no claim has"),
    "volume of a tenant with a longer name": (claim_of("", volumeName="team-a-dev-x"), "the volume `team-a-dev-x`"),
    "namespace of a volume": (
        persistent_volume({"claimRef": {"namespace": "team-b", "name": "c"}}),
        "the namespace team-b",
    ),
    "Git as a volume": (
        pod_with_volume(gitRepo={"repository": "https://example.com/x.git"}),
        "a volume of type `gitRepo`",
    ),
    "driver in a pod": (pod_with_volume(csi={"driver": "nfs.csi.k8s.io"}), "the driver `nfs.csi.k8s.io`"),
    "host path": (pod_with_volume(hostPath={"path": "/"}), "a volume of type `hostPath`"),
    "class of an ephemeral volume": (pod_with_claim("gp3"), "the storage class `gp3`"),
    "class of a claim": (claim_of("gp3"), "the storage class `gp3`"),
    "class of a StatefulSet": (stateful_set("gp3"), "the storage class `gp3`"),
    "class of a LeaderWorkerSet": (leader_worker_set("gp3"), "the storage class `gp3`"),
    "class of a claim by its annotation": (
        with_annotation(claim_of("standard"), "volume.beta.kubernetes.io/storage-class", "gp3"),
        "the storage class `gp3`",
    ),
    # Of a claim itself, the API server drops the namespace unless CrossNamespaceVolumeDataSource is on.
    "data of the claims of a StatefulSet": (
        stateful_set("standard", **restored_from("team-b")),
        "the data of `team-b/x`",
    ),
    "data of an ephemeral volume": (pod_with_claim("standard", **restored_from("team-b")), "the data of `team-b/x`"),
    "volume of another team": (claim_of("standard", volumeName="team-b-x"), "the volume `team-b-x`"),
    "volume for any claim": (persistent_volume({"claimRef": None}), "a volume for a claim in namespace"),
    "driver of a volume": (persistent_volume(driver="nfs.csi.k8s.io"), "the driver `nfs.csi.k8s.io`"),
    "Secret of a volume": (
        persistent_volume(nodePublishSecretRef={"name": "vault", "namespace": "team-b"}),
        "the Secret `team-b/vault`",
    ),
    **{
        f"selector of {what}": (body, "volumes by their labels")
        for what, body in (
            ("a claim", claim_of("standard", selector={"matchLabels": {"a": "b"}})),
            ("a StatefulSet", stateful_set("standard", selector={"matchLabels": {"a": "b"}})),
            ("a JobSet", job_set(claim_of("standard", selector={"matchLabels": {"a": "b"}}))),
            ("an ephemeral volume", pod_with_claim("standard", selector={"matchLabels": {"a": "b"}})),
        )
    },
    "volume of an ephemeral volume": (pod_with_claim("", volumeName="team-b-x"), "the volume `team-b-x`"),
    "name of another team's volume": (
        persistent_volume(name="team-b-weights"),
        "the name of a volume `team-b-weights`",
    ),
}
"""Objects with what the finding names, by what is wrong with them."""

GATED: dict[str, tuple[Body, str]] = {
    "certificate of the cluster": (
        pod_with_volume(
            projected={
                "sources": [{"podCertificate": {"signerName": "example.com/x", "keyType": "ED25519", "keyPath": "k"}}]
            }
        ),
        "a certificate of the cluster by `podCertificate`",
    )
}
"""The same, where the API server drops the field unless a feature gate is on: PodCertificateRequest."""

ALLOWED: dict[str, Body] = {
    "StatefulSet": stateful_set("standard"),
    "claim": claim_of("standard"),
    "claim of a volume": claim_of("", volumeName="team-a-x", **restored_from("team-a")),
    "claim of a shared volume": claim_of("", volumeName="shared-x"),
    "claim of the default class": claim_of(None),
    "volume": persistent_volume(),
}
"""Objects that the tenant may have."""
