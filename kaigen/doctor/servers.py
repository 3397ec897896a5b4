"""Checks of the servers that pods download from: the Hub, buckets, and servers of files."""

from __future__ import annotations

import urllib.error
import urllib.request
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from kaigen import __version__
from kaigen.doctor.model import Check
from kaigen.hub.client import HUB
from kaigen.kinds.bucket import Bucket
from kaigen.kinds.job import Input
from kaigen.kinds.repositories import blocks_in
from kaigen.mirror.collect import CLOUDS, models_in

if TYPE_CHECKING:
    from kaigen.config.settings import Config
    from kaigen.mirror.model import ModelItem
    from kaigen.pipeline.result import Compiled

TIMEOUT_S = 10
"""Seconds to wait for a server."""

_CALLS = 8


def servers_of(apps: Iterable[Compiled], config: Config) -> dict[str, str]:
    """Return the servers that apps download from: what each is for, by URL.

    Args:
        apps: the apps.
        config: the settings of the environment.
    """
    chosen = list(apps)
    found: dict[str, str] = {}
    for item in models_in(chosen, config):
        found.setdefault(_server(item.target), _use(item))
    for app in chosen:
        for _, block in blocks_in(app.spec.block) if app.spec else ():
            if isinstance(block, Bucket):
                found.setdefault(block.endpoint or CLOUDS[block.scheme], f"bucket {block.name}")
            elif isinstance(block, Input) and block.url:
                found.setdefault(_server(block.url), "files")
    return found


def _use(item: ModelItem) -> str:
    """Return what a server is for."""
    if item.source == item.target:
        return "files"
    if item.source.startswith(("s3://", "gs://")):
        return f"bucket {item.source.partition('://')[2].partition('/')[0]}"
    return "Hub" if item.target.endswith(f"/{item.source}") else f"artifact {item.source.partition('@')[0]}"


def _server(url: str) -> str:
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}"


def check_servers(servers: dict[str, str] | None) -> list[Check]:
    """Return whether this machine reaches servers. Proxies are those of the environment variables.

    Args:
        servers: what each is for, by URL; None for the public Hub.
    """
    asked = {HUB: "Hub"} if servers is None else servers
    with ThreadPoolExecutor(_CALLS) as pool:
        return list(pool.map(_check, asked, asked.values()))


def _check(url: str, use: str) -> Check:
    name = f"reachability of {use}"
    request = urllib.request.Request(url, method="HEAD", headers={"User-Agent": f"kaigen/{__version__}"})
    try:
        with urllib.request.urlopen(request, timeout=TIMEOUT_S):
            pass
    except urllib.error.HTTPError:
        pass  # Any answer shows that the server is there.
    except (urllib.error.URLError, OSError, ValueError) as error:
        reason = getattr(error, "reason", error)
        fix = "allow the connection, or set `network` in kaigen.yaml to a proxy or a mirror; see docs/networks.md"
        return Check(name, "warning", f"{url} from this machine: {reason}", fix)
    return Check(name, "ok", f"{url} from this machine; pods may have other routes")
