"""Building what is missing of the plane's programs."""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.cluster.registry import PACKAGE as REGISTRY
from tests.cluster.registry import program
from tests.cluster.tools import debian
from tests.cluster.tools.parts import KINDS, REDIS, Part, cache, find, go_version, place

# Seconds between two lines that say a build still goes on.
_EVERY = 30.0


class BuildFailed(Exception):
    """Go could not build a part. The text is the end of what it said."""


def _log(text: str) -> None:
    # Not standard output, which a shell evaluates when a plane is started by hand.
    print(text, file=sys.stderr, flush=True)


@contextmanager
def _locked(name: str) -> Iterator[None]:
    """Only one run at a time builds a part; the kernel frees the lock of one that dies."""
    folder = cache()
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / f"{name}.lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            _log(f"{name}: another run builds it, waiting")
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _run_go(part: Part, program: str, package: str, folder: Path, go_mod: Path) -> None:
    # -v names each compiled package, the only progress that Go reports.
    command = ["go", "build", "-v", "-mod=readonly", f"-modfile={go_mod}", "-buildvcs=false", "-trimpath"]
    command += [f"-tags={','.join(part.tags)}", f"-ldflags={part.ldflags}"]
    command += ["-o", str(folder / program), package]
    # Without garbage collection below the limit, a compiler needs a third less processor time.
    memory = {"GOGC": "off", "GOMEMLIMIT": "2GiB"}
    env = memory | os.environ | {"CGO_ENABLED": "0", "GOWORK": "off"}
    started = time.monotonic()
    lines: list[str] = []
    done = threading.Event()

    def report_progress() -> None:
        while not done.wait(_EVERY):
            _log(f"  {program}: {len(lines)} packages, {time.monotonic() - started:.0f} s")

    reporter = threading.Thread(target=report_progress, daemon=True)
    reporter.start()
    try:
        with subprocess.Popen(
            command, cwd=part.folder, env=env, stderr=subprocess.PIPE, text=True, stdin=subprocess.DEVNULL
        ) as go:
            assert go.stderr is not None
            lines.extend(go.stderr)
    finally:
        done.set()
        reporter.join()
    if go.returncode != 0:
        raise BuildFailed(f"{part.name} {part.version}: go build failed\n{''.join(lines[-15:]).rstrip()}")


def module_folder(part: Part, module: str) -> Path:
    """Return where a module's files are; it is downloaded if it was never used before."""
    command = ["go", "mod", "download", "-json", module]
    done = subprocess.run(command, cwd=part.folder, capture_output=True, text=True)
    if done.returncode != 0:
        raise BuildFailed(f"{part.name} {part.version}: go mod download failed\n{done.stderr.strip()}")
    return Path(json.loads(done.stdout)["Dir"])


def _write_go_mod(part: Part, scratch: Path) -> Path:
    """Write a part's go.mod and go.sum with copies of the modules that it replaces files of."""
    lines = [(part.folder / "go.mod").read_text()]
    for number, (module, path) in enumerate(part.replaced.items()):
        copy = scratch / f"module-{number}"
        shutil.copytree(module_folder(part, module), copy, copy_function=shutil.copyfile)
        for folder in (copy, *(each for each in copy.rglob("*") if each.is_dir())):
            folder.chmod(0o755)
        shutil.copyfile(part.folder / Path(path).name, copy / path)
        lines.append(f"replace {module} => {copy}\n")
    (scratch / "go.mod").write_text("\n".join(lines))
    shutil.copyfile(part.folder / "go.sum", scratch / "go.sum")
    return scratch / "go.mod"


def build(part: Part) -> None:
    """Build a part into the cache, whole or not at all.

    Raises:
        ToolsMissing: There is no suitable Go.
        BuildFailed: Go failed.
    """
    go = go_version(part.folder)
    target = place(part, go)
    with _locked(part.name):
        if target.is_dir():
            return
        _log(f"{part.name} {part.version}: building with {go} (about {part.cold:g} min when nothing is cached)")
        started = time.monotonic()
        with tempfile.TemporaryDirectory(dir=cache(), prefix=f".{part.name}-") as scratch:
            folder = Path(scratch) / "programs"
            folder.mkdir()
            go_mod = _write_go_mod(part, Path(scratch))
            for program, package in part.packages.items():
                _run_go(part, program, package, folder, go_mod)
            if part.kinds:
                shutil.copytree(
                    module_folder(part, part.module) / part.kinds, folder / KINDS, copy_function=shutil.copyfile
                )
            folder.rename(target)
        _log(f"{part.name} {part.version}: built in {time.monotonic() - started:.0f} s")


def ensure(parts: Iterable[Part]) -> None:
    """Install the programs of parts, and print the versions.

    Args:
        parts: the parts.

    Raises:
        ToolsMissing: Something has to be installed by hand.
        BuildFailed: Go failed.
    """
    for part in parts:
        programs = find(part)
        if programs is None:
            build(part)
            programs = find(part)
            assert programs is not None
        _log(f"{part.name} {part.version}: {next(iter(programs.values())).parent}")
    debian.install(REDIS)
    _log(f"{REDIS}: {shutil.which(REDIS)}")
    _log(f"{REGISTRY}: {program()}")
