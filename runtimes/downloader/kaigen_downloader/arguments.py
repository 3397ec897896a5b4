"""The arguments of the command line."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import TYPE_CHECKING, NoReturn, TypeAlias, TypeVar

from kaigen_downloader import __version__
from kaigen_downloader.errors import BadInput
from kaigen_downloader.origins import DEFAULT_ENDPOINT
from kaigen_downloader.progress import STYLES
from kaigen_downloader.text import OBJECT_NAME, parse_duration, parse_size

if TYPE_CHECKING:
    from kaigen_downloader.locked import Locked

_LEAST_PART = 4096
_MOST_CONNECTIONS = 64

T = TypeVar("T")
_Commands: TypeAlias = "argparse._SubParsersAction[_Parser]"


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


def _days(text: str) -> float:
    """Return the seconds of a duration, or of a number of days such as `7d`."""
    number = text.removesuffix("d")
    if number != text and number.isdecimal() and 0 < int(number) <= 36500:
        return int(number) * 86400.0
    return parse_duration(text)


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


def _locked(text: str) -> Locked:
    from kaigen_downloader.locked import parse

    return parse(text)


def _add_globs(source: argparse.ArgumentParser) -> None:
    """Add the options that choose files."""
    source.add_argument("--include", action="append", default=[], metavar="GLOB", help="only these files; repeatable")
    source.add_argument("--exclude", action="append", default=[], metavar="GLOB", help="not these; repeatable")


def _add_skip_duplicates(source: argparse.ArgumentParser) -> None:
    source.add_argument(
        "--skip-duplicates",
        action="store_true",
        help="no weights in other formats, if there are safetensors files and no --include",
    )


def _add_common(source: argparse.ArgumentParser) -> None:
    """Add the options of every source."""
    source.add_argument(
        "--dest", required=True, metavar="DIR", help="the folder, or s3://BUCKET[/PREFIX], gs://…, or az://…"
    )
    source.add_argument("--s3-endpoint", metavar="URL", help="the server of the bucket (its cloud's, by the scheme)")
    source.add_argument("--s3-region", type=_argument(_word), metavar="REGION", help="of the bucket")
    source.add_argument(
        "--s3-addressing",
        choices=("path", "virtual"),
        help="where the bucket's name goes in a URL (path if --s3-endpoint is given)",
    )
    source.add_argument("--identity", required=True, type=_argument(_word), metavar="HEX", help="for the marker")
    source.add_argument(
        "--keep-revisions",
        type=_argument(_number(0, 100)),
        metavar="COUNT",
        help="DIR is named by its identity, next to other revisions of the model: remove all but so many of them, "
        "except those that pods read",
    )
    source.add_argument(
        "--derived",
        metavar="DIR",
        help="a folder for files that are made of these, named by their identity: of those next to it, remove the "
        "same as with --keep-revisions",
    )
    source.add_argument(
        "--signed-by",
        action="append",
        default=[],
        metavar="KEY",
        help="the files must have an OpenSSF signature of this public key, in base64 of DER; repeatable",
    )
    source.add_argument(
        "--signature", default="model.sig", metavar="PATH", help="the file with that signature (model.sig)"
    )
    source.add_argument("--facts", metavar="CONFIGMAP", help="write what was measured to this ConfigMap")
    source.add_argument("--connections", default=4, type=_argument(_number(1, _MOST_CONNECTIONS)), help="(4)")
    source.add_argument("--part-size", default=16 << 20, type=_argument(_part_size), help="bytes a request (16Mi)")
    source.add_argument(
        "--progress",
        choices=STYLES,
        default="auto",
        help="a bar, lines of JSON, or nothing (a bar on a terminal, and else JSON)",
    )
    source.add_argument(
        "--metrics-port",
        type=_argument(_number(1, 65535)),
        metavar="PORT",
        help="serve the progress to Prometheus on this port, at /metrics",
    )
    source.add_argument("--timeout", default=60.0, type=_argument(parse_duration), help="seconds a read (60)")
    source.add_argument(
        "--speed-limit",
        default=1024,
        type=_argument(parse_size),
        metavar="BYTES",
        help="try again if an answer is slower than this, per second; 0 for any speed (1Ki)",
    )
    source.add_argument(
        "--speed-time", default=300.0, type=_argument(parse_duration), metavar="TIME", help="for so long (5m)"
    )


def parser() -> argparse.ArgumentParser:
    """Return the parser of the command line."""
    top = _Parser(
        prog="kaigen-downloader", description="Brings a model onto a volume or into a bucket and proves it complete."
    )
    top.add_argument("--version", action="version", version=__version__)
    top.add_argument("--skip-if", metavar="FILE", help="do nothing if this file exists")
    commands = top.add_subparsers(dest="command", required=True)
    fetch = commands.add_parser("fetch", help="download a model and mark it complete")
    sources = fetch.add_subparsers(dest="source", required=True)
    for add in (_add_hub, _add_web, _add_bucket, _add_registry):
        _add_common(add(sources))
    _add_common(_add_put(commands))
    _add_waits(commands)
    _add_find(commands)
    _add_verify(commands)
    return top


def _add_hub(sources: _Commands) -> argparse.ArgumentParser:
    """Add `fetch huggingface`."""
    hub = sources.add_parser("huggingface", help="from a Hugging Face Hub (HF_TOKEN, HF_ENDPOINT)")
    hub.add_argument("--repo", required=True, type=_argument(_word), help="OWNER/NAME, or datasets/OWNER/NAME")
    hub.add_argument("--revision", default="main", type=_argument(_word), help="branch, tag or commit (main)")
    _add_globs(hub)
    hub.add_argument(
        "--duplicates", action="store_true", help="weights in other formats too, if there are safetensors files"
    )
    hub.add_argument(
        "--locked",
        type=_argument(_locked),
        metavar="FILES:BYTES:SHA256",
        help="the files must be these: their number and bytes, and the digest of sha256, size and path of each",
    )
    hub.add_argument("--endpoint", help=f"the Hub ({DEFAULT_ENDPOINT})")
    return hub


def _add_web(sources: _Commands) -> argparse.ArgumentParser:
    """Add `fetch http`."""
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
    return web


def _add_bucket(sources: _Commands) -> argparse.ArgumentParser:
    """Add `fetch s3`."""
    bucket = sources.add_parser("s3", help="from a bucket (SOURCE_AWS_…, AWS_…, AZURE_…, or a token of Google)")
    bucket.add_argument(
        "--uri",
        required=True,
        metavar="s3://BUCKET[/PREFIX]",
        help="the folder in a bucket, or gs://…, or az://…",
    )
    bucket.add_argument("--endpoint", metavar="URL", help="the server of that bucket (its cloud's, by the scheme)")
    bucket.add_argument("--region", type=_argument(_word), help="of that bucket")
    bucket.add_argument("--addressing", choices=("path", "virtual"), help="as --s3-addressing, for that bucket")
    _add_globs(bucket)
    _add_skip_duplicates(bucket)
    bucket.add_argument(
        "--if-complete",
        metavar="FILE",
        help="fetch only if the folder has the marker of this identity and all its files, and then write FILE",
    )
    bucket.add_argument(
        "--locked",
        type=_argument(_locked),
        metavar="FILES:BYTES:SHA256",
        help="the files must be these: their number and bytes, and the digest of ETag, size and path of each",
    )
    bucket.add_argument(
        "--newest", type=_argument(_number(1, 1_000_000)), metavar="COUNT", help="of those, only the last modified ones"
    )
    bucket.add_argument(
        "--modified-within", type=_argument(_days), metavar="TIME", help="of those, only files modified since (36h, 7d)"
    )
    return bucket


def _add_registry(sources: _Commands) -> argparse.ArgumentParser:
    """Add `fetch oci`."""
    registry = sources.add_parser("oci", help="from a registry (REGISTRY_AUTH)")
    registry.add_argument("--ref", required=True, help="REGISTRY/REPOSITORY with a tag or a digest")
    registry.add_argument("--path", default="", help="folder of the files in the layers of an image")
    registry.add_argument("--plain-http", action="store_true", help="the registry has no TLS")
    registry.add_argument(
        "--build-context",
        action="store_true",
        help="the layers are the context of a build: keep links, empty folders, and which files can be run",
    )
    registry.add_argument("--unless", metavar="FILE", help="fetch nothing if this file exists")
    _add_globs(registry)
    _add_skip_duplicates(registry)
    return registry


def _add_put(commands: _Commands) -> argparse.ArgumentParser:
    """Add `put`."""
    put = commands.add_parser("put", help="store the files of a folder and mark them complete")
    put.add_argument("folder", metavar="DIR")
    put.add_argument(
        "--run-of",
        type=_argument(_object_name),
        metavar="CRONJOB",
        help="wait for the Job that this CronJob starts at the time of the pod's own (JOB_NAME), and store the folder "
        "of its name below DIR in one below the destination",
    )
    put.add_argument("--run-timeout", default=86400.0, type=_argument(parse_duration), metavar="TIME", help="(24h)")
    put.add_argument(
        "--left-out-after",
        default=3600.0,
        type=_argument(parse_duration),
        metavar="TIME",
        help="end without an error if that Job does not exist for so long (1h)",
    )
    _add_globs(put)
    return put


def _add_waits(commands: _Commands) -> None:
    """Add `wait`, `wait-files` and `wait-job`."""
    wait = commands.add_parser("wait", help="block until the folder is marked complete")
    wait.add_argument("--dest", required=True, metavar="DIR")
    wait.add_argument("--identity", required=True, type=_argument(_word), metavar="HEX")
    wait.add_argument("--timeout", default=7200.0, type=_argument(parse_duration), help="(2h)")

    files = commands.add_parser("wait-files", help="block until files are uploaded")
    files.add_argument("--dest", required=True, metavar="DIR")
    files.add_argument("--file", action="append", required=True, metavar="PATH", help="repeatable")
    files.add_argument(
        "--sha256", action="append", default=[], type=_argument(_pair), metavar="PATH=HEX", help="repeatable"
    )
    files.add_argument("--timeout", default=7200.0, type=_argument(parse_duration), help="(2h)")

    wait_job = commands.add_parser("wait-job", help="block until a Job, JobSet or TrainJob has completed")
    wait_job.add_argument("--name", required=True, type=_argument(_object_name))
    wait_job.add_argument("--kind", choices=("Job", "JobSet", "TrainJob"), default="Job", help="(Job)")
    wait_job.add_argument("--timeout", default=86400.0, type=_argument(parse_duration), help="(24h)")


def _add_find(commands: _Commands) -> None:
    """Add `find-image`."""
    find = commands.add_parser("find-image", help="ask a registry whether it has an image (REGISTRY_AUTH)")
    find.add_argument("--ref", required=True, help="REGISTRY/REPOSITORY with a tag or a digest")
    find.add_argument("--write", required=True, metavar="FILE", help="where its digest is written if it has it")
    find.add_argument("--plain-http", action="store_true", help="the registry has no TLS")


def _add_verify(commands: _Commands) -> None:
    """Add `verify`."""
    verify = commands.add_parser("verify", help="compare the folder with its marker")
    verify.add_argument("--dest", required=True, metavar="DIR")
    verify.add_argument("--identity", type=_argument(_word), metavar="HEX")
    verify.add_argument("--full", action="store_true", help="compute every sha256 too")
    verify.add_argument(
        "--facts",
        type=_argument(_object_name),
        metavar="CONFIGMAP",
        help="write what the marker says to this ConfigMap",
    )
