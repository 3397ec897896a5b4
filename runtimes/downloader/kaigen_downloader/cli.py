"""The command line: parses, runs, prints, and returns an exit code for every outcome."""

from __future__ import annotations

import argparse
import os
import re
import signal
import sys
import traceback
from collections.abc import Callable, Mapping, Sequence
from types import FrameType
from typing import TYPE_CHECKING, NoReturn, TypeVar

from kaigen_downloader import __version__
from kaigen_downloader.errors import BadInput, Failure
from kaigen_downloader.text import OBJECT_NAME, hide, parse_duration, parse_size, redact, say

if TYPE_CHECKING:
    from kaigen_downloader.remote import Source
    from kaigen_downloader.s3 import Address

DEFAULT_ENDPOINT = "https://huggingface.co"
_LEAST_PART = 4096
_MOST_CONNECTIONS = 64
_SHA256 = re.compile(r"[0-9a-f]{64}")

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


def _word(text: str) -> str:
    if not text or len(text) > 256 or not text.isprintable() or " " in text:
        raise ValueError("must be one word")
    return text


def _object_name(text: str) -> str:
    if not OBJECT_NAME.fullmatch(text):
        raise ValueError(f"not a valid name of an object: {text!r}")
    return text


def _number(least: int, most: int) -> Callable[[str], int]:
    def parse(text: str) -> int:
        if not text.isdecimal() or not least <= int(text) <= most:
            raise ValueError(f"not a number from {least} to {most}: {text!r}")
        return int(text)

    return parse


def _part_size(text: str) -> int:
    count = parse_size(text)
    if count < _LEAST_PART:
        raise ValueError(f"less than {_LEAST_PART} bytes: {text!r}")
    return count


def _pair(text: str) -> tuple[str, str]:
    path, _, value = text.partition("=")
    if not path or not value:
        raise ValueError("must be PATH=…")
    return path, value


def _add_common(source: argparse.ArgumentParser) -> None:
    """Add the options of every source."""
    source.add_argument("--dest", required=True, metavar="DIR", help="the folder, or s3://BUCKET[/PREFIX]")
    source.add_argument("--s3-endpoint", metavar="URL", help="the server of the bucket (Amazon's)")
    source.add_argument("--s3-region", type=_argument(_word), metavar="REGION", help="of the bucket")
    source.add_argument(
        "--s3-addressing",
        choices=("path", "virtual"),
        help="where the bucket's name goes in a URL (path if --s3-endpoint is given)",
    )
    source.add_argument(
        "--identity", required=True, type=_argument(_word), metavar="HEX", help="for the marker"
    )
    source.add_argument(
        "--keep-revisions",
        type=_argument(_number(0, 100)),
        metavar="COUNT",
        help="DIR is named by its identity, next to other revisions of the model: remove all but so many of them, "
        "except those that pods read",
    )
    source.add_argument("--facts", metavar="CONFIGMAP", help="write what was measured to this ConfigMap")
    source.add_argument("--connections", default=4, type=_argument(_number(1, _MOST_CONNECTIONS)), help="(4)")
    source.add_argument(
        "--part-size", default=16 << 20, type=_argument(_part_size), help="bytes a request (16Mi)"
    )
    source.add_argument("--timeout", default=60.0, type=_argument(parse_duration), help="seconds a read (60)")


