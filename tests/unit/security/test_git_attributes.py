"""A file of the output whose committed bytes differ from those of the checkout does not pass."""

from __future__ import annotations

import pytest

from tests.unit.security.hostile import JOB, Repository

MANIFEST = "rendered/ml/evaluate/manifests/job.yaml"


def assert_refused(repository: Repository, attribute: str) -> None:
    for command in (("validate",), ("render", "--check")):
        done = repository.kaigen(*command)
        assert (done.code, "KG0608" in done.err, f"`{attribute}`" in done.err) == (2, True, True), done.text
        assert MANIFEST in done.err


def blob(repository: Repository) -> str:
    return repository.git("cat-file", "blob", f"HEAD:{MANIFEST}")


def content(repository: Repository) -> str:
    return (repository.folder / MANIFEST).read_text(encoding="utf-8")


@pytest.fixture
def rendered(repository: Repository) -> Repository:
    hostile = JOB.replace(
        "[evaluate]", "[sh, -c, 'a  #\u0145 evil: x', '$Id: 0123456789012345678901234567890123456789 $']"
    )
    repository.write({"specs/evaluate.yaml": hostile})
    repository.rendered()
    assert repository.kaigen("validate").code == 0
    return repository


def test_an_encoding_that_adds_line_breaks_to_the_commit_is_refused(rendered: Repository) -> None:
    rendered.write({".gitattributes": f"{MANIFEST} working-tree-encoding=ISO-8859-1\n"})
    rendered.git("rm", "--cached", "-r", "-q", "rendered")
    rendered.commit()
    # U+0085 is a line break for the YAML parsers of Kubernetes.
    assert ("\x85" in blob(rendered), "\x85" in content(rendered)) == (True, False)
    assert_refused(rendered, "working-tree-encoding")


def test_a_keyword_that_hides_text_of_the_commit_is_refused(rendered: Repository) -> None:
    text = content(rendered).replace("$Id: 0123456789012345678901234567890123456789 $", '$Id:\t";evil;#$')
    oid = rendered.git("hash-object", "-w", "--no-filters", "--stdin", data=text.encode())
    rendered.git("update-index", "--cacheinfo", f"100644,{oid},{MANIFEST}")
    rendered.write({".gitattributes": "*.yaml ident\n"})
    rendered.git("add", ".gitattributes")
    rendered.git("commit", "--quiet", "--message=Change")
    (rendered.folder / MANIFEST).unlink()
    rendered.git("checkout", "--", MANIFEST)
    assert ("evil;#" in blob(rendered), "evil;#" in content(rendered)) == (True, False)
    assert_refused(rendered, "ident")


@pytest.mark.parametrize("place", ["", "rendered/ml/"])
def test_attributes_of_any_folder_count(rendered: Repository, place: str) -> None:
    config = (rendered.folder / "kaigen.yaml").read_text(encoding="utf-8")
    rendered.write(
        {
            "kaigen.yaml": config + "allow: {files: [ml/.gitattributes]}\n",
            f"{place}.gitattributes": "[attr]quiet filter=lfs\n*.yaml quiet\n" if not place else "*.yaml filter=lfs\n",
        }
    )
    assert_refused(rendered, "filter")


def test_attributes_that_a_conversion_hides_in_the_checkout_count(rendered: Repository) -> None:
    rules = f".gitattributes working-tree-encoding=UTF-16\n{MANIFEST} ident\n"
    oid = rendered.git("hash-object", "-w", "--no-filters", "--stdin", data=rules.encode())
    rendered.git("update-index", "--add", "--cacheinfo", f"100644,{oid},.gitattributes")
    rendered.git("commit", "--quiet", "--message=Change")
    rendered.git("checkout", "--", ".gitattributes")
    assert (rendered.folder / ".gitattributes").read_bytes() != rules.encode()
    assert_refused(rendered, "ident")


@pytest.mark.parametrize("place", ["", "rendered/ml/"])
@pytest.mark.parametrize("index", [[], ["--index-version=4"], ["--split-index"]])
def test_attributes_that_only_the_index_has_count(rendered: Repository, place: str, index: list[str]) -> None:
    config = (rendered.folder / "kaigen.yaml").read_text(encoding="utf-8")
    rendered.write({"kaigen.yaml": config + "allow: {files: [ml/.gitattributes]}\n"})
    rendered.write({f"{place}.gitattributes": "*.yaml ident\n"})
    rendered.commit()
    if index:
        rendered.git("update-index", *index)
    (rendered.folder / f"{place}.gitattributes").unlink()
    assert_refused(rendered, "ident")


def test_attributes_in_the_index_of_another_worktree_count(
    rendered: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    rendered.write({".gitattributes": "*.yaml ident\n"})
    rendered.commit()
    rendered.git("worktree", "add", "--quiet", "--detach", "other")
    other = rendered.folder / "other"
    (other / ".gitattributes").unlink()
    monkeypatch.chdir(other)
    done = rendered.kaigen("validate")
    assert (done.code, "KG0608" in done.err) == (2, True), done.text


def test_attributes_that_convert_nothing_of_the_output_are_allowed(rendered: Repository) -> None:
    rules = "* text=auto\n*.bin filter=lfs\nspecs/** ident\nrendered/** -diff linguist-generated -ident\n"
    rendered.write({".gitattributes": rules})
    assert rendered.kaigen("validate").code == 0
    assert rendered.kaigen("render", "--check").code == 0
