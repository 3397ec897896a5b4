"""Download the packages that `sources.json` pins, and find newer ones."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from fnmatch import fnmatch
from pathlib import Path
from types import MappingProxyType
from typing import Any

LOCK = Path(__file__).parent / "sources.json"
_OLDEST = (0, 10)
_READ = ("*/PKG-INFO", "*.dist-info/METADATA", "vllm/*.py", "*/vllm/*.py", "*/recipes/models/*.yaml")
_BACKEND = """
from pathlib import Path

def prepare_metadata_for_build_wheel(directory, settings=None):
    folder = Path(directory, "vllm.dist-info")
    folder.mkdir()
    (folder / "METADATA").write_text(Path("PKG-INFO").read_text())
    return folder.name
"""
"""A build backend that answers with the metadata of the sdist: pip asks for it even if it only downloads."""


_ANY_MACHINE = ("--only-binary=:all:", "--python-version=3.12", "--platform=manylinux_2_28_x86_64")
"""Options of pip for the same wheel on every machine."""


class SourceError(Exception):
    """A package that cannot be had, or is not the one that is pinned."""


def cache() -> Path:
    """Return the folder of what was downloaded."""
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base, "kaigen", "facts")


def read_lock() -> dict[str, Any]:
    """Return the pinned packages: `vllm` by version, `wheels` by package, `modules` of Go by path, `controllers`.

    Those of `controllers` are by name and version.
    """
    lock: dict[str, Any] = json.loads(LOCK.read_text())
    return lock


def vllm_files(version: str, sha256: str = "") -> tuple[Path, str]:
    """Return the folder of a version's Python files and recipes, and the SHA-256 of its package.

    Args:
        version: of vLLM.
        sha256: what the package must have; empty for any.

    Raises:
        SourceError: pip finds no package of this version, or another one than the pinned one.
    """
    folder = cache() / f"vllm-{version}"
    stamp = folder / ".sha256"
    if not stamp.is_file() or stamp.read_text() not in (sha256, sha256 or stamp.read_text()):
        folder.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder.parent) as scratch:
            package = _downloaded(version, Path(scratch))
            digest = hashlib.sha256(package.read_bytes()).hexdigest()
            if sha256 not in ("", digest):
                raise SourceError(f"vllm {version}: the package has the SHA-256 {digest}, and {sha256} is pinned")
            files = Path(scratch, "files")
            _extract(package, files)
            (files / ".sha256").write_text(digest)
            shutil.rmtree(folder, ignore_errors=True)
            files.rename(folder)
    return folder, stamp.read_text()


def wheel(package: str, version: str, sha256: str = "") -> tuple[Path, str]:
    """Return the wheel of a package, and its SHA-256: of its only one, or that for Linux on x86-64.

    Args:
        package: its name in the registry.
        version: of it.
        sha256: what the wheel must have; empty for any.

    Raises:
        SourceError: pip finds no wheel of this version, or another one than the pinned one.
    """
    folder = cache() / f"{package}-{version}"
    if not list(folder.glob("*.whl")):
        _run_pip([f"--dest={folder}", *_ANY_MACHINE, f"{package}=={version}"])
    (path,) = folder.glob("*.whl")
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    if sha256 not in ("", digest):
        raise SourceError(f"{package} {version}: the wheel has the SHA-256 {digest}, and {sha256} is pinned")
    return path, digest


def metadata_of(folder: Path) -> Path:
    """Return the file with the metadata of a package, an sdist or a wheel."""
    (metadata,) = [path for name in ("PKG-INFO", "*.dist-info/METADATA") for path in folder.glob(name)]
    return metadata


def package_date(folder: Path) -> str:
    """Return the day on which the package was built, from the time of its metadata."""
    return datetime.fromtimestamp(metadata_of(folder).stat().st_mtime, UTC).date().isoformat()


def _downloaded(version: str, folder: Path) -> Path:
    """Return the sdist of a version; its wheel where the registry has no sdist, as for 0.15."""
    backend = folder / "backend" / "setuptools"
    backend.mkdir(parents=True)
    (backend / "__init__.py").write_text("")
    (backend / "build_meta.py").write_text(_BACKEND)
    wheel = ["--only-binary=:all:", "--python-version=3.12", "--platform=manylinux_2_31_x86_64"]
    why = ""
    for options in (["--no-binary=:all:", "--no-build-isolation"], wheel):
        try:
            _run_pip([f"--dest={folder}", *options, f"vllm=={version}"], {"PYTHONPATH": str(backend.parent)})
        except SourceError as error:
            why += f"\n{error}"
            continue
        (package,) = (path for path in folder.iterdir() if path.is_file())
        return package
    raise SourceError(f"vllm {version}: {why}")


def _run_pip(arguments: Iterable[str], environment: Mapping[str, str] = MappingProxyType({})) -> None:
    """Download a package, without those that it needs."""
    pip = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--no-cache-dir"]
    run = subprocess.run([*pip, *arguments], env=os.environ | environment, capture_output=True, text=True, check=False)
    if run.returncode:
        raise SourceError(run.stderr.strip()[-500:])


def _extract(package: Path, target: Path) -> None:
    """Extract what the tables are made of, without the folder of the sdist and with the times of the files."""
    if package.suffix == ".whl":
        with zipfile.ZipFile(package) as archive:
            for info in archive.infolist():
                if _is_read(info.filename):
                    archive.extract(info, target)
                    built = datetime(*info.date_time, tzinfo=UTC).timestamp()
                    os.utime(target / info.filename, (built, built))
        return
    with tarfile.open(package) as tar:
        for member in tar:
            if member.isfile() and _is_read(member.name):
                member.name = member.name.partition("/")[2]
                tar.extract(member, target, filter="data")


def _is_read(name: str) -> bool:
    return any(fnmatch(name, pattern) for pattern in _READ)


def newest_vllm() -> list[str]:
    """Return the newest patch release of each minor version, oldest first."""
    newest: dict[tuple[int, ...], tuple[int, ...]] = {}
    for text in versions_of("vllm"):
        if re.fullmatch(r"[0-9.]+", text):
            version = tuple(map(int, text.split(".")))
            newest[version[:2]] = max(version, newest.get(version[:2], version))
    return [".".join(map(str, newest[minor])) for minor in sorted(newest) if minor >= _OLDEST]


def versions_of(package: str) -> list[str]:
    """Return the versions of a package that pip finds, newest first."""
    shown = _output([sys.executable, "-m", "pip", "index", "versions", package])
    versions: list[str] = []
    for listed in re.findall(r"^Available versions: (.+)$", shown, re.MULTILINE):
        versions += listed.split(", ")
    return versions


def module_archive(module: str, version: str, checksum: str = "") -> tuple[Path, str]:
    """Return the archive of a Go module, and its checksum.

    Raises:
        SourceError: the module proxy has no such version, or another one than the pinned one.
    """
    # Go also downloads a module that is for a newer Go, but does not extract it.
    found = json.loads(_output(["go", "mod", "download", "-json", f"{module}@{version}"], answers=True))
    if "Zip" not in found or "Sum" not in found:
        raise SourceError(f"{module} {version}: {found.get('Error')}")
    if checksum not in ("", found["Sum"]):
        raise SourceError(f"{module} {version}: the checksum is {found['Sum']}, and {checksum} is pinned")
    return Path(found["Zip"]), found["Sum"]


def module_date(archive: Path) -> str:
    """Return the day of a version of a module, which Go keeps next to its archive."""
    day: str = json.loads(archive.with_suffix(".info").read_text())["Time"][:10]
    return day


def module_versions(module: str) -> list[str]:
    """Return the versions of a Go module that the proxy lists, which may be fewer than it serves."""
    return _output(["go", "list", "-m", "-versions", module]).split()[1:]


def newest_of(versions: Iterable[str]) -> str:
    """Return the newest released version of a Go module."""
    released = [version for version in versions if re.fullmatch(r"v[0-9.]+", version)]
    return max(released, key=lambda version: tuple(map(int, version[1:].split("."))))


def _output(command: Iterable[str], *, answers: bool = False) -> str:
    """Return what a command prints.

    Args:
        command: its words.
        answers: whether it also prints an answer when it fails.
    """
    words = list(command)
    with tempfile.TemporaryDirectory() as empty:  # no go.mod, which would be read or changed
        run = subprocess.run(words, cwd=empty, capture_output=True, text=True, check=False)
    if run.returncode and not (answers and run.stdout):
        raise SourceError(f"{' '.join(words[:4])}: {run.stderr.strip() or run.stdout.strip()}")
    return run.stdout
