"""Weights: fetched by the downloader, proven by a marker, waited for by whoever reads them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kaigen.compile.app import Joined, Setting, SpecPath, Tree
from kaigen.compile.bricks import settings
from kaigen.compile.bricks.pods import container_security, image_fields
from kaigen.compile.context import Context
from kaigen.compile.gojson import go_json, sha256_hex
from kaigen.kinds.blocks import HuggingFace, Source, Transfer

PERMANENT_EXIT_CODES = (10, 13)
"""What the downloader ends with when trying again cannot help: no access or not found; wrong arguments."""

WAIT_TIMEOUT = "24h"

_SMALL: Mapping[str, Any] = {"requests": {"cpu": "10m", "memory": "64Mi"}, "limits": {"memory": "64Mi"}}


def identity(source: Source) -> str:
    """What tells one set of files from another: 16 hex digits of the source's hash.

    The marker that the downloader writes bears it, and those who wait look for it, so that files of an older
    revision are never taken for the new ones. How they are moved, and with which token, does not matter.
    """
    hub = source.hugging_face
    meaning = {
        "huggingFace": {
            "repo": hub.repo,
            "revision": hub.revision,
            "include": list(hub.include),
            "exclude": list(hub.exclude),
        }
    }
    return sha256_hex(go_json(meaning))[:16]


def downloader_image(context: Context, transfer: Transfer, origin: SpecPath) -> dict[str, Tree]:
    """Image fields of kaigen's downloader, or of the one that the spec names."""
    image = transfer.image if transfer.image is not None else context.images["downloader"]
    return image_fields(image, "download.", (*origin, "image") if origin else ())


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
    own_token: bool = True,
) -> dict[str, Tree]:
    """The container that fetches weights into `destination`.

    Args:
        source: what to fetch.
        transfer: how.
        context: whose images hold the downloader.
        name: the container's.
        destination: folder in the container.
        mounts: its volume mounts.
        origin: where `source` stands in the spec.
        transfer_origin: where `transfer` stands.
        facts: name of the ConfigMap that it writes what it measured to; None for none.
        env: further variables.
        own_token: its token is the setting `download.tokenSecret`; False where an app has several.
    """
    hub: HuggingFace = source.hugging_face
    at = (*origin, "huggingFace")
    arguments: list[Tree] = [
        "fetch",
        "huggingface",
        f"--repo={hub.repo}",
        f"--revision={hub.revision}",
        *(f"--include={glob}" for glob in hub.include),
        *(f"--exclude={glob}" for glob in hub.exclude),
        f"--dest={destination}",
        f"--identity={identity(source)}",
    ]
    if facts is not None:
        assert not isinstance(facts, str)
        arguments.append(Joined(("--facts=", facts)))  # type: ignore[arg-type]
    if hub.endpoint:
        arguments.append(f"--endpoint={hub.endpoint}")
    if transfer.concurrency:
        arguments.append(f"--connections={transfer.concurrency}")
    if transfer.part_size:
        arguments.append(f"--part-size={transfer.part_size}")
    variables: list[Tree] = list(env or [])
    if hub.token_secret:
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
    if transfer.proxy:
        variables += [
            {"name": "HTTPS_PROXY", "value": transfer.proxy},
            {"name": "HTTP_PROXY", "value": transfer.proxy},
        ]
    memory, cpu = transfer.memory or "512Mi", transfer.cpu or "500m"
    return {
        "name": name,
        **downloader_image(context, transfer, transfer_origin),
        "args": arguments,
        **({"env": variables} if variables else {}),
        "resources": Setting(
            "download.resources",
            {"requests": {"cpu": cpu, "memory": memory}, "limits": {"memory": memory}},
            "Resources of the downloader.",
            settings.RESOURCES,
            origin=transfer_origin,
        ),
        "securityContext": container_security(read_only=True),
        "terminationMessagePolicy": "FallbackToLogsOnError",
        "volumeMounts": mounts,
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
