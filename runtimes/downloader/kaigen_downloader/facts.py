"""Facts about a finished download: a ConfigMap that the download Job writes."""

from __future__ import annotations

import contextlib
import datetime
import http.client
import json
import os
import re
import ssl
import time
from collections.abc import Mapping

from kaigen_downloader.errors import BadInput
from kaigen_downloader.marker import Marker
from kaigen_downloader.text import hide

SERVICE_ACCOUNT = "/var/run/secrets/kubernetes.io/serviceaccount"
_TIMEOUT = 10.0
_ATTEMPTS = 3
_NAME = re.compile(r"[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?")

Json = dict[str, object]


class FactsNotWritten(Exception):
    """The ConfigMap could not be written. Never fails the download."""


def check_name(name: str) -> str:
    """Return the name of a ConfigMap after checking it.

    Raises:
        BadInput: Kubernetes would not take it.
    """
    if not _NAME.fullmatch(name):
        raise BadInput(f"{name!r} is not a valid name of a ConfigMap")
    return name


def _source(facts: Mapping[str, str]) -> str:
    kind, rest = facts["type"], {name: value for name, value in facts.items() if name != "type"}
    return f"{kind}:{rest['repo']}@{rest['revision']}" if "repo" in rest else ":".join((kind, *rest.values()))


def data(marker: Marker) -> dict[str, str]:
    """Return the data of the ConfigMap, derived from the marker."""
    started, finished = (datetime.datetime.fromisoformat(when) for when in (marker.started, marker.finished))
    seconds = max((finished - started).total_seconds(), 0.001)
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
    wanted = config_map(name, marker, env)
    api = _Api(env)
    path = f"/api/v1/namespaces/{api.namespace}/configmaps"
    status, found = api.call("GET", f"{path}/{name}")
    if status == 404:
        status, found = api.call("POST", path, wanted, "application/json")
        if status == 201:
            return f"created ConfigMap {api.namespace}/{name}"
        if status != 409:
            raise FactsNotWritten(_refused("create", status, found))
    elif status != 200:
        raise FactsNotWritten(_refused("get", status, found))
    elif _agrees(found, wanted):
        return f"ConfigMap {api.namespace}/{name} is up to date"
    status, found = api.call("PATCH", f"{path}/{name}", wanted, "application/merge-patch+json")
    if status != 200:
        raise FactsNotWritten(_refused("patch", status, found))
    return f"updated ConfigMap {api.namespace}/{name}"


def _agrees(found: object, wanted: object) -> bool:
    """Return whether merging `wanted` into `found` changes nothing. Owner references are compared by uid."""
    if isinstance(wanted, dict):
        return isinstance(found, dict) and all(
            _agrees(found.get(key), value) for key, value in wanted.items()
        )
    if isinstance(wanted, list):
        return (
            isinstance(found, list)
            and len(found) == len(wanted)
            and all(_agrees(one, other) for one, other in zip(found, wanted, strict=True))
        )
    return found == wanted


def _refused(verb: str, status: int, answer: Json) -> str:
    reason = answer.get("message") or answer.get("reason")
    return f"the API server answers {status} to {verb}" + (f": {reason}" if reason else "")


def _trust(authority: str) -> ssl.SSLContext:
    """Return a context that trusts only the cluster's certificate authority.

    Since Python 3.13, the default context requires extensions in certificates that authorities of older clusters do not
    have, such as the key usage. kubectl and Go accept them.
    """
    context = ssl.create_default_context(cafile=authority)
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    return context


class _Api:
    """The part of the Kubernetes API that one ConfigMap needs."""

    def __init__(self, env: Mapping[str, str]) -> None:
        self._mount = env.get("KAIGEN_SA_DIR") or SERVICE_ACCOUNT
        self._host = env.get("KUBERNETES_SERVICE_HOST", "")
        self._port = env.get("KUBERNETES_SERVICE_PORT") or "443"
        if not self._host or not self._port.isdigit():
            raise FactsNotWritten("not in a cluster: KUBERNETES_SERVICE_HOST is not set")
        self.namespace = self._file("namespace")
        try:
            self._tls = _trust(os.path.join(self._mount, "ca.crt"))
        except (OSError, ssl.SSLError) as error:
            raise FactsNotWritten(f"{self._mount}/ca.crt: {error}") from None

    def _file(self, name: str) -> str:
        try:
            with open(os.path.join(self._mount, name), encoding="ascii") as file:
                return file.read().strip()
        except (OSError, ValueError) as error:
            raise FactsNotWritten(f"no service account token is mounted ({error})") from None

    def call(self, method: str, path: str, body: Json | None = None, kind: str = "") -> tuple[int, Json]:
        """Return status and JSON response, with a few retries when the server does not respond or is busy."""
        for left in reversed(range(_ATTEMPTS)):
            try:
                status, answer = self._once(method, path, body, kind)
            except (OSError, http.client.HTTPException) as error:
                if not left or isinstance(error, ssl.SSLCertVerificationError):
                    raise FactsNotWritten(f"asking {self._host}: {error or type(error).__name__}") from None
            else:
                if not left or (status != 429 and status < 500):
                    return status, answer
            time.sleep(0.5)
        raise AssertionError("unreachable")

    def _once(self, method: str, path: str, body: Json | None, kind: str) -> tuple[int, Json]:
        # The kubelet renews the token in the file, so it is read for every request.
        token = self._file("token")
        hide(token)
        headers = {"Authorization": f"Bearer {token}", "Accept": "application/json"}
        if body is not None:
            headers["Content-Type"] = kind
        connection = http.client.HTTPSConnection(
            self._host, int(self._port), timeout=_TIMEOUT, context=self._tls
        )
        with contextlib.closing(connection):
            connection.request(method, path, None if body is None else json.dumps(body).encode(), headers)
            response = connection.getresponse()
            try:
                answer = json.loads(response.read(1 << 20))
            except ValueError:
                answer = {}
            return response.status, answer if isinstance(answer, dict) else {}
