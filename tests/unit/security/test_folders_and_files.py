"""Folders that are nested without end, and files that are links, devices or too large, end with an error."""

from __future__ import annotations

import contextlib
import os
import socket
import time
from pathlib import Path

import pytest

from kaigen.config import load
from kaigen.files import walk
from kaigen.output import index
from kaigen.system.limits import FOLDER_DEPTH
from tests.keys import write_keys
from tests.unit.extend.repository import HEAD, KIND, SCHEMA, SPEC
from tests.unit.security.hostile import CONFIG, JOB, Repository


def nested(top: Path, levels: int) -> Path:
    """Create folders in each other, and return the last one."""
    folder = top.joinpath(*["a"] * levels)
    folder.mkdir(parents=True)
    return folder


@pytest.mark.parametrize("levels", [FOLDER_DEPTH, FOLDER_DEPTH + 1])
@pytest.mark.parametrize("command", ["validate", "render"])
def test_specs_are_read_from_folders_up_to_a_depth(repository: Repository, levels: int, command: str) -> None:
    spec = nested(repository.folder / "specs", levels) / "deep.yaml"
    spec.write_text(JOB.replace("evaluate}", "deep}"), encoding="utf-8")
    done = repository.kaigen(command)
    message = f"specs{'/a' * (FOLDER_DEPTH + 1)}: error[KG0105]: folders are nested more than {FOLDER_DEPTH}"
    assert (done.code, message in done.text) == ((2, True) if levels > FOLDER_DEPTH else (0, False))


def test_folders_without_end_in_a_kind_are_an_error(repository: Repository) -> None:
    repository.write(
        {
            "kaigen.yaml": CONFIG + "kinds: [kinds]\n",
            "kinds/thing/kind.yaml": KIND,
            "kinds/thing/schema.yaml": SCHEMA,
            "kinds/thing/templates/object.yaml.jinja": HEAD + "  a: b\n",
            "specs/one.yaml": SPEC,
        }
    )
    assert repository.kaigen("validate").code == 0
    nested(repository.folder / "kinds/thing/templates", FOLDER_DEPTH + 1)
    done = repository.kaigen("validate")
    assert (done.code, "error[KG0105]" in done.err) == (2, True), done.text


def test_folders_without_end_in_the_output_are_an_error(repository: Repository) -> None:
    repository.rendered()
    nested(repository.folder / "rendered/ml", FOLDER_DEPTH + 50)
    before = {path: path.read_bytes() for path in repository.folder.rglob("*.yaml")}
    for command in (["validate"], ["render", "--check"], ["check", "rendered"]):
        done = repository.kaigen(*command)
        assert (done.code, "error[KG0105]" in done.text) == (2, True), done.text
    repository.write(
        {"specs/evaluate.yaml": JOB.replace("cpu: 1", "cpu: 2"), "specs/b.yaml": JOB.replace("evaluate}", "b}")}
    )
    before |= {path: path.read_bytes() for path in (repository.folder / "specs").iterdir()}
    done = repository.kaigen("render")
    assert (done.code, "error[KG0105]" in done.text) == (2, True), done.text
    assert {path: path.read_bytes() for path in repository.folder.rglob("*.yaml")} == before
    assert not list(repository.folder.glob(".kaigen-staging-*"))


def test_folders_without_end_that_a_killed_run_left_stay(repository: Repository) -> None:
    repository.rendered()
    left = repository.folder / f".kaigen-staging-{'0' * 16}"
    nested(left, 3 * FOLDER_DEPTH)
    repository.write({"specs/b.yaml": JOB.replace("evaluate}", "b}")})
    assert repository.kaigen("render").code == 0
    assert left.is_dir()


def test_a_walk_follows_no_links(tmp_path: Path) -> None:
    nested(tmp_path, FOLDER_DEPTH)
    (tmp_path / "loop").symlink_to("loop")
    (tmp_path / "linked").symlink_to("a")
    found = list(walk(tmp_path))
    assert len(found) == FOLDER_DEPTH + 1
    folder, folders, others = found[0]
    assert (folder, sorted(folders), others) == (str(tmp_path), ["a", "linked"], ["loop"])


@pytest.mark.parametrize(
    ("target", "code"), [("/dev/zero", "KG0103"), ("../lock", "KG0103"), ("missing", "KG0101"), ("specs", "KG0102")]
)
@pytest.mark.parametrize("command", ["validate", "render", "lock"])
def test_a_lock_that_is_no_file_of_the_repository_is_refused(
    repository: Repository, target: str, code: str, command: str
) -> None:
    (repository.folder.parent / "lock").write_text("{}", encoding="utf-8")
    (repository.folder / "kaigen.lock").symlink_to(target)
    done = repository.kaigen(command)
    assert (done.code, f"kaigen.lock: error[{code}]" in done.text) == (2, True), done.text


