"""Where the tools that are measured are installed: a cache outside of the tree, from the lock files here."""

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
    """The folder that everything is installed into."""
    home = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(home, "kaigen", "bench-peers")


def clean_environment() -> dict[str, str]:
    """An environment in which no settings, plugins or cluster of the user's have a say."""
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
    """A virtual environment of its own for one tool.

    Args:
        name: the tool's.
        locks: lock files that hold all it takes.
        project: a project that is installed besides, from its source.

    Returns:
        The folder of its programs.

    Raises:
        CommandFailed: it cannot be made, for want of a network for example.
    """
    texts = [path.read_bytes() for path in locks]
    if project is not None:
        texts += [str(project).encode(), (project / "pyproject.toml").read_bytes()]
    folder = _folder(name, [sys.version.encode(), *texts])
    programs = folder / "bin"
    if not (folder / _DONE).exists():
        _begin(folder, name)
        call([sys.executable, "-m", "venv", str(folder)], folder, os.environ)
        install = [
            str(programs / "python"),
            "-m",
            "pip",
            "--disable-pip-version-check",
            "install",
            "--no-deps",
        ]
        wanted = [argument for path in locks for argument in ("-r", str(path))]
        call([*install, "--require-hashes", *wanted], folder, os.environ)
        if project is not None:
            call([*install, "--no-build-isolation", "--editable", str(project)], folder, os.environ)
        (folder / _DONE).touch()
    return programs


def node_environment(name: str, manifest: Path, lock: Path) -> Path:
    """A folder with `node_modules` for one tool.

    Returns:
        That folder.

    Raises:
        CommandFailed: it cannot be made: there is no Node, no npm or no network.
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
    # What it was made of is in its name: another lock file is another folder.
    return cache() / f"{name}-{sha256(b'|'.join(parts)).hexdigest()[:12]}"


def _begin(folder: Path, name: str) -> None:
    print(f"Installing {name}, once", file=sys.stderr)
    try:
        if folder.exists():
            shutil.rmtree(folder)
        folder.mkdir(parents=True)
    except OSError as error:
        raise CommandFailed(f"{folder}: {error.strerror}") from error
