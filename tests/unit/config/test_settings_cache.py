"""Where kaigen.yaml is looked for, and when its settings come from the cache."""

from __future__ import annotations

import os
from hashlib import sha256
from pathlib import Path

import pytest

from kaigen.config.load import find_root, load_config, read_lock
from kaigen.config.settings import Config, LockRef
from kaigen.diagnostics.errors import InputError
from tests.unit.config.reports import report

CATALOG = "apiVersion: kaigen.dev/v1alpha1\nkind: Catalog\ncurrency: EUR\nprices: {p5.48xlarge: %d}\n"


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("KAIGEN_CACHE_DIR", str(tmp_path / "cache"))
    folder = tmp_path / "repository"
    (folder / "catalog").mkdir(parents=True)
    return folder


def cached(root: Path) -> list[Path]:
    """Return the files of the cache."""
    return sorted((root.parent / "cache").glob("config/*.json"))


def write(root: Path, text: str) -> None:
    (root / "kaigen.yaml").write_text(text, encoding="utf-8")


def test_the_root_is_the_nearest_folder_with_the_file(tmp_path: Path) -> None:
    deep = tmp_path / "a" / "b" / "c"
    deep.mkdir(parents=True)
    assert find_root(deep) == deep
    (tmp_path / "kaigen.yaml").write_text("", encoding="utf-8")
    assert find_root(deep) == tmp_path
    (tmp_path / "a" / "kaigen.yaml").mkdir()
    assert find_root(deep) == tmp_path / "a"
    (tmp_path / "a" / "b" / "kaigen.yaml").symlink_to(tmp_path / "gone")
    assert find_root(deep) == tmp_path / "a" / "b"
    (deep / "kaigen.yaml").write_text("", encoding="utf-8")
    assert find_root(deep) == deep


def test_a_folder_without_the_file_has_the_defaults_and_its_catalogue(root: Path) -> None:
    assert load_config(root) == Config(root=root)
    (root / "catalog" / "a.yaml").write_text(CATALOG % 1, encoding="utf-8")
    config = load_config(root)
    assert (config.root, config.catalog.prices) == (root, {"p5.48xlarge": 1})
    (root / "catalog" / "a.yaml").write_text("a: b\n", encoding="utf-8")
    with pytest.raises(InputError):
        load_config(root)


def test_a_folder_without_the_file_has_no_environments(root: Path) -> None:
    with pytest.raises(InputError) as raised:
        load_config(root, "prod")
    assert [item.code for item in raised.value.diagnostics] == ["KG0718"]


@pytest.mark.parametrize("text", ["namespace: a\n", "overrides: [{spec: {a: 1}}]\n"])
def test_settings_are_stored_for_each_content_and_environment(root: Path, text: str) -> None:
    write(root, f"{text}environments: {{prod: {{}}}}\n")
    for environment in ("", "prod", ""):
        load_config(root, environment)
    assert len(cached(root)) == 2
    write(root, f"{text}environments: {{prod: {{profile: gke}}}}\n")
    assert load_config(root, "prod").profile == "gke"
    assert len(cached(root)) == 3


def test_stored_settings_apply_instead_of_the_file(root: Path) -> None:
    write(root, "namespace: a\n")
    load_config(root)
    (stored,) = cached(root)
    text = stored.read_text(encoding="utf-8")
    assert '"namespace":"a"' in text
    stored.write_text(text.replace('"namespace":"a"', '"namespace":"b"'), encoding="utf-8")
    assert load_config(root).namespace == "b"


@pytest.mark.parametrize(
    "text",
    ["", "{}", "[]", '{"settings": 1}', '{"settings": {"unknown": 1}}', '{"settings": {"namespace": 1}}', "XXXX"],
)
def test_damaged_settings_are_read_again(root: Path, text: str) -> None:
    write(root, "namespace: a\n")
    load_config(root)
    (stored,) = cached(root)
    good = stored.read_text(encoding="utf-8")
    stored.write_text(text, encoding="utf-8")
    assert load_config(root).namespace == "a"
    assert stored.read_text(encoding="utf-8") == good


def test_the_same_file_in_another_folder_has_the_root_of_that_folder(root: Path) -> None:
    other = root.parent / "other"
    other.mkdir()
    for folder in (root, other):
        write(folder, "namespace: a\n")
        assert load_config(folder).root == folder
    assert len(cached(root)) == 1


def test_a_changed_catalogue_is_read_again(root: Path) -> None:
    write(root, "namespace: a\n")
    price = root / "catalog" / "a.yaml"
    for number in (1, 2):
        price.write_text(CATALOG % number, encoding="utf-8")
        assert load_config(root).catalog.prices == {"p5.48xlarge": number}
    price.unlink()
    assert load_config(root).catalog.prices == {}
    price.parent.rmdir()
    assert load_config(root).catalog.prices == {}


def test_a_catalogue_that_is_gone_has_no_rows(root: Path) -> None:
    write(root, "namespace: a\n")
    (root / "catalog" / "a.yaml").write_text(CATALOG % 1, encoding="utf-8")
    load_config(root)
    (root / "catalog" / "a.yaml").unlink()
    (root / "catalog").rmdir()
    assert load_config(root).catalog.prices == {}


def test_nothing_is_stored_when_caches_are_off(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KAIGEN_CACHE_DIR", "off")
    write(root, "namespace: a\n")
    assert load_config(root).namespace == "a"
    assert not (root.parent / "cache").exists()
    assert not Path("off").exists()


@pytest.mark.parametrize(("size", "stored"), [((1 << 20) - 1, 1), (1 << 20, 0)])
def test_a_file_of_a_mebibyte_is_not_stored(root: Path, size: int, stored: int) -> None:
    text = "namespace: a\n# "
    write(root, text + "x" * (size - len(text) - 1) + "\n")
    assert (root / "kaigen.yaml").stat().st_size == size
    assert load_config(root).namespace == "a"
    assert len(cached(root)) == stored


def test_settings_have_the_digest_of_the_lock(root: Path) -> None:
    write(root, "namespace: a\n")
    assert (load_config(root).lock, read_lock(root)) == (LockRef(), None)
    (root / "kaigen.lock").write_bytes(b"{}")
    assert load_config(root).lock == LockRef(sha256(b"{}").hexdigest())
    assert read_lock(root) == b"{}"


def test_a_lock_outside_of_the_repository_is_refused(root: Path) -> None:
    (root.parent / "elsewhere").write_bytes(b"{}")
    os.symlink(root.parent / "elsewhere", root / "kaigen.lock")
    with pytest.raises(InputError) as raised:
        load_config(root)
    assert [item.code for item in raised.value.diagnostics] == ["KG0103"]


def test_a_lock_that_is_a_broken_link_is_refused_with_what_to_do(root: Path) -> None:
    os.symlink(root / "gone", root / "kaigen.lock")
    with pytest.raises(InputError) as raised:
        load_config(root)
    assert report(raised.value.diagnostics) == [
        "kaigen.lock KG0101 this symbolic link is broken | restore it from Git, or delete it and run `kaigen lock`"
    ]
