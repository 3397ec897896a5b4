"""Revisions of a Model: a folder for each one, in the download and in every pod that reads the weights."""

from __future__ import annotations

from typing import Any

import pytest

from kaigen.compile.builders.sources import identity
from kaigen.kinds.model import Model
from tests.unit.compile.specs import Block, Object, context, job, model, objects, pod, problem_paths, topology

OLD, NEW = "0" * 40, "1" * 40
READERS: dict[str, Block] = {
    "topology": topology(model="m", resources={"gpus": 0}),
    "job": job(model="m"),
    "adapter": topology(model={"folder": "/weights"}, adapters=[{"name": "tone", "model": "m"}], resources={"gpus": 0}),
}


def revision(commit: str, **spec: Any) -> Model:
    """Return a Model of a commit."""
    return model(source={"huggingFace": {"repo": "a/b", "revision": commit}}, **spec)


def folder(found: Model) -> str:
    return identity(found.spec.source)


@pytest.mark.parametrize("store", [{"volume": {"size": "1Gi"}}, {"bucket": {"uri": "s3://models/m"}}])
def test_each_revision_has_its_own_folder_in_the_same_store(store: Object) -> None:
    old, new = revision(OLD, store=store), revision(NEW, store=store)
    assert folder(old) != folder(new)
    for found in (old, new):
        (dest,) = [each for each in pod(found)["containers"][0]["args"] if each.startswith("--dest=")]
        assert dest.endswith(f"/{folder(found)}")
        assert "--keep-revisions=1" in pod(found)["containers"][0]["args"]
    kinds = ("PersistentVolumeClaim", "PersistentVolume")
    assert [objects(old).get(kind) for kind in kinds] == [objects(new).get(kind) for kind in kinds]


@pytest.mark.parametrize("reader", READERS)
def test_a_reader_mounts_one_revision_when_it_is_complete(reader: str) -> None:
    found = revision(NEW)
    made = pod(READERS[reader], context(models={"m": found}))
    (gate,) = made["initContainers"]
    (waits_in,) = gate["volumeMounts"]
    (mount,) = [each for each in made["containers"][0]["volumeMounts"] if each["name"] == waits_in["name"]]
    assert mount["subPath"] == folder(found)
    # The folder may not exist yet, and the kubelet would create it as root: so the gate mounts the whole volume.
    assert "subPath" not in waits_in
    assert f"--dest={waits_in['mountPath']}/{folder(found)}" in gate["args"]


def test_the_downloader_may_list_pods() -> None:
    rule = {"apiGroups": [""], "resources": ["pods"], "verbs": ["list"]}
    assert rule in objects(revision(OLD))["Role"]["rules"]


@pytest.mark.parametrize(
    ("size", "kept", "code"),
    [
        ("27Gi", 1, ["KG0320"]),
        ("28Gi", 0, []),
        ("54Gi", 1, ["KG0321"]),
        ("56Gi", 1, []),
        ("56Gi", 2, ["KG0321"]),
        ("64Gi", None, []),
    ],
)
def test_a_volume_without_room_for_the_kept_revisions_is_a_warning(
    size: str, kept: int | None, code: list[str]
) -> None:
    source = {"huggingFace": {"repo": "microsoft/phi-4", "revision": OLD}}
    store = {"volume": {"size": size}, **({} if kept is None else {"keepRevisions": kept})}
    assert [each for each, _ in problem_paths(model(source=source, store=store))] == code
