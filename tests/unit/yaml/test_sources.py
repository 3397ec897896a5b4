"""Reading files, folders and standard input."""

from __future__ import annotations

import hashlib
import io
import os
import socket
from pathlib import Path

import pytest

from kaigen.yaml.document import parse
from kaigen.yaml.sources import Limits, Source, read_sources


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "repository"
    folder.mkdir()
    monkeypatch.chdir(folder)
    return folder


def lay(root: Path, *paths: str) -> None:
    for path in paths:
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(f"path: {path}\n")


def read(root: Path, *paths: str, stdin: bytes = b"", limits: Limits | None = None) -> tuple[list[str], list[str]]:
    """The paths read, and the problems as `path code message`."""
    sources, found = read_sources(paths, root=root, stdin=io.BytesIO(stdin), limits=limits)
    return [source.path for source in sources], [
        f"{item.mark} {item.code} {item.message}" + (f" ({item.hint})" if item.hint else "") for item in found
    ]


def test_a_folder_is_searched_in_name_order(root: Path) -> None:
    lay(root, "specs/b.yml", "specs/a.yaml", "specs/c/z.json", "specs/c/a.YAML", "specs/d.txt", "specs/README.md")
    assert read(root, "specs") == (["specs/a.yaml", "specs/b.yml", "specs/c/a.YAML", "specs/c/z.json"], [])
    assert read(root, "./specs/") == read(root, "specs")


def test_output_hidden_and_foreign_files_are_skipped(root: Path) -> None:
    lay(root, "a.yaml", "kaigen.yaml", "kaigen.lock", ".kaigen.yaml", ".hidden.yaml", ".git/x.yaml", ".venv/x.yaml")
    lay(root, "node_modules/x.yaml", ".github/workflows/ci.yaml", "rendered/app/deployment.yaml", "other/x.yaml")
    (root / "rendered" / ".kaigen-index").write_text("")
    assert read(root, ".") == (["a.yaml", "other/x.yaml"], [])


def test_a_file_on_the_command_line_is_read_whatever_its_name(root: Path) -> None:
    lay(root, "kaigen.yaml", "spec.txt", ".hidden.yaml")
    assert read(root, "spec.txt", "kaigen.yaml", ".hidden.yaml")[0] == ["spec.txt", "kaigen.yaml", ".hidden.yaml"]


def test_an_excluded_folder_is_not_searched(root: Path) -> None:
    lay(root, "a.yaml", "out/b.yaml")
    sources, found = read_sources(["."], root=root, exclude=[root / "out"])
    assert [source.path for source in sources] == ["a.yaml"]
    assert len(found) == 0


def test_a_file_named_twice_is_read_once(root: Path) -> None:
    lay(root, "specs/a.yaml")
    (root / "specs" / "link.yaml").symlink_to("a.yaml")
    assert read(root, "specs/a.yaml", "./specs/../specs/a.yaml", str(root / "specs/a.yaml"), "specs")[0] == [
        "specs/a.yaml"
    ]


def test_a_dash_reads_standard_input_once(root: Path) -> None:
    sources, found = read_sources(["-", "-"], root=root, stdin=io.BytesIO(b"a: 1\n"))
    assert sources == [Source("<stdin>", "a: 1\n")]
    assert len(found) == 0


def test_a_text_has_a_digest(root: Path) -> None:
    lay(root, "a.yaml")
    (source,), _ = read_sources(["a.yaml"], root=root)
    assert source.digest == hashlib.sha256(b"path: a.yaml\n").hexdigest()


@pytest.mark.parametrize(
    ("path", "problem"),
    [
        ("specs/moddel.yaml", "specs/moddel.yaml KG0101 no such file or folder (did you mean `specs/model.yaml`?)"),
        ("spec/model.yaml", "spec/model.yaml KG0101 no such file or folder (did you mean `specs`?)"),
        ("specs/model.yml", "specs/model.yml KG0101 no such file or folder (did you mean `specs/model.yaml`?)"),
        ("zzz", "zzz KG0101 no such file or folder"),
        ("specs/*.yml", "specs/*.yml KG0101 no such file or folder (no file matches this pattern)"),
        ("", " KG0101 the path is empty"),
        ("a\0b", "a\0b KG0101 a path cannot contain NUL"),
        ("dangling.yaml", "dangling.yaml KG0101 this symbolic link is broken"),
        ("loop.yaml", "loop.yaml KG0102 cannot read this file: too many levels of symbolic links"),
        (
            "socket.yaml",
            "socket.yaml KG0102 cannot read this file: not a regular file (replace it with a file; "
            "standard input is `-`)",
        ),
        ("specs/model.yaml/x", "specs/model.yaml/x KG0102 cannot read this file: not a directory"),
        ("x" * 300, "x" * 300 + " KG0102 cannot read this file: file name too long"),
    ],
)
def test_unreadable_paths_are_reported(root: Path, path: str, problem: str) -> None:
    lay(root, "specs/model.yaml")
    (root / "dangling.yaml").symlink_to("nowhere.yaml")
    (root / "loop.yaml").symlink_to("loop.yaml")
    with socket.socket(socket.AF_UNIX) as server:
        server.bind("socket.yaml")
        assert read(root, path) == ([], [problem])


