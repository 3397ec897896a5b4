"""What kaigen's own images are built from: the folder `runtimes`, which an installed kaigen has inside its package."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from msgspec import Struct

import kaigen

_PACKAGE = Path(kaigen.__file__).parent
TORCH = "torch"


class Recipe(Struct, frozen=True):
    """What an image is built from.

    Attributes:
        name: name of the image, and of its field of `images` in kaigen.yaml if it has one.
        context: folder of the files that the Dockerfile copies.
        dockerfile: its path in that folder.
        base: the recipe of the image that it starts from; empty for Python's.
        locks: lock files of its packages, in that folder; those of `base` are not among them.
    """

    name: str
    context: Path
    dockerfile: str
    base: str = ""
    locks: tuple[str, ...] = ()


def find_recipes() -> dict[str, Recipe]:
    """Return the recipes of kaigen's images by name, each after the one that it starts from.

    The image of Argo CD's plugin is built from a clone only, because it has kaigen itself.
    """
    packaged = _PACKAGE / "images" / "runtimes"
    runtimes = packaged if packaged.is_dir() else _PACKAGE.parent / "runtimes"
    found = [Recipe(TORCH, runtimes, "shared/torch.Dockerfile", "", ("shared/torch.txt",))]
    for file in sorted(runtimes.glob("*/Dockerfile")):
        name = file.parent.name
        lock = f"{name}/requirements.txt"
        base = TORCH if f"ARG BASE=kaigen-{TORCH}\n" in file.read_text() else ""
        locks = (lock,) if (runtimes / lock).exists() else ()
        found.append(Recipe(name, runtimes, f"{name}/Dockerfile", base, locks))
    plugin = "gitops/argocd/Dockerfile"
    if (_PACKAGE.parent / plugin).exists():
        found.append(Recipe("argocd", _PACKAGE.parent, plugin, "", ("requirements/base.txt",)))
    return {recipe.name: recipe for recipe in found}


def choose_recipes(names: Sequence[str], *, has_torch: bool = False) -> list[Recipe]:
    """Return recipes with those that they start from, in the order in which they are built.

    Args:
        names: the images; none for all.
        has_torch: whether the image of PyTorch is there, so that none is built for others.
    """
    recipes = find_recipes()
    wanted = set(names) or set(recipes) - ({TORCH} if has_torch else set())
    wanted |= {recipes[name].base for name in wanted} - {"", TORCH if has_torch else ""}
    return [recipe for name, recipe in recipes.items() if name in wanted]
