"""Install the measured tools from lock files into a cache outside the tree."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path

from benchmarks.command import CommandFailed, call, program

ROOT = Path(__file__).parents[1]
_DONE = ".installed"


def cache() -> Path:
    """Return the folder of all installations."""
    home = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(home, "kaigen", "bench-peers")


def clean_environment() -> dict[str, str]:
    """Return an environment without the user's settings, plugins and cluster."""
    home = cache() / "home"
    home.mkdir(parents=True, exist_ok=True)
    return {
        "PATH": os.environ["PATH"],
        "HOME": str(home),
        "XDG_CACHE_HOME": str(home / "cache"),
        "LANG": "C.UTF-8",
        "KUBECONFIG": os.devnull,
        "GIT_CONFIG_GLOBAL": os.devnull,
        "NO_COLOR": "1",
    }


def python_environment(name: str, locks: Sequence[Path], project: Path | None = None) -> Path:
    """Create a virtual environment for one tool.

    Args:
        name: the tool's name.
        locks: lock files with all its packages.
        project: a project to install from source as well.

    Returns:
        The folder of its programs.

    Raises:
        CommandFailed: the installation failed, for example without a network.
    """
    texts = [path.read_bytes() for path in locks]
    if project is not None:
        texts += [str(project).encode(), (project / "pyproject.toml").read_bytes()]
    folder = _folder(name, [sys.version.encode(), *texts])
    programs = folder / "bin"
    if not (folder / _DONE).exists():
        _begin(folder, name)
        call([sys.executable, "-m", "venv", str(folder)], folder, os.environ)
        install = [str(programs / "python"), "-m", "pip", "--disable-pip-version-check", "install", "--no-deps"]
        requirements = [argument for path in locks for argument in ("-r", str(path))]
        call([*install, "--require-hashes", *requirements], folder, os.environ)
        if project is not None:
            call([*install, "--no-build-isolation", "--editable", str(project)], folder, os.environ)
        (folder / _DONE).touch()
    return programs


def node_environment(name: str, manifest: Path, lock: Path) -> Path:
    """Create a folder with `node_modules` for one tool and return it.

    Raises:
        CommandFailed: there is no Node, no npm or no network.
    """
    program("node")
    npm = program("npm")
    folder = _folder(name, [manifest.read_bytes(), lock.read_bytes()])
    if not (folder / _DONE).exists():
        _begin(folder, name)
        shutil.copy(manifest, folder / "package.json")
        shutil.copy(lock, folder / "package-lock.json")
        call([npm, "ci", "--ignore-scripts", "--no-audit", "--no-fund"], folder, os.environ)
        (folder / _DONE).touch()
    return folder


def _folder(name: str, parts: Sequence[bytes]) -> Path:
    # The name contains a digest of the lock files: a changed lock file gets a new folder.
    return cache() / f"{name}-{sha256(b'|'.join(parts)).hexdigest()[:12]}"


def _begin(folder: Path, name: str) -> None:
    print(f"Installing {name}, once", file=sys.stderr)
    try:
        if folder.exists():
            shutil.rmtree(folder)
        folder.mkdir(parents=True)
    except OSError as error:
        raise CommandFailed(f"{folder}: {error.strerror}") from error
