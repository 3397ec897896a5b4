"""Facts about a download and a conversion: a ConfigMap that their Job writes."""

from __future__ import annotations

import contextlib
import datetime
import itertools
import json
import threading
from collections.abc import Iterator, Mapping
from typing import TypeAlias
from urllib.parse import urlsplit

from kaigen_downloader.cluster import Api, ApiUnavailable, Json, refused
from kaigen_downloader.errors import BadInput
from kaigen_downloader.marker import Marker, StoredFile
from kaigen_downloader.progress import Display, phrase
from kaigen_downloader.text import OBJECT_NAME, say, size

Data: TypeAlias = Mapping[str, str | None]
"""Data of the ConfigMap; None deletes a key."""

CONVERTED = "distributed-llama"
"""Type of the source in the marker of converted files (source: `kaigen_convert.marker`)."""

_GOOGLE = "storage.googleapis.com"
_MOST_NAMES = 100
_LONGEST_NAMES = 4096
_PROGRESS = "progress"
_CONVERSION = ("conversionSizeBytes", "conversionSizeHuman", "conversionWeights", "conversionSeconds")


class FactsNotWritten(Exception):
    """The ConfigMap could not be written. Never fails the download."""


def check_name(name: str) -> str:
    """Return the name of a ConfigMap after checking it.

    Raises:
        BadInput: Kubernetes would not take it.
    """
    if not OBJECT_NAME.fullmatch(name):
        raise BadInput(f"{name!r} is not a valid name of a ConfigMap")
    return name


def _source(facts: Mapping[str, str]) -> str:
    kind, rest = facts["type"], {name: value for name, value in facts.items() if name != "type"}
    return f"{kind}:{rest['repo']}@{rest['revision']}" if "repo" in rest else ":".join((kind, *rest.values()))


def data(marker: Marker, url: str = "") -> Data:
    """Return the data of the ConfigMap, derived from the marker of downloaded or converted files.

    That of a download deletes what the Job measured before it: its progress, and an earlier conversion.

    Args:
        marker: the marker.
        url: of the folder in a bucket; empty for a volume.

    Raises:
        FactsNotWritten: another program wrote times into the marker that are none.
    """
    seconds = _seconds(marker)
    if marker.source["type"] == CONVERTED:
        weights = marker.source.get("weights", "")
        values = (str(marker.bytes), size(marker.bytes), weights, f"{seconds:.3f}")
        return dict(zip(_CONVERSION, values, strict=True))
    return {
        "source": _source(marker.source),
        "commit": marker.commit,
        "files": str(len(marker.files)),
        "fileNames": _names(marker.files),
        "url": url or None,
        "bytes": str(marker.bytes),
        "seconds": f"{seconds:.3f}",
        "bytesPerSecond": str(round(marker.fetched / seconds)),
        "finished": marker.finished,
        _PROGRESS: None,
        **dict.fromkeys(_CONVERSION),
    }


def _seconds(marker: Marker) -> float:
    try:
        started, finished = (datetime.datetime.fromisoformat(when) for when in (marker.started, marker.finished))
        return max((finished - started).total_seconds(), 0.001)
    except (ValueError, TypeError):
        raise FactsNotWritten(f"the marker has no valid times: {marker.started!r}, {marker.finished!r}") from None


def _names(files: tuple[StoredFile, ...]) -> str:
    """Return the first names as a JSON list of bounded length: a ConfigMap has at most 1 MiB."""
    ends = itertools.accumulate(len(json.dumps(file.path)) + 2 for file in files)
    fitting = sum(end <= _LONGEST_NAMES for end in ends)
    return json.dumps([file.path for file in files[: min(fitting, _MOST_NAMES)]])


def url_of(dest: str, endpoint: str | None) -> str:
    """Return the URL of a destination in a bucket, with the scheme of its provider; empty for a folder."""
    scheme, separator, rest = dest.partition("://")
    if separator and endpoint and urlsplit(endpoint).hostname == _GOOGLE:
        scheme = "gs"
    return f"{scheme}://{rest}" if separator else ""


