"""Wheels for images without a GPU, installed from a lock, and PyTorch's without CUDA.

The package index has no torch without CUDA. A CPU never needs CUDA's libraries, 4 GB of them, but torch links to them:
one small library, whose functions return an error, replaces them all.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.cluster.images import ImageFailed, run

PYTHON = "3.13"
"""The Python of the base image."""

_PLATFORMS = [
    *(f"manylinux_2_{minor}_x86_64" for minor in (34, 31, 28, 27, 24, 17)),
    *("manylinux2014_x86_64", "manylinux2010_x86_64", "manylinux1_x86_64"),
]
_CUDA = re.compile(r"_*(cuda|cublas|cudnn|cufft|cufile|curand|cusparse|cusolver|cupti|nccl|nvrtc|nvshmem|cu[A-Z])")
_CUDA_LIBRARIES = re.compile(r"lib(cu|nv|nccl)")
_TEXT = re.compile(r"(cuda|cublas|cudnn|cusparse|nccl|nvrtc)Get(Error|Status)(String|Name)|ncclGetLastError")
_NO_DEVICE = 100


def install_wheels(lock: Path, site: Path) -> None:
    """Install the wheels of a lock for the Python of the base image into a folder.

    Raises:
        ImageFailed: one could not be installed.
    """
    run(
        [
            *(sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet", "install"),
            *("--no-deps", "--require-hashes", "--only-binary=:all:", "--no-compile", "--ignore-requires-python"),
            *(f"--python-version={PYTHON}", "--implementation=cp"),
            *(f"--platform={platform}" for platform in _PLATFORMS),
            *(f"--target={site}", f"--requirement={lock}"),
        ]
    )


def replace_cuda(libraries: Path) -> None:
    """Write a library under the names of all of CUDA's that torch links to.

    Args:
        libraries: torch's folder of libraries.

    Raises:
        ImageFailed: it could not be compiled.
    """
    linking = sorted(str(path) for path in libraries.glob("lib*.so"))
    sections = output_of("readelf", "--dynamic", *linking)
    needed = sorted({name for name in re.findall(r"\(NEEDED\).*\[(.*)\]", sections) if _CUDA_LIBRARIES.match(name)})
    versions = _undefined(linking)
    first = libraries / needed[0]
    script = libraries / "cuda.versions"
    script.write_text(
        "".join(
            f"{version} {{ global: {' '.join(f'{name};' for name in sorted(names))} }};\n"
            for version, names in versions.items()
            if version
        )
    )
    functions = sorted(set().union(*versions.values()))
    options = ["-shared", "-w", "-fno-builtin", f"-Wl,--version-script={script}", "-x", "c", "-o", str(first), "-"]
    run(["gcc", *options], stdin="".join(map(_definition, functions)))
    script.unlink()
    for name in needed[1:]:
        (libraries / name).symlink_to(first.name)


def _definition(function: str) -> str:
    """Return a function in C that fails: torch puts the text of the error into its exception."""
    if _TEXT.fullmatch(function):
        return f'const char *{function}(void) {{ return "no CUDA device"; }}\n'
    return f"int {function}(void) {{ return {_NO_DEVICE}; }}\n"


def _undefined(linking: Sequence[str]) -> Mapping[str, set[str]]:
    """Return CUDA's functions that torch calls, by version of the symbol; empty for those without."""
    found: dict[str, set[str]] = {}
    for line in output_of("nm", "--dynamic", "--undefined-only", "--format=posix", *linking).splitlines():
        name, _, version = line.partition(" ")[0].partition("@")
        if _CUDA.match(name):
            found.setdefault(version.strip("@"), set()).add(name)
    return found


def output_of(*argv: str) -> str:
    """Return what a program printed.

    Raises:
        ImageFailed: it failed.
    """
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise ImageFailed(f"{argv[0]} failed\n{done.stderr[-3000:]}")
    return done.stdout
