"""What a CSI volume asks for, and which of it the entries of `allow.volumes` do not grant."""

from __future__ import annotations

from typing import Any

import pytest

from kaigen.config.block_settings import Allowed, VolumeGrant
from kaigen.config.grants import Ungranted, WantedVolume, find_ungranted, wanted_volume


def s3(**attributes: str) -> dict[str, Any]:
    return {"driver": "s3.csi.aws.com", "volumeAttributes": {"bucketName": "acme", **attributes}}


def azure(**attributes: str) -> dict[str, Any]:
    known = {"storageAccount": "acme", "containerName": "models", "protocol": "fuse2"}
    return {"driver": "blob.csi.azure.com", "volumeAttributes": {**known, **attributes}}


@pytest.mark.parametrize(
    ("spec", "wanted"),
    [
        ({}, WantedVolume("ns")),
        ({"csi": {"driver": "nfs.csi.k8s.io"}}, WantedVolume("ns", driver="nfs.csi.k8s.io")),
        ({"csi": s3()}, WantedVolume("ns", "s3://acme/")),
        ({"csi": s3(authenticationSource="pod", mounter="x")}, WantedVolume("ns", "s3://acme/")),
        (
            {"csi": azure(), "mountOptions": ["-o allow_other", "--subdirectory=a/b"]},
            WantedVolume("ns", "az://acme/models/a/b"),
        ),
        ({"csi": azure(storageaccount="o")}, WantedVolume("ns", "az://acme/models/", attributes=("storageaccount",))),
        ({"csi": azure(server="x")}, WantedVolume("ns", "az://acme/models/", attributes=("server",))),
        (
            {"csi": azure(), "mountOptions": ["--subdirectory=a", "--subdirectory b"]},
            WantedVolume("ns", "az://acme/models/a --subdirectory b", options=("--subdirectory b",)),
        ),
        ({"csi": s3(share="x")}, WantedVolume("ns", "s3://acme/", attributes=("share",))),
        ({"csi": s3(mountOptions="x")}, WantedVolume("ns", "s3://acme/", attributes=("mountOptions",), options=("x",))),
        ({"csi": s3(options="--x")}, WantedVolume("ns", "s3://acme/", attributes=("options",))),
        (
            {"csi": s3(options="--memory-limit=1000 --dir-mode=0555 --file-mode=0444 --uid=1  -o  ro")},
            WantedVolume("ns", "s3://acme/", options=("--uid=1", "-o  ro")),
        ),
        (
            {"csi": s3(), "mountOptions": ["prefix a/", "read-only", "region eu", "allow-delete"]},
            WantedVolume("ns", "s3://acme/a/", options=("allow-delete",)),
        ),
        (
            {"csi": s3(), "mountOptions": ["endpoint-url https://minio.example/", "endpoint-url x"]},
            WantedVolume("ns", "s3://acme/", servers=("minio.example", "")),
        ),
        (
            {
                "csi": {
                    **s3(),
                    "nodeStageSecretRef": {"name": "a", "namespace": "other"},
                    "nodePublishSecretRef": {"name": "a", "namespace": "other"},
                    "controllerExpandSecretRef": {"name": "b", "namespace": "third"},
                    "controllerPublishSecretRef": {"name": "c", "namespace": "ns"},
                    "fsType": {"name": "d", "namespace": "other"},
                }
            },
            WantedVolume("ns", "s3://acme/", secrets=("other/a", "third/b")),
        ),
    ],
)
def test_a_persistent_volume_asks_for_what_kaigen_does_not_set(spec: dict[str, Any], wanted: WantedVolume) -> None:
    assert wanted_volume(spec, "ns") == wanted


def test_the_secret_of_a_pods_volume_is_one_of_its_namespace() -> None:
    spec: dict[str, Any] = {"csi": {"driver": "x", "nodePublishSecretRef": {"name": "a"}}}
    assert wanted_volume(spec, "ns", inline=True) == WantedVolume("ns", driver="x")
    assert wanted_volume(spec, "ns").secrets == ("None/a",)


def test_the_options_of_a_pods_volume_are_an_attribute() -> None:
    spec: dict[str, Any] = {
        "csi": {"driver": "gcsfuse.csi.storage.gke.io", "volumeAttributes": {"bucketName": "b", "mountOptions": "x"}}
    }
    assert wanted_volume(spec, "ns", inline=True) == WantedVolume("ns", "gs://b/", options=("x",))


@pytest.mark.parametrize(
    ("volume", "place"),
    [
        (WantedVolume("ns", "s3://acme/"), "s3://acme"),
        (WantedVolume("ns", "s3://acme/a", servers=("x", "y")), "s3://acme/a at x at y"),
    ],
)
def test_the_place_of_a_volume_has_its_servers(volume: WantedVolume, place: str) -> None:
    assert volume.place == place


GRANT = VolumeGrant(("team-?",), ("s3://acme/*", "s3://models at minio"), ("nfs.*",), ("k/s",), ("share",), ("max *",))


@pytest.mark.parametrize(
    ("wanted", "ungranted"),
    [
        (WantedVolume("team-a"), ()),
        (WantedVolume("team-a", "s3://acme/x/"), ()),
        (WantedVolume("team-a", "s3://models", servers=("minio",)), ()),
        (WantedVolume("team-a", "", "nfs.csi", ("k/s",), ("share",), ("max 1",)), ()),
        (WantedVolume("other"), (("namespace", "a volume in namespace", "other"),)),
        (WantedVolume("team-a", "s3://other"), (("uri", "the bucket", "s3://other"),)),
        (WantedVolume("team-a", "s3://acme/x y"), (("uri", "the bucket", "s3://acme/x y"),)),
        (WantedVolume("team-a", "s3://models", servers=("m",)), (("uri", "the bucket", "s3://models at m"),)),
        (WantedVolume("team-a", driver="x"), (("driver", "the driver", "x"),)),
        (
            WantedVolume("team-a", secrets=("k/s", "k/t"), attributes=("x", "share"), options=("min", "y")),
            (
                ("secrets", "the Secret", "k/t"),
                ("attributes", "the attribute", "x"),
                ("options", "the option", "min"),
                ("options", "the option", "y"),
            ),
        ),
    ],
)
def test_all_of_an_entry_must_match(wanted: WantedVolume, ungranted: tuple[tuple[str, str, str], ...]) -> None:
    assert find_ungranted(wanted, Allowed(volumes=(GRANT,))) == tuple(Ungranted(*each) for each in ungranted)


def test_the_entry_that_grants_most_counts() -> None:
    nothing, place, namespace = VolumeGrant(("x",), ("x",)), VolumeGrant(("x",)), VolumeGrant(("ns",), ("x",))
    wanted = WantedVolume("ns", "s3://acme")
    (first,) = find_ungranted(wanted, Allowed(volumes=(nothing, place)))
    (second,) = find_ungranted(wanted, Allowed(volumes=(nothing, namespace)))
    assert (str(first), str(second)) == ("a volume in namespace ns", "the bucket s3://acme")
    assert find_ungranted(wanted, Allowed(volumes=(nothing, VolumeGrant(), place))) == ()
