"""Requests to the API server of the cluster that the pod runs in."""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import ssl
import time
from collections.abc import Mapping

from kaigen_downloader.text import hide

SERVICE_ACCOUNT = "/var/run/secrets/kubernetes.io/serviceaccount"
_TIMEOUT = 10.0
_ATTEMPTS = 3
_LARGEST = 64 << 20

Json = dict[str, object]


class ApiUnavailable(Exception):
    """The API server cannot be reached, or the pod has no token for it."""


def refused(verb: str, status: int, answer: Json) -> str:
    """Return why the API server does not do what it was asked, for a message."""
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


class Api:
    """The API server of the pod's cluster, as the pod's service account.

    Attributes:
        namespace: namespace of the pod.
    """

    def __init__(self, env: Mapping[str, str]) -> None:
        self._mount = env.get("KAIGEN_SA_DIR") or SERVICE_ACCOUNT
        self._host = env.get("KUBERNETES_SERVICE_HOST", "")
        self._port = env.get("KUBERNETES_SERVICE_PORT") or "443"
        if not self._host or not self._port.isdigit():
            raise ApiUnavailable("not in a cluster: KUBERNETES_SERVICE_HOST is not set")
        self.namespace = self._file("namespace")
        try:
            self._tls = _trust(os.path.join(self._mount, "ca.crt"))
        except (OSError, ssl.SSLError) as error:
            raise ApiUnavailable(f"{self._mount}/ca.crt: {error}") from None

    @property
    def address(self) -> str:
        """Host and port of the API server."""
        return f"{self._host}:{self._port}"

    def _file(self, name: str) -> str:
        try:
            with open(os.path.join(self._mount, name), encoding="ascii") as file:
                return file.read().strip()
        except (OSError, ValueError) as error:
            raise ApiUnavailable(f"no service account token is mounted ({error})") from None

    def call(self, method: str, path: str, body: Json | None = None, kind: str = "") -> tuple[int, Json]:
        """Return status and JSON response, with a few retries when the server does not respond or is busy."""
        for left in reversed(range(_ATTEMPTS)):
            try:
                status, answer = self._once(method, path, body, kind)
            except (OSError, http.client.HTTPException) as error:
                if not left or isinstance(error, ssl.SSLCertVerificationError):
                    raise ApiUnavailable(f"asking {self.address}: {error or type(error).__name__}") from None
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
        connection = http.client.HTTPSConnection(self._host, int(self._port), timeout=_TIMEOUT, context=self._tls)
        with contextlib.closing(connection):
            connection.request(method, path, None if body is None else json.dumps(body).encode(), headers)
            response = connection.getresponse()
            try:
                answer = json.loads(response.read(_LARGEST))
            except ValueError:
                answer = {}
            return response.status, answer if isinstance(answer, dict) else {}
