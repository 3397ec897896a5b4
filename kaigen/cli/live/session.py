"""The cluster, the namespace and the output of one live command, the progress of its transfers, and its options."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import cached_property
from time import monotonic
from typing import TYPE_CHECKING, Any

import click

from kaigen.cli.console import Console, TerminalLine, is_terminal, table
from kaigen.cli.live.flavor import Flavor
from kaigen.cli.options import address_options, read_config
from kaigen.diagnostics.errors import CheckFailed
from kaigen.system.lazy_import import lazy_imports

with lazy_imports():
    import json

    from kaigen.cluster import connect as cluster_connect
    from kaigen.ops import build as ops_build
    from kaigen.ops import helper as ops_helper
    from kaigen.ops import jobs as ops_jobs
    from kaigen.yaml import dump as yaml_dump

if TYPE_CHECKING:
    from kaigen.cluster.client import Cluster
    from kaigen.config.settings import Config
    from kaigen.kubernetes.manifest import Manifest
    from kaigen.ops.build import Claim
    from kaigen.system.progress import Progress


LINE_S = 10.0
"""Seconds between two lines where there is no terminal."""
_BAR = 16
"""Characters of a full bar."""


@contextmanager
def transfer_line(console: Console) -> Iterator[Progress | None]:
    """Yield the function that receives the bytes of a transfer; None with `--quiet`."""
    if console.verbosity < 0:
        yield None
        return
    if not is_terminal():
        yield _plain(console)
        return
    line = TerminalLine()
    try:
        yield _reporter(line.show, line.clear, bar=True)
    finally:
        line.clear()


def _plain(console: Console) -> Progress:
    due = monotonic() + LINE_S

    def show(text: str) -> None:
        nonlocal due
        if monotonic() >= due:
            due = monotonic() + LINE_S
            console.say(text)

    return _reporter(show, lambda: None, bar=False)


def _reporter(show: Callable[[str], None], clear: Callable[[], None], *, bar: bool) -> Progress:
    """Return the function that receives the bytes of a transfer.

    Args:
        show: shows a text.
        clear: removes it at the end, before the next line is printed.
        bar: whether a bar is drawn.
    """
    start = monotonic()

    def report(what: str, done: int, total: int) -> None:
        if done >= total:
            clear()
            return
        rate = done / max(monotonic() - start, 0.001)
        filled = _BAR * done // max(total, 1)
        state = f"[{'#' * filled}{'.' * (_BAR - filled)}]" if bar else f"{100 * done // max(total, 1)}%"
        left = f", {_time((total - done) / rate)} left" if rate and done < total else ""
        show(f"{what} {state} {size_text(done)} of {size_text(total)}, {size_text(int(rate))}/s{left}")

    return report


def _time(seconds: float) -> str:
    minutes, rest = divmod(int(seconds + 0.5), 60)
    return f"{minutes} min {rest} s" if minutes else f"{rest} s"


Function = Callable[..., Any]

_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400}
_MOUNT = "/artifacts"


class Session:
    """One live command.

    Attributes:
        console: where it prints.
        flavor: names and defaults.
        namespaces: the namespace that lists read; empty for all.
    """

    def __init__(
        self,
        console: Console,
        flavor: Flavor,
        *,
        namespace: str = "",
        kubeconfig: str = "",
        context: str = "",
        everywhere: bool = False,
    ) -> None:
        cluster_connect.require_extra()
        self.console = console
        self.flavor = flavor
        self._given = namespace
        self._everywhere = everywhere or (flavor.lists_all and not namespace)
        self._address = (context, kubeconfig)

    @cached_property
    def cluster(self) -> Cluster:
        """The cluster."""
        found = cluster_connect.connect(*self._address)
        found.say = self.console.say
        return found

    @cached_property
    def config(self) -> Config:
        """The settings of the repository in the working folder, or the defaults."""
        return read_config()

    @property
    def namespace(self) -> str:
        """The namespace of a command about one Job."""
        return self._given or self.flavor.namespace or self.cluster.namespace

    @property
    def namespaces(self) -> str:
        """The namespace of a list; empty for all."""
        return "" if self._everywhere else self.namespace

    def command(self, *words: str, program: str = "", namespace: str = "") -> str:
        """Return a command for the same cluster and namespace.

        Args:
            words: its arguments.
            program: another program than the one that the user called.
            namespace: another namespace than the one that the user gave.
        """
        context, kubeconfig = self._address
        options = (("-n", namespace or self._given), ("--context", context), ("--kubeconfig", kubeconfig))
        named = (program or self.flavor.program).split()
        return shlex.join([*named, *words, *(w for pair in options if pair[1] for w in pair)])

    def name_of(self, job: Manifest) -> str:
        """Return the name by which a user finds a Job: that of its app, or its own if the app may have others."""
        own = str(job["metadata"]["name"])
        app = ops_jobs.row_of(job).name
        return app if own == self.flavor.job(app) else own

    def job(self, name: str) -> Manifest:
        """Return a Job by the name that the user typed.

        Raises:
            CheckFailed: there is none.
        """
        found = self.find_job(name)
        if found is None:
            hint = f"list the Jobs of the namespace: {self.command('list')}"
            raise CheckFailed(f'Job "{name}" not found in namespace {self.namespace}', hint=hint)
        return found

    def find_job(self, name: str) -> Manifest | None:
        """Return a Job by the name that the user typed; None if there is none."""
        return ops_jobs.find_run(self.cluster, self.namespace, name, self.flavor.job(name))

    def volume(self, name: str, pvc_name: str = "", mount: str = "") -> Claim:
        """Return the volume of a Job, which may not exist yet.

        Args:
            name: the name that the user typed.
            pvc_name: name of the claim; empty for that of the Job.
            mount: where it is mounted; empty for where the Job mounts it.
        """
        own = f"artifacts-{name}"
        found = self.find_job(name)
        if found is None and not pvc_name:
            if self.cluster.find(ops_helper.CLAIM, own, self.namespace) is None:
                self._check_expiry(own)
                self.job(name)
            return ops_build.Claim(own, mount or _MOUNT)
        mounts = ops_build.mounts_of(found) if found else {}
        if not pvc_name and not mounts:
            raise CheckFailed(f"Job {name} has no volume", hint="name one with --pvc-name")
        claim = pvc_name or (own if own in mounts else next(iter(mounts)))
        return ops_build.Claim(claim, mount or mounts.get(claim, _MOUNT))

    def existing(self, claim: Claim, name: str) -> None:
        """Check that the volume of a Job exists.

        Args:
            claim: the volume.
            name: the name of the Job that the user typed.

        Raises:
            CheckFailed: it does not, or it is being deleted.
        """
        try:
            ops_helper.existing_claim(self.cluster, self.namespace, claim.name)
        except CheckFailed:
            self._check_expiry(claim.name)
            job = self.find_job(name)
            if job is not None and (lost := ops_jobs.lost_volume(self.cluster, job, claim.name)):
                raise CheckFailed(lost) from None
            raise

    def _check_expiry(self, claim: str) -> None:
        """Raise an error if the events of a volume say that it expired."""
        if expired := ops_jobs.expiry_of_volume(self.cluster, self.namespace, claim):
            raise CheckFailed(expired)

    def print_objects(self, objects: Sequence[Manifest], output: str, *, single: bool = False) -> None:
        """Print objects as JSON, YAML or names."""
        if output == "name":
            for item in objects:
                self.console.out(f"job.batch/{item['metadata']['name']}")
            return
        whole = objects[0] if single else dict(apiVersion="v1", kind="List", items=list(objects))
        if output == "json":
            self.console.out(json.dumps(whole, indent=2, ensure_ascii=False))
        else:
            self.console.write(yaml_dump.dump(whole))

    def print_table(self, rows: Sequence[Sequence[str]]) -> None:
        """Print a table; the first row is the header."""
        for line in table(rows):
            self.console.out(line)


def cluster_options(function: Function) -> Function:
    """`-n`, `--context` and `--kubeconfig`."""
    return click.option(
        "-n", "--namespace", default="", metavar="NAME", help="Namespace. Default: that of the context."
    )(address_options(function))


def all_option(function: Function) -> Function:
    """`-A`."""
    return click.option("-A", "--all-namespaces", "everywhere", is_flag=True, help="All namespaces.")(function)


def lifetime(_context: click.Context, option: click.Parameter, value: str) -> str:
    """Return a lifetime as seconds or `never`; empty when none is given."""
    if value in ("", "never") or value.isdecimal():
        return value
    if not re.fullmatch(r"([0-9]+[smhd])+", value):
        raise click.BadParameter("must be seconds, a duration such as 90s or 2h, or `never`", param=option)
    parts = re.findall(r"([0-9]+)([smhd])", value)
    return str(sum(int(number) * _UNITS[unit] for number, unit in parts))


def command_words(_context: click.Context, option: click.Parameter, value: str) -> list[str]:
    """Return the words of a command line, split as a shell does; no shell runs it."""
    try:
        return shlex.split(value)
    except ValueError as error:
        raise click.BadParameter(str(error), param=option) from None


def age(moment: datetime | None, now: datetime | None = None) -> str:
    """Return how long ago something was, as kubectl prints it."""
    if moment is None:
        return "<unknown>"
    seconds = max(0, int(((now or datetime.now(UTC)) - moment).total_seconds()))
    if seconds < 120:
        return f"{seconds}s"
    minutes, hours, days = seconds // 60, seconds // 3600, seconds // 86400
    if minutes < 10 and seconds % 60:
        return f"{minutes}m{seconds % 60}s"
    if hours < 3:
        return f"{minutes}m"
    if hours < 8 and minutes % 60:
        return f"{hours}h{minutes % 60}m"
    return f"{hours}h" if hours < 48 else f"{days}d"


def size_text(count: int) -> str:
    """Return a number of bytes with a unit."""
    size = float(count)
    for unit in ("B", "KiB", "MiB", "GiB"):
        if size < 1024 or unit == "GiB":
            break
        size /= 1024
    return f"{count} B" if unit == "B" else f"{size:.1f} {unit}"
