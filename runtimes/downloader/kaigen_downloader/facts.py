"""Facts about a finished download: a ConfigMap that the download Job writes."""

from __future__ import annotations

import datetime
from collections.abc import Mapping

from kaigen_downloader.cluster import Api, ApiUnavailable, Json, refused
from kaigen_downloader.errors import BadInput
from kaigen_downloader.marker import Marker
from kaigen_downloader.text import OBJECT_NAME


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


def data(marker: Marker) -> dict[str, str]:
    """Return the data of the ConfigMap, derived from the marker.

    Raises:
        FactsNotWritten: another program wrote times into the marker that are none.
    """
    try:
        started, finished = (datetime.datetime.fromisoformat(when) for when in (marker.started, marker.finished))
        seconds = max((finished - started).total_seconds(), 0.001)
    except (ValueError, TypeError):
        raise FactsNotWritten(f"the marker has no valid times: {marker.started!r}, {marker.finished!r}") from None
    return {
        "source": _source(marker.source),
        "commit": marker.commit,
        "files": str(len(marker.files)),
        "bytes": str(marker.bytes),
        "seconds": f"{seconds:.3f}",
        "bytesPerSecond": str(round(marker.fetched / seconds)),
        "finished": marker.finished,
    }


def config_map(name: str, marker: Marker, env: Mapping[str, str]) -> Json:
    """Return the ConfigMap. The Job of `JOB_NAME` and `JOB_UID` owns it, so that it is deleted with the Job."""
    labels = {"app.kubernetes.io/managed-by": "kaigen"}
    if env.get("KAIGEN_APP"):
        labels["app.kubernetes.io/instance"] = env["KAIGEN_APP"]
    metadata: Json = {"name": name, "labels": labels}
    if env.get("JOB_NAME") and env.get("JOB_UID"):
        metadata["ownerReferences"] = [
            {"apiVersion": "batch/v1", "kind": "Job", "name": env["JOB_NAME"], "uid": env["JOB_UID"]}
        ]
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data(marker)}


def write(name: str, marker: Marker, env: Mapping[str, str]) -> str:
    """Create the ConfigMap, or update it if it differs.

    Args:
        name: of the ConfigMap, in the pod's own namespace.
        marker: the marker of the download.
        env: `KUBERNETES_SERVICE_HOST` and `_PORT`, `KAIGEN_SA_DIR`, `KAIGEN_APP`, `JOB_NAME`, `JOB_UID`.

    Returns:
        What was done, for the log.

    Raises:
        FactsNotWritten: the API server cannot be reached or refuses.
    """
    try:
        return _write(Api(env), name, config_map(name, marker, env))
    except ApiUnavailable as error:
        raise FactsNotWritten(str(error)) from None


def _write(api: Api, name: str, wanted: Json) -> str:
    path = f"/api/v1/namespaces/{api.namespace}/configmaps"
    status, found = api.call("GET", f"{path}/{name}")
    if status == 404:
        status, found = api.call("POST", path, wanted, "application/json")
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
