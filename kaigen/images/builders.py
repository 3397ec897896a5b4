"""Programs that build images: docker with buildx, podman and buildah, with one set of options."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from msgspec import Struct

from kaigen.core.credentials import mask_urls
from kaigen.diagnostics.errors import SystemFailure

BUILDERS = ("docker", "podman", "buildah")
_PROXIES = ("HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "no_proxy")
"""Build arguments that all three builders know, and that are not stored in the image (source: Dockerfile reference,
"Predefined ARGs")."""
_PLAIN = "--tls-verify=false"
_SHOWN = 2000
"""Characters of a failed program's output that are shown."""


class Build(Struct, frozen=True):
    """How one image is built.

    Attributes:
        reference: its name with the tag.
        context: folder that the Dockerfile copies from.
        dockerfile: its path in that folder.
        arguments: build arguments by name.
        labels: labels of the image by name.
        secrets: files that are mounted into the build and stored in no layer, by their id.
        platforms: such as `linux/arm64`; empty for that of this machine.
        plain_base: whether the base image is pulled without TLS.
    """

    reference: str
    context: Path
    dockerfile: str
    arguments: Mapping[str, str]
    labels: Mapping[str, str]
    secrets: Mapping[str, Path]
    platforms: tuple[str, ...]
    plain_base: bool = False

    def options(self) -> list[str]:
        """Return the options that every builder takes."""
        found = ["--file", str(self.context / self.dockerfile)]
        for name, value in self.arguments.items():
            found += ["--build-arg", f"{name}={value}"]
        for name in _PROXIES:
            if os.environ.get(name):
                found += ["--build-arg", name]  # The value is that of the variable: it is in no list of processes.
        for name, value in self.labels.items():
            found += ["--label", f"{name}={value}"]
        for name, file in self.secrets.items():
            found += ["--secret", f"id={name},src={file}"]
        if self.platforms:
            found += ["--platform", ",".join(self.platforms)]
        return found


class Builder:
    """A program that builds images."""

    def __init__(
        self,
        name: str,
        show: Callable[[str], object],
        *,
        plain_http: bool = False,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        """Use a program.

        Args:
            name: one of `BUILDERS`.
            show: prints a line of the program's output.
            plain_http: push without TLS.
            environment: environment variables of the program; None for those of this process.
        """
        self._environment = environment
        self.name = name
        self._show = show
        self._tls = [_PLAIN] if plain_http else []

    def build(self, build: Build, *, push: bool) -> str:
        """Build an image, and return its digest in the registry if it is pushed, else nothing.

        Raises:
            SystemFailure: the program failed.
        """
        with tempfile.TemporaryDirectory() as folder:
            return (
                self._buildx(build, Path(folder), push) if self.name == "docker" else self._podman(build, folder, push)
            )

    def _buildx(self, build: Build, folder: Path, push: bool) -> str:
        facts = folder / "facts.json"
        # kaigen attaches its own bill of materials and provenance, in the same form for every builder.
        options = ["--provenance=false", "--sbom=false", "--metadata-file", str(facts), "--tag", build.reference]
        self._run(
            "docker", "buildx", "build", *build.options(), *options, "--push" if push else "--load", str(build.context)
        )
        return str(json.loads(facts.read_bytes())["containerimage.digest"]) if push else ""

    def _podman(self, build: Build, folder: str, push: bool) -> str:
        """Build with podman or buildah, whose options are the same."""
        several = len(build.platforms) > 1
        if several:
            # A list of that name of an earlier build would keep its images.
            subprocess.run([self.name, "manifest", "rm", build.reference], capture_output=True, check=False)
        name = ["--manifest" if several else "--tag", build.reference]
        tls = [_PLAIN] if build.plain_base else []
        self._run(self.name, "build", "--format=oci", *tls, *build.options(), *name, str(build.context))
        if not push:
            return ""
        file = Path(folder, "digest")
        command = ["manifest", "push", "--all"] if several else ["push"]
        target = f"docker://{build.reference}"
        self._run(self.name, *command, "--digestfile", str(file), *self._tls, build.reference, target)
        return file.read_text().strip()

    def _run(self, *command: str) -> None:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env=self._environment,
            text=True,
            errors="replace",
        )
        assert process.stdout is not None
        tail = ""
        with process:
            for line in process.stdout:
                self._show(line.rstrip("\n"))
                tail = (tail + line)[-_SHOWN:]
        if process.returncode != 0:
            what = " ".join(command[:3] if command[1] in ("buildx", "manifest") else command[:2])
            raise SystemFailure(f"`{what}` failed\n{mask_urls(tail.strip())}", hint=_hint(command, tail))


def _hint(command: Sequence[str], output: str) -> str:
    """Return what to do about a failure whose output is known."""
    if command[0] == "docker" and "--platform" in command and "not supported for the docker driver" in output:
        return "run `docker buildx create --use`: only such a builder builds for several platforms"
    return ""


def find_builder(name: str = "") -> str:
    """Return the builder that is there: the first of `BUILDERS` that works, or the one of a name.

    Raises:
        SystemFailure: there is none.
    """
    for each in [name] if name else BUILDERS:
        if shutil.which(each) and (each != "docker" or _docker_works()):
            return each
    if name == "docker" and shutil.which("docker"):
        raise SystemFailure(
            "docker cannot build images here",
            hint="start its daemon, and install the plugin buildx: `docker buildx version`",
        )
    raise SystemFailure(
        f"{name or 'docker with buildx, podman or buildah'} is not installed",
        hint="install one of docker (with buildx), podman and buildah",
    )


def _docker_works() -> bool:
    """Return whether docker has a daemon and the plugin buildx, which mounts secrets and builds for other platforms."""
    checks = (["docker", "buildx", "version"], ["docker", "version"])
    return all(subprocess.run(check, capture_output=True, check=False).returncode == 0 for check in checks)