def config_map(name: str, facts: Data, env: Mapping[str, str]) -> Json:
    """Return the ConfigMap. The Job of `JOB_NAME` and `JOB_UID` owns it, so that it is deleted with the Job."""
    labels = {"app.kubernetes.io/managed-by": "kaigen"}
    if env.get("KAIGEN_APP"):
        labels["app.kubernetes.io/instance"] = env["KAIGEN_APP"]
    metadata: Json = {"name": name, "labels": labels}
    if env.get("JOB_NAME") and env.get("JOB_UID"):
        metadata["ownerReferences"] = [
            {"apiVersion": "batch/v1", "kind": "Job", "name": env["JOB_NAME"], "uid": env["JOB_UID"]}
        ]
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": dict(facts)}


def write(name: str, facts: Data, env: Mapping[str, str]) -> str:
    """Create the ConfigMap, or update it if it differs.

    Args:
        name: of the ConfigMap, in the pod's own namespace.
        facts: its data.
        env: `KUBERNETES_SERVICE_HOST` and `_PORT`, `KAIGEN_SA_DIR`, `KAIGEN_APP`, `JOB_NAME`, `JOB_UID`.

    Returns:
        What was done, for the log.

    Raises:
        FactsNotWritten: the API server cannot be reached or refuses.
    """
    try:
        return _write(Api(env), name, config_map(name, facts, env))
    except ApiUnavailable as error:
        raise FactsNotWritten(str(error)) from None


def _write(api: Api, name: str, wanted: Json) -> str:
    path = f"/api/v1/namespaces/{api.namespace}/configmaps"
    status, found = api.call("GET", f"{path}/{name}")
    if status == 404:
        status, found = api.call("POST", path, _without_nulls(wanted), "application/json")
        if status == 201:
            return f"created ConfigMap {api.namespace}/{name}"
        if status != 409:
            raise FactsNotWritten(refused("create", status, found))
    elif status != 200:
        raise FactsNotWritten(refused("get", status, found))
    elif _agrees(found, wanted):
        return f"ConfigMap {api.namespace}/{name} is up to date"
    status, found = api.call("PATCH", f"{path}/{name}", wanted, "application/merge-patch+json")
    if status != 200:
        raise FactsNotWritten(refused("patch", status, found))
    return f"updated ConfigMap {api.namespace}/{name}"


def _without_nulls(wanted: Json) -> Json:
    """Return a ConfigMap without the keys that a merge would delete."""
    facts = wanted["data"]
    assert isinstance(facts, dict)
    return {**wanted, "data": {key: value for key, value in facts.items() if value is not None}}


@contextlib.contextmanager
def reported(name: str | None, shown: Display, env: Mapping[str, str], every: float = 10.0) -> Iterator[None]:
    """Write the progress of a run to the ConfigMap while it lasts, from a thread of its own.

    Args:
        name: of the ConfigMap; None for none.
        shown: has the meters of the run.
        env: as for `write`.
        every: seconds between two updates.
    """
    if name is None:
        yield
        return
    ended = threading.Event()
    thread = threading.Thread(target=_report, args=(name, shown, env, every, ended), daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        # A late update would follow the facts of the complete download.
        thread.join()


def _report(name: str, shown: Display, env: Mapping[str, str], every: float, ended: threading.Event) -> None:
    before: tuple[str, int] = ("", 0)
    while not ended.wait(every):
        counts = shown.counts()
        if not counts:
            continue
        now = counts[-1]
        speed = (now.added - before[1]) / every if before[0] == now.action else 0.0
        before = (now.action, now.added)
        try:
            write(name, {_PROGRESS: phrase(now, speed)}, env)
        except FactsNotWritten as error:
            say(f"warning: the progress is not written: {error}")
            return


def _agrees(found: object, wanted: object) -> bool:
    """Return whether merging `wanted` into `found` changes nothing. Owner references are compared by uid."""
    if isinstance(wanted, dict):
        return isinstance(found, dict) and all(_agrees(found.get(key), value) for key, value in wanted.items())
    if isinstance(wanted, list):
        return (
            isinstance(found, list)
            and len(found) == len(wanted)
            and all(_agrees(one, other) for one, other in zip(found, wanted, strict=True))
        )
    return found == wanted