def parser() -> argparse.ArgumentParser:
    """Return the parser of the command line."""
    top = _Parser(
        prog="kaigen-downloader",
        description="Brings a model onto a volume or into a bucket and proves it complete.",
    )
    top.add_argument("--version", action="version", version=__version__)
    commands = top.add_subparsers(dest="command", required=True)

    fetch = commands.add_parser("fetch", help="download a model and mark it complete")
    sources = fetch.add_subparsers(dest="source", required=True)
    hub = sources.add_parser("huggingface", help="from a Hugging Face Hub (HF_TOKEN, HF_ENDPOINT)")
    hub.add_argument("--repo", required=True, type=_argument(_word), help="OWNER/NAME")
    hub.add_argument("--revision", default="main", type=_argument(_word), help="branch, tag or commit (main)")
    hub.add_argument(
        "--include", action="append", default=[], metavar="GLOB", help="only these files; repeatable"
    )
    hub.add_argument("--exclude", action="append", default=[], metavar="GLOB", help="not these; repeatable")
    hub.add_argument("--endpoint", help=f"the Hub ({DEFAULT_ENDPOINT})")

    web = sources.add_parser("http", help="from web servers")
    web.add_argument(
        "--file", action="append", default=[], type=_argument(_pair), metavar="PATH=URL", help="repeatable"
    )
    web.add_argument(
        "--file-from",
        action="append",
        default=[],
        type=_argument(_pair),
        metavar="PATH=VARIABLE",
        help="its URL is in an environment variable; repeatable",
    )
    web.add_argument(
        "--sha256", action="append", default=[], type=_argument(_pair), metavar="PATH=HEX", help="repeatable"
    )
    for source in (hub, web):
        _add_common(source)

    wait = commands.add_parser("wait", help="block until the folder is marked complete")
    wait.add_argument("--dest", required=True, metavar="DIR")
    wait.add_argument("--identity", required=True, type=_argument(_word), metavar="HEX")
    wait.add_argument("--timeout", default=7200.0, type=_argument(parse_duration), help="(2h)")

    wait_job = commands.add_parser("wait-job", help="block until a Job or JobSet has completed")
    wait_job.add_argument("--name", required=True, type=_argument(_object_name))
    wait_job.add_argument("--kind", choices=("Job", "JobSet"), default="Job", help="(Job)")
    wait_job.add_argument("--timeout", default=86400.0, type=_argument(parse_duration), help="(24h)")

    verify = commands.add_parser("verify", help="compare the folder with its marker")
    verify.add_argument("--dest", required=True, metavar="DIR")
    verify.add_argument("--identity", type=_argument(_word), metavar="HEX")
    verify.add_argument("--full", action="store_true", help="compute every sha256 too")
    return top


def _dest(arguments: argparse.Namespace) -> str | Address:
    """Return the destination: a folder, or a location in a bucket."""
    options = {
        name: getattr(arguments, f"s3_{name}") or None for name in ("endpoint", "region", "addressing")
    }
    if _in_bucket(arguments.dest):
        from kaigen_downloader.s3 import address

        return address(arguments.dest, **options)
    given = [name for name, value in options.items() if value is not None]
    if given:
        raise BadInput(f"--s3-{given[0]} is for a bucket, and --dest {arguments.dest} is a folder")
    return str(arguments.dest)


def _in_bucket(dest: str) -> bool:
    return dest.startswith("s3:")


def _folder(arguments: argparse.Namespace) -> str:
    """Return the folder of `wait` and `verify`."""
    if _in_bucket(arguments.dest):
        raise BadInput(f"{arguments.command} needs a folder: mount {arguments.dest} and give the mount path")
    return str(arguments.dest)


def _setting(env: Mapping[str, str], name: str, default: float) -> float:
    text = env.get(name, "").strip()
    if not text:
        return default
    try:
        return parse_duration(text)
    except ValueError as error:
        raise BadInput(f"{name}: {error}") from None


def _hub(arguments: argparse.Namespace, env: Mapping[str, str]) -> tuple[Source, str]:
    """Return a repository of the Hub and its token, if any."""
    from kaigen_downloader.hub import Repository

    token = env.get("HF_TOKEN", "").strip()
    hide(token)
    if not token.isascii() or not token.isprintable() or " " in token:
        raise BadInput(
            "HF_TOKEN is not a valid token: it contains spaces, line ends or other invalid characters"
        )
    endpoint = arguments.endpoint or env.get("HF_ENDPOINT", "").strip() or DEFAULT_ENDPOINT
    repository = Repository(
        endpoint=endpoint.rstrip("/"),
        repo=arguments.repo,
        revision=arguments.revision,
        include=tuple(arguments.include),
        exclude=tuple(arguments.exclude),
    )
    return repository, token


