"""Container images for a real node, built from the Dockerfiles of `runtimes/` and kept by their content.

There is no registry to pull from: the base image is made from Debian's packages, buildah builds the others as they
are, and the node imports archives.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from kaigen.catalog.images import default_images
from kaigen.diagnostics.errors import SystemFailure
from kaigen.images.builders import Build, Builder
from kaigen.images.recipes import Recipe, find_recipes
from tests.cluster.tools.parts import ToolsMissing, cache, locate

BASE = "docker.io/library/python:3.13-slim-trixie"
"""The image that the runtimes' Dockerfiles start from. Here: Debian's own Python of that version."""

PAUSE = "kaigen.test/pause:1"
"""The image of a pod's sandbox."""

_SUITE = "trixie"
_PACKAGES = "python3,python3-venv,python3-pip,ca-certificates"
_CACHES = (".venv", ".mypy_cache", ".pytest_cache", ".ruff_cache")
_CERTIFICATES = Path("/etc/ssl/certs")
_AUTHORITIES = _CERTIFICATES / "ca-certificates.crt"
_PIP = Path("/etc/pip.conf")
_KEPT = 2
"""Number of archives of an image that stay: those of other contents may be in use in another checkout."""


class ImageFailed(Exception):
    """An image could not be built. The text is the end of what the program printed."""


def archives(*names: str) -> list[Path]:
    """Return the archives that a node needs.

    Args:
        names: runtime images: folders of `runtimes/`.

    Returns:
        Those of the sandbox, of the base image, of kubectl (for the pods of `helm test`), and of the runtime images.

    Raises:
        ImageFailed: one could not be built.
        ToolsMissing: a program is missing.
    """
    sandbox = build_from(PAUSE, f'FROM {BASE}\nENTRYPOINT ["sleep", "infinity"]\n')
    kubectl = build_from(
        default_image("kubectl"),
        'FROM scratch\nCOPY kubectl /bin/kubectl\nENTRYPOINT ["/bin/kubectl"]\n',
        {"kubectl": locate()["kubectl"].read_bytes()},
    )
    return [base(), sandbox, kubectl, *(runtime_image(name) for name in names)]


def default_image(name: str) -> str:
    """Return the reference of one of the images that kaigen puts into pods, as in its catalogue."""
    return default_images()[name]


def runtime_image(name: str) -> Path:
    """Return the archive of one of kaigen's runtime images, built if needed.

    Args:
        name: a folder of `runtimes/`.

    Raises:
        ImageFailed: it could not be built.
    """
    recipe, reference = find_recipes()[name], default_image(name)
    start = _start(recipe)

    def make(archive: Path) -> None:
        say(f"{reference}: building")
        arguments = {"BASE": load_image(start)}
        build = Build(reference, recipe.context, recipe.dockerfile, arguments, {}, secrets(), ())
        environment = {**builder_environment(), "BUILDAH_ISOLATION": "chroot"}
        try:
            Builder("buildah", lambda line: None, environment=environment).build(build, push=False)
        except SystemFailure as error:
            raise ImageFailed(str(error)) from None
        _push_and_remove(reference, archive)

    content = f"{reference} {start.name}" if recipe.base else reference
    return kept(f"{name}-{content_of(name, content)}.tar", make)


def _start(recipe: Recipe) -> Path:
    """Return the archive of the image that an image starts from."""
    if not recipe.base:
        return base()
    from tests.cluster.torch_image import torch_image

    return torch_image()


def secrets() -> dict[str, Path]:
    """Return the files that builds may read, by id: the packages' index is reached as on the machine itself."""
    return {id: path for id, path in (("ca.crt", _AUTHORITIES), ("pip.conf", _PIP)) if path.exists()}


def secret_options() -> list[str]:
    """Return the options of `kaigen images` for these files."""
    options = {"pip.conf": "--pip-conf", "ca.crt": "--ca-certificate"}
    return [word for id, path in secrets().items() for word in (options[id], str(path))]


