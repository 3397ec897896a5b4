"""Checks of what the apps of an environment need: requirements, a reaper, and servers that pods download from."""

from __future__ import annotations

import urllib.error
import urllib.request
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from kaigen import __version__
from kaigen.cluster.reapers import reapers
from kaigen.compile.builders.bucket_access import cloud_server
from kaigen.core.text import plural
from kaigen.doctor.model import Check
from kaigen.hub.client import HUB
from kaigen.images.check import check_images, images_used
from kaigen.kinds.bucket import Bucket
from kaigen.kinds.job import Input
from kaigen.kinds.repositories import blocks_in
from kaigen.kubernetes.buckets import split_location
from kaigen.kubernetes.manifest import mapping
from kaigen.kubernetes.metadata_keys import EXPIRES
from kaigen.mirror.collect import models_in
from kaigen.requirements.model import Finding, Requirement

if TYPE_CHECKING:
    from kaigen.cluster.client import Cluster
    from kaigen.config.settings import Config
    from kaigen.mirror.model import ModelItem
    from kaigen.pipeline.result import Compiled


_TIMEOUT_S = 10
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
                found.setdefault(cloud_server(block), f"bucket {block.name}")
            elif isinstance(block, Input) and block.url:
                found.setdefault(_server(block.url), "files")
    return found


def _use(item: ModelItem) -> str:
    """Return what a server is for."""
    if item.source == item.target:
        return "files"
    if item.source.startswith(("s3://", "gs://", "az://")):
        return f"bucket {split_location(item.source)[0]}"
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
        with urllib.request.urlopen(request, timeout=_TIMEOUT_S):
            pass
    except urllib.error.HTTPError:
        pass  # Any answer shows that the server is there.
    except (urllib.error.URLError, OSError, ValueError) as error:
        reason = getattr(error, "reason", error)
        fix = "allow the connection, or set `network` in kaigen.yaml to a proxy or a mirror; see docs/networks.md"
        return Check(name, "warning", f"{url} from this machine: {reason}", fix)
    return Check(name, "ok", f"{url} from this machine; pods may have other routes")


def check_repository(config: Config) -> Iterator[Check]:
    """Yield whether Flux may read the repository, if it has no Secret for it and the URL is one of HTTP."""
    gitops = config.gitops
    if gitops is None or gitops.flux is None or gitops.flux.secret:
        return
    name, url = "repository for Flux", gitops.repository or ""
    if not url.startswith(("https://", "http://")):
        return
    answer = f"{url.rstrip('/')}/info/refs?service=git-upload-pack"
    request = urllib.request.Request(answer, headers={"User-Agent": f"git/2 kaigen/{__version__}"})
    try:
        with urllib.request.urlopen(request, timeout=_TIMEOUT_S):
            yield Check(name, "ok", f"{url} needs no login")
    except urllib.error.HTTPError as error:
        fix = "set `gitops.flux.secret` in kaigen.yaml to a Secret with `username` and `password`; see docs/gitops.md"
        yield Check(name, "warning", f"{url} answers {error.code} without a login, and Flux has no Secret for it", fix)
    except (urllib.error.URLError, OSError, ValueError) as error:
        reason = getattr(error, "reason", error)
        yield Check(name, "warning", f"{url} from this machine: {reason}", "check `gitops.repository` in kaigen.yaml")


def check_registries(apps: Iterable[Compiled]) -> Iterator[Check]:
    """Yield a check for each image that its registry does not have or does not show, and one for all others.

    Args:
        apps: the apps, with their rendered images.
    """
    answers = check_images(images_used(apps))
    found = sum(answer.state == "found" for answer in answers)
    if found:
        yield Check("images", "ok", f"{plural(found, 'image')} in their registries; nodes may have other credentials")
    for answer in answers:
        name = f"image {answer.image}"
        if answer.state in ("missing", "invalid"):
            fix = "build and push kaigen's own images with `kaigen images push`; correct the names of others"
            yield Check(name, "failed", answer.detail, fix)
        elif answer.state != "found":
            fix = "run `docker login` for the registry, or let this machine connect to it"
            yield Check(name, "warning", f"{answer.detail}; nodes may have other credentials and routes", fix)


def check_requirements(findings: Mapping[Requirement, Finding]) -> Iterator[Check]:
    """Yield a check for each requirement that is not found, and one for all others.

    Args:
        findings: what the cluster has of the requirements.
    """
    found = sum(each.status == "found" for each in findings.values())
    yield Check("requirements", "ok", f"{found} found; `kaigen requirements` lists them")
    for item, finding in findings.items():
        if finding.status == "found":
            continue
        places = ", ".join(dict.fromkeys(use.place or use.app for use in item.uses if use.place or use.app))
        needed = f"; needed at {places}" if places else ""
        if finding.status == "unknown":
            fix = f"ask for `get` on this {item.kind}, or check it with somebody who may read it"
            yield Check(f"{item.kind} {item.title}", "warning", f"{finding.detail}{needed}", fix)
        else:
            detail = finding.detail or "not in the cluster"
            yield Check(f"{item.kind} {item.title}", "failed", f"{detail}{needed}", _fix(item))


def _fix(item: Requirement) -> str:
    if item.supplier:
        return f"install {item.supplier}"
    match item.kind:
        case "Namespace":
            return f"kubectl create namespace {item.name}"
        case "Secret":
            return "create it: `kaigen secrets -o kubectl` prints a script that does"
        case "Kubernetes":
            return "upgrade the cluster, or set `kubernetes` in kaigen.yaml to its version"
        case "resource":
            return f"add nodes that offer {item.name}"
        case "ResourceQuota":
            return "raise the quota, or request less"
        case "node":
            return "add such a node or scale its group up, or change the resources or the placement of the spec"
    return f"create the {item.kind} {item.title}"


def expiring(apps: Iterable[Compiled]) -> list[str]:
    """Return the apps whose pods or volumes expire, `NAMESPACE/NAME`."""
    return [
        f"{item.app.namespace}/{item.app.name}"
        for item in apps
        if any(EXPIRES in mapping(mapping(each.body.get("metadata")).get("labels")) for each in item.objects)
    ]


def check_reaper(cluster: Cluster, namespaces: Iterable[str], users: list[str]) -> Check:
    """Return whether a reaper of the cluster works in each namespace.

    Args:
        cluster: the cluster.
        namespaces: the namespaces of the apps.
        users: the apps that need it, `NAMESPACE/NAME`.
    """
    wanted = list(namespaces)
    found = reapers(cluster, wanted)
    fix = "install kaigen-reaper, which deletes pods and volumes whose TTL has ended"
    if found is None:
        return Check("reaper", "warning", "not allowed to list deployments and cronjobs", fix)
    if not found:
        if users:
            return Check("reaper", "failed", f"not found, and these apps expire: {', '.join(users)}", fix)
        return Check("reaper", "ok", "not found; no app of the repository needs it")
    places = ", ".join(each.place for each in found)
    missed = [place for place in wanted if not any(each.works_in(place) for each in found)]
    if not missed:
        return Check("reaper", "ok", places)
    expiring_there = [user for user in users if user.partition("/")[0] in missed]
    message = f"{places} does not work in {', '.join(missed)}"
    if expiring_there:
        message += f", where these apps expire: {', '.join(expiring_there)}"
    fix = f"add {', '.join(missed)} to `namespaces` of its chart"
    return Check("reaper", "failed" if expiring_there else "warning", message, fix)
