"""Which files of a folder are packed, and what is refused."""

from __future__ import annotations

import io
import os
import shutil
import socket
import tarfile
from pathlib import Path

import pytest

from kaigen.contexts import folder as folders
from kaigen.contexts.artifact import pack, plan_push, target
from kaigen.contexts.folder import find_secret_files, read_folder
from kaigen.diagnostics.errors import InputError, SystemFailure

DIGEST = "sha256:c9f3d7f9a18f09657c6bb7889b8f6bb1dd9e05f1a9ab16230dd7a2162376f4a9"
TOKEN = "hf_" + "aB3dE5gH7jK9mN1pQ3sT5vX7zA9cE1gH3j"


@pytest.fixture
def context(tmp_path: Path) -> Path:
    made = tmp_path / "context"
    made.mkdir()
    (made / "Dockerfile").write_text("FROM scratch\nCOPY . /\n")
    return made


def write(folder: Path, **files: str) -> None:
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def names(folder: Path, dockerfile: str = "Dockerfile") -> list[str]:
    return [entry.name for entry in read_folder(folder, dockerfile)]


def archive(folder: Path) -> bytes:
    target = io.BytesIO()
    pack(read_folder(folder), target)
    return target.getvalue()


def members(content: bytes) -> list[tarfile.TarInfo]:
    with tarfile.open(fileobj=io.BytesIO(content)) as packed:
        return packed.getmembers()


def problems(folder: Path) -> list[str]:
    with pytest.raises(InputError) as caught:
        read_folder(folder)
    assert {found.code for found in caught.value.diagnostics} == {"KG0911"}
    return [found.message for found in caught.value.diagnostics]


def test_excluded_files_and_git_stay_at_home(context: Path) -> None:
    write(
        context,
        **{
            ".dockerignore": "data\n!data/keep.txt\n**/*.pyc\nDockerfile\n.dockerignore\n",
            "data/large.bin": "x",
            "data/keep.txt": "x",
            "data/deep/other.txt": "x",
            "src/main.py": "x",
            "src/main.pyc": "x",
            ".git/HEAD": "x",
            "src/.git": "gitdir: elsewhere",
        },
    )
    assert names(context) == [".dockerignore", "Dockerfile", "data/keep.txt", "src", "src/main.py"]


def test_ignore_file_of_the_dockerfile_replaces_the_other(context: Path) -> None:
    write(
        context,
        **{
            ".dockerignore": "a",
            "images/train.Dockerfile": "FROM scratch",
            "images/train.Dockerfile.dockerignore": "*\n",
            "a": "x",
        },
    )
    assert names(context, "images/train.Dockerfile") == [
        "images/train.Dockerfile",
        "images/train.Dockerfile.dockerignore",
    ]
    assert "a" not in names(context)


def test_malformed_pattern_is_reported_at_its_line(context: Path) -> None:
    write(context, **{".dockerignore": "# fine\ndata\na[b\n"})
    with pytest.raises(InputError) as caught:
        read_folder(context)
    (found,) = caught.value.diagnostics
    assert found.mark is not None
    assert (found.code, found.mark.line, found.mark.text) == ("KG0911", 3, "a[b")


def test_folder_without_a_dockerfile_is_refused(context: Path) -> None:
    (context / "Dockerfile").unlink()
    (message,) = problems(context)
    assert message.endswith("has no Dockerfile")


@pytest.mark.parametrize(
    "target", ["/etc/passwd", "..", "../outside", "a/../../outside", "../context/Dockerfile", "through/x"]
)
def test_link_that_leaves_the_folder_is_refused(context: Path, target: str) -> None:
    (context.parent / "outside").mkdir()
    (context / "a").mkdir()
    (context / "inside").symlink_to(target)
    if target.startswith("through"):
        (context / "through").symlink_to("../outside")
    messages = problems(context)
    assert f"{context}/inside is a symbolic link that leaves the folder, to `{target}`" in messages


def test_links_inside_stay_links(context: Path) -> None:
    write(context, **{"a/b/file": "x"})
    (context / "a" / "link").symlink_to("../a/b")
    (context / "dangling").symlink_to("not-there")
    found = {member.name: member.linkname for member in members(archive(context)) if member.issym()}
    assert found == {"context/a/link": "../a/b", "context/dangling": "not-there"}


@pytest.mark.skipif(os.name != "posix", reason="needs special files")
def test_what_is_no_file_is_refused_unless_it_is_excluded(context: Path) -> None:
    os.mkfifo(context / "pipe")
    with socket.socket(socket.AF_UNIX) as made:
        made.bind(os.path.relpath(context / "socket"))
    assert [message.partition("/context/")[2] for message in problems(context)] == [
        "pipe is neither a file, a folder nor a symbolic link",
        "socket is neither a file, a folder nor a symbolic link",
    ]
    write(context, **{".dockerignore": "pipe\nsocket\n"})
    assert names(context) == [".dockerignore", "Dockerfile"]


