"""Layers of an image: only plain files inside the folder are unpacked."""

from __future__ import annotations

import gzip
import io
import tarfile
import tracemalloc
from collections.abc import Iterator
from pathlib import Path

import pytest
from kaigen_downloader.errors import BadInput
from kaigen_downloader.folder import Folder
from kaigen_downloader.globs import duplicates
from kaigen_downloader.progress import Display
from kaigen_downloader.remote import LAYERS, Layer
from kaigen_downloader.unpacking import unpack

from kaigen.config.locked_files import duplicates as duplicates_of_lock


def entry(name: str, data: bytes = b"", kind: bytes = tarfile.REGTYPE, target: str = "", mode: int = 0o644) -> bytes:
    """An archive with one entry."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as archive:
        member = tarfile.TarInfo(name)
        member.type, member.size, member.linkname, member.mode = kind, len(data), target, mode
        archive.addfile(member, io.BytesIO(data))
    return out.getvalue()


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Folder]:
    opened = Folder(str(tmp_path / "model"), create=True)
    yield opened
    opened.close()


def unpacked(
    folder: Folder, *archives: bytes, root: str = "models", is_context: bool = False, skip_duplicates: bool = False
) -> set[str]:
    """The paths that layers are unpacked to."""
    layers = []
    for number, data in enumerate(archives):
        path = f"{LAYERS}/{number}"
        folder.write(path, data)
        layers.append(
            Layer(
                path,
                compressed=False,
                root=root,
                chosen=lambda path: not path.endswith(".md"),
                is_context=is_context,
                skipped=duplicates if skip_duplicates else frozenset[str]().intersection,
            )
        )
    return {file.path for file in unpack(folder, layers, (), Display())}


@pytest.mark.parametrize(
    ("hostile", "reason"),
    [
        (entry("models/../../x", b"1"), "leads out"),
        (entry("models/a", kind=tarfile.SYMTYPE, target="/etc/passwd"), "a link"),
        (entry("models/a", kind=tarfile.LNKTYPE, target="models/b"), "a link"),
        (entry("models/a", kind=tarfile.CHRTYPE), "not a plain file"),
        (entry("models/a", kind=tarfile.FIFOTYPE), "not a plain file"),
        (entry("models/.kaigen/model.json", b"{}"), "reserved"),
        (entry("models/a\nb", b"1"), "not accepted"),
        (b"no archive at all" * 100, "not an archive"),
        (entry("models/readme.md", b"1"), "no file in models"),
        (entry("etc/passwd", b"1"), "no file in models"),
    ],
)
def test_a_hostile_layer_writes_nothing(folder: Folder, hostile: bytes, reason: str) -> None:
    with pytest.raises(BadInput, match=reason):
        unpacked(folder, hostile)
    assert [path for path, _ in folder.files() if not path.startswith(".kaigen")] == []


def test_later_layers_replace_and_delete_files(folder: Folder) -> None:
    found = unpacked(
        folder,
        entry("./models/a", b"1"),
        entry("models/b", b"2"),
        entry("models/c/d", b"3"),
        entry("models/a", b"4"),
        entry("models/.wh.b"),
        entry("models/c/.wh..wh..opq"),
    )
    assert found == {"a"}
    assert folder.read("a") == b"4"


def test_build_context_keeps_links_folders_and_what_can_be_run(folder: Folder) -> None:
    found = unpacked(
        folder,
        entry("context/run.sh", b"1", mode=0o6755),
        entry("context/data", b"2", mode=0o666),
        entry("context/a/link", kind=tarfile.SYMTYPE, target="../run.sh"),
        entry("context/empty/deep", kind=tarfile.DIRTYPE),
        entry("context/.wh.data", b"3"),
        root="",
        is_context=True,
    )
    assert found == {"context/run.sh", "context/data", "context/.wh.data"}
    there = Path(folder.path, "context")
    assert [(there / name).stat().st_mode & 0o7777 for name in ("run.sh", "data")] == [0o755, 0o644]
    assert (there / "a" / "link").readlink() == Path("../run.sh")
    assert (there / "empty" / "deep").is_dir()


@pytest.mark.parametrize(
    ("hostile", "reason"),
    [
        ([entry("context/a", kind=tarfile.SYMTYPE, target="/etc/passwd")], "leads out"),
        ([entry("context/a/b", kind=tarfile.SYMTYPE, target="../../../x")], "leads out"),
        ([entry("context/a", kind=tarfile.SYMTYPE, target="b\nc")], "leads out"),
        ([entry("context/a", kind=tarfile.LNKTYPE, target="context/b")], "a link"),
        ([entry("context/a", kind=tarfile.CHRTYPE)], "not a plain file"),
        ([entry("context/../../a", b"1")], "leads out"),
        (
            [entry("context/a", kind=tarfile.SYMTYPE, target="b"), entry("context/a/x", b"1")],
            "as a file and as a folder",
        ),
        (
            [entry("context/a", kind=tarfile.SYMTYPE, target="b"), entry("context/a/x", kind=tarfile.DIRTYPE)],
            "as a file and as a folder",
        ),
        ([entry("context/a", kind=tarfile.SYMTYPE)], "leads out"),
        ([entry("context/a", kind=tarfile.SYMTYPE, target="b/../../../x")], "leads out"),
        (
            [
                entry("context/d/m", kind=tarfile.SYMTYPE, target=".."),
                entry("n", kind=tarfile.SYMTYPE, target="context/d/m/../../x"),
            ],
            "'n', a link that leads out",
        ),
        ([entry(".kaigen/model.json", kind=tarfile.DIRTYPE)], "reserved"),
        ([entry("context/b/file", kind=tarfile.DIRTYPE)], "as a file and as a folder"),
        ([entry("context/a\nb", kind=tarfile.DIRTYPE)], "not accepted"),
        ([entry(".kaigen", kind=tarfile.SYMTYPE, target="context")], "reserved"),
        ([entry("context", kind=tarfile.DIRTYPE)], "no file"),
    ],
)
def test_hostile_build_context_is_refused(folder: Folder, hostile: list[bytes], reason: str) -> None:
    good = [entry("context/b/file", b"1")] if reason != "no file" else []
    with pytest.raises(BadInput, match=reason):
        unpacked(folder, *good, *hostile, root="", is_context=True)
    outside = [path for path in Path(folder.path).parent.iterdir() if path != Path(folder.path)]
    assert outside == []
    assert [path for path, _ in folder.files() if not path.startswith(".kaigen")] == []


def test_link_of_an_earlier_run_leads_no_other_link_out(folder: Folder) -> None:
    unpacked(folder, entry("d/file", b"1"), entry("d/m", kind=tarfile.SYMTYPE, target=".."), root="", is_context=True)
    link = entry("n", kind=tarfile.SYMTYPE, target="d/m/../x")
    with pytest.raises(BadInput, match="'n', a link that leads out"):
        unpacked(folder, entry("file", b"1"), link, root="", is_context=True)


def test_links_may_lead_through_folders_and_links_of_the_context(folder: Folder) -> None:
    targets = {"a/up": "..", "a/file": "../b/../b/file", "b/through": "../a/up/b/file"}
    links = [entry(path, kind=tarfile.SYMTYPE, target=target) for path, target in targets.items()]
    unpacked(folder, entry("b/file", b"1"), *links, root="", is_context=True)
    assert [Path(folder.path, path).read_bytes() for path in ("a/file", "b/through")] == [b"1", b"1"]


def test_a_link_leaves_a_file_with_a_similar_name(folder: Folder) -> None:
    link = entry("a", kind=tarfile.SYMTYPE, target="b")
    unpacked(folder, entry("a.new", b"mine"), entry("b", b"1"), link, root="", is_context=True)
    assert folder.read("a.new") == b"mine"


def test_link_of_an_earlier_run_is_replaced(folder: Folder) -> None:
    layer = entry("context/a", kind=tarfile.SYMTYPE, target="b")
    for _ in range(2):
        unpacked(folder, entry("context/b", b"1"), layer, root="", is_context=True)
    assert Path(folder.path, "context", "a").readlink() == Path("b")


def test_weights_in_other_formats_are_duplicates_only_next_to_safetensors() -> None:
    plain = {"model.safetensors", "config.json", "training_args.bin", "data.bin"}
    more = {"original/consolidated.00.pth", "consolidated.safetensors", "pytorch_model.bin", "tf_model.h5"}
    assert duplicates(plain | more) == more
    assert duplicates(more) == set()
    assert duplicates({"unet/model.safetensors", "vae/model.bin"}) == set()
    for paths in (plain | more, more, {f"original/{path}" for path in plain | more} | plain):
        assert duplicates(paths) == duplicates_of_lock(paths)


def test_weights_of_another_layer_are_skipped_next_to_safetensors(folder: Folder) -> None:
    layers = (entry("models/model.safetensors", b"1"), entry("models/pytorch_model.bin", b"2"))
    assert unpacked(folder, *layers, skip_duplicates=True) == {"model.safetensors"}
    assert not Path(folder.path, "pytorch_model.bin").exists()


def header(kind: bytes, length: int) -> bytes:
    """The header of an entry that says it has this many bytes."""
    member = tarfile.TarInfo("models/a")
    member.type, member.size = kind, length
    return member.tobuf(tarfile.GNU_FORMAT)


@pytest.mark.parametrize(
    "archive",
    [
        header(tarfile.REGTYPE, 2**80),
        header(tarfile.XHDTYPE, 3 << 30),
        header(tarfile.GNUTYPE_LONGNAME, 3 << 30),
        header(tarfile.GNUTYPE_LONGNAME, 0) * 5000,
        header(tarfile.XHDTYPE, 0) * 5000,
    ],
    ids=["huge file", "huge header", "huge name", "chain of names", "chain of headers"],
)
def test_headers_of_an_archive_have_limits(folder: Folder, archive: bytes) -> None:
    with pytest.raises(BadInput, match=r"is not an archive|has no files"):
        unpacked(folder, archive)


def test_a_layer_that_compresses_well_is_unpacked_in_pieces(folder: Folder) -> None:
    length = 64 << 20
    folder.write(f"{LAYERS}/0", gzip.compress(entry("models/a", bytes(length)), 1))
    layer = Layer(f"{LAYERS}/0", compressed=True, root="models", chosen=lambda path: True)
    tracemalloc.start()
    try:
        (file,) = unpack(folder, [layer], (), Display())
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert (file.path, file.size, peak < length / 4) == ("a", length, True)
