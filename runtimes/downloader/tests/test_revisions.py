"""Revisions next to each other: what a new one leaves alone, takes over, and removes."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from api import Api
from hub import REPO, Hub, status
from runs import Done, Runner, content, files, holds, marker
from s3 import KEYS, S3

A, B, C = ("a" * 16, "b" * 16, "c" * 16)


@pytest.fixture
def root(dest: Path) -> Path:
    """The folder above those of the revisions."""
    return dest


def keep(
    run: Runner, hub: Hub, where: Path | S3, name: str, count: int = 1, env: Mapping[str, str] | None = None
) -> Done:
    """Fetch what the Hub has into the folder of a revision."""
    fixed = ["fetch", "huggingface", "--repo", REPO, "--endpoint", hub.url, "--timeout", "5"]
    dest = ["--dest", f"{where}/{name}"] if isinstance(where, Path) else where.dest(f"llm/{name}")
    done = run(*fixed, *dest, "--identity", name, "--keep-revisions", str(count), **(env or {}))
    print(done.err)
    return done


def change(hub: Hub, seed: int) -> None:
    """Change one large and one small file, as a new revision does."""
    hub.add("model-00001.safetensors", content(50_000, seed))
    hub.add("config.json", b'{"model_type": "llama", "seed": %d}' % seed)
    hub.seen.clear()
    hub.sent = 0


def pod(name: str, reads: str, phase: str = "Running") -> dict[str, Any]:
    mount = {"name": "model", "mountPath": "/model", "subPath": reads}
    return {
        "metadata": {"name": name},
        "spec": {"containers": [{"name": "serve", "volumeMounts": [mount]}]},
        "status": {"phase": phase},
    }


def folders(root: Path) -> set[str]:
    return {path.name for path in root.iterdir() if path.name != ".kaigen"}


def contents(root: Path) -> Mapping[str, tuple[int, bytes]]:
    """Every file with its inode and bytes."""
    paths = [path for path in root.rglob("*") if path.is_file()]
    return {str(path): (path.stat().st_ino, path.read_bytes()) for path in paths}


def test_a_new_revision_changes_no_byte_of_the_old_one(hub: Hub, run: Runner, root: Path) -> None:
    assert keep(run, hub, root, A).code == 0
    before = contents(root / A)
    change(hub, 7)
    assert keep(run, hub, root, B).code == 0
    assert contents(root / A) == before
    assert holds(root / B, hub)


@pytest.mark.parametrize("where", ["list", "marker"])
@pytest.mark.parametrize("name", ["../other/" + C, "/other", ".kaigen", "..", "", "a/b"])
def test_a_name_that_is_a_path_removes_no_other_folder(
    hub: Hub, run: Runner, api: Api, root: Path, name: str, where: str
) -> None:
    other = root.parent / "other"
    assert keep(run, hub, other, C).code == 0
    state = root / ".kaigen"
    state.mkdir(parents=True)
    if where == "list":
        (state / "revisions.json").write_text(json.dumps([name, name]))
    else:
        text = (other / C / ".kaigen" / "model.json").read_text().replace(C, name)
        (state / "model.json").write_text(json.dumps(json.loads(text) | {"files": []}))
    before = contents(other / C)
    done = keep(run, hub, root, A, count=0, env=api.env)
    assert done.code == 0, done.err
    assert contents(other / C) == before
    assert json.loads((state / "revisions.json").read_text()) == [A]


def test_a_rollback_asks_the_hub_nothing(hub: Hub, run: Runner, root: Path) -> None:
    assert keep(run, hub, root, A).code == 0
    change(hub, 7)
    assert keep(run, hub, root, B).code == 0
    hub.seen.clear()
    done = keep(run, hub, root, A)
    assert done.code == 0
    assert "already complete" in done.err
    assert hub.seen == []
    assert json.loads((root / ".kaigen" / "revisions.json").read_text()) == [A, B]


def test_files_that_another_revision_has_are_not_fetched(hub: Hub, run: Runner, root: Path) -> None:
    assert keep(run, hub, root, A).code == 0
    change(hub, 7)
    done = keep(run, hub, root, B)
    assert "3 files of other revisions used, 2 files to fetch" in done.err
    assert hub.sent == 50_000 + len(hub.files["config.json"].data)
    same = "model-00002.safetensors"
    assert (root / A / same).stat().st_ino == (root / B / same).stat().st_ino
    assert holds(root / B, hub)


def test_a_damaged_file_of_another_revision_is_fetched(hub: Hub, run: Runner, root: Path) -> None:
    assert keep(run, hub, root, A).code == 0
    damaged = root / A / "model-00002.safetensors"
    damaged.write_bytes(bytes(damaged.stat().st_size))
    change(hub, 7)
    assert keep(run, hub, root, B).code == 0
    assert holds(root / B, hub)
    assert set(damaged.read_bytes()) == {0}


def test_old_revisions_go_before_the_next_download(hub: Hub, api: Api, run: Runner, root: Path) -> None:
    for seed, name in enumerate((A, B)):
        change(hub, seed)
        assert keep(run, hub, root, name).code == 0
    change(hub, 7)
    hub.files.clear()  # Nothing can be fetched: the old revision is removed before that.
    assert keep(run, hub, root, C, env=api.env).code == 13
    assert B in folders(root)
    assert A not in folders(root)
    assert api.calls[0][0] == "GET"


@pytest.mark.parametrize("count", [0, 2])
def test_as_many_revisions_stay_as_asked(hub: Hub, api: Api, run: Runner, root: Path, count: int) -> None:
    for seed, name in enumerate((A, B, C)):
        change(hub, seed)
        assert keep(run, hub, root, name, count, env=api.env).code == 0
    assert folders(root) == ({C} if count == 0 else {A, B, C})


def test_a_revision_that_a_pod_reads_stays(hub: Hub, api: Api, run: Runner, root: Path) -> None:
    api.page = 1
    api.pods = [pod("other", "x"), pod("ended", B, "Succeeded"), pod("chat-1", A, "Pending")]
    for seed, name in enumerate((A, B)):
        change(hub, seed)
        assert keep(run, hub, root, name, 0, env=api.env).code == 0
    assert folders(root) == {A, B}
    change(hub, 7)
    done = keep(run, hub, root, C, 0, env=api.env)
    assert f"revision {A} is read by pod chat-1" in done.err
    assert f"removed revision {B}: 5 files" in done.err
    assert folders(root) == {A, C}
    assert holds(root / C, hub)


@pytest.mark.parametrize("status", [403, 200, None], ids=["refused", "cut off", "not reached"])
def test_nothing_is_removed_when_pods_cannot_be_listed(
    hub: Hub, api: Api, run: Runner, root: Path, status: int | None
) -> None:
    assert keep(run, hub, root, A).code == 0
    change(hub, 7)
    api.statuses = [status] if status is not None else []
    done = keep(run, hub, root, B, 0, env=api.env if status is not None else {})
    assert done.code == 0
    assert "warning: old revisions are not removed: which of them pods read is not known" in done.err
    assert folders(root) == {A, B}


def test_a_failed_revision_does_not_push_out_the_one_that_is_kept(hub: Hub, api: Api, run: Runner, root: Path) -> None:
    assert keep(run, hub, root, A, env=api.env).code == 0
    known, hub.files = hub.files, {}
    assert keep(run, hub, root, B, env=api.env).code != 0
    hub.files = known
    change(hub, 7)
    assert keep(run, hub, root, C, env=api.env).code == 0
    assert folders(root) == {A, C}


def test_foreign_files_and_folders_stay(hub: Hub, api: Api, run: Runner, root: Path) -> None:
    assert keep(run, hub, root, A, 0, env=api.env).code == 0
    (root / A / "notes.txt").write_text("mine")
    (root / "lost+found").mkdir()
    change(hub, 7)
    assert keep(run, hub, root, B, 0, env=api.env).code == 0
    assert files(root / A) == {"notes.txt"}
    assert folders(root) == {A, B, "lost+found"}


def test_a_killed_removal_goes_on(hub: Hub, api: Api, run: Runner, root: Path) -> None:
    assert keep(run, hub, root, A, 0, env=api.env).code == 0
    # As a run leaves it that was killed after it removed the marker and one file.
    (root / A / ".kaigen" / "owned.json").write_text(json.dumps(sorted(hub.files)))
    (root / A / ".kaigen" / "model.json").unlink()
    (root / A / "config.json").unlink()
    change(hub, 7)
    assert keep(run, hub, root, B, 0, env=api.env).code == 0
    assert folders(root) == {B}


def test_a_full_volume_says_what_else_is_stored(
    hub: Hub, run: Runner, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert keep(run, hub, root, A).code == 0
    change(hub, 7)
    monkeypatch.setattr("kaigen_downloader.folder.Folder.free", lambda _: (1000, 10**6))
    done = keep(run, hub, root, B)
    assert done.code == 12
    assert done.err.splitlines()[-1].endswith(f"revision {A} is kept for a rollback")
    assert marker(root / A) is not None


def test_a_folder_of_another_name_is_an_error(hub: Hub, run: Runner, root: Path) -> None:
    done = run.fetch(hub, root / "model", "--keep-revisions", "1", identity=A)
    assert done.code == 13
    assert "needs a folder with the name of the identity, not 'model'" in done.err


def test_files_without_a_folder_are_taken_over(hub: Hub, run: Runner, root: Path) -> None:
    assert run.fetch(hub, root, identity=A).code == 0
    before = contents(root)
    asked = len(hub.seen)
    done = keep(run, hub, root, A)
    assert done.code == 0
    assert "took over the files" in done.err
    assert len(hub.seen) == asked
    assert holds(root / A, hub)
    # Pods of before read them where they were.
    assert before.items() <= contents(root).items()
    assert run("wait", "--dest", str(root), "--identity", A, "--timeout", "1s").code == 0
    assert run("verify", "--dest", str(root / A), "--identity", A, "--full").code == 0


def test_files_without_a_folder_are_a_revision(hub: Hub, api: Api, run: Runner, root: Path) -> None:
    assert run.fetch(hub, root, identity=A).code == 0
    before = contents(root)
    change(hub, 7)
    assert keep(run, hub, root, B, env=api.env).code == 0
    assert before.items() <= contents(root).items()
    assert hub.sent == 50_000 + len(hub.files["config.json"].data)
    hub.seen.clear()
    assert keep(run, hub, root, A, env=api.env).code == 0
    assert hub.seen == []
    api.pods = [pod("chat", B)]
    change(hub, 8)
    assert keep(run, hub, root, C, 0, env=api.env).code == 0
    assert folders(root) == {B, C}
    assert marker(root) is None


def derive(folder: Path, *, complete: bool = True) -> None:
    """Write what kaigen-convert does, or what it leaves when it is killed."""
    (folder / ".kaigen").mkdir(parents=True)
    (folder / "model.m").write_bytes(b"converted")
    if complete:
        files = [{"path": "model.m", "size": 9, "sha256": "0" * 64}]
        source = {"type": "distributed-llama", "commit": "c0ffee"}
        times = {"started": "2026-01-01T00:00:00Z", "finished": "2026-01-01T00:00:01Z"}
        content = {"schema": 1, "identity": folder.name, "source": source, "files": files, "bytes": 9, **times}
        (folder / ".kaigen/model.json").write_text(json.dumps(content))
    else:
        (folder / ".kaigen/owned.json").write_text('["model.m", "tokenizer.t"]')
        (folder / ".kaigen/partial").mkdir()
        (folder / ".kaigen/partial/model.m").write_bytes(b"conv")


def test_files_that_are_made_of_old_revisions_are_removed_like_them(
    hub: Hub, api: Api, run: Runner, root: Path
) -> None:
    converted = root / "converted"
    fixed = ["fetch", "huggingface", "--repo", REPO, "--endpoint", hub.url, "--keep-revisions", "1"]

    def fetch(source: str, derived: str) -> None:
        place = ["--dest", str(root / source), "--identity", source, "--derived", str(converted / derived)]
        assert run(*fixed, *place, **api.env).code == 0

    names = [letter * 16 for letter in "def0"]
    fetch(A, names[0])
    derive(converted / names[0])
    fetch(A, names[1])
    derive(converted / names[1], complete=False)
    api.pods = [pod("ring", f"converted/{names[0]}")]
    fetch(B, names[2])
    derive(converted / names[2])
    # The one that was not finished is gone, also with what it left; a pod reads the other.
    assert folders(converted) == {names[0], names[2]}
    api.pods = []
    fetch(C, names[3])
    assert folders(converted) == {names[2]}
    assert folders(root) == {"converted", B, C}


def test_derived_files_need_revisions(hub: Hub, run: Runner, root: Path) -> None:
    fixed = ["fetch", "huggingface", "--repo", REPO, "--endpoint", hub.url, "--dest", str(root / A)]
    done = run(*fixed, "--identity", A, "--derived", str(root / B))
    assert (done.code, "--derived is for --keep-revisions" in done.err) == (13, True)


def test_a_bucket_has_the_same_revisions(hub: Hub, s3: S3, api: Api, run: Runner) -> None:
    for name, value in KEYS.items():
        api.env[name] = value
    assert keep(run, hub, s3, A, env=api.env).code == 0
    old = {key: s3.get(key) for key in s3.everything() if key.startswith(f"llm/{A}/")}
    change(hub, 7)
    assert keep(run, hub, s3, B, env=api.env).code == 0
    assert {key: s3.get(key) for key in old} == old
    assert hub.sent == 50_000 + len(hub.files["config.json"].data)
    new = {key.removeprefix(f"llm/{B}/"): s3.get(key) for key in s3.everything() if f"/{B}/" in key}
    assert new.items() >= {path: stored.data for path, stored in hub.files.items()}.items()

    hub.seen.clear()
    assert "already complete" in keep(run, hub, s3, A, env=api.env).err
    assert hub.seen == []

    api.pods = [pod("chat", A)]
    change(hub, 8)
    assert keep(run, hub, s3, C, 0, env=api.env).code == 0
    assert {key.split("/")[1] for key in s3.everything()} == {".kaigen", A, C}
    assert {key: s3.get(key) for key in old} == old


def test_nothing_stays_of_an_unfinished_revision_in_a_bucket(hub: Hub, s3: S3, api: Api, run: Runner) -> None:
    hub.fail(1000, "hub", status(503), "config.json")
    assert keep(run, hub, s3, A, env=api.env | {"KAIGEN_ATTEMPTS": "2"}).code == 20
    s3.put(f"llm/{A}/.kaigen/sums.json", b"{}")
    hub.faults.clear()
    assert keep(run, hub, s3, B, 0, env=api.env).code == 0
    assert {key.split("/")[1] for key in s3.everything()} == {".kaigen", B}


def test_objects_without_a_folder_are_taken_over(hub: Hub, s3: S3, run: Runner) -> None:
    fixed = ["fetch", "huggingface", "--repo", REPO, "--endpoint", hub.url]
    assert run(*fixed, *s3.dest("llm"), "--identity", A).code == 0
    asked = len(hub.seen)
    done = keep(run, hub, s3, A)
    assert done.code == 0
    assert "took over the files" in done.err
    assert len(hub.seen) == asked
    for path, stored in hub.files.items():
        assert s3.get(f"llm/{A}/{path}") == s3.get(f"llm/{path}") == stored.data
