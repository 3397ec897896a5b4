"""Programs from Debian's packages."""

from __future__ import annotations

import os
import shutil
import subprocess

from tests.cluster.tools.parts import REDIS, ToolsMissing

PACKAGES = {
    REDIS: REDIS,
    "chromium": "chromium",
    "chromedriver": "chromium-driver",
    "npm": "npm",
    "ssh": "openssh-client",
    "runc": "runc",
    "buildah": "buildah",
    "podman": "podman",
    "debootstrap": "debootstrap",
    "conntrack": "conntrack",
    "iptables": "iptables",
    "ip": "iproute2",
    "nsenter": "util-linux",
    "newuidmap": "uidmap",
    "gcc": "gcc",
    "nm": "binutils",
    "numactl": "numactl",
    "gpg": "gnupg",
    "openssl": "openssl",
}
"""Package of each program."""


def install(*programs: str) -> None:
    """Install programs that are not on the PATH, if possible without user input.

    Args:
        programs: of `PACKAGES`; all when none is named.

    Raises:
        ToolsMissing: something has to be installed by hand.
    """
    for program in programs or PACKAGES:
        if shutil.which(program) is None:
            _install(program, PACKAGES[program])


def _install(program: str, package: str) -> None:
    if os.geteuid() != 0 or shutil.which("apt-get") is None:
        raise ToolsMissing(f"{program} is not on the PATH: install your system's {package} package")
    # The run level keeps packages from starting servers of their own. Another process may be installing too.
    env = os.environ | {"DEBIAN_FRONTEND": "noninteractive", "RUNLEVEL": "1"}
    apt = ["apt-get", "-o", "DPkg::Lock::Timeout=300", "-q"]
    command = [*apt, "install", "-y", "--no-install-recommends", package]
    for each in (command, [*apt, "update"], command):
        done = subprocess.run(each, env=env, capture_output=True, text=True, check=False)
        if shutil.which(program) is not None:
            return
    raise ToolsMissing(f"{program} could not be installed: {(done.stderr.strip() or done.stdout.strip())[-300:]}")
