"""The block `allow`: the settings of a run are those that the block sets, and the defaults without them."""

from __future__ import annotations

import pytest

from kaigen.config.allow import Allow, Volumes, allow_settings
from kaigen.config.block_settings import Allowed, VolumeGrant, matches_glob

BUCKETS_ONLY = (VolumeGrant(("*",), ("*",), (), ("kube-system/csi-s3-secret",), (), ()),)


@pytest.mark.parametrize("block", [None, Allow()])
def test_nothing_is_allowed_by_default_but_buckets_and_the_secret_of_their_driver(block: Allow | None) -> None:
    allowed = allow_settings(block)
    assert (allowed.files, allowed.namespaces, allowed.secrets, allowed.servers) == ((), (), (), ())
    assert allowed.volumes == BUCKETS_ONLY


def test_each_list_of_the_block_is_a_setting() -> None:
    block = Allow(files=["README.md"], namespaces=["kube-system"], secrets=["login"], servers=["localhost"])
    assert allow_settings(block) == Allowed(
        files=("README.md",),
        namespaces=("kube-system",),
        secrets=("login",),
        servers=("localhost",),
        volumes=BUCKETS_ONLY,
    )


def test_each_list_of_volumes_is_a_grant() -> None:
    block = Volumes(
        namespaces=["a"],
        uris=["s3://b"],
        drivers=["nfs.csi.k8s.io"],
        secrets=["ns/secret"],
        attributes=["share"],
        options=["max-threads *"],
    )
    assert allow_settings(Allow(volumes=[block])).volumes == (
        VolumeGrant(("a",), ("s3://b",), ("nfs.csi.k8s.io",), ("ns/secret",), ("share",), ("max-threads *",)),
    )


@pytest.mark.parametrize(
    ("block", "grant"),
    [
        (Volumes(), VolumeGrant(("*",), ("*",), (), (), (), ())),
        (Volumes(namespaces=[], uris=[]), VolumeGrant((), (), (), (), (), ())),
        (Volumes(namespaces=["a"]), VolumeGrant(("a",), ("*",), (), (), (), ())),
        (Volumes(uris=["s3://a"]), VolumeGrant(("*",), ("s3://a",), (), (), (), ())),
    ],
)
def test_volumes_without_a_list_are_in_any_namespace_and_bucket_and_an_empty_list_has_none(
    block: Volumes, grant: VolumeGrant
) -> None:
    assert allow_settings(Allow(volumes=[block])).volumes == (grant,)


@pytest.mark.parametrize(
    ("text", "globs", "expected"),
    [("a/b", ["a*"], True), ("a/b", ["c", "a?b"], True), ("ab", ["a"], False), ("A", ["a"], False), ("a", [], False)],
)
def test_a_glob_matches_the_whole_text(text: str, globs: list[str], expected: bool) -> None:
    assert matches_glob(text, globs) is expected
