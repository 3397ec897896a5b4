"""Containers that download weights, verify them by a marker, and wait for them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from msgspec import Struct
from msgspec.structs import asdict

from kaigen.compile.builders import settings
from kaigen.compile.builders.bucket_access import destination, transfer_arguments
from kaigen.compile.builders.pods import NO_NETWORK, container_security, image_fields
from kaigen.compile.builders.sources import (
    file_path,
    identity,
    short_hash,
    source_arguments,
    source_variables,
    url_variable,
    web_arguments,
)
from kaigen.compile.context import Context
from kaigen.compile.expressions import Expr, Joined, Setting, Tree
from kaigen.compile.problems import Problems
from kaigen.config.locked_files import chosen_files, files_digest
from kaigen.core.json_types import FieldPath
from kaigen.kinds.base import KeyRef
from kaigen.kinds.blocks import FileSource, HttpFile, Transfer
from kaigen.kinds.bucket import Bucket, FilledBucket
from kaigen.kinds.model import DatasetSource
from kaigen.kubernetes.quantities import units

if TYPE_CHECKING:
    from kaigen.kinds.job import Input

PERMANENT_EXIT_CODES = (10, 13)
"""Exit codes of the downloader after which a retry cannot succeed: no access or not found; wrong arguments."""

WAIT_TIMEOUT = "24h"

METRICS = "metrics"
"""Name of the downloader's port for Prometheus."""

METRICS_PORT = 9464
"""Its number, which OpenTelemetry's exporters for Prometheus use as well."""

SMALL_RESOURCES: Mapping[str, Any] = {"requests": {"cpu": "10m", "memory": "64Mi"}, "limits": {"memory": "64Mi"}}
"""Resources of a container that only waits."""


def check_paths(files: Sequence[HttpFile | Input], origin: FieldPath, problems: Problems) -> None:
    """Report files without a name, and files that would overwrite each other."""
    taken: dict[str, int] = {}
    for number, file in enumerate(files):
        path, at = file_path(file), (*origin, number)
        if not path:
            message = "the URL does not end in a file name" if file.url else "the file has no path"
            problems.error("KG0329", message, at, "set `path`")
            continue
        clash = next((other for other in taken if _overlap(path, other)), None)
        if clash is not None:
            problems.error(
                "KG0329", f"`{path}` is the path of file {taken[clash] + 1} as well", at, "set another `path`"
            )
        taken.setdefault(path, number)


def _overlap(one: str, other: str) -> bool:
    """Return whether one path is the other, or a folder that contains it."""
    return f"{one}/".startswith(f"{other}/") or other.startswith(f"{one}/")


def downloader_image(
    context: Context, transfer: Transfer, origin: FieldPath, prefix: str = "download"
) -> dict[str, Tree]:
    """Return the image fields of kaigen's downloader, or of the image that the spec names."""
    image = transfer.image if transfer.image is not None else context.config.images["downloader"]
    return image_fields(image, f"{prefix}.", (*origin, "image") if origin else ())


class Fetch(Struct, frozen=True):
    """A download of a source.

    Attributes:
        source: files to download.
        origin: the spec's field of `source`.
        destination: folder in the container, or `s3://…`, `gs://…` or `az://…`.
        transfer: settings of the downloader.
        transfer_origin: the spec's field of `transfer`.
        own_token: whether its token is the setting `download.tokenSecret`; False where an app has several.
    """

    source: FileSource
    origin: FieldPath
    destination: str
    transfer: Transfer
    transfer_origin: FieldPath = ("spec", "transfer")
    own_token: bool = True


def fetch_container(
    fetch: Fetch,
    context: Context,
    *,
    name: str,
    mounts: list[Tree],
    env: Sequence[Tree] = (),
    command: Sequence[Tree] | None = None,
    about_destination: Sequence[Tree] = (),
    about_run: Sequence[Tree] = (),
) -> dict[str, Tree]:
    """Return the container that downloads weights.

    Args:
        fetch: what it downloads, and where to.
        context: has the image of the downloader.
        name: name of the container.
        mounts: its volume mounts.
        env: further variables.
        command: the downloader's command and its arguments about the source, in place of those for the source.
        about_destination: further arguments about the destination.
        about_run: further arguments about the run.
    """
    source, transfer = fetch.source, fetch.transfer
    hub = source.hugging_face
    what = [
        *source_arguments(source, command),
        f"--dest={fetch.destination}",
        *about_destination,
        f"--identity={identity(source)}",
        *about_run,
    ]
    if hub and hub.endpoint:
        what.append(f"--endpoint={hub.endpoint}")
    model = context.lock.of(hub) if hub and context.lock else None
    if hub and model:
        what.append(f"--locked={files_digest(chosen_files(model, hub))}")
    variables: list[Tree] = [*env, *source_variables(source, fetch.origin, own=fetch.own_token)]
    in_bucket = fetch.destination.startswith(("s3://", "gs://", "az://"))
    memory = transfer.memory or (_streaming_memory(transfer) if in_bucket else "512Mi")
    return _downloader(what, variables, transfer, context, name, mounts, fetch.transfer_origin, "download", memory)


