"""Archives of folders: what is in them, and what is refused of one that is received."""

from __future__ import annotations

import hashlib
import io
import os
import tarfile
from pathlib import Path

import pytest

from kaigen.diagnostics.errors import SystemFailure
from kaigen.ops.archive import entries_of, read_archive, write_archive


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    (folder / "empty").mkdir(parents=True)
    (folder / ".git").mkdir()
    (folder / ".git" / "HEAD").write_text("x")
    (folder / "logs").mkdir()
    (folder / "logs" / "keep.txt").write_text("kept")
    (folder / "logs" / "a.log").write_text("ignored")
    (folder / "run.sh").write_text("#!/bin/sh\n")
    (folder / "run.sh").chmod(0o755)
    (folder / "large").write_bytes(os.urandom(3 * 1024 * 1024 + 7))
    return folder


def names(folder: Path) -> list[str]:
    return [entry.name for entry in entries_of(folder)]


def test_empty_folders_are_copied_and_git_is_not(project: Path) -> None:
    assert names(project) == ["empty", "large", "logs", "logs/a.log", "logs/keep.txt", "run.sh"]


def test_the_ignore_file_is_that_of_kaigen_before_that_of_git(project: Path) -> None:
    (project / ".gitignore").write_text("large\n*.log\n!a.log\n")
    assert "large" not in names(project)
    assert "logs/a.log" in names(project)
    (project / ".kaigenignore").write_text("*.log\n/empty/\n")
    assert "large" in names(project)
    assert {"logs/a.log", "empty"} & set(names(project)) == set()


def test_an_archive_is_read_back_with_the_same_checksums(project: Path, tmp_path: Path) -> None:
    checksums: dict[str, str] = {}
    moved: list[int] = []
    data = b"".join(write_archive(entries_of(project), checksums, moved.append))
    target = tmp_path / "target"
    found = read_archive(io.BytesIO(data), lambda name: target / name)
    assert found.checksums == checksums
    assert checksums["large"] == hashlib.sha256((target / "large").read_bytes()).hexdigest()
    assert sum(moved) == found.size == sum(entry.size for entry in entries_of(project))
    assert (target / "empty").is_dir()
    assert os.access(target / "run.sh", os.X_OK)
    assert not os.access(target / "large", os.X_OK)


def test_other_tar_programs_read_the_archive(project: Path) -> None:
    data = b"".join(write_archive(entries_of(project), {}))
    with tarfile.open(fileobj=io.BytesIO(data)) as archive:
        assert [member.name for member in archive] == names(project)


@pytest.mark.parametrize("name", ["../out", "/etc/passwd", "a/../../out"])
def test_a_name_that_leads_out_is_refused(tmp_path: Path, name: str) -> None:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        info = tarfile.TarInfo(name)
        info.size = 1
        archive.addfile(info, io.BytesIO(b"x"))
    buffer.seek(0)
    with pytest.raises(SystemFailure, match="leads out of it"):
        read_archive(buffer, lambda found: tmp_path / "in" / found)
    assert list(tmp_path.iterdir()) == []


def test_a_link_leads_nowhere(tmp_path: Path) -> None:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        link = tarfile.TarInfo("link")
        link.type, link.linkname = tarfile.SYMTYPE, str(tmp_path / "out")
        archive.addfile(link)
        info = tarfile.TarInfo("link/file")
        info.size = 1
        archive.addfile(info, io.BytesIO(b"x"))
    buffer.seek(0)
    found = read_archive(buffer, lambda name: tmp_path / "in" / name)
    assert found.links == 1
    assert (tmp_path / "in" / "link" / "file").read_bytes() == b"x"
    assert not (tmp_path / "out").exists()


def test_a_damaged_archive_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(SystemFailure, match="damaged"):
        read_archive(io.BytesIO(b"not a tar archive" * 100), lambda name: tmp_path / name)


def test_what_cannot_be_copied_is_named(project: Path) -> None:
    (project / "pipe").mkdir()
    os.mkfifo(project / "pipe" / "fifo")
    with pytest.raises(SystemFailure, match="pipe/fifo: only files and folders"):
        entries_of(project)
    (project / "pipe" / "fifo").unlink()
    (project / "pipe" / "link").symlink_to(project / "logs")
    with pytest.raises(SystemFailure, match="pipe/link: a symbolic link to a folder"):
        entries_of(project)
    (project / "pipe" / "link").unlink()
    (project / "pipe" / "two\nlines").write_text("x")
    with pytest.raises(SystemFailure, match="control character"):
        entries_of(project)


def test_a_file_that_changes_during_the_copy_is_an_error(project: Path) -> None:
    entries = entries_of(project)
    (project / "large").write_text("shorter")
    with pytest.raises(SystemFailure, match="changed while it was copied"):
        list(write_archive(entries, {}))
