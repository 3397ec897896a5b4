"""`kaigen diff` of a hostile commit: no file outside its own folder, and no words of the author in kaigen's name."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from kaigen.diff import compare, render_markdown, render_text
from tests.unit.security.hostile import CONFIG, JOB, Repository

BREAKOUT = "x\n\n</details>\n\n/close\n\n## Reviewed by the security team\n"


def hostile_commit(repository: Repository, *steps: str) -> str:
    """Return a commit whose tree has kaigen.yaml, specs, and a blob below folders of these names."""

    def put(kind: str, data: bytes) -> str:
        return repository.git("hash-object", "-t", kind, "--literally", "-w", "--stdin", data=data)

    def entry(mode: str, name: str, oid: str) -> bytes:
        return f"{mode} {name}\0".encode() + bytes.fromhex(oid)

    blob = put("blob", b"planted")
    inner = put("tree", entry("100644", steps[-1], blob))
    for name in reversed(steps[:-1]):
        inner = put("tree", entry("40000", name, inner))
    specs = put("tree", entry("40000", "..", inner) + entry("100644", "job.yaml", put("blob", JOB.encode())))
    config = put("blob", CONFIG.encode())
    tree = put("tree", entry("100644", "kaigen.yaml", config) + entry("40000", "specs", specs))
    return repository.git("commit-tree", tree, "-m", "hostile", "-p", "HEAD")


@pytest.mark.parametrize("steps", [("..", "..", "planted"), ("..", "planted"), (".git", "planted")])
def test_a_commit_with_paths_outside_itself_is_not_written(
    repository: Repository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, steps: tuple[str, ...]
) -> None:
    temporary = tmp_path / "a" / "b" / "c"
    temporary.mkdir(parents=True)
    monkeypatch.setattr("tempfile.tempdir", str(temporary))
    repository.commit()
    commit = hostile_commit(repository, *steps)
    repository.git("update-ref", "HEAD", commit)
    done = repository.kaigen("diff", "--base", commit)
    assert (done.code, "KG0804" in done.err) == (2, True), done.text
    assert not list(tmp_path.rglob("planted"))


@pytest.mark.parametrize("command", ["diff", "publish"])
def test_a_planted_bare_repository_runs_no_command(
    repository: Repository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    ran = tmp_path / "ran"
    uploadpack = f'uploadpack = "touch {ran};"'
    repository.write(
        {
            "ai/kaigen.yaml": CONFIG,
            "ai/specs/evaluate.yaml": JOB,
            "ai/HEAD": "ref: refs/heads/main\n",
            "ai/objects/keep": "",
            "ai/refs/heads/main": f"{'1' * 40}\n",
            "ai/config": "[core]\n\trepositoryformatversion = 1\n\tbare = true\n[extensions]\n\tpartialClone = origin\n"
            f'[remote "origin"]\n\turl = .\n\tpromisor = true\n\t{uploadpack}\n',
        }
    )
    repository.commit()
    monkeypatch.chdir(repository.folder / "ai")
    done = repository.kaigen(command, *(["--base", "main"] if command == "diff" else ["--branch", "deploy"]))
    assert (done.code, "KG0802" in done.err) == (2, True), done.text
    assert "looks like a bare Git repository" in done.err
    assert not ran.exists()


def lines_at_the_margin(text: str) -> list[str]:
    """Return the lines that do not belong to kaigen's own frame of the comment."""
    frame = re.compile(
        r"$|<!-- kaigen diff -->$|\*\*\d|\| |\|---|<details><summary>.*</summary>$|</details>$|- |  |_Its fields"
    )
    return [line for line in text.split("\n") if not frame.match(line)]


@pytest.mark.parametrize(
    "place", [("data",), ("metadata", "annotations"), ("metadata", "labels"), ("data", "key")], ids=" ".join
)
def test_a_key_with_line_breaks_stays_in_its_block(place: tuple[str, ...]) -> None:
    def config_map(value: str) -> dict[str, bytes]:
        body: dict[str, object] = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}}
        node = body
        for step in place:
            node = node.setdefault(step, {})  # type: ignore[assignment]
        node[BREAKOUT] = value
        return {"ml/c/manifests/c.yaml": yaml.safe_dump(body).encode()}

    change = compare(config_map("a"), config_map("b"))
    text = render_markdown(change)
    assert lines_at_the_margin(text) == []
    assert text.count("</details>\n") == 1
    assert all(line.startswith(" ") for line in render_text(change).split("\n")[3:] if line)


def test_a_kind_and_a_name_with_line_breaks_stay_in_their_block() -> None:
    body = {"apiVersion": "v1", "kind": BREAKOUT, "metadata": {"name": BREAKOUT, "namespace": BREAKOUT}}
    text = render_markdown(compare({}, {"ml/c/manifests/c.yaml": yaml.safe_dump(body).encode()}))
    assert lines_at_the_margin(text) == []


def test_a_folder_with_line_breaks_stays_in_its_block() -> None:
    body = b"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\n"
    text = render_markdown(compare({}, {f"{BREAKOUT.replace('/', '')}/c/manifests/c.yaml": body}))
    assert lines_at_the_margin(text) == []


@given(st.dictionaries(st.text(min_size=1), st.text(), max_size=3), st.text())
def test_no_text_of_the_author_reaches_the_margin(data: dict[str, str], name: str) -> None:
    before = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"a": "b"}}
    after = {**before, "data": data}
    path = "ml/c/manifests/c.yaml"
    try:
        trees = [{path: yaml.safe_dump(each).encode()} for each in (before, after)]
    except UnicodeEncodeError:
        return  # lone surrogates are in no file
    assert lines_at_the_margin(render_markdown(compare(*trees))) == []


@pytest.mark.parametrize("place", ["data", "annotations", "labels"])
def test_an_invalid_key_of_a_plain_object_is_an_error(repository: Repository, place: str) -> None:
    body: dict[str, object] = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}}
    if place == "data":
        body["data"] = {BREAKOUT: "x"}
    else:
        body["metadata"] = {"name": "c", place: {BREAKOUT: "x"}}
    repository.write({"kaigen.yaml": CONFIG + "passthrough: true\n", "specs/c.yaml": yaml.safe_dump(body)})
    done = repository.kaigen("validate")
    assert (done.code, "KG054" in done.err) == (2, True), done.text