def stage_container(
    bucket: Bucket,
    folder: str,
    expected: str,
    transfer: Transfer,
    context: Context,
    *,
    name: str,
    keys: Sequence[Tree],
    env: Sequence[Tree],
    mounts: list[Tree],
) -> dict[str, Tree]:
    """Return the container that copies a revision of a bucket that the downloader filled into a folder.

    Args:
        bucket: the bucket.
        folder: the folder, in the container.
        expected: identity of the revision.
        transfer: settings of the downloader.
        context: has the image of the downloader.
        name: name of the container.
        keys: variables with the keys of the bucket.
        env: further variables.
        mounts: its volume mounts.
    """
    arguments, _ = transfer_arguments(bucket, ())
    what: list[Tree] = [
        "fetch",
        "s3",
        f"--uri={destination(bucket)}/{expected}",
        *(each.replace("--s3-", "--") for each in arguments),
        f"--dest={folder}/{expected}",
        f"--identity={expected}",
    ]
    variables = [*(_renamed(each) for each in keys), *env]
    memory = transfer.memory or _streaming_memory(transfer)
    return _downloader(what, variables, transfer, context, name, mounts, ("spec", "transfer"), "download", memory)


def _renamed(variable: Tree) -> Tree:
    """Return a variable for the bucket that files are read from."""
    assert isinstance(variable, dict)
    return {**variable, "name": f"SOURCE_{variable['name']}"}


def upload_container(
    bucket: Bucket | FilledBucket,
    folder: str,
    target: str | Expr,
    expected: str | Expr,
    transfer: Transfer,
    context: Context,
    *,
    arguments: Sequence[Tree],
    name: str,
    env: Sequence[Tree],
    mounts: list[Tree],
    origin: FieldPath = ("spec", "transfer"),
) -> dict[str, Tree]:
    """Return the container that stores the files of a folder in a bucket, and the marker last.

    Args:
        bucket: the bucket.
        folder: the folder, in the container.
        target: folder below the bucket's prefix; empty for the prefix.
        expected: identity for the marker.
        transfer: settings of the downloader.
        context: has the image of the downloader.
        arguments: further arguments.
        name: name of the container.
        env: variables.
        mounts: its volume mounts.
        origin: the spec's field of `transfer`.
    """
    what: list[Tree] = [
        "put",
        folder,
        _option(f"--dest={destination(bucket)}/", target) if target else f"--dest={destination(bucket)}",
        *arguments,
        _option("--identity=", expected),
    ]
    memory = transfer.memory or _streaming_memory(transfer)
    return _downloader(what, list(env), transfer, context, name, mounts, origin, "upload", memory)


def restore_container(
    bucket: FilledBucket,
    folder: str,
    run: str,
    transfer: Transfer,
    context: Context,
    *,
    note: str,
    arguments: Sequence[Tree],
    name: str,
    env: Sequence[Tree],
    mounts: list[Tree],
    origin: FieldPath,
) -> dict[str, Tree]:
    """Return the container that restores what `upload_container` stored, if it is complete, and then writes a file.

    Args:
        bucket: the bucket.
        folder: the folder, in the container.
        run: folder below the bucket's prefix, and the identity in its marker.
        transfer: settings of the downloader.
        context: has the image of the downloader.
        note: path of the file.
        arguments: further arguments.
        name: name of the container.
        env: variables.
        mounts: its volume mounts.
        origin: the spec's field of `transfer`.
    """
    what: list[Tree] = [
        *("fetch", "s3", f"--uri={destination(bucket)}/{run}", f"--dest={folder}", f"--identity={run}"),
        *(f"--if-complete={note}", *arguments),
    ]
    return _downloader(what, list(env), transfer, context, name, mounts, origin, "restore", transfer.memory or "512Mi")