def test_one_bad_path_does_not_hide_the_others(root: Path) -> None:
    lay(root, "a.yaml")
    files, found = read(root, "nope", "a.yaml", "nope either")
    assert files == ["a.yaml"]
    assert len(found) == 2


def test_links_inside_the_repository_are_followed_even_in_circles(root: Path) -> None:
    lay(root, "common/base.yaml", "specs/a.yaml")
    (root / "specs" / "common").symlink_to("../common")
    (root / "specs" / "round").symlink_to("../specs")
    assert read(root, "specs") == (["specs/a.yaml", "specs/common/base.yaml"], [])


def test_a_linked_file_is_read_under_its_own_name(root: Path) -> None:
    lay(root, "specs/a.yaml", "specs/z/b.yaml", "more/c.yaml")
    (root / "specs" / "again").symlink_to(".")
    (root / "specs" / "0.yaml").symlink_to("a.yaml")
    (root / "specs" / "up").symlink_to("..")
    assert read(root, "specs") == (["specs/a.yaml", "specs/z/b.yaml", "specs/up/more/c.yaml"], [])


def test_an_excluded_folder_cannot_be_read_by_name(root: Path) -> None:
    lay(root, "rendered/a.yaml", "specs/b.yaml")
    sources, found = read_sources([str(root / "rendered"), str(root)], root=root, exclude=[root / "rendered"])
    assert [item.code for item in found] == ["KG0109"]
    assert [source.path for source in sources] == [f"{root}/specs/b.yaml"]


def test_links_out_of_the_repository_are_rejected(root: Path) -> None:
    lay(root.parent, "outside/x.yaml")
    lay(root, "specs/a.yaml")
    (root / "specs" / "file.yaml").symlink_to("../../outside/x.yaml")
    (root / "specs" / "folder").symlink_to(root.parent / "outside")
    (root / "passwd.yaml").symlink_to("/etc/passwd")
    refused = "KG0103 a symbolic link on this path leads out of the repository (copy the file into the repository)"
    assert read(root, "specs") == (["specs/a.yaml"], [f"specs/file.yaml {refused}", f"specs/folder {refused}"])
    for path in ("passwd.yaml", "specs/file.yaml", "specs/folder", "specs/folder/x.yaml"):
        assert read(root, path) == ([], [f"{path} {refused}"])


def test_a_file_outside_the_repository_can_be_read_by_name(root: Path) -> None:
    lay(root.parent, "outside/x.yaml")
    assert read(root, "../outside/x.yaml") == (["../outside/x.yaml"], [])
    assert read(root, "../outside") == (["../outside/x.yaml"], [])


def test_a_repository_behind_a_link_is_read(root: Path) -> None:
    lay(root, "specs/a.yaml")
    alias = root.parent / "alias"
    alias.symlink_to(root)
    assert read(alias, str(alias / "specs")) == ([f"{alias}/specs/a.yaml"], [])


def test_a_file_over_the_limit_is_not_read(root: Path) -> None:
    (root / "a.yaml").write_bytes(b"#" * 101)
    (root / "b.yaml").write_bytes(b"a: 1\n")
    assert read(root, "a.yaml", "b.yaml", limits=Limits(file_bytes=100)) == (
        ["b.yaml"],
        ["a.yaml KG0104 the file is larger than 100 bytes (split the file)"],
    )
    assert read(root, "-", stdin=b" " * (2 * 1024 * 1024 + 1))[1] == [
        "<stdin> KG0104 the file is larger than 2 MiB (split the file)"
    ]


@pytest.mark.parametrize("path", ["/dev/zero", "/dev/null", "/dev/urandom"])
def test_a_device_is_not_read(root: Path, path: str) -> None:
    hint = "replace it with a file; standard input is `-`"
    assert read(root, path) == ([], [f"{path} KG0102 cannot read this file: not a regular file ({hint})"])


