"""Weights: fetched by the downloader, proven by a marker, waited for by whoever reads them."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from kaigen.compile.builders import settings
from kaigen.compile.builders.pods import container_security, image_fields
from kaigen.compile.context import Context
from kaigen.compile.expressions import Joined, Setting, SpecPath, Tree
from kaigen.compile.go_json import go_json, sha256_hex
from kaigen.compile.problems import Problems
from kaigen.kinds.base import FILE_PATH, KeyRef
from kaigen.kinds.blocks import HttpFile, HuggingFace, Source, Transfer
from kaigen.kubernetes.quantities import units

if TYPE_CHECKING:
    from kaigen.kinds.job import Input

PERMANENT_EXIT_CODES = (10, 13)
"""What the downloader ends with when trying again cannot help: no access or not found; wrong arguments."""

WAIT_TIMEOUT = "24h"

_SMALL: Mapping[str, Any] = {"requests": {"cpu": "10m", "memory": "64Mi"}, "limits": {"memory": "64Mi"}}


def identity(source: Source) -> str:
    """What tells one set of files from another: 16 hex digits of the source's hash.

    The marker that the downloader writes bears it, and those who wait look for it, so that files of an older
    revision are never taken for the new ones. How they are moved, and with which token, does not matter.
    """
    hub, http = source.hugging_face, source.http
    meaning: dict[str, Any] = {}
    if hub:
        meaning["huggingFace"] = {
            "repo": hub.repo,
            "revision": hub.revision,
            "include": list(hub.include),
            "exclude": list(hub.exclude),
        }
    if http:
        meaning["http"] = [[file_path(file), file.sha256] for file in http.files]
    return _short_hash(meaning)


def _short_hash(meaning: Any) -> str:
    return sha256_hex(go_json(meaning))[:16]


def file_path(file: HttpFile | Input) -> str:
    """Where a file goes in its folder; empty when nothing says so."""
    last = urlsplit(file.url or "").path.rpartition("/")[2]
    return file.path or (last if re.fullmatch(FILE_PATH, last) else "")


def check_paths(files: Sequence[HttpFile | Input], origin: SpecPath, problems: Problems) -> None:
    """Tell of files that have no name, or that would stand in each other's place."""
    taken: dict[str, int] = {}
    for number, file in enumerate(files):
        path, at = file_path(file), (*origin, number)
        if not path:
            message = "the address does not end in a name for the file"
            problems.error("KG0329", message, at, "say where it goes in `path`")
            continue
        clash = next((other for other in taken if _overlap(path, other)), None)
        if clash is not None:
            problems.error(
                "KG0329", f"`{path}` is the place of file {taken[clash] + 1} too", at, "set another `path`"
            )
        taken.setdefault(path, number)


def _overlap(one: str, other: str) -> bool:
    """Whether one path is the other, or a folder above it."""
    return f"{one}/".startswith(f"{other}/") or other.startswith(f"{one}/")


def downloader_image(
    context: Context, transfer: Transfer, origin: SpecPath, prefix: str = "download"
) -> dict[str, Tree]:
    """Image fields of kaigen's downloader, or of the one that the spec names."""
    image = transfer.image if transfer.image is not None else context.images["downloader"]
    return image_fields(image, f"{prefix}.", (*origin, "image") if origin else ())


def fetch_container(
    source: Source,
    transfer: Transfer,
    context: Context,
    *,
    name: str,
    destination: str,
    mounts: list[Tree],
    origin: SpecPath,
    transfer_origin: SpecPath,
    facts: Tree = None,
    env: list[Tree] | None = None,
    arguments: Sequence[str] = (),
    own_token: bool = True,
) -> dict[str, Tree]:
    """The container that fetches weights into `destination`.

    Args:
        source: what to fetch.
        transfer: how.
        context: whose images hold the downloader.
        name: the container's.
        destination: folder in the container, or `s3://…`.
        mounts: its volume mounts.
        origin: where `source` stands in the spec.
        transfer_origin: where `transfer` stands.
        facts: name of the ConfigMap that it writes what it measured to; None for none.
        env: further variables.
        arguments: further ones, about the destination.
        own_token: its token is the setting `download.tokenSecret`; False where an app has several.
    """
    hub, http = source.hugging_face, source.http
    at = (*origin, "huggingFace")
    what = _hub_arguments(hub) if hub else _web_arguments(http.files if http else [])
    what = [*what, f"--dest={destination}", *arguments, f"--identity={identity(source)}"]
    if facts is not None:
        assert not isinstance(facts, str)
        what.append(Joined(("--facts=", facts)))  # type: ignore[arg-type]
    if hub and hub.endpoint:
        what.append(f"--endpoint={hub.endpoint}")
    variables: list[Tree] = list(env or [])
    if hub and hub.token_secret:
        token = hub.token_secret
        name_of, key_of = (
            (
                settings.text(
                    "download.tokenSecret.name",
                    token.name,
                    "Secret that holds the Hub token.",
                    origin=(*at, "tokenSecret", "name"),
                ),
                settings.text(
                    "download.tokenSecret.key",
                    token.key,
                    "Key of that Secret.",
                    origin=(*at, "tokenSecret", "key"),
                ),
            )
            if own_token
            else (token.name, token.key)
        )
        variables.append(
            {"name": "HF_TOKEN", "valueFrom": {"secretKeyRef": {"name": name_of, "key": key_of}}}
        )
    memory = transfer.memory or (_streaming_memory(transfer) if destination.startswith("s3://") else "512Mi")
    return _downloader(what, variables, transfer, context, name, mounts, transfer_origin, "download", memory)