@pytest.mark.parametrize("name", [b"a\nb", b"a\\b", b"\xff", b"a\x1b[2J"])
def test_name_that_the_downloader_refuses_is_refused(context: Path, name: bytes) -> None:
    try:
        (Path(os.fsdecode(os.fsencode(context) + b"/" + name))).write_text("x")
    except OSError:
        pytest.skip("the file system has no such names")
    (message,) = problems(context)
    assert message.endswith("has a name with a character that is not accepted")
    assert message.isprintable()


def test_number_and_size_of_files_are_limited(context: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(context, **{f"f{number}": "x" * number for number in range(10)})
    with pytest.raises(InputError, match=r"the largest are Dockerfile .*, f9 .*, f8") as caught:
        pack(read_folder(context), io.BytesIO(), largest=20)
    assert caught.value.diagnostics[0].code == "KG0911"
    monkeypatch.setattr(folders, "MOST_ENTRIES", 10)
    assert problems(context) == [f"{context} has more than 10 files"]


def test_same_files_are_the_same_bytes(context: Path, tmp_path: Path) -> None:
    write(context, **{"b": "1", "a/é": "2", "a-b": "3", "a/run.sh": "4", f"{'long/' * 30}name": "5"})
    (context / "a" / "run.sh").chmod(0o700)
    (context / "empty").mkdir()
    (context / "a" / "link").symlink_to("run.sh")
    copy = tmp_path / "copy"
    copy.mkdir(mode=0o700)
    for entry in reversed(read_folder(context)):
        there = copy / entry.name
        there.parent.mkdir(parents=True, exist_ok=True)
        if entry.is_folder:
            there.mkdir(exist_ok=True)
        elif entry.target:
            there.symlink_to(entry.target)
        else:
            shutil.copyfile(entry.path, there)
            there.chmod(0o755 if entry.is_executable else 0o600)
            os.utime(there, (1, 1))
    first = archive(context)
    assert first == archive(copy)
    packed = members(first)
    assert {(member.uid, member.gid, member.mtime, member.uname) for member in packed} == {(0, 0, 0, "")}
    modes = {member.name: member.mode for member in packed if member.isreg()}
    assert modes["context/a/run.sh"] == 0o755
    assert modes["context/b"] == 0o644
    assert [member.name for member in packed][:4] == ["context", "context/Dockerfile", "context/a", "context/a-b"]


def test_digest_does_not_change_between_versions(context: Path) -> None:
    write(context, **{"a/é": "2", f"{'long/' * 30}name": "5"})
    (context / "link").symlink_to("a/é")
    content = io.BytesIO()
    packed = pack(read_folder(context), content)
    assert plan_push(packed, target("r.example.com/x:1")).reference == f"r.example.com/x:1@{DIGEST}"


def test_file_that_changes_while_it_is_read_is_an_error(context: Path) -> None:
    entries = read_folder(context)
    (context / "Dockerfile").write_text("FROM scratch\n")
    with pytest.raises(SystemFailure, match="changed while it was read"):
        pack(entries, io.BytesIO())


def test_file_that_became_a_link_is_not_followed(context: Path, tmp_path: Path) -> None:
    write(context, secret="x" * 6)
    entries = read_folder(context)
    (tmp_path / "outside").write_text("secret")
    (context / "secret").unlink()
    (context / "secret").symlink_to(tmp_path / "outside")
    with pytest.raises(OSError, match="symbolic links"):
        pack(entries, io.BytesIO())


def test_files_that_look_like_credentials_are_warned_about(context: Path) -> None:
    write(
        context,
        **{
            "config/.env": "A=1",
            ".env.example": "A=",
            "src/main.py": f"import os\n\nTOKEN = '{TOKEN}'\n",
            "home/.docker/config.json": "{}",
            "config.json": "{}",
        },
    )
    (context / "data.bin").write_bytes(b"\0" + TOKEN.encode())
    found = [*find_secret_files(read_folder(context))]
    assert [(each.mark.file.partition("/context/")[2], each.mark.line) for each in found if each.mark] == [
        ("config/.env", 0),
        ("home/.docker/config.json", 0),
        ("src/main.py", 3),
    ]
    assert {(each.code, each.severity.label) for each in found} == {("KG0912", "warning")}
    assert TOKEN not in "".join(each.message for each in found)