def test_the_numbers_of_documents_and_files_are_limited(root: Path) -> None:
    (root / "a.yaml").write_text("a: |\n ---\n" + "---\nb: 1\n" * 3)
    lay(root, "b.yaml", "c.yaml")
    assert read(root, "a.yaml", limits=Limits(documents=3)) == (["a.yaml"], [])
    assert read(root, "a.yaml", limits=Limits(documents=2))[1] == [
        "a.yaml KG0105 more than 2 documents in one file (split the file)"
    ]
    assert read(root, ".", limits=Limits(files=1)) == (["a.yaml"], ["b.yaml KG0105 more than 1 files"])


@pytest.mark.parametrize(
    "content", [b"", b"\n\n", b"# only\r\n  # this\r\n", b"---\n", b"\xef\xbb\xbf", b"%YAML 1.2\n---\n...\n"]
)
def test_an_empty_file_is_an_error_only_when_named(root: Path, content: bytes) -> None:
    (root / "a.yaml").write_bytes(content)
    assert read(root, "a.yaml") == (
        [],
        ["a.yaml KG0108 the file contains no document (add a document, or remove the file)"],
    )
    assert read(root, "-", stdin=content)[1] == [
        "<stdin> KG0108 the file contains no document (add a document, or remove the file)"
    ]
    lay(root, "b.yaml")
    assert read(root, ".") == (["b.yaml"], [])


def test_a_folder_without_specs_is_a_warning(root: Path) -> None:
    (root / "specs").mkdir()
    sources, found = read_sources(["specs"], root=root)
    assert sources == []
    assert [(str(item.mark), item.code, item.severity.label) for item in found] == [("specs", "KG0109", "warning")]


@pytest.mark.parametrize(
    "content", [b"--- \na: 1\n", b"--- # x\na", b"--- a\n", b"-", b"%", b"...a", b" - x", b"\xc2\xa0"]
)
def test_any_content_counts_as_a_document(root: Path, content: bytes) -> None:
    (root / "a.yaml").write_bytes(content)
    if content == b"%":
        assert len(read(root, "a.yaml")[1]) == 1
    else:
        assert read(root, "a.yaml") == (["a.yaml"], [])


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"\x7fELF\x02\x01\x01\0\0\0\xff\xfe", "a.yaml KG0106 this is a binary file (kaigen reads YAML and JSON text)"),
        (b"a: b\0c\n", "a.yaml KG0106 this is a binary file (kaigen reads YAML and JSON text)"),
        (
            "a: 1\n".encode("utf-16-le"),
            "a.yaml KG0106 this is a binary file (save the file as UTF-8: it may be UTF-16 or UTF-32)",
        ),
        (b"\xff\xfea", "a.yaml KG0106 this is a binary file (kaigen reads YAML and JSON text)"),
        (
            "a: 1\nb: é caf\xe9\n".encode().replace(b"f\xc3\xa9", b"f\xe9"),
            "a.yaml:2:9 KG0107 byte 0xe9 is not UTF-8 (save the file as UTF-8)",
        ),
    ],
)
def test_binary_files_are_reported(root: Path, content: bytes, problem: str) -> None:
    (root / "a.yaml").write_bytes(content)
    assert read(root, "a.yaml") == ([], [problem])


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
def test_text_with_a_byte_order_mark_is_read(root: Path, encoding: str) -> None:
    (root / "a.yaml").write_bytes("a: é😀\r\n".encode(encoding))
    (source,), found = read_sources(["a.yaml"], root=root)
    assert source.text == "a: é😀\r\n"
    assert [document.data for document in parse(source, found)] == [{"a": "é😀"}]
    assert len(found) == 0


def test_a_pipe_is_refused_by_name_and_in_folders(root: Path) -> None:
    os.mkfifo("pipe.yaml")
    lay(root, "a.yaml")
    problem = "not a regular file (replace it with a file; standard input is `-`)"
    for path, names in ((".", ["a.yaml"]), ("pipe.yaml", [])):
        assert read(root, path) == (names, [f"pipe.yaml KG0102 cannot read this file: {problem}"])


def test_the_output_of_another_command_is_read(root: Path) -> None:
    reader, writer = os.pipe()
    os.write(writer, b"b: 1\n")
    os.close(writer)
    try:
        assert read(root, f"/dev/fd/{reader}") == ([f"/dev/fd/{reader}"], [])
    finally:
        os.close(reader)


def test_file_names_that_are_not_utf8_are_read(root: Path) -> None:
    name = os.fsdecode(b"caf\xe9.yaml")
    Path(name).write_text("a: 1\n")
    assert read(root, ".") == ([name], [])
