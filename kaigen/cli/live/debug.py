"""`debug`: a pod to look into the volume of a Job."""

from __future__ import annotations

import os
import sys
import time
from typing import TYPE_CHECKING, Any

import click

from kaigen.cli.console import Console
from kaigen.cli.live.flavor import Flavor
from kaigen.cli.live.session import Session, cluster_options
from kaigen.system.lazy_import import lazy_imports

if TYPE_CHECKING:
    from kaigen.ops.transfer import Mount

with lazy_imports():
    from kaigen.cluster import execution as cluster_execution
    from kaigen.ops import helper as ops_helper
    from kaigen.ops import terminal as ops_terminal


def commands(flavor: Flavor) -> list[click.Command]:
    """Return the command."""
    place = flavor.debug_mount or "the path that the Job mounts it at"

    @click.command(
        "debug",
        help=f"Run a pod that mounts the volume of a Job at {place}.\n\n"
        "Without a COMMAND, the pod runs until you press Ctrl-C; enter it with the printed kubectl command. With "
        "--exec, a shell in it is opened here; with a COMMAND, that runs, and its exit code is returned. The pod is "
        "deleted at the end, unless --keep is given.",
    )
    @click.argument("name", metavar="JOB")
    @click.argument("words", nargs=-1, metavar="[-- COMMAND...]")
    @cluster_options
    @click.option("--pvc-name", default="", metavar="NAME", help="Volume. Default: that of the Job.")
    @click.option("--pod-name", default="", metavar="NAME", help="Name of the pod. Default: debug-JOB-TIMESTAMP.")
    @click.option(
        "--image", default="", metavar="IMAGE", help="Image with a shell. Default: that of kaigen's downloader."
    )
    @click.option("--exec", "shell", is_flag=True, help="Open a shell.")
    @click.option("--keep", is_flag=True, help="Keep the pod, for at most 6 hours.")
    @click.pass_context
    def command(
        context: click.Context,
        /,
        name: str,
        words: tuple[str, ...],
        pvc_name: str,
        pod_name: str,
        image: str,
        shell: bool,
        keep: bool,
        **where: Any,
    ) -> None:
        console = context.ensure_object(Console)
        session = Session(console, flavor, **where)
        claim = session.volume(name, pvc_name, flavor.debug_mount)
        session.existing(claim, name)
        with ops_helper.mount_volume(
            session.cluster,
            session.namespace,
            claim,
            session.config,
            purpose=f"debug-{name}",
            image=image,
            name=pod_name or f"debug-{name}-{int(time.time())}",
            keep=keep,
            say=lambda text: console.say(text, level=1),
            warn=console.say,
        ) as mount:
            code = 0
            if words:
                code = _run(mount, list(words))
            elif shell:
                code = ops_terminal.shell(mount.cluster, mount.namespace, mount.pod)
            else:
                _offer(console, mount, claim.mount_path, keep=keep)
        if not keep:
            console.say(f"pod/{mount.pod} deleted")
        context.exit(code)

    return [command]


def _run(mount: Mount, words: list[str]) -> int:
    """Run a command with the output of this process, and return its exit code."""

    def write(stream: int, data: bytes) -> None:
        while data:
            data = data[os.write(stream, data) :]

    sys.stdout.flush()
    done = cluster_execution.run_command(
        mount.cluster,
        mount.namespace,
        mount.pod,
        words,
        stdout=lambda data: write(1, data),
        stderr=lambda data: write(2, data),
    )
    return done.exit_code


def _offer(console: Console, mount: Mount, folder: str, *, keep: bool) -> None:
    """Print how to enter the pod, and wait for Ctrl-C unless it is kept."""
    console.out(f"pod/{mount.pod} is ready; the volume is at {folder}")
    console.out(f"kubectl exec -it {mount.pod} -n {mount.namespace} -- sh")
    sys.stdout.flush()
    if keep:
        console.say(f"delete it with: kubectl delete pod {mount.pod} -n {mount.namespace}")
        return
    console.say("press Ctrl-C to delete the pod")
    try:
        ops_helper.wait_end(mount.cluster, mount.namespace, mount.pod)
    except KeyboardInterrupt:
        console.say(f"deleting pod/{mount.pod}")