def _streaming_memory(transfer: Transfer) -> str:
    """Memory of a downloader that fills a bucket, where each connection holds a part (source: its README)."""
    part = max(units(transfer.part_size or "16Mi") or 0, 5 << 20)
    needed = (256 << 20) + (transfer.concurrency or 4) * part
    return f"{max(512, -(-needed >> 20))}Mi"


def inputs_container(
    files: Sequence[Input],
    transfer: Transfer,
    context: Context,
    *,
    name: str,
    destination: str,
    mounts: list[Tree],
    origin: SpecPath,
) -> dict[str, Tree]:
    """The container that fetches the files a run needs into `destination`.

    Args:
        files: which; each has a path of its own (see `file_path`).
        transfer: how.
        context: whose images hold the downloader.
        name: the container's.
        destination: folder in the container.
        mounts: its volume mounts.
        origin: where `transfer` stands in the spec.
    """
    meaning = [[file_path(file), file.url or file.secret, file.sha256] for file in files]
    said = [
        [path, where.model_dump() if isinstance(where, KeyRef) else where, proof]
        for path, where, proof in meaning
    ]
    arguments = [*_web_arguments(files), f"--dest={destination}", f"--identity={_short_hash(said)}"]
    variables: list[Tree] = [
        {
            "name": _variable(number),
            "valueFrom": {"secretKeyRef": {"name": file.secret.name, "key": file.secret.key}},
        }
        for number, file in enumerate(files)
        if file.secret
    ]
    memory = transfer.memory or "512Mi"
    return _downloader(arguments, variables, transfer, context, name, mounts, origin, "inputs", memory)


def _variable(number: int) -> str:
    return f"ADDRESS_{number}"


def _hub_arguments(hub: HuggingFace) -> list[Tree]:
    return [
        "fetch",
        "huggingface",
        f"--repo={hub.repo}",
        f"--revision={hub.revision}",
        *(f"--include={glob}" for glob in hub.include),
        *(f"--exclude={glob}" for glob in hub.exclude),
    ]


def _web_arguments(files: Sequence[HttpFile | Input]) -> list[Tree]:
    arguments: list[Tree] = ["fetch", "http"]
    for number, file in enumerate(files):
        path = file_path(file)
        known = f"--file={path}={file.url}" if file.url else f"--file-from={path}={_variable(number)}"
        arguments += [known, *([f"--sha256={path}={file.sha256}"] if file.sha256 else [])]
    return arguments


def _downloader(
    arguments: list[Tree],
    variables: list[Tree],
    transfer: Transfer,
    context: Context,
    name: str,
    mounts: list[Tree],
    origin: SpecPath,
    prefix: str,
    memory: str,
) -> dict[str, Tree]:
    """A container of the downloader's image; its settings begin with `prefix`."""
    if transfer.concurrency:
        arguments.append(f"--connections={transfer.concurrency}")
    if transfer.part_size:
        arguments.append(f"--part-size={transfer.part_size}")
    if transfer.proxy:
        variables += [
            {"name": "HTTPS_PROXY", "value": transfer.proxy},
            {"name": "HTTP_PROXY", "value": transfer.proxy},
        ]
    cpu = transfer.cpu or "500m"
    return {
        "name": name,
        **downloader_image(context, transfer, origin, prefix),
        "args": arguments,
        **({"env": variables} if variables else {}),
        "resources": Setting(
            f"{prefix}.resources",
            {"requests": {"cpu": cpu, "memory": memory}, "limits": {"memory": memory}},
            "Resources of the downloader.",
            settings.RESOURCES,
            origin=origin,
        ),
        "securityContext": container_security(read_only=True),
        "terminationMessagePolicy": "FallbackToLogsOnError",
        **({"volumeMounts": mounts} if mounts else {}),
    }


def marker_container(
    command: str,
    context: Context,
    *,
    name: str,
    folder: str,
    expected: str,
    mounts: list[Tree],
    arguments: tuple[str, ...] = (),
    transfer: Transfer | None = None,
) -> dict[str, Tree]:
    """A container that looks at a marker: `wait` holds a pod until it is there, `verify` judges it.

    Args:
        command: `wait` or `verify`.
        context: whose images hold the downloader.
        name: the container's.
        folder: where the weights are mounted.
        expected: identity of the weights.
        mounts: its volume mounts.
        arguments: more of the command's own.
        transfer: how the weights are moved, when this very app moves them: its image then looks at them too.
    """
    origin: SpecPath = ("spec", "transfer") if transfer else ()
    return {
        "name": name,
        **downloader_image(context, transfer or Transfer(), origin),
        "args": [command, f"--dest={folder}", f"--identity={expected}", *arguments],
        "resources": dict(_SMALL),
        "securityContext": container_security(read_only=True),
        "terminationMessagePolicy": "FallbackToLogsOnError",
        "volumeMounts": mounts,
    }