def test_a_lock_that_is_a_pipe_is_not_waited_for(repository: Repository) -> None:
    os.mkfifo(repository.folder / "kaigen.lock")
    done = repository.kaigen("validate")
    assert (done.code, "error[KG0102]: cannot read this file: not a regular file" in done.text) == (2, True), done.text


EXTENDED = {
    "kaigen.yaml": CONFIG
    + "kinds: [kinds]\ncatalog: catalog\nenvironments: {dev: {}}\n"
    + "patches: [{target: {app: one}, patch: patches/one.yaml}]\n",
    "kinds/thing/kind.yaml": KIND,
    "kinds/thing/schema.yaml": SCHEMA,
    "kinds/thing/templates/object.yaml.jinja": HEAD + "  a: b\n",
    "kinds/thing/templates/part.jinja": "a: b\n",
    "patches/one.yaml": "metadata: {annotations: {a: b}}\n",
    "catalog/own.yaml": "apiVersion: kaigen.dev/v1alpha1\nkind: Catalog\n",
    "pins/dev.yaml": "apiVersion: kaigen.dev/v1alpha1\nkind: Pins\n",
    "kaigen.lock": '{"apiVersion": "kaigen.dev/v1alpha1", "kind": "Lock"}',
    "specs/one.yaml": SPEC,
}
"""A repository with a file of each kind that kaigen reads."""


def make_special(path: Path, kind: str) -> None:
    """Put something that is not a file at a path."""
    path.unlink()
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "link to a pipe":
        os.mkfifo(path.with_name("pipe"))
        path.symlink_to("pipe")
    elif kind == "socket":
        with contextlib.chdir(path.parent), socket.socket(socket.AF_UNIX) as opened:
            opened.bind(path.name)  # A path has at most 107 bytes.
    else:
        path.symlink_to("/dev/zero")


@pytest.mark.parametrize("kind", ["pipe", "link to a pipe", "socket", "link to a device"])
@pytest.mark.parametrize("name", EXTENDED)
def test_what_is_no_file_is_one_error_at_once(repository: Repository, name: str, kind: str) -> None:
    repository.write(EXTENDED)
    assert repository.kaigen("validate", "--env", "dev").code == 0
    make_special(repository.folder / name, kind)
    begin = time.monotonic()
    done = repository.kaigen("validate", "--env", "dev")
    assert done.code == 2, done.text
    outside = "a symbolic link on this path leads out of the repository"
    reason = outside if kind == "link to a device" else "not a regular file"
    assert done.text.count(reason) == 1, done.text
    assert name in done.text
    assert time.monotonic() - begin < 10


def test_a_pipe_on_the_command_line_is_not_waited_for(repository: Repository, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.yaml")
    done = repository.kaigen("validate", str(tmp_path / "pipe.yaml"))
    assert (done.code, "error[KG0102]: cannot read this file: not a regular file" in done.text) == (2, True)
    assert "standard input is `-`" in done.text


def test_a_lock_may_be_a_link_inside_the_repository(repository: Repository) -> None:
    repository.write({"locks/one": "apiVersion: kaigen.dev/v1alpha1\nkind: Lock\n"})
    (repository.folder / "kaigen.lock").symlink_to("locks/one")
    done = repository.kaigen("validate")
    assert (done.code, "error[KG0750]" in done.text) == (2, True), done.text
    repository.write({"locks/one": '{"apiVersion": "kaigen.dev/v1alpha1", "kind": "Lock"}'})
    assert repository.kaigen("validate").code == 0


def test_a_lock_has_a_limit(repository: Repository, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(load, "GENERATED_FILE_BYTES", 1024)
    repository.write({"kaigen.lock": " " * 1025})
    done = repository.kaigen("validate")
    assert (done.code, "error[KG0104]: the file is larger than 1 KiB" in done.text) == (2, True), done.text


def test_an_index_has_a_limit(repository: Repository, monkeypatch: pytest.MonkeyPatch) -> None:
    repository.rendered()
    monkeypatch.setattr(index, "GENERATED_FILE_BYTES", 64)
    for command in (["validate"], ["render", "--check"], ["render"]):
        done = repository.kaigen(*command)
        assert (done.code, "error[KG0104]: the file is larger than 64 bytes" in done.text) == (2, True), done.text


def test_a_signature_that_leads_out_of_the_repository_is_refused(repository: Repository, tmp_path: Path) -> None:
    repository.rendered()
    (repository.folder / "kaigen.sigstore.json").symlink_to("/dev/zero")
    _, public = write_keys(tmp_path / "keys")
    done = repository.kaigen("verify", "--key", str(public))
    assert (done.code, "kaigen.sigstore.json: error[KG0103]" in done.text) == (2, True), done.text