def content_of(name: str, reference: str = "") -> str:
    """Return a digest of what a runtime image is built from.

    Args:
        name: a folder of `runtimes/`; `torch` for what several share.
        reference: the image's name, if it is part of the content.
    """
    recipe = find_recipes()[name]
    digest = hashlib.sha256(f"{reference} {base().name}".encode())
    for folder in dict.fromkeys((recipe.context / "shared", (recipe.context / recipe.dockerfile).parent)):
        for path in _files(folder, ("tests", *_CACHES)):
            digest.update(f"{path.relative_to(recipe.context)}\0".encode())
            digest.update(path.read_bytes())
    return digest.hexdigest()[:16]


def build_from(reference: str, dockerfile: str, files: Mapping[str, bytes] | None = None) -> Path:
    """Return the archive of an image built from a Dockerfile.

    Args:
        reference: the image's name.
        dockerfile: the text of the Dockerfile.
        files: what it copies, by name.

    Raises:
        ImageFailed: it could not be built.
    """
    with tempfile.TemporaryDirectory() as folder:
        context = Path(folder)
        (context / "Dockerfile").write_text(dockerfile)
        for name, content in (files or {}).items():
            (context / name).write_bytes(content)
            (context / name).chmod(0o755)
        return build(reference, context)


def base() -> Path:
    """Return the archive of the base image, made from Debian's packages if needed."""
    digest = hashlib.sha256(f"{BASE} {_SUITE} {_PACKAGES}".encode()).hexdigest()[:16]
    return kept(f"base-{digest}.tar", _make_base)


def _make_base(archive: Path) -> None:
    say(f"{BASE}: making it from Debian's packages (about 2 min)")
    with scratch() as folder:
        root = folder / "root"
        run(["debootstrap", "--variant=minbase", f"--include={_PACKAGES}", _SUITE, str(root)])
        (root / "usr/bin/python").symlink_to("python3")
        shutil.rmtree(root / "var/lib/apt/lists")
        shutil.rmtree(root / "var/cache/apt")
        tree = folder / "root.tar"
        run(["tar", "--numeric-owner", "-C", str(root), "-cf", str(tree), "."])
        run(["podman", "import", "--change", "CMD=python3", str(tree), BASE])
    _push(BASE, archive)


def build(reference: str, folder: Path, ignore: Sequence[str] = ()) -> Path:
    """Return the archive of an image built from a folder's Dockerfile.

    Args:
        reference: the image's name.
        folder: the build context.
        ignore: names in it that do not count as its content.

    Raises:
        ImageFailed: it could not be built.
    """
    digest = hashlib.sha256(f"{reference} {base().name}".encode())
    for path in _files(folder, ignore):
        digest.update(f"{path.relative_to(folder)}\0".encode())
        digest.update(path.read_bytes())
    name = reference.rpartition("/")[2].partition(":")[0]

    def make(archive: Path) -> None:
        say(f"{reference}: building")
        with scratch() as context:
            ignored = shutil.ignore_patterns(*ignore, "__pycache__")
            shutil.copytree(folder, context, ignore=ignored, dirs_exist_ok=True)
            build_in_place(reference, context, archive)

    return kept(f"{name}-{digest.hexdigest()[:16]}.tar", make)


def build_in_place(reference: str, context: Path, archive: Path) -> None:
    """Build an image from a folder's Dockerfile, without looking for one that is kept.

    Args:
        reference: the image's name.
        context: the build context.
        archive: where it goes.

    Raises:
        ImageFailed: it could not be built.
    """
    # The packages' index is reached as on the machine itself.
    mounts = [f"--volume={path}:{path}:ro" for path in (_CERTIFICATES, _PIP) if path.exists()]
    options = ["--isolation=chroot", "--pull=never", *mounts, "--tag", reference]
    # The builder's storage may be gone while the archives are kept.
    load_image(base())
    run(["buildah", "bud", *options, str(context)])
    _push_and_remove(reference, archive)


