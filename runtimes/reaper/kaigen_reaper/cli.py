"""The command line: parses, runs, prints, and returns an exit code for every outcome."""

from __future__ import annotations

import argparse
import contextlib
import os
import re
import signal
import sys
import threading
import traceback
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from types import FrameType
from typing import NoReturn, TypeVar

from kaigen_reaper import __version__
from kaigen_reaper.claim import claim, read_volume
from kaigen_reaper.cluster import Api
from kaigen_reaper.errors import BadInput, Failure
from kaigen_reaper.events import Events
from kaigen_reaper.index import Index
from kaigen_reaper.lease import Lease
from kaigen_reaper.metrics import Metrics, serve
from kaigen_reaper.reap import Options, Reaper
from kaigen_reaper.scale import Jupyter, Target, Watch, scale, watch_idle
from kaigen_reaper.service import Service, run_once, scopes
from kaigen_reaper.text import parse_duration, say

_TERMINATION_LOG = "/dev/termination-log"

T = TypeVar("T")


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise BadInput(f"{message} (see {self.prog} --help)")


def _argument(parse: Callable[[str], T]) -> Callable[[str], T]:
    """Make argparse print the error of one of our parsers."""

    def convert(text: str) -> T:
        try:
            return parse(text)
        except ValueError as error:
            raise argparse.ArgumentTypeError(str(error)) from None

    return convert


def parser() -> argparse.ArgumentParser:
    """Return the parser of the command line."""
    top = _Parser(
        prog="kaigen-reaper",
        description="Deletes the finished pods and the expired volumes of kaigen's Jobs, and stops idle Notebooks.",
    )
    top.add_argument("--version", action="version", version=__version__)
    commands = top.add_subparsers(dest="command", required=True)
    create = commands.add_parser("claim", help="create a volume that expires, owned by a ServiceAccount of its app")
    create.add_argument("--owner", required=True, metavar="NAME", help="the ServiceAccount")
    create.add_argument("--volume", required=True, metavar="JSON", help="the PersistentVolumeClaim")
    create.add_argument(
        "--timeout", default=600.0, type=_argument(parse_duration), help="keep trying for so long (10m)"
    )
    _add_run(commands.add_parser("run", help="delete finished pods and expired volumes"))
    change = commands.add_parser("scale", help="set the replicas of a StatefulSet, once")
    _add_target(change)
    change.add_argument("--replicas", required=True, type=int, choices=(0, 1), help="their number")
    change.add_argument(
        "--timeout", default=600.0, type=_argument(parse_duration), help="keep trying for so long (10m)"
    )
    idle = commands.add_parser("idle", help="stop the pod of a StatefulSet when its Jupyter server is idle")
    _add_target(idle)
    idle.add_argument(
        "--after", required=True, type=_argument(parse_duration), help="time without activity, such as 2h"
    )
    idle.add_argument("--port", default=8888, type=_argument(_port), help="of the server, on loopback (8888)")
    idle.add_argument("--token-file", required=True, type=Path, help="file with the token of the server")
    return top


def _add_target(command: argparse.ArgumentParser) -> None:
    command.add_argument("--name", required=True, help="of the StatefulSet, in the namespace of the pod")
    command.add_argument("--state", required=True, metavar="NAME", help="ConfigMap that says why it has no pod")


def _add_run(command: argparse.ArgumentParser) -> None:
    where = command.add_mutually_exclusive_group()
    where.add_argument(
        "--namespace",
        action="append",
        default=[],
        type=_argument(_namespace),
        help="of Jobs and volumes (that of the pod); repeatable",
    )
    where.add_argument("--all-namespaces", action="store_true", help="of the cluster; needs a ClusterRole")
    command.add_argument("--once", action="store_true", help="look at everything once, then end")
    command.add_argument("--dry-run", action="store_true", help="only print what would be deleted")
    command.add_argument("--rate", default=20.0, type=_argument(_positive), help="deletions a second, at most (20)")
    command.add_argument(
        "--resync",
        default=600.0,
        type=_argument(parse_duration),
        help="look at all finished pods so often; those of a Job also when its time has come (10m)",
    )
    command.add_argument("--page", default=250, type=_argument(_page), help="objects a list request (250)")
    command.add_argument("--lease", metavar="NAME", help="a Lease; only the process that has it deletes")
    command.add_argument("--port", type=_argument(_port), help="of metrics and health (none)")


