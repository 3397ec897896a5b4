"""What kaigen's images are built from, how kaigen.yaml names them, and what registries say about images."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from kaigen.catalog.images import default_images
from kaigen.diagnostics.errors import SystemFailure
from kaigen.images import build, recipes
from kaigen.images.build import Built, Order
from kaigen.images.check import Used, check_images
from kaigen.images.recipes import Recipe, choose_recipes, find_recipes
from kaigen.scaffold.image_settings import settings_of, with_images
from tests.unit.oci.web import Web, webs

OLD, NEW = (f"registry.example.com/kaigen/{{}}:1@sha256:{digit * 64}" for digit in "ab")


def test_every_image_of_the_catalogue_that_is_kaigens_has_a_recipe() -> None:
    own = {name for name, image in default_images().items() if "/kaigen-dev/" in image}
    assert own == set(find_recipes()) - {"torch", "argocd"}


def test_every_other_image_has_a_registry_and_a_version_and_is_in_the_table_of_its_publishers() -> None:
    others = {name: image for name, image in default_images().items() if "/kaigen-dev/" not in image}
    page = (Path(__file__).parents[3] / "docs" / "images.md").read_text(encoding="utf-8")
    listed = dict(re.findall(r"^\| `(\w+)` \| `([^`]+)` \|", page, re.MULTILINE))
    assert listed == {name: image.partition("@")[0] for name, image in others.items()}
    for image in others.values():
        assert re.fullmatch(r"[a-z0-9.-]+\.[a-z]+/[a-z0-9./-]+:v\d+(\.\d+)+[a-z-]*(@sha256:[0-9a-f]{64})?", image)


def test_an_image_is_built_after_the_one_that_it_starts_from() -> None:
    assert [recipe.name for recipe in choose_recipes(["train", "reaper"])] == ["torch", "reaper", "train"]
    assert [recipe.name for recipe in choose_recipes([])] == list(find_recipes())
    assert [recipe.name for recipe in choose_recipes(["train"], has_torch=True)] == ["train"]
    assert [recipe.name for recipe in choose_recipes([], has_torch=True)] == list(find_recipes())[1:]


def test_an_installed_kaigen_builds_from_its_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "kaigen" / "images" / "runtimes" / "reaper"
    folder.mkdir(parents=True)
    (folder / "Dockerfile").write_text("ARG BASE=python\n")
    monkeypatch.setattr(recipes, "_PACKAGE", tmp_path / "kaigen")
    found = find_recipes()
    assert list(found) == ["torch", "reaper"]
    assert found["reaper"] == Recipe("reaper", folder.parent, "reaper/Dockerfile")


def test_the_base_of_an_image_is_the_users_or_the_one_with_pytorch() -> None:
    order = Order("registry.example.com/kaigen", "7", "registry.example.com/python:3", notebook_torch=True)
    found = find_recipes()
    arguments = {
        name: build._plan(found[name], order, {}).arguments for name in ("reaper", "torch", "chat", "notebook")
    }
    torch = "registry.example.com/kaigen/torch:7"
    assert arguments == {
        "reaper": {"BASE": order.base},
        "torch": {"BASE": order.base},
        "chat": {"BASE": torch},
        "notebook": {"BASE": torch, "EXTRA": "torch"},
    }
    assert Order("").name("reaper") == "kaigen-reaper:0.2.0"
    order = Order("registry.example.com/kaigen", torch="registry.example.com/torch:cpu")
    assert build._plan(found["chat"], order, {}).arguments == {"BASE": order.torch}


def test_only_the_image_of_pytorch_reads_the_lock_of_another_build() -> None:
    order = Order("", torch_lock=Path("cpu.txt"))
    found = find_recipes()
    secrets = {name: dict(build._plan(found[name], order, {}).secrets) for name in ("torch", "chat")}
    assert secrets == {"torch": {"torch.txt": Path("cpu.txt")}, "chat": {}}


@pytest.mark.parametrize(
    ("image", "plain"),
    [
        ("registry.example.com/python:3", True),
        ("registry.example.com:5000/python:3", False),
        ("quay.io/python:3", False),
        ("localhost:5000/python:3", True),
        ("127.0.0.1:5000/python:3", True),
    ],
)
def test_only_a_base_of_the_same_registry_or_of_this_machine_is_pulled_without_tls(image: str, plain: bool) -> None:
    assert Order("registry.example.com/kaigen", plain_http=True).is_plain(image) is plain


def test_only_images_with_a_field_are_in_the_settings() -> None:
    built = [Built(name, NEW.format(name), 1.0, None) for name in ("torch", "reaper", "argocd")]
    assert settings_of(built) == {"reaper": NEW.format("reaper")}


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("", f"images:\n  reaper: {NEW.format('reaper')}\n  train: {NEW.format('train')}\n"),
        (
            "namespace: ml\n",
            f"namespace: ml\nimages:\n  reaper: {NEW.format('reaper')}\n  train: {NEW.format('train')}\n",
        ),
        (
            f"images:\n  reaper: {OLD.format('reaper')} # ours\n  vllm: v:1\nnamespace: ml\n",
            f"images:\n  reaper: {NEW.format('reaper')} # ours\n  vllm: v:1\n"
            f"  train: {NEW.format('train')}\nnamespace: ml\n",
        ),
        (
            "images: {vllm: v:1}\n",
            f"images: {{vllm: v:1, reaper: {NEW.format('reaper')}, train: {NEW.format('train')}}}\n",
        ),
    ],
)
def test_images_are_written_and_all_else_stays(old: str, new: str, tmp_path: Path) -> None:
    path = tmp_path / "kaigen.yaml"
    path.write_text(old)
    change = with_images(path, {name: NEW.format(name) for name in ("reaper", "train")})
    assert (change.old, change.new) == (old, new)


def test_images_that_cannot_be_written_are_an_error(tmp_path: Path) -> None:
    path = tmp_path / "kaigen.yaml"
    path.write_text("images: &empty\n")
    with pytest.raises(SystemFailure, match="cannot write `images`"):
        with_images(path, {"reaper": NEW.format("reaper")})
    missing = with_images(tmp_path / "none.yaml", {"reaper": NEW.format("reaper")})
    assert missing.action == "add"


def test_registries_are_asked_for_each_image(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("DOCKER_CONFIG", str(tmp_path))
    with webs() as make:
        have, lack, closed = _serve(make, 200), _serve(make, 404), _serve(make, 401)
        images = [have, lack, closed, "127.0.0.1:1/gone:1", "Not/An:Image:"]
        answers = check_images([Used(image, ("ml/a",)) for image in images])
    assert [answer.state for answer in answers] == ["found", "missing", "login", "unreachable", "invalid"]
    assert answers[0].digest.startswith("sha256:")
    assert answers[1].detail.endswith("has no acme/app:1")


def _serve(make: Callable[[], Web], status: int) -> str:
    """Return the name of an image in a registry that gives one answer."""
    web = make()
    web.answer = lambda method, path, auth: (status, {}, b"{}")
    return f"{web.host}/acme/app:1"