def _push_and_remove(reference: str, archive: Path) -> None:
    try:
        _push(reference, archive)
    finally:
        # No other image starts from it, and its layers take as much space as the archive.
        run(["buildah", "rmi", "--force", reference])


@contextmanager
def scratch() -> Iterator[Path]:
    """Create a folder for a build, next to the kept archives, and remove it."""
    with tempfile.TemporaryDirectory(dir=image_folder()) as folder:
        yield Path(folder)


def _files(folder: Path, ignore: Sequence[str]) -> Iterator[Path]:
    for path in sorted(folder.rglob("*")):
        parts = path.relative_to(folder).parts
        if path.is_file() and "__pycache__" not in parts and parts[0] not in ignore:
            yield path


def _push(reference: str, archive: Path) -> None:
    run(["buildah", "push", reference, f"docker-archive:{archive}:{reference}"])


def load_image(archive: Path) -> str:
    """Load an image of an archive into buildah's storage.

    Returns:
        Its name there.

    Raises:
        ImageFailed: it could not be loaded.
    """
    run(["buildah", "pull", f"docker-archive:{archive}"])
    with tarfile.open(archive) as content:
        index = content.extractfile("manifest.json")
        assert index is not None
        return str(json.load(index)[0]["RepoTags"][0])


def image_folder() -> Path:
    """Return the folder of kept archives and of the builder's storage."""
    folder = cache().parent / "images"
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def kept(name: str, make: Callable[[Path], None]) -> Path:
    """Return a kept archive, made first if it is missing. It appears whole or not at all.

    Old archives of the same image are removed.

    Args:
        name: file name, with a digest of everything that the archive depends on.
        make: writes it to a path.
    """
    archive = image_folder() / name
    if archive.exists():
        return archive
    image = name.rpartition("-")[0]
    # A lock for each image: another run may be building a large one.
    with (image_folder() / f"{image}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not archive.exists():
            draft = archive.with_suffix(".new")
            draft.unlink(missing_ok=True)
            make(draft)
            draft.rename(archive)
            for old in sorted(image_folder().glob(f"{image}-*.tar"), key=lambda path: path.stat().st_mtime)[:-_KEPT]:
                old.unlink()
    return archive


def run(argv: Sequence[str], stdin: str | None = None) -> None:
    """Run a program.

    Args:
        argv: the program and its arguments.
        stdin: its input.

    Raises:
        ImageFailed: it failed.
        ToolsMissing: it is missing.
    """
    if shutil.which(argv[0]) is None:
        raise ToolsMissing(f"{argv[0]} is not on the PATH; run `make cluster-tools` first")
    done = subprocess.run(argv, env=builder_environment(), input=stdin, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise ImageFailed(f"{argv[0]} failed\n{(done.stdout + done.stderr)[-3000:]}")


def builder_environment() -> Mapping[str, str]:
    """Settings of podman and buildah: storage of their own, and no more than this machine allows."""
    folder = image_folder()
    storage, containers = folder / "storage.conf", folder / "containers.conf"
    for path, text in (
        (
            storage,
            f'[storage]\ndriver = "overlay"\ngraphroot = {json.dumps(str(folder / "storage"))}\n'
            f"runroot = {json.dumps(str(folder / 'run'))}\n",
        ),
        (
            containers,
            '[containers]\ndefault_ulimits = ["nofile=1024:1024", "nproc=1024:1024"]\n'
            '[engine]\nruntime = "runc"\ncgroup_manager = "cgroupfs"\nevents_logger = "file"\n',
        ),
    ):
        # A build of another run may be reading it.
        if not path.exists() or path.read_text() != text:
            path.write_text(text)
    return os.environ | {
        "CONTAINERS_STORAGE_CONF": str(storage),
        "CONTAINERS_CONF": str(containers),
        "TMPDIR": str(folder),
    }


def say(text: str) -> None:
    """Print progress to standard error."""
    print(text, file=sys.stderr, flush=True)