def _web(arguments: argparse.Namespace, env: Mapping[str, str]) -> Source:
    """Return the files of the command line with their URLs."""
    from kaigen_downloader.web import Web, WebFile

    addresses = list(arguments.file)
    for path, variable in arguments.file_from:
        url = env.get(variable, "").strip()
        hide(url)
        if not url:
            raise BadInput(f"{path}: the variable {variable} has no URL")
        addresses.append((path, url))
    if not addresses:
        raise BadInput("nothing to fetch: add --file or --file-from")
    sums = dict(arguments.sha256)
    strange = [path for path in sums if path not in dict(addresses)]
    strange += [path for path, text in sums.items() if not _SHA256.fullmatch(text)]
    if strange:
        raise BadInput(f"--sha256 {strange[0]}: no such file, or not 64 digits of hex")
    return Web(tuple(WebFile(path, url, sums.get(path)) for path, url in addresses))


def _fetch(arguments: argparse.Namespace, env: Mapping[str, str]) -> int:
    from kaigen_downloader import facts, pods
    from kaigen_downloader.fetch import Order, fetch
    from kaigen_downloader.retry import Patience

    source, token = (_web(arguments, env), "") if arguments.source == "http" else _hub(arguments, env)
    if arguments.facts is not None:
        facts.check_name(arguments.facts)
    patience = Patience()
    order = Order(
        source=source,
        dest=_dest(arguments),
        identity=arguments.identity,
        token=token or None,
        connections=arguments.connections,
        part_size=arguments.part_size,
        timeout=arguments.timeout,
        patience=Patience(
            attempts=max(1, int(_setting(env, "KAIGEN_ATTEMPTS", patience.attempts))),
            base=_setting(env, "KAIGEN_BACKOFF", patience.base),
        ),
        progress=_setting(env, "KAIGEN_PROGRESS", 10.0),
        keep=arguments.keep_revisions,
        readers=lambda names: pods.readers(names, env),
    )
    marker = fetch(order)
    if arguments.facts is not None:
        try:
            say(facts.write(arguments.facts, marker, env))
        except facts.FactsNotWritten as error:
            say(f"warning: facts not written: {error}")
    return 0


def _wait(arguments: argparse.Namespace, env: Mapping[str, str]) -> int:
    from kaigen_downloader.watch import wait

    wait(
        _folder(arguments),
        arguments.identity,
        timeout=arguments.timeout,
        every=_setting(env, "KAIGEN_PROGRESS", 30.0),
        poll=_setting(env, "KAIGEN_POLL", 2.0),
    )
    return 0


def _wait_job(arguments: argparse.Namespace, env: Mapping[str, str]) -> int:
    from kaigen_downloader.job import KINDS, wait_job

    wait_job(
        KINDS[arguments.kind],
        arguments.name,
        env,
        timeout=arguments.timeout,
        every=_setting(env, "KAIGEN_PROGRESS", 30.0),
        poll=_setting(env, "KAIGEN_POLL", 5.0),
    )
    return 0


def _verify(arguments: argparse.Namespace, env: Mapping[str, str]) -> int:
    from kaigen_downloader.watch import verify

    report = verify(_folder(arguments), arguments.identity, full=arguments.full)
    for line in report.lines():
        print(line)
    return 0 if report.good else 1


def main(argv: Sequence[str], env: Mapping[str, str]) -> int:
    """Run one command.

    Args:
        argv: the arguments without the program's name.
        env: the environment.

    Returns:
        The exit code.
    """
    commands = {"fetch": _fetch, "wait": _wait, "wait-job": _wait_job, "verify": _verify}
    try:
        arguments = parser().parse_args(argv)
        return commands[arguments.command](arguments, env)
    except Failure as error:
        say(f"error: {error}")
        return error.code
    except Exception:
        sys.stderr.write(redact(traceback.format_exc()))
        say("error: this is a bug in kaigen-downloader")
        return 1


def _end(number: int, _: FrameType | None) -> NoReturn:
    # What is on the disk is at any moment such that the next run goes on from it: nothing to tidy up.
    os.write(2, b"terminated; the next run goes on from what is here\n")
    os._exit(128 + number)


def run() -> NoReturn:
    """Run the program."""
    os.umask(0o022)  # pods of other users read the model
    signal.signal(signal.SIGTERM, _end)
    signal.signal(signal.SIGINT, _end)
    code = main(sys.argv[1:], os.environ)
    sys.stdout.flush()
    # Threads that sit in a connect do not keep the process.
    os._exit(code)