def _option(name: str, value: str | Expr) -> Tree:
    return f"{name}{value}" if isinstance(value, str) else Joined((name, value))


def _streaming_memory(transfer: Transfer) -> str:
    """Return the memory of a downloader that fills a bucket, one buffer per connection (source: its README)."""
    buffer = max(units(transfer.part_size or "16Mi") or 0, 5 << 20)
    needed = (256 << 20) + (transfer.concurrency or 4) * buffer
    return f"{max(512, -(-needed >> 20))}Mi"


def inputs_container(
    files: Sequence[Input],
    transfer: Transfer,
    context: Context,
    *,
    name: str,
    destination: str,
    mounts: list[Tree],
    origin: FieldPath,
) -> dict[str, Tree]:
    """Return the container that downloads the files of a run into `destination`.

    Args:
        files: files to download, each with a path of its own (see `file_path`).
        transfer: settings of the downloader.
        context: has the image of the downloader.
        name: name of the container.
        destination: folder in the container.
        mounts: its volume mounts.
        origin: the spec's field of `transfer`.
    """
    sources = [[file_path(file), file.url or file.secret, file.sha256] for file in files]
    content = [[path, asdict(where) if isinstance(where, KeyRef) else where, proof] for path, where, proof in sources]
    arguments = [*web_arguments(files), f"--dest={destination}", f"--identity={short_hash(content)}"]
    variables: list[Tree] = [
        {
            "name": url_variable(number),
            "valueFrom": {"secretKeyRef": {"name": file.secret.name, "key": file.secret.key}},
        }
        for number, file in enumerate(files)
        if file.secret
    ]
    memory = transfer.memory or "512Mi"
    return _downloader(arguments, variables, transfer, context, name, mounts, origin, "inputs", memory)


def bucket_input_container(
    source: DatasetSource,
    transfer: Transfer,
    context: Context,
    *,
    name: str,
    destination: str,
    chosen: Sequence[Tree],
    mounts: list[Tree],
    origin: FieldPath,
) -> dict[str, Tree]:
    """Return the container that downloads files of a bucket for a run.

    Args:
        source: the bucket.
        transfer: settings of the downloader.
        context: has the image of the downloader.
        name: name of the container.
        destination: folder in the container.
        chosen: arguments about the files that are chosen by their age.
        mounts: its volume mounts.
        origin: the spec's field of `transfer`.
    """
    arguments: list[Tree] = [
        *source_arguments(source),
        *chosen,
        f"--dest={destination}",
        f"--identity={short_hash([identity(source), list(chosen)])}",
    ]
    variables = source_variables(source, (), own=False)
    memory = transfer.memory or "512Mi"
    return _downloader(arguments, variables, transfer, context, name, mounts, origin, "inputs", memory)


def _downloader(
    arguments: list[Tree],
    variables: list[Tree],
    transfer: Transfer,
    context: Context,
    name: str,
    mounts: list[Tree],
    origin: FieldPath,
    prefix: str,
    memory: str,
) -> dict[str, Tree]:
    """Return a container of the downloader's image, with settings under `prefix`."""
    if transfer.concurrency:
        arguments.append(f"--connections={transfer.concurrency}")
    if transfer.part_size:
        arguments.append(f"--part-size={transfer.part_size}")
    if transfer.proxy:
        variables += [{"name": "HTTPS_PROXY", "value": transfer.proxy}, {"name": "HTTP_PROXY", "value": transfer.proxy}]
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
    arguments: Sequence[Tree] = (),
    transfer: Transfer | None = None,
) -> dict[str, Tree]:
    """Return a container that reads a marker: `wait` blocks until it exists, `verify` checks the files.

    Args:
        command: `wait` or `verify`.
        context: has the image of the downloader.
        name: name of the container.
        folder: mount path of the store, which has a folder for each revision.
        expected: identity of the weights.
        mounts: its volume mounts.
        arguments: further arguments of the command.
        transfer: settings of the downloader, where this app downloads the weights with an image of its own.
    """
    origin: FieldPath = ("spec", "transfer") if transfer else ()
    return {
        "name": name,
        **NO_NETWORK,
        **downloader_image(context, transfer or Transfer(), origin),
        "args": [command, f"--dest={folder}/{expected}", f"--identity={expected}", *arguments],
        "resources": dict(SMALL_RESOURCES),
        "securityContext": container_security(read_only=True),
        "terminationMessagePolicy": "FallbackToLogsOnError",
        "volumeMounts": mounts,
    }
