"""Kaigen's images in a registry whose content is kept between runs, as `kaigen images push` leaves them there.

What needs PyTorch starts from one image, so a registry and a node store that once.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from kaigen.images.recipes import TORCH, find_recipes
from tests.cluster import images
from tests.cluster.node import Node
from tests.cluster.registry import LocalRegistry

_PREFIX = "kaigen-dev"


@dataclass(frozen=True)
class Pushed:
    """Images in a registry.

    Attributes:
        data: what the registry stores.
        host: the registry's address in the names of the images.
        images: references with digests, by name.
        built: what `kaigen images push` printed of those that were built now.
    """

    data: Path
    host: str
    images: dict[str, str] = field(default_factory=dict)
    built: list[dict[str, object]] = field(default_factory=list)


def push_images(names: Sequence[str], show: Callable[[str], object] = images.say) -> Pushed:
    """Return images in a registry, built and pushed if their content is not there.

    Args:
        names: images of `kaigen images`.
        show: prints a command that is run.

    Raises:
        ImageFailed: one could not be built.
        ToolsMissing: a program is missing.
    """
    recipes = find_recipes()
    wanted = {*names, *(recipes[name].base for name in names)}
    with _data() as data, tempfile.TemporaryDirectory() as folder:
        server = LocalRegistry(Path(folder, "registry"), password=False, data=data)
        pushed = Pushed(data, server.host)
        try:
            for name in recipes:
                if name in wanted:
                    pushed.images[name] = _find(name, server) or _push(name, pushed, show) or _find(name, server)
        finally:
            server.close()
            # The builder would keep gigabytes. It also has the image of PyTorch that others were built on.
            built = {str(item["name"]) for item in pushed.built}
            for name in built | {recipes[name].base for name in built} - {""}:
                images.run(["buildah", "rmi", "--force", pushed.images[name].partition("@")[0]])
    return pushed


def _find(name: str, server: LocalRegistry) -> str:
    """Return the reference of an image in the registry; empty if it is not there."""
    repository, tag = f"{_PREFIX}/{name}", images.content_of(name)
    content = server.get(f"{repository}/manifests/{tag}")
    return f"{server.host}/{repository}:{tag}@sha256:{hashlib.sha256(content).hexdigest()}" if content else ""


def _push(name: str, pushed: Pushed, show: Callable[[str], object]) -> str:
    # By its tag: the builder may have it, and its digest there is another one.
    torch = ["--torch", pushed.images[TORCH].partition("@")[0]] if find_recipes()[name].base else []
    options = ["--registry", f"{pushed.host}/{_PREFIX}", "--tag", images.content_of(name), *torch]
    show(f"kaigen images push {name} {' '.join(options)}")
    more = [
        "--base",
        images.load_image(images.base()),
        "--builder",
        "buildah",
        "--output",
        "json",
        *images.secret_options(),
    ]
    done = subprocess.run(
        [sys.executable, "-m", "kaigen", "images", "push", name, *options, *more],
        env={**images.builder_environment(), "BUILDAH_ISOLATION": "chroot"},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        raise images.ImageFailed(done.stderr)
    pushed.built.extend(json.loads(done.stdout))
    return ""


@contextmanager
def _data() -> Iterator[Path]:
    """Lock the folder of the registry's content, which is that of one image of PyTorch."""
    folder = images.image_folder() / "registry"
    folder.mkdir(exist_ok=True)
    current = folder / images.content_of(TORCH)
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        for old in folder.iterdir():
            if old.is_dir() and old != current:
                shutil.rmtree(old)
        current.mkdir(exist_ok=True)
        yield current


@contextmanager
def served_to(node: Node, pushed: Pushed) -> Iterator[None]:
    """Let a node pull images from their registry during the block."""
    with tempfile.TemporaryDirectory() as folder:
        server = LocalRegistry(Path(folder, "registry"), network=node.network, password=False, data=pushed.data)
        node.trust_registry(pushed.host, server.host)
        try:
            yield
        finally:
            server.close()
