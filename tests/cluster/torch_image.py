"""The image of PyTorch that kaigen's own images start from, for CPUs: without CUDA, it has a tenth of the size.

It replaces that of `runtimes/shared/torch.Dockerfile`, whose packages have 8 GB. The Dockerfiles of the images that
start from it are built as they are.
"""

from __future__ import annotations

import hashlib
import re
import shutil
from pathlib import Path

from tests.cluster import cpu_wheels
from tests.cluster.cpu_wheels import PYTHON, install_wheels, replace_cuda
from tests.cluster.images import BASE, base, build_in_place, kept, say, scratch

REFERENCE = "kaigen.test/torch:cpu"
_LOCK = Path(__file__).parents[2] / "runtimes" / "shared" / "torch.txt"
_CUDA = re.compile(r"(nvidia|cuda|triton)[a-z0-9-]*==")
_REQUIRED = re.compile(r"(?m)^Requires-Dist: (nvidia|cuda|triton).*\n")
_SITE = f"lib/python{PYTHON}/site-packages"
_DOCKERFILE = f"""FROM {BASE}
RUN python -m venv --without-pip /opt/torch
COPY site /opt/torch/{_SITE}
COPY packages.txt /opt/torch/packages.txt
RUN python -m compileall -q -j 0 --invalidation-mode unchecked-hash /opt/torch > /dev/null || true
"""


def torch_image() -> Path:
    """Return the archive of the image, built if needed.

    Raises:
        ImageFailed: it could not be built.
    """
    digest = hashlib.sha256(f"{REFERENCE} {base().name}".encode())
    for path in (_LOCK, Path(__file__), Path(cpu_wheels.__file__)):
        digest.update(path.read_bytes())
    return kept(f"torch-{digest.hexdigest()[:16]}.tar", _make)


def _make(archive: Path) -> None:
    say(f"{REFERENCE}: installing PyTorch (1 GB, about 2 min)")
    # A package of the lock begins a line, and its hashes continue it.
    packages = re.split(r"(?m)^(?=[a-z0-9])", _LOCK.read_text())[1:]
    with scratch() as context:
        site = context / "site"
        lock = context / "lock.txt"
        lock.write_text("".join(each for each in packages if not _CUDA.match(each)))
        install_wheels(lock, site)
        for name in ("bin", "share", "torch/include", "torch/test"):
            shutil.rmtree(site / name, ignore_errors=True)
        replace_cuda(site / "torch/lib")
        # As in a build for CPUs, so that packages which require torch do not bring CUDA.
        (metadata,) = site.glob("torch-*.dist-info/METADATA")
        metadata.write_text(_REQUIRED.sub("", metadata.read_text()))
        # With those of CUDA, so that the other locks do not bring them.
        names = sorted(each.partition("==")[0] for each in packages)
        (context / "packages.txt").write_text("".join(f"{name}\n" for name in names))
        (context / "Dockerfile").write_text(_DOCKERFILE)
        build_in_place(REFERENCE, context, archive)
