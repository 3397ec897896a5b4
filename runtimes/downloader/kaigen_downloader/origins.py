"""The sources of the command line: what options and variables say."""

from __future__ import annotations

import argparse
import re
import threading
from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING

from kaigen_downloader.errors import BadInput
from kaigen_downloader.text import hide, parse_duration

if TYPE_CHECKING:
    from kaigen_downloader.bucket_source import BucketFiles
    from kaigen_downloader.pace import Pace
    from kaigen_downloader.remote import Source
    from kaigen_downloader.retry import Patience

DEFAULT_ENDPOINT = "https://huggingface.co"
_SHA256 = re.compile(r"[0-9a-f]{64}")


def setting(env: Mapping[str, str], name: str, default: float) -> float:
    """Return a duration in seconds from a variable."""
    text = env.get(name, "").strip()
    if not text:
        return default
    try:
        return parse_duration(text)
    except ValueError as error:
        raise BadInput(f"{name}: {error}") from None


def patience_of(env: Mapping[str, str]) -> Patience:
    """Return how often, and after which pauses, failed requests are repeated."""
    from kaigen_downloader.retry import Patience

    usual = Patience()
    return Patience(
        attempts=max(1, int(setting(env, "KAIGEN_ATTEMPTS", usual.attempts))),
        base=setting(env, "KAIGEN_BACKOFF", usual.base),
    )


def hub_source(arguments: argparse.Namespace, env: Mapping[str, str]) -> tuple[Source, str]:
    """Return a repository of the Hub and its token, if any."""
    from kaigen_downloader.hub import Repository

    token = env.get("HF_TOKEN", "").strip()
    hide(token)
    if not token.isascii() or not token.isprintable() or " " in token:
        raise BadInput("HF_TOKEN is not a valid token: it contains spaces, line ends or other invalid characters")
    endpoint = arguments.endpoint or env.get("HF_ENDPOINT", "").strip() or DEFAULT_ENDPOINT
    repository = Repository(
        endpoint=endpoint.rstrip("/"),
        repo=arguments.repo,
        revision=arguments.revision,
        include=tuple(arguments.include),
        exclude=tuple(arguments.exclude),
        duplicates=arguments.duplicates,
    )
    return repository, token


def bucket_source(arguments: argparse.Namespace, env: Mapping[str, str], patience: Patience) -> BucketFiles:
    """Return the files of a bucket, with the credentials for it if there are some."""
    from kaigen_downloader.bucket_source import BucketFiles
    from kaigen_downloader.clients import client_of
    from kaigen_downloader.recent import Recent
    from kaigen_downloader.retry import Retry
    from kaigen_downloader.s3 import address

    where = address(arguments.uri, arguments.endpoint, arguments.region, arguments.addressing)
    retry = Retry(patience, threading.Event())
    pace = pace_of(arguments)
    client = client_of(where, retry, env, timeout=arguments.timeout, connections=16, pace=pace, source=True)
    if arguments.locked is not None and (arguments.newest or arguments.modified_within):
        raise BadInput("--locked names all files, and --newest and --modified-within choose some when they are listed")
    return BucketFiles(
        client,
        tuple(arguments.include),
        tuple(arguments.exclude),
        arguments.skip_duplicates,
        arguments.locked,
        Recent(arguments.newest, arguments.modified_within),
    )


def pace_of(arguments: argparse.Namespace) -> Pace:
    """Return the lowest speed of answers."""
    from kaigen_downloader.pace import Pace

    return Pace(arguments.speed_limit, arguments.speed_time)


def registry_source(arguments: argparse.Namespace, env: Mapping[str, str]) -> Source:
    """Return the files of an artifact."""
    from kaigen_downloader.registry import Registry, login_of, parse

    reference = parse(arguments.ref)
    return Registry(
        reference,
        login=login_of(env.get("REGISTRY_AUTH", ""), reference.host),
        path=arguments.path.strip("/"),
        include=tuple(arguments.include),
        exclude=tuple(arguments.exclude),
        skip_duplicates=arguments.skip_duplicates,
        plain=arguments.plain_http,
        is_context=arguments.build_context,
    )


def web_source(arguments: argparse.Namespace, env: Mapping[str, str]) -> Source:
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
    sums = checksums(arguments, dict(addresses))
    return Web(tuple(WebFile(path, url, sums.get(path)) for path, url in addresses))


def checksums(arguments: argparse.Namespace, paths: Collection[str]) -> dict[str, str]:
    """Return the checksums of the command line by path."""
    sums = dict(arguments.sha256)
    strange = [path for path in sums if path not in paths]
    strange += [path for path, text in sums.items() if not _SHA256.fullmatch(text)]
    if strange:
        raise BadInput(f"--sha256 {strange[0]}: no such file, or not 64 digits of hex")
    return sums