def _namespace(text: str) -> str:
    if not re.fullmatch(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?", text):
        raise ValueError(f"not a valid name of a namespace: {text!r}")
    return text


def _positive(text: str) -> float:
    number = float(text)
    if not 0 < number <= 10000:
        raise ValueError(f"not a number above zero: {text!r}")
    return number


def _page(text: str) -> int:
    if not text.isdecimal() or not 1 <= int(text) <= 5000:
        raise ValueError(f"not a number from 1 to 5000: {text!r}")
    return int(text)


def _port(text: str) -> int:
    if not text.isdecimal() or int(text) > 65535:
        raise ValueError(f"not a port: {text!r}")
    return int(text)


def _setting(env: Mapping[str, str], name: str, default: float) -> float:
    text = env.get(name, "").strip()
    try:
        return float(text) if text else default
    except ValueError:
        raise BadInput(f"{name}: not a number of seconds: {text!r}") from None


def _claim(arguments: argparse.Namespace, env: Mapping[str, str]) -> int:
    volume = read_volume(arguments.volume)
    say(claim(volume, arguments.owner, env, timeout=arguments.timeout, poll=_setting(env, "KAIGEN_POLL", 2.0)))
    return 0


def _scale(arguments: argparse.Namespace, env: Mapping[str, str]) -> int:
    with contextlib.closing(Api(env)) as api:
        poll = _setting(env, "KAIGEN_POLL", 2.0)
        target = Target(api, arguments.name, arguments.state)
        say(scale(target, arguments.replicas, timeout=arguments.timeout, poll=poll))
    return 0


def _idle(arguments: argparse.Namespace, env: Mapping[str, str]) -> int:
    stop = threading.Event()
    watch = Watch(Jupyter(arguments.port, arguments.token_file), arguments.after)
    with contextlib.closing(Api(env)) as api, _stopping(stop):
        watch_idle(Target(api, arguments.name, arguments.state), watch, arguments.after, stop)
    return 0


def _run(arguments: argparse.Namespace, env: Mapping[str, str]) -> int:
    metrics = Metrics()
    api = Api(env, lambda method, status: metrics.add("requests_total", method=method, status=status))
    namespaces = [""] if arguments.all_namespaces else arguments.namespace or [api.namespace]
    instance = env.get("HOSTNAME") or "kaigen-reaper"
    options = Options(
        dry_run=arguments.dry_run,
        rate=arguments.rate,
        page=arguments.page,
        retry=_setting(env, "KAIGEN_RETRY", 30.0),
        recheck=_setting(env, "KAIGEN_RECHECK", 60.0),
    )
    index = Index()
    events = Events(api, metrics, instance)
    found = scopes(api, index, namespaces, page=arguments.page, metrics=metrics)
    with contextlib.closing(api):
        if arguments.once:
            run_once(found, Reaper(api, index, options, metrics, events), index, metrics)
            return 0
        lease = Lease(api, arguments.lease, f"{instance}_{uuid.uuid4().hex[:8]}") if arguments.lease else None
        stop = threading.Event()

        def may_delete() -> bool:
            return not stop.is_set() and (lease is None or lease.is_leader)

        reaper = Reaper(api, index, options, metrics, events, may_delete)
        service = Service(found, reaper, index, metrics, now=api.now, is_leader=may_delete, resync=arguments.resync)
        with _stopping(stop, index.wake):
            if arguments.port is not None:
                say(f"metrics and health on port {serve(metrics, arguments.port, service.refresh)}")
            if lease is not None:
                threading.Thread(target=lease.run, daemon=True).start()
            service.run(stop)
            if lease is not None:
                lease.release()
    say("ended")
    return 0


@contextlib.contextmanager
def _stopping(stop: threading.Event, wake: Callable[[], None] = lambda: None) -> Iterator[None]:
    """Set an event on SIGTERM and SIGINT, and wake up what waits."""

    def end(number: int, _: FrameType | None) -> None:
        stop.set()
        # The signal may have interrupted the thread that has the lock.
        threading.Thread(target=wake, daemon=True).start()

    old = {each: signal.signal(each, end) for each in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield
    finally:
        for each, handler in old.items():
            signal.signal(each, handler)


def main(argv: Sequence[str], env: Mapping[str, str]) -> int:
    """Run one command.

    Args:
        argv: the arguments without the program's name.
        env: the environment.

    Returns:
        The exit code.
    """
    commands = {"claim": _claim, "idle": _idle, "run": _run, "scale": _scale}
    try:
        arguments = parser().parse_args(argv)
        return commands[arguments.command](arguments, env)
    except Failure as error:
        say(f"error: {error}")
        _note_end(f"error: {error}", env)
        return error.code
    except Exception as error:
        traceback.print_exc()
        message = f"error: this is a bug in kaigen-reaper: {type(error).__name__}: {error}"
        say(message)
        _note_end(message, env)
        return 1


def _note_end(message: str, env: Mapping[str, str]) -> None:
    """Write the termination message of the container, which `kubectl describe pod` shows."""
    with contextlib.suppress(OSError):
        # Outside a container the file does not exist, and must not be created.
        handle = os.open(env.get("KAIGEN_TERMINATION_LOG") or _TERMINATION_LOG, os.O_WRONLY | os.O_TRUNC)
        with os.fdopen(handle, "wb") as file:
            file.write(message.encode()[:4096])


def _end(number: int, _: FrameType | None) -> NoReturn:
    os.write(2, b"terminated\n")
    os._exit(128 + number)


def run() -> NoReturn:
    """Run the program."""
    signal.signal(signal.SIGTERM, _end)
    signal.signal(signal.SIGINT, _end)
    code = main(sys.argv[1:], os.environ)
    sys.stdout.flush()
    # Threads that sit in a request do not keep the process.
    os._exit(code)
