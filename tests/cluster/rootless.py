"""Rootless BuildKit as its image starts it: as user 1000, with the capabilities that a container has by default.

There is no registry to pull its image from. Its programs are built from Go modules, and Debian has the rest.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import struct
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.cluster.images import kept, run, say, scratch
from tests.cluster.tools import debian
from tests.cluster.tools.parts import BUILD_PARTS, locate_part

_USER = 1000
_DEFAULT = (
    *("chown", "dac_override", "fowner", "fsetid", "kill", "setgid", "setuid", "setpcap", "net_bind_service"),
    *("net_raw", "sys_chroot", "mknod", "audit_write", "setfcap"),
)
"""Capabilities of a container (source: containerd's `defaultUnixCaps`)."""
_MAPPERS = {"newuidmap": 7, "newgidmap": 6}
"""Programs that map users, each with the number of its capability, which its file has in the image."""
BUILDER = "kaigen.test/buildkit:1"
"""The image of rootless BuildKit on a real node. Its own image cannot be pulled."""

_PACKAGES = "git,uidmap,runc,ca-certificates"
_VARIABLES = {
    "HOME": "/home/user",
    "USER": "user",
    "XDG_RUNTIME_DIR": "/run/user/1000",
    "TMPDIR": "/home/user/.local/tmp",
}
"""Variables of the image (source: the stage `rootless` of BuildKit's Dockerfile)."""
_SCRIPT = """\
set -e
mount --make-rprivate /
for file in passwd subuid subgid; do
    [ -e /etc/$file ] || touch /etc/$file
    mount --bind "$ROOT/etc/$file" /etc/$file
done
mkdir -p /home /run/user
mount -t tmpfs -o mode=755 tmpfs /home
mount -t tmpfs -o mode=755 tmpfs /run/user
mkdir -p /home/user/.local/share/buildkit /home/user/.local/tmp /run/user/1000
mount --bind "$ROOT/state" /home/user/.local/share/buildkit
chown 1000:1000 /home/user /home/user/.local /home/user/.local/* /home/user/.local/share/buildkit /run/user/1000
exec setpriv --reuid 1000 --regid 1000 --clear-groups --inh-caps=-all "--bounding-set=$CAPABILITIES" "$@"
"""


class RootlessMachine:
    """The file system of the builder's container.

    Attributes:
        root: folder with its files.
    """

    def __init__(self, root: Path) -> None:
        """Create the files.

        Args:
            root: a folder that does not exist yet.

        Raises:
            ToolsMissing: a program is missing.
        """
        debian.install("runc", "newuidmap", "nsenter")
        self.root = root
        for name in ("etc", "bin", "state"):
            (root / name).mkdir(parents=True)
        (root / "etc/passwd").write_text(f"root:x:0:0::/root:/bin/sh\nuser:x:{_USER}:{_USER}::/home/user:/bin/sh\n")
        for name in ("subuid", "subgid"):
            (root / "etc" / name).write_text("user:100000:65536\n")
        for name in ("buildctl", "buildkitd", "rootlesskit"):
            shutil.copy(locate_part(name), root / "bin" / name)
        for name in ("runc", *_MAPPERS):
            program = shutil.which(name)
            assert program is not None
            shutil.copy(program, root / "bin" / name)
        for name, capability in _MAPPERS.items():
            _with_capability(root / "bin" / name, capability)
        shutil.copy(_daemonless(), root / "bin/buildctl-daemonless.sh")
        (root / "bin/buildctl-daemonless.sh").chmod(0o755)

    def run(
        self, command: Sequence[str], variables: Mapping[str, str], timeout: float = 300
    ) -> subprocess.CompletedProcess[str]:
        """Run a command of the container, and end everything that it started.

        Args:
            command: the command with its arguments.
            variables: its environment besides that of the image.
            timeout: seconds.
        """
        image = {"PATH": f"{self.root / 'bin'}:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", **_VARIABLES}
        own = {"ROOT": str(self.root), "CAPABILITIES": ",".join(("-all", *(f"+{name}" for name in _DEFAULT)))}
        unshare = ["unshare", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc"]
        return subprocess.run(
            [*unshare, "sh", "-c", _SCRIPT, "container", *command],
            env={**image, **own, **variables},
            capture_output=True,
            text=True,
            timeout=timeout,
            check=False,
        )


def _daemonless() -> Path:
    """Return the script of the image that starts BuildKit for one build: a file of BuildKit's module."""
    (part,) = BUILD_PARTS
    done = subprocess.run(
        ["go", "mod", "download", "-json", f"{part.module}@{part.version}"],
        cwd=part.folder,
        env=os.environ | {"GOWORK": "off"},
        capture_output=True,
        check=True,
    )
    return Path(json.loads(done.stdout)["Dir"], "examples/buildctl-daemonless/buildctl-daemonless.sh")


def builder_image() -> Path:
    """Return the archive of an image with BuildKit, made as BuildKit's own Dockerfile makes it, from Debian's packages.

    Raises:
        ImageFailed: it could not be built.
        ToolsMissing: a program is missing.
    """
    (part,) = BUILD_PARTS
    script = Path(__file__).read_bytes()
    digest = hashlib.sha256(part.digest.encode() + script).hexdigest()[:16]
    return kept(f"buildkit-{digest}.tar", _make_builder)


def _make_builder(archive: Path) -> None:
    say(f"{BUILDER}: making it from Debian's packages (about 2 min)")
    with scratch() as folder:
        root = folder / "root"
        run(["debootstrap", "--variant=minbase", f"--include={_PACKAGES}", "trixie", str(root)])
        with (root / "etc/passwd").open("a") as accounts:
            accounts.write(f"user:x:{_USER}:{_USER}::/home/user:/bin/sh\n")
        for name in ("subuid", "subgid"):
            (root / "etc" / name).write_text("user:100000:65536\n")
        for name in ("home/user/.local/share/buildkit", "home/user/.local/tmp", "run/user/1000"):
            (root / name).mkdir(parents=True)
        for path in (root / "home/user", *(root / "home/user").rglob("*"), root / "run/user/1000"):
            os.chown(path, _USER, _USER)
        for name in ("buildctl", "buildkitd", "rootlesskit"):
            shutil.copy(locate_part(name), root / "usr/bin" / name)
        for name, capability in _MAPPERS.items():
            _with_capability(root / "usr/bin" / name, capability)
        shutil.copy(_daemonless(), root / "usr/bin/buildctl-daemonless.sh")
        (root / "usr/bin/buildctl-daemonless.sh").chmod(0o755)
        tree = folder / "root.tar"
        options = ["--numeric-owner", "--xattrs", "--xattrs-include=security.capability"]
        run(["tar", *options, "-C", str(root), "-cf", str(tree), "."])
        changes = [f"--change=ENV {name}={value}" for name, value in _VARIABLES.items()]
        changes += [f"--change=USER {_USER}:{_USER}", '--change=ENTRYPOINT ["rootlesskit", "buildkitd"]']
        run(["podman", "import", *changes, str(tree), BUILDER])
        run(["buildah", "push", BUILDER, f"docker-archive:{archive}:{BUILDER}"])
        run(["buildah", "rmi", "--force", BUILDER])


def _with_capability(program: Path, number: int) -> None:
    """Give a program a capability by its file, in place of the permission to run as root."""
    program.chmod(0o755)
    entry = struct.pack("<5I", 0x02000001, 1 << number, 0, 0, 0)
    os.setxattr(program, "security.capability", entry)
